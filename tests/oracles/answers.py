"""Answers of SciPy, statsmodels and pingouin to the questions that the estimators answer, with the data they are about.

    python answers.py > answers.json

Data are drawn with a fixed seed; `tests/it/oracles.rs` puts the same data to the estimators of this project.
"""

import json
import sys
import warnings

import numpy as np
import pandas as pd
import pingouin as pg
import statsmodels.api as sm
from scipy import optimize, special, stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.proportion import proportion_confint

warnings.filterwarnings("ignore")
rng = np.random.default_rng(20261130)


def moments():
    groups = [list(rng.normal(50 + 10 * k, 4, n)) for k, n in enumerate([3, 3, 2, 3])]
    table = pd.DataFrame([(k, x) for k, group in enumerate(groups) for x in group], columns=["g", "x"])
    flat = [x for group in groups for x in group]
    return {
        "groups": groups,
        "mean": np.mean(flat),
        "median": np.median(flat),
        "population_sd": np.std(flat),
        "variation": stats.variation(flat),
        "between_share": pg.anova(table, dv="x", between="g", effsize="n2", detailed=True)["n2"][0],
    }


def correlations():
    z = rng.normal(size=57)
    x = 0.6 * z + rng.normal(size=57)
    y = 0.5 * z - 0.4 * x + rng.normal(size=57)
    frame = pd.DataFrame({"x": x, "y": y, "z": z})
    return {
        "x": list(x),
        "y": list(y),
        "z": list(z),
        "pearson": stats.pearsonr(x, y).statistic,
        "partial": pg.partial_corr(frame, x="x", y="y", covar="z")["r"].iloc[0],
        "ranks": [int(rank) for rank in stats.rankdata(-np.round(x, 1), method="min")],
    }


def persons(n_persons, n_items):
    ability = rng.normal(size=(n_persons, 1))
    difficulty = rng.normal(size=(1, n_items))
    slope = np.exp(rng.normal(0, 0.4, size=(1, n_items)))
    return (rng.random((n_persons, n_items)) < special.expit(slope * (ability - difficulty))).astype(int)


def reliability():
    outcomes = persons(57, 40)
    frame = pd.DataFrame(outcomes)
    rest = outcomes.sum(axis=1, keepdims=True) - outcomes
    return {
        "outcomes": outcomes.tolist(),
        "kr20": pg.cronbach_alpha(frame)[0],
        "kr20_without": [pg.cronbach_alpha(frame.drop(columns=item))[0] for item in frame],
        "point_biserial": [stats.pointbiserialr(outcomes[:, item], rest[:, item]).statistic for item in frame],
    }


def intervals():
    rates = [(rate, n) for rate in (0.0, 0.1, 0.5307, 1.0) for n in (1.0, 14.5, 328.0)]
    sizes = rng.integers(1, 7, 40)
    passed = [int(rng.binomial(size, 0.3 if rng.random() < 0.5 else 0.8)) for size in sizes]
    outcomes = np.concatenate([[1.0] * y + [0.0] * (m - y) for y, m in zip(passed, sizes)])
    families = np.repeat(np.arange(40), sizes)
    fit = sm.OLS(outcomes, np.ones_like(outcomes)).fit()
    robust = fit.get_robustcov_results(cov_type="cluster", groups=families)
    draws = list(rng.normal(size=501))
    return {
        "wilson": [
            {"rate": rate, "n": n, "interval": list(proportion_confint(rate * n, n, method="wilson"))} for rate, n in rates
        ],
        "clusters": [[y, int(m)] for y, m in zip(passed, sizes)],
        "clustered_variance": robust.cov_params()[0][0],
        "draws": draws,
        "percentiles": list(np.percentile(draws, [2.5, 97.5])),
        "t": [{"p": p, "df": df, "quantile": stats.t.ppf(p, df)} for p in (0.6, 0.975, 0.999) for df in (1, 2, 17, 300)],
    }


def line():
    x = rng.uniform(1, 17, 19)
    y = 30 + 1.2 * x + rng.normal(0, 4, 19)
    fit = sm.OLS(y, sm.add_constant(x)).fit()
    places = [1.0, 8.0, 17.0]
    band = fit.get_prediction(sm.add_constant(np.array(places))).conf_int(alpha=0.05)
    return {
        "x": list(x),
        "y": list(y),
        "intercept": fit.params[0],
        "slope": fit.params[1],
        "residual_sd": np.sqrt(fit.mse_resid),
        "places": places,
        "half_band": [(high - low) / 2 for low, high in band],
    }


def exact():
    pairs = [(9, 1), (1, 9), (3, 3), (0, 7), (40, 21), (150, 101)]
    lists = [[3, 1, -1], [4, 4, 4], [5, -2, 1, 1, -3, 2, 6, 1], [1, -1, 2, 0, 3, -2, 1, 1, 4, -1, 2, 1]]

    def flips(values):
        values = np.array([value for value in values if value], dtype=float)
        found = stats.permutation_test(
            (values,), np.sum, permutation_type="samples", n_resamples=np.inf, alternative="two-sided"
        )
        return found.pvalue

    return {
        "mcnemar": [
            {"first": b, "second": c, "p": mcnemar([[0, b], [c, 0]], exact=True).pvalue} for b, c in pairs
        ],
        "sign_flips": [{"differences": values, "p": flips(values)} for values in lists],
    }


def intraclass():
    families, variants = 25, 4
    shift = rng.normal(0, 1.5, (families, 1))
    outcomes = (rng.random((families, variants)) < special.expit(shift)).astype(int)
    rows = [(f, v, outcomes[f, v]) for f in range(families) for v in range(variants)]
    frame = pd.DataFrame(rows, columns=["family", "variant", "outcome"])
    found = pg.intraclass_corr(frame, targets="family", raters="variant", ratings="outcome")
    single = found[found["Type"].str.startswith("ICC1") | found["Type"].str.startswith("ICC(1,1)")].iloc[0]
    return {"outcomes": outcomes.tolist(), "intraclass": single["ICC"]}


def item_response():
    """The mode of the same posterior, found by a general optimiser instead of expectation and maximisation."""
    outcomes = persons(60, 12)
    nodes = np.linspace(-4, 4, 41)
    weights = np.exp(-nodes**2 / 2)
    weights /= weights.sum()

    def loss(parameters):
        log_slope, difficulty = parameters[:12], parameters[12:]
        odds = np.exp(log_slope)[None, :] * (nodes[:, None] - difficulty[None, :])
        log_pass, log_fail = special.log_expit(odds), special.log_expit(-odds)
        of_person = outcomes @ log_pass.T + (1 - outcomes) @ log_fail.T
        likelihood = special.logsumexp(of_person + np.log(weights), axis=1).sum()
        prior = -(log_slope**2).sum() / (2 * 0.5**2) - (difficulty**2).sum() / (2 * 2.0**2)
        return -(likelihood + prior)

    found = optimize.minimize(loss, np.zeros(24), method="BFGS", options={"gtol": 1e-7, "maxiter": 10000})
    return {
        "outcomes": outcomes.tolist(),
        "slopes": list(np.exp(found.x[:12])),
        "difficulties": list(found.x[12:]),
    }


def main():
    answers = {
        "moments": moments(),
        "correlations": correlations(),
        "reliability": reliability(),
        "intervals": intervals(),
        "line": line(),
        "exact": exact(),
        "intraclass": intraclass(),
        "item_response": item_response(),
    }
    json.dump(answers, sys.stdout, indent=1, default=float)
    print()


main()
