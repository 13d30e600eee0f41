#!/usr/bin/env python3
"""Clustering at full size: `pipeline cluster` beside scikit-learn on the same 21,083 issues, and an increment of 100.

    cargo build --release
    python3 -m venv /tmp/peers && /tmp/peers/bin/pip install numpy scikit-learn
    /tmp/peers/bin/python benches/peers/clusters.py [--issues N] [--pipeline PROGRAM] [--keep FOLDER]

The issues are made up here, the same every time: 600 phenomena of 3 to 60 reports in the words of clauses, the rest is
noise of the same forms. It is easier than real issues, so the agreement only shows that both did their work. Ours is the
whole command: reading the database, terms, vectors, pairs, linkage, names, writing. Theirs is TF-IDF, all cosine
distances, average linkage: what scikit-learn offers for the same method; reading and naming are not counted. Seconds of
processor time (user and system) and of the clock; most memory of the process.
"""

import argparse
import collections
import json
import os
import pathlib
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).parents[2]
N_PHENOMENA = 600
N_NEW = 100


def corpus(n_issues):
    rng = random.Random(7)
    text = "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "data/document").glob("*.md")))
    clauses = [re.findall(r"[A-Za-z]+", clause) for clause in re.split(r"(?m)^### ", text)[1:]]
    syllables = "ba co di fu ga he jo ki lu me no pa ri so tu".split()
    noise = ["".join(rng.choice(syllables) for _ in range(rng.randint(2, 4))) for _ in range(12_000)]
    rank = lambda words: words[min(int(len(words) ** rng.random()), len(words)) - 1]
    said = lambda n, words: " ".join(rank(words) for _ in range(n))
    phenomena = []
    for phenomenon in range(N_PHENOMENA):
        phenomena += [phenomenon] * (2 + int(58 ** rng.random()))
    phenomena = (phenomena + [None] * n_issues)[:n_issues]
    rng.shuffle(phenomena)
    telling = [rng.choices(rng.choice(clauses), k=8) + rng.choices(noise[2000:], k=8) for _ in range(N_PHENOMENA)]
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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--issues", type=int, default=21_083)
    parser.add_argument("--pipeline", default=str(ROOT / "target/release/pipeline"))
    parser.add_argument("--keep")
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.peer:
        return peer(pathlib.Path(args.peer))
    folder = pathlib.Path(args.keep or tempfile.mkdtemp(prefix="doc2harness-clusters-"))
    for part in ["pipeline", "data/document"]:
        shutil.copytree(ROOT / part, folder / part, dirs_exist_ok=True)
    settings = folder / "pipeline/cluster.toml"
    settings.write_text(re.sub(r"n_top = \d+", "n_top = 1000000", settings.read_text()))
    rows = list(corpus(args.issues))
    print(f"{len(rows)} issues, {sum(p is not None for _, p in rows)} of {N_PHENOMENA} phenomena")

    def write(name, some):
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row, _ in some), encoding="utf-8")

    def run(what, command):
        began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        ran = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        print(f"{what:<52} {seconds:8.2f} s {time.perf_counter() - began:8.2f} s")
        return seconds, ran.stdout

    ours = lambda *words: [args.pipeline, "--quiet", "--json", *words]
    print(f"{'':<52} {'processor':>10} {'clock':>10}")
    write("first.jsonl", rows[:-N_NEW])
    run("pipeline collect", ours("collect", "--from", "first.jsonl"))
    run("pipeline rank", ours("rank"))
    seconds, _ = run("pipeline cluster", ours("cluster", "--all"))
    write("new.jsonl", rows[-N_NEW:])
    run(f"pipeline collect, {N_NEW} more", ours("collect", "--from", "new.jsonl"))
    run("pipeline rank", ours("rank"))
    _, told = run(f"pipeline cluster, {N_NEW} more", ours("cluster", "--all"))
    cluster_of = {key: one["id"] for one in json.loads(told)["clusters"] for key in one["members"]}
    planted = [(row, phenomenon) for row, phenomenon in rows if phenomenon is not None]
    truth = [phenomenon for _, phenomenon in planted]
    found = [cluster_of[f"{row['repository']}#{row['number']}"] for row, _ in planted]
    write("all.jsonl", rows)
    peers, told = run("scikit-learn: TF-IDF, cosines, average linkage", [sys.executable, __file__, "--peer", "all.jsonl"])
    labels = json.loads(told)
    theirs = [label for label, (_, phenomenon) in zip(labels["labels"], rows) if phenomenon is not None]
    print(f"pairwise F1 on the planted: ours {f1(found, truth):.3f}, scikit-learn {f1(theirs, truth):.3f}")
    print(f"most memory of scikit-learn {labels['mib']} MiB; processor time {peers / seconds:.1f} times ours")
    if not args.keep:
        shutil.rmtree(folder)


def peer(path):
    from sklearn.cluster import AgglomerativeClustering
    from sklearn.feature_extraction.text import TfidfVectorizer

    rows = [json.loads(line) for line in open(path, encoding="utf-8")]
    texts = [f"{row['title']}\n{row['body']}" for row in rows]
    vectors = TfidfVectorizer(sublinear_tf=True, min_df=2, stop_words="english").fit_transform(texts)
    distances = (vectors @ vectors.T).toarray()
    distances *= -1.0
    distances += 1.0
    clusters = AgglomerativeClustering(
        n_clusters=None, distance_threshold=0.8, metric="precomputed", linkage="average"
    ).fit(distances)
    mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps({"labels": clusters.labels_.tolist(), "mib": mib}))


main()
