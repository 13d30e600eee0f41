#!/usr/bin/env python3
"""Mining at full size: `pipeline rank` and `pipeline cluster` beside bm25s and scikit-learn on the same 21,083 issues.

    cargo build --release
    python3 -m venv /tmp/peers && /tmp/peers/bin/pip install numpy bm25s scikit-learn
    /tmp/peers/bin/python benches/peers/full_size.py [--rounds N] [--issues N] [--pipeline PROGRAM]

The two take turns, and the medians of the rounds are printed: seconds of processor time (user and system) and of the
clock, and the most memory of the process.

The issues are made up here, the same every time: 600 phenomena of 3 to 60 reports in the words of clauses, the rest is
noise of the same forms. It is easier than real issues, so the quality only shows that both did their work. Ours are
whole commands: reading the database, terms, scores or vectors and pairs and linkage, names, writing; after them come 100
issues more. Theirs are whole programs without a database: BM25 of every clause, the mean of an issue's ten best; TF-IDF,
all cosine distances, average linkage. Both libraries learn nothing from what was there, so 100 issues more cost them the
same again. Reading is counted there too, naming is not done.
"""

import argparse
import collections
import json
import os
import pathlib
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).parents[2]
N_PHENOMENA = 600
N_NEW = 100


def clauses():
    text = "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "data/document").glob("*.md")))
    return re.split(r"(?m)^### ", text)[1:]


def corpus(n_issues):
    rng = random.Random(7)
    words_of_clauses = [re.findall(r"[A-Za-z]+", clause) for clause in clauses()]
    syllables = "ba co di fu ga he jo ki lu me no pa ri so tu".split()
    noise = ["".join(rng.choice(syllables) for _ in range(rng.randint(2, 4))) for _ in range(12_000)]
    rank = lambda words: words[min(int(len(words) ** rng.random()), len(words)) - 1]
    said = lambda n, words: " ".join(rank(words) for _ in range(n))
    phenomena = []
    for phenomenon in range(N_PHENOMENA):
        phenomena += [phenomenon] * (2 + int(58 ** rng.random()))
    phenomena = (phenomena + [None] * n_issues)[:n_issues]
    rng.shuffle(phenomena)
    own_words = lambda: rng.choices(rng.choice(words_of_clauses), k=8) + rng.choices(noise[2000:], k=8)
    telling = [own_words() for _ in range(N_PHENOMENA)]
    for idx, phenomenon in enumerate(phenomena):
        own = noise if phenomenon is None else telling[phenomenon]
        body = (
            f"### Checklist\n\n- [x] I searched\n\n### What happened?\n\n{said(30, own)}\n{said(70, noise)}\n\n"
            f"### Logs\n\n```\nTypeError: {said(20, noise)}\n    at run (/app/main.js:10:{idx})\n```\n"
        )
        row = {"repository": f"bench/{'abcd'[idx % 4]}", "number": 1 + idx // 4, "title": said(6, own), "body": body}
        yield row, phenomenon


def f1(found, truth):
    """Pairwise, over the items that have a truth."""
    pairs = lambda labels: sum(n * (n - 1) / 2 for n in collections.Counter(labels).values())
    return 2 * pairs(zip(found, truth)) / (pairs(found) + pairs(truth))


class Timed:
    """Programs that are run in a folder, with what each of their runs took."""

    def __init__(self, folder):
        self.folder = folder
        self.took = collections.defaultdict(list)

    def run(self, what, command):
        with tempfile.TemporaryFile() as output:
            began = time.perf_counter()
            child = subprocess.Popen(command, cwd=self.folder, stdout=output)
            _, status, usage = os.wait4(child.pid, 0)
            clock = time.perf_counter() - began
            assert status == 0, command
            self.took[what].append((usage.ru_utime + usage.ru_stime, clock, usage.ru_maxrss / 1024))
            output.seek(0)
            return output.read()

    def median(self, what):
        return [statistics.median(figures) for figures in zip(*self.took[what])]

    def show(self):
        print(f"{'':<46} {'processor':>10} {'clock':>10} {'memory':>12}")
        for what in self.took:
            processor, clock, mib = self.median(what)
            print(f"{what:<46} {processor:8.2f} s {clock:8.2f} s {mib:8.0f} MiB")

    def ratio(self, what, theirs, ours):
        total = lambda names, figure: sum(self.median(name)[figure] for name in names)
        of = lambda figure: total(theirs, figure) / total(ours, figure)
        print(f"{what + ', times as fast':<46} {of(0):10.1f} {of(1):10.1f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--issues", type=int, default=21_083)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pipeline", default=str(ROOT / "target/release/pipeline"))
    parser.add_argument("--peer", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.peer:
        library, path = args.peer
        rows = [json.loads(line) for line in open(path, encoding="utf-8")]
        texts = [f"{row['title']}\n{row['body']}" for row in rows]
        return print(json.dumps({"bm25s": bm25s_order, "scikit-learn": scikit_labels}[library](texts)))
    folder = pathlib.Path(tempfile.mkdtemp(prefix="doc2harness-full-size-"))
    for part in ["pipeline", "data/document"]:
        shutil.copytree(ROOT / part, folder / part)
    settings = folder / "pipeline/cluster.toml"
    settings.write_text(re.sub(r"n_top = \d+", "n_top = 1000000", settings.read_text()))
    rows = list(corpus(args.issues))
    phenomena = [phenomenon for _, phenomenon in rows]
    n_planted = sum(phenomenon is not None for phenomenon in phenomena)
    print(f"{len(rows)} issues, {n_planted} of {N_PHENOMENA} phenomena, {len(clauses())} clauses, {args.rounds} rounds")
    files = {"first": rows[:-N_NEW], "later": rows[-N_NEW:], "all": rows}
    for name, some in files.items():
        text = "".join(json.dumps(row) + "\n" for row, _ in some)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")

    timed = Timed(folder)
    ours = lambda what, *words: timed.run(what, [args.pipeline, "--quiet", "--json", *words])
    peer = lambda library, what: timed.run(what, [sys.executable, __file__, "--peer", library, "all.jsonl"])
    for _ in range(args.rounds):
        shutil.rmtree(folder / "data/db", ignore_errors=True)
        ours("pipeline collect", "collect", "--from", "first.jsonl")
        ours("pipeline rank", "rank")
        order = peer("bm25s", "bm25s: every clause, ten best")
        ours("pipeline cluster", "cluster", "--all")
        labels = peer("scikit-learn", "scikit-learn: TF-IDF, cosines, linkage")
        ours(f"pipeline collect, {N_NEW} more", "collect", "--from", "later.jsonl")
        ours(f"pipeline rank, {N_NEW} more", "rank")
        told = ours(f"pipeline cluster, {N_NEW} more", "cluster", "--all")
    timed.show()
    theirs = ["bm25s: every clause, ten best", "scikit-learn: TF-IDF, cosines, linkage"]
    timed.ratio("rank", theirs[:1], ["pipeline rank"])
    timed.ratio("cluster", theirs[1:], ["pipeline cluster"])
    timed.ratio("both", theirs, ["pipeline rank", "pipeline cluster"])
    timed.ratio(f"both, {N_NEW} more", theirs, [f"pipeline rank, {N_NEW} more", f"pipeline cluster, {N_NEW} more"])

    cluster_of = {key: one["id"] for one in json.loads(told)["clusters"] for key in one["members"]}
    key = lambda row: f"{row['repository']}#{row['number']}"
    planted = [idx for idx, phenomenon in enumerate(phenomena) if phenomenon is not None]
    labels = json.loads(labels)
    truth = [phenomena[idx] for idx in planted]
    found = f1([cluster_of[key(rows[idx][0])] for idx in planted], truth)
    print(f"pairwise F1 on the planted: ours {found:.3f}, scikit-learn {f1([labels[idx] for idx in planted], truth):.3f}")
    precision = lambda order: average_precision([phenomena[idx] is not None for idx in order])
    places = {key(row): idx for idx, (row, _) in enumerate(rows)}
    our_order = [places[f"{repository}#{number}"] for repository, number in ranked(folder)]
    print(f"average precision, planted over noise: ours {precision(our_order):.3f}, bm25s {precision(json.loads(order)):.3f}")
    shutil.rmtree(folder)


def ranked(folder):
    import sqlite3

    with sqlite3.connect(folder / "data/db/pipeline.sqlite") as database:
        return database.execute("SELECT repository, number FROM rank_issues ORDER BY place").fetchall()


def average_precision(relevant):
    n_found, total = 0, 0.0
    for place, one in enumerate(relevant, start=1):
        if one:
            n_found += 1
            total += n_found / place
    return total / n_found


def bm25s_order(texts):
    import bm25s
    import numpy as np

    index = bm25s.BM25()
    index.index(bm25s.tokenize(texts, stopwords="en", show_progress=False), show_progress=False)
    queries = bm25s.tokenize(clauses(), stopwords="en", show_progress=False, return_ids=False)
    scores = np.array([index.get_scores(terms) for terms in queries])
    best = np.partition(scores, -10, axis=0)[-10:].mean(axis=0)
    return np.argsort(-best, kind="stable").tolist()


def scikit_labels(texts):
    from sklearn.cluster import AgglomerativeClustering
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectors = TfidfVectorizer(sublinear_tf=True, min_df=2, stop_words="english").fit_transform(texts)
    distances = (vectors @ vectors.T).toarray()
    distances *= -1.0
    distances += 1.0
    clusters = AgglomerativeClustering(
        n_clusters=None, distance_threshold=0.8, metric="precomputed", linkage="average"
    ).fit(distances)
    return clusters.labels_.tolist()


main()
