"""Duplicates told by plain BM25, the anchor of `pipeline cluster --judge DIR --pairs DIR/pairs.jsonl`, and the files for it.

    python3 -m venv /tmp/peers && /tmp/peers/bin/pip install bm25s numpy
    /tmp/peers/bin/python benches/peers/duplicates.py BUGZILLA DIR
    pipeline cluster --judge DIR --pairs DIR/pairs.jsonl

BUGZILLA holds bugzilla_bugs.json and bugzilla_pairs.csv of apex-bridge/bugspotter-embedding-benchmark; DIR is written: a
judged set of these reports, whose groups are the phenomena, and the pairs. The similarity of two reports is the BM25
score of one as the query for the other, over that of the query for itself, and the mean of both directions. As with the
pipeline, groups are dealt into 5 parts 20 times, and each part is judged at the threshold that is best on the others.
"""

import csv
import hashlib
import json
import pathlib
import sys

import bm25s
import numpy as np


def deals(groups, n_deals=20, n_parts=5):
    for deal in range(n_deals):
        order = sorted(groups, key=lambda group: hashlib.sha256(f"{deal}\0{group}".encode()).hexdigest())
        yield {group: idx % n_parts for idx, group in enumerate(order)}


def f1(found, truth, weight=1.0):
    both = (weight * (found & truth)).sum()
    return both, (weight * found).sum(), (weight * truth).sum()


def main():
    source, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    bugs = json.loads((source / "bugzilla_bugs.json").read_text(encoding="utf-8"))
    places = {bug["id"]: place for place, bug in enumerate(bugs)}
    pairs = [
        (places[row["report_a_id"]], places[row["report_b_id"]], row["label"] == "duplicate")
        for row in csv.DictReader(open(source / "bugzilla_pairs.csv", encoding="utf-8"))
    ]
    folder.mkdir(parents=True, exist_ok=True)
    key = lambda place: f"mozilla/bugs#{bugs[place]['bugzilla_id']}"

    def write(name, rows):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / name).write_text(text, encoding="utf-8")

    common = lambda bug: {"repository": "mozilla/bugs", "number": bug["bugzilla_id"]}
    write("issues.jsonl", ({**common(bug), "title": bug["title"], "body": bug["description"] or ""} for bug in bugs))
    judged = {"relevant": 2, "chapter": "none", "effect": "none", "boundary": False}
    write("judgements.jsonl", ({**common(bug), **judged, "phenomenon": bug["group"]} for bug in bugs))
    write("pairs.jsonl", ({"a": key(a), "b": key(b), "duplicate": same} for a, b, same in pairs))

    texts = [f"{bug['title']}\n{bug['description'] or ''}" for bug in bugs]
    index = bm25s.BM25()
    index.index(bm25s.tokenize(texts, stopwords="en", show_progress=False), show_progress=False)
    words = bm25s.tokenize(texts, stopwords="en", show_progress=False, return_ids=False)
    scores = np.array([index.get_scores(query) for query in words])
    scores /= np.maximum(np.diag(scores)[:, None], 1e-9)
    alike = np.array([(scores[a, b] + scores[b, a]) / 2 for a, b, _ in pairs])
    truth = np.array([same for _, _, same in pairs])
    thresholds = np.unique(alike)
    best = max(2 * both / (found + true) for both, found, true in (f1(alike >= t, truth) for t in thresholds))
    crossed = []
    for part_of in deals({bug["group"] for bug in bugs}):
        parts = np.array([[part_of[bugs[a]["group"]], part_of[bugs[b]["group"]]] for a, b, _ in pairs])
        pooled = np.zeros(3)
        for part in range(5):
            inside = (parts == part).any(axis=1)
            score = lambda t: (lambda b, f, r: 2 * b / (f + r))(*f1((alike >= t)[~inside], truth[~inside]))
            threshold = max(thresholds, key=score)
            weight = np.where(parts[inside, 0] == parts[inside, 1], 1.0, 0.5)
            pooled += f1((alike >= threshold)[inside], truth[inside], weight)
        crossed.append(2 * pooled[0] / (pooled[1] + pooled[2]))
    everything = 2 * truth.sum() / (len(truth) + truth.sum())
    print(f"{len(bugs)} reports, {len(pairs)} pairs, {truth.sum()} of them duplicates")
    print(f"all called duplicates: F1 {everything:.4f}; BM25 at its best threshold: F1 {best:.4f}")
    print(f"BM25, threshold from other groups: F1 {np.mean(crossed):.4f} ({min(crossed):.4f} to {max(crossed):.4f})")


main()
