"""Answers of buscarpy (the chance of missing) and pyterrier-tar (the knee) to the questions of methods/stopping.rs.

    pip install buscarpy==0.0.2 && pip install --no-deps pyterrier-tar==0.1.2
    python stopping.py > stopping.json

pyterrier-tar needs PyTerrier and Java for everything but this; so only the file with its knee is loaded. Orders of
reading are drawn with a fixed seed: relevant ones come early, or at random, or late.
"""

import importlib.util
import json
import pathlib
import sysconfig

import numpy as np
from buscarpy import calculate_h0

rng = np.random.default_rng(20261130)
path = pathlib.Path(sysconfig.get_path("purelib")) / "pyterrier_tar/rules/trajectory/_shared.py"
spec = importlib.util.spec_from_file_location("shared", path)
shared = importlib.util.module_from_spec(spec)
spec.loader.exec_module(shared)


def readings():
    for n_all, n_relevant, haste in [
        (60, 12, 8.0),
        (200, 30, 0.0),
        (400, 60, 5.0),
        (1000, 25, 12.0),
        (1000, 80, 6.0),
        (1500, 78, 10.0),
        (1500, 78, -3.0),
        (5000, 200, 15.0),
    ]:
        chances = np.exp(-haste * np.arange(n_all) / n_all)
        places = rng.choice(n_all, n_relevant, replace=False, p=chances / chances.sum())
        labels = np.zeros(n_all, dtype=int)
        labels[places] = 1
        for share in [0.15, 0.4, 0.8]:
            yield n_all, labels[: int(n_all * share)]


answers = []
for n_all, labels in readings():
    at, _, ratio = shared._knee_evidence(labels.cumsum())
    answers.append(
        {
            "n_all": n_all,
            "labels": "".join(map(str, labels)),
            "chance": {str(target): float(calculate_h0(labels, n_all, target)) for target in [0.8, 0.9, 0.95]},
            "knee": None if at is None else {"at": at, "ratio": float(ratio)},
        }
    )
print(json.dumps(answers, indent=1))
