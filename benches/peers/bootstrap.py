"""The bootstrap over families and builds in numpy: what benches/analysis.rs is compared with.

    python bootstrap.py verdicts.csv

Rates of each model in all parts, and KR-20, with 2,000 draws. Prints the first model's rate with its percentiles, and
KR-20. Builds are drawn plainly, so that intervals are wider than ours where builds differ by noise alone.
"""

import csv
import sys

import numpy as np

N_DRAWS = 2000


def read(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def places(values):
    names = sorted(set(values))
    return names, {name: place for place, name in enumerate(names)}


def main():
    rows = read(sys.argv[1])
    candidates, candidate_at = places(row["candidate"] for row in rows)
    cases, case_at = places(row["case"] for row in rows)
    families, family_at = places(row["family"] for row in rows)
    passed = np.zeros((len(candidates), len(cases)))
    family_of = np.zeros(len(cases), dtype=int)
    model_of = [""] * len(candidates)
    groups = {}
    for row in rows:
        candidate, case = candidate_at[row["candidate"]], case_at[row["case"]]
        passed[candidate, case] = row["outcome"] == "pass"
        family_of[case] = family_at[row["family"]]
        model_of[candidate] = row["model"]
        groups.setdefault(row["category"], set()).add(case)
        groups.setdefault(row["scenario"], set()).add(case)
    parts = np.ones((len(cases), 1 + len(groups)))
    for place, (_, members) in enumerate(sorted(groups.items()), start=1):
        parts[:, place] = [case in members for case in range(len(cases))]
    models, model_at = places(model_of)
    builds = [[i for i, name in enumerate(model_of) if name == model] for model in models]

    rng = np.random.default_rng(1)
    rates = np.zeros((N_DRAWS, len(models), parts.shape[1]))
    reliability = np.zeros(N_DRAWS)
    for draw in range(N_DRAWS):
        drawn = np.bincount(rng.integers(0, len(families), len(families)), minlength=len(families))
        weights = drawn[family_of]
        counted = weights @ parts
        of_candidates = (passed * weights) @ parts / np.where(counted > 0, counted, np.nan)
        times = np.zeros(len(candidates))
        for place, own in enumerate(builds):
            chosen = rng.choice(own, len(own))
            rates[draw, place] = of_candidates[chosen].mean(axis=0)
            np.add.at(times, chosen, 1)
        share = times @ passed / times.sum()
        totals = passed @ weights
        mean = times @ totals / times.sum()
        variance = times @ (totals - mean) ** 2 / times.sum()
        k = weights.sum()
        reliability[draw] = k / (k - 1) * (1 - weights @ (share * (1 - share)) / variance)
    own = rates[:, 0, 0]
    low, high = np.percentile(own, [2.5, 97.5])
    print(f"{passed[builds[0]].mean():.4f} ({low:.4f} to {high:.4f}); KR-20 draws {np.median(reliability):.4f}")


main()
