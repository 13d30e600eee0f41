"""Duplicates told by plain BM25, the anchor of `pipeline cluster --judge DIR --pairs DIR/pairs.jsonl`, and the files for it.

    python3 -m venv /tmp/peers && /tmp/peers/bin/pip install rank-bm25 numpy
    /tmp/peers/bin/python benches/peers/duplicates.py BUGZILLA DIR
    pipeline cluster --judge DIR --pairs DIR/pairs.jsonl

BUGZILLA holds bugzilla_bugs.json and bugzilla_pairs.csv of apex-bridge/bugspotter-embedding-benchmark; DIR is written: a
judged set of these reports, whose groups are the phenomena, and the pairs. Scores and the first figure are made as that
benchmark makes them (benchmark/bm25_bugzilla.py): words between blanks, the first 2,048 letters, the mean of the BM25
scores of each report as the query for the other, and the best of 200 thresholds in hindsight, on the pairs themselves.
The second figure is made as the pipeline makes its own: groups are dealt into 5 parts 20 times, and each part is judged
at the threshold that is best on the others. All 100 pairs that are no duplicates share one report of a line, so a pair of
two groups is dealt with the group that fewer pairs touch.
"""

import collections
import csv
import hashlib
import json
import pathlib
import sys

import numpy as np
from rank_bm25 import BM25Okapi


def deals(groups, n_deals=20, n_parts=5):
    for deal in range(n_deals):
        order = sorted(groups, key=lambda group: hashlib.sha256(f"{deal}\0{group}".encode()).hexdigest())
        yield {group: idx % n_parts for idx, group in enumerate(order)}


def f1(found, truth):
    return 2 * (found & truth).sum() / (found.sum() + truth.sum())


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

    words = [f"{bug['title']} | {bug['description'] or ''}"[:2048].lower().split() for bug in bugs]
    index = BM25Okapi(words)
    scores = {place: index.get_scores(words[place]) for pair in pairs for place in pair[:2]}
    alike = np.array([(scores[a][b] + scores[b][a]) / 2 for a, b, _ in pairs])
    alike = (alike - alike.min()) / (alike.max() - alike.min())
    truth = np.array([same for _, _, same in pairs])
    best = max(f1(alike >= threshold, truth) for threshold in np.arange(0, 1, 0.005))
    groups = [{bugs[a]["group"], bugs[b]["group"]} for a, b, _ in pairs]
    touching = collections.Counter(group for pair in groups for group in pair)
    of_pair = [min(pair, key=lambda group: (touching[group], group)) for pair in groups]
    crossed = []
    for part_of in deals({bug["group"] for bug in bugs}):
        parts = np.array([part_of[group] for group in of_pair])
        found = np.zeros(len(pairs), dtype=bool)
        for part in range(5):
            others = parts != part
            threshold = max(np.unique(alike), key=lambda threshold: f1(alike[others] >= threshold, truth[others]))
            found |= (parts == part) & (alike >= threshold)
        crossed.append(f1(found, truth))
    everything = 2 * truth.sum() / (len(truth) + truth.sum())
    print(f"{len(bugs)} reports, {len(pairs)} pairs, {truth.sum()} of them duplicates")
    print(f"all called duplicates: F1 {everything:.4f}; BM25 at its best threshold: F1 {best:.4f}")
    print(f"BM25, threshold from other groups: F1 {np.mean(crossed):.4f} ({min(crossed):.4f} to {max(crossed):.4f})")


main()
