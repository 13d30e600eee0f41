"""Ranking of a judged set by plain BM25, the anchor of `pipeline rank --judge DIR --among FILES`.

    python3 -m venv /tmp/peers && /tmp/peers/bin/pip install bm25s numpy
    /tmp/peers/bin/python benches/peers/mining.py DIR [FILES…]

DIR holds issues.jsonl and judgements.jsonl; the issues of FILES have no judgement. The text is that of the whole issue,
the query the whole development document, or each of its clauses. Figures are defined as in methods/ranking_quality.rs:
of the judged issues alone, and of all as if those without a judgement were not relevant. How long bm25s takes at full
size is in full_size.py.
"""

import json
import pathlib
import re
import sys

import bm25s
import numpy as np


def rows(path):
    return [json.loads(line) for line in open(path, encoding="utf-8") if line.strip()]


def figures(gains):
    relevant = gains > 0
    precision = (np.cumsum(relevant) / np.arange(1, len(gains) + 1))[relevant].mean()
    dcg = lambda g: ((2.0 ** g[:50] - 1) / np.log2(np.arange(2, 2 + len(g[:50])))).sum()
    ndcg = dcg(gains) / dcg(np.sort(gains)[::-1])
    n_read = np.flatnonzero(np.cumsum(relevant) >= 0.95 * relevant.sum() - 1e-9)[0] + 1
    return precision, ndcg, (len(gains) - n_read) / len(gains) - 0.05


def main():
    folder, others = pathlib.Path(sys.argv[1]), sys.argv[2:]
    judged = {(r["repository"], r["number"]): r["relevant"] for r in rows(folder / "judgements.jsonl")}
    issues = {}
    for path in [folder / "issues.jsonl", *others]:
        for row in rows(path):
            if not row.get("pull_request") and "/pull/" not in (row.get("html_url") or ""):
                issues.setdefault((row["repository"], row["number"]), row)
    texts = [f"{row['title']}\n{row.get('body') or ''}" for row in issues.values()]
    document = pathlib.Path(__file__).parents[2] / "data" / "document"
    text = "\n".join(path.read_text(encoding="utf-8") for path in sorted(document.glob("*.md")))
    clauses = re.split(r"(?m)^### ", text)[1:]

    index = bm25s.BM25()
    index.index(bm25s.tokenize(texts, stopwords="en", show_progress=False), show_progress=False)

    def score(query):
        terms = bm25s.tokenize([query], stopwords="en", show_progress=False, return_ids=False)[0]
        return index.get_scores(terms)

    by_document = score(text)
    by_clause = np.max([score(clause) for clause in clauses], axis=0)
    print(f"{len(issues)} issues, {len(clauses)} clauses")
    print(f"{'':38} {'precision':>9} {'nDCG@50':>9} {'WSS@95':>9}")
    for name, scores in [("whole document", by_document), ("best clause", by_clause)]:
        order = np.argsort(-scores, kind="stable")
        gains = [judged.get(key) for key in issues]
        alone = np.array([gains[idx] for idx in order if gains[idx] is not None])
        hidden = np.array([gains[idx] or 0 for idx in order])
        for among, values in [("the judged alone", alone), ("hidden among all", hidden)]:
            print(f"{name + ', ' + among:38} " + " ".join(f"{value:9.4f}" for value in figures(values)))


main()
