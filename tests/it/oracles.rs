//! The estimators beside SciPy, statsmodels and pingouin, whose answers are kept in `tests/oracles/answers.json`, and the
//! rules of stopping beside others, kept in `tests/oracles/stopping.json`.
//!
//! `PIPELINE_TEST_ORACLES=1 cargo test --test it oracles` installs them and looks whether they still answer the same.

mod stopping;

use std::process::Command;

use doc2harness::domain::case::{CaseId, Category};
use doc2harness::domain::clause::Scenario;
use doc2harness::domain::results::{Row, Status};
use doc2harness::methods::analysis::{Table, independence, items};
use doc2harness::methods::statistics::{
    Line, between_share, clustered_variance, coefficient_of_variation, item_response, kr20,
    mcnemar, mean, median, partial, pearson, percentiles, population_sd, ranks, sign_flips,
    t_quantile, wilson,
};
use serde_json::Value;

use crate::project::repository;

fn answers(part: &str) -> Value {
    let text = std::fs::read_to_string(repository().join("tests/oracles/answers.json"));
    let all: Value = serde_json::from_str(&text.expect("reads")).expect("JSON");
    all[part].clone()
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

fn numbers(value: &Value) -> Vec<f64> {
    value
        .as_array()
        .expect("a list")
        .iter()
        .map(number)
        .collect()
}

fn whole(value: &Value) -> usize {
    number(value) as usize
}

fn outcomes(value: &Value) -> Vec<Vec<bool>> {
    let rows = value.as_array().expect("a list").iter();
    rows.map(|row| numbers(row).iter().map(|passed| *passed == 1.0).collect())
        .collect()
}

#[track_caller]
fn close(found: impl Into<Option<f64>>, expected: &Value, tolerance: f64) {
    let (found, expected) = (
        found.into().expect("there is an estimate"),
        number(expected),
    );
    assert!(
        (found - expected).abs() <= tolerance,
        "{found} is not {expected}"
    );
}

/// Candidates × cases as rows; `family` says in which family a case is.
fn rows(outcomes: &[Vec<bool>], family: impl Fn(usize) -> usize) -> Vec<Row> {
    let mut rows = Vec::new();
    for (person, passed) in outcomes.iter().enumerate() {
        for (item, passed) in passed.iter().enumerate() {
            let status = if *passed { Status::Pass } else { Status::Fail };
            rows.push(Row {
                candidate: format!("c{person:03}"),
                model: format!("c{person:03}"),
                build: "1".to_owned(),
                case: CaseId::new(format!("headless/{item:03}")),
                category: Category::Headless,
                scenario: Scenario::Ordinary,
                family: CaseId::new(format!("family/{:03}", family(item))),
                n_controls: None,
                status,
                reason: status.as_str().to_owned(),
            });
        }
    }
    rows
}

#[test]
fn moments_are_those_of_numpy_and_pingouin() {
    let expected = answers("moments");
    let groups: Vec<Vec<f64>> = expected["groups"]
        .as_array()
        .expect("a list")
        .iter()
        .map(numbers)
        .collect();
    let all: Vec<f64> = groups.iter().flatten().copied().collect();
    close(mean(&all), &expected["mean"], 1e-12);
    close(median(&all), &expected["median"], 1e-12);
    close(population_sd(&all), &expected["population_sd"], 1e-12);
    close(
        coefficient_of_variation(&all),
        &expected["variation"],
        1e-12,
    );
    close(between_share(&groups), &expected["between_share"], 1e-12);
}

#[test]
fn correlations_are_those_of_scipy_and_pingouin() {
    let expected = answers("correlations");
    let [x, y, z] = ["x", "y", "z"].map(|name| numbers(&expected[name]));
    let pairs: Vec<_> = x.iter().copied().zip(y.iter().copied()).collect();
    close(pearson(&pairs), &expected["pearson"], 1e-12);
    let triples: Vec<_> = pairs
        .iter()
        .zip(&z)
        .map(|((x, y), z)| (*x, *y, *z))
        .collect();
    close(partial(&triples), &expected["partial"], 1e-12);
    let rounded: Vec<f64> = x
        .iter()
        .map(|x| (x * 10.0).round_ties_even() / 10.0)
        .collect();
    let expected: Vec<usize> = numbers(&expected["ranks"])
        .iter()
        .map(|rank| *rank as usize)
        .collect();
    assert_eq!(ranks(&rounded), expected);
}

#[test]
fn reliability_and_discrimination_are_those_of_pingouin_and_scipy() {
    let expected = answers("reliability");
    let outcomes = outcomes(&expected["outcomes"]);
    close(kr20(&outcomes), &expected["kr20"], 1e-12);
    let rows = rows(&outcomes, |item| item);
    let found = items(&Table::new(&rows));
    for (idx, item) in found.cases.iter().enumerate() {
        close(item.kr20_without, &expected["kr20_without"][idx], 1e-12);
        close(item.discrimination, &expected["point_biserial"][idx], 1e-12);
    }
}

#[test]
fn intervals_are_those_of_statsmodels_and_numpy() {
    let expected = answers("intervals");
    for case in expected["wilson"].as_array().expect("a list") {
        let found = wilson(number(&case["rate"]), number(&case["n"]));
        close(found.low, &case["interval"][0], 1e-9);
        close(found.high, &case["interval"][1], 1e-9);
    }
    let clusters: Vec<(usize, usize)> = expected["clusters"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|cluster| (whole(&cluster[0]), whole(&cluster[1])))
        .collect();
    // statsmodels has (n - 1) / (n - 1 parameter) = 1 as its second correction.
    close(
        clustered_variance(&clusters),
        &expected["clustered_variance"],
        1e-12,
    );
    let draws: Vec<Option<f64>> = numbers(&expected["draws"]).into_iter().map(Some).collect();
    let found = percentiles(&draws).expect("all draws are there");
    close(found.low, &expected["percentiles"][0], 1e-12);
    close(found.high, &expected["percentiles"][1], 1e-12);
    for case in expected["t"].as_array().expect("a list") {
        let quantile = number(&case["quantile"]);
        let found = t_quantile(number(&case["p"]), number(&case["df"]));
        assert!(
            (found / quantile - 1.0).abs() < 1e-9,
            "{found} is not {quantile}"
        );
    }
}

#[test]
fn a_line_and_its_band_are_those_of_statsmodels() {
    let expected = answers("line");
    let points: Vec<_> = numbers(&expected["x"])
        .into_iter()
        .zip(numbers(&expected["y"]))
        .collect();
    let found = Line::fit(&points).expect("nineteen points");
    close(found.slope, &expected["slope"], 1e-9);
    close(found.intercept, &expected["intercept"], 1e-9);
    close(found.residual_sd, &expected["residual_sd"], 1e-9);
    for (idx, place) in numbers(&expected["places"]).into_iter().enumerate() {
        close(found.half_band(place), &expected["half_band"][idx], 1e-8);
    }
}

#[test]
fn exact_tests_are_those_of_statsmodels_and_scipy() {
    let expected = answers("exact");
    for case in expected["mcnemar"].as_array().expect("a list") {
        close(
            mcnemar(whole(&case["first"]), whole(&case["second"])),
            &case["p"],
            1e-12,
        );
    }
    for case in expected["sign_flips"].as_array().expect("a list") {
        let differences: Vec<i64> = numbers(&case["differences"])
            .iter()
            .map(|d| *d as i64)
            .collect();
        close(sign_flips(&differences), &case["p"], 1e-12);
    }
}

#[test]
fn the_intraclass_correlation_is_that_of_pingouin() {
    let expected = answers("intraclass");
    let families = outcomes(&expected["outcomes"]);
    let size = families[0].len();
    let all: Vec<bool> = families.into_iter().flatten().collect();
    let rows = rows(&[all], |item| item / size);
    close(
        independence(&Table::new(&rows)).intraclass,
        &expected["intraclass"],
        1e-9,
    );
}

#[test]
fn item_response_curves_are_those_of_a_general_optimiser() {
    let expected = answers("item_response");
    let outcomes: Vec<Vec<Option<bool>>> = outcomes(&expected["outcomes"])
        .into_iter()
        .map(|passed| passed.into_iter().map(Some).collect())
        .collect();
    let found = item_response(&outcomes).expect("items vary");
    assert!(found.settled);
    for (idx, curve) in found.items.iter().enumerate() {
        let curve = curve.expect("every item varies");
        close(curve.slope, &expected["slopes"][idx], 1e-4);
        close(curve.difficulty, &expected["difficulties"][idx], 1e-4);
    }
}

#[test]
fn the_kept_answers_are_still_given() {
    if std::env::var_os("PIPELINE_TEST_ORACLES").is_none_or(|asked| asked != "1") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let run = |command: &mut Command| {
        let output = command.output().expect("starts");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command:?}: {stderr}");
        String::from_utf8(output.stdout).expect("text")
    };
    let venv = folder.path().join("venv");
    run(Command::new("python3").args(["-m", "venv"]).arg(&venv));
    let python = venv.join("bin/python");
    let oracles = repository().join("tests/oracles");
    run(Command::new(&python)
        .args(["-m", "pip", "install", "--quiet", "-r"])
        .arg(oracles.join("requirements.txt")));
    // Its dependencies are of no use here, and many.
    run(Command::new(&python)
        .args(["-m", "pip", "install", "--quiet", "--no-deps"])
        .arg("pyterrier-tar==0.1.2"));
    for (program, answers) in [
        ("answers.py", "answers.json"),
        ("stopping.py", "stopping.json"),
    ] {
        let text = run(Command::new(&python).arg(oracles.join(program)));
        let now: Value = serde_json::from_str(&text).expect("JSON");
        let kept = std::fs::read_to_string(oracles.join(answers)).expect("reads");
        same(&now, &serde_json::from_str(&kept).expect("JSON"), answers);
    }
}

/// Numbers may differ by what another processor's arithmetic makes of an optimum.
fn same(now: &Value, kept: &Value, at: &str) {
    match (now, kept) {
        (Value::Object(now), Value::Object(kept)) => {
            assert!(now.keys().eq(kept.keys()), "{at}");
            for (key, value) in now {
                same(value, &kept[key], &format!("{at}/{key}"));
            }
        }
        (Value::Array(now), Value::Array(kept)) => {
            assert_eq!(now.len(), kept.len(), "{at}");
            for (now, kept) in now.iter().zip(kept) {
                same(now, kept, at);
            }
        }
        (Value::Number(_), Value::Number(_)) => assert!(
            (number(now) - number(kept)).abs() < 1e-5,
            "{at}: {now} was {kept}"
        ),
        _ => assert_eq!(now, kept, "{at}"),
    }
}
