//! The rules of stopping beside buscarpy and pyterrier-tar, whose answers are kept in `tests/oracles/stopping.json`;
//! `tests/oracles/stopping.py` says how they were made.

use doc2harness::methods::stopping::{chance_of_missing, knee};
use serde_json::Value;

use super::{close, number, repository};

#[test]
fn the_chance_of_missing_and_the_knee_are_those_of_published_programs() {
    let text = std::fs::read_to_string(repository().join("tests/oracles/stopping.json"));
    let all: Value = serde_json::from_str(&text.expect("reads")).expect("JSON");
    let readings = all.as_array().expect("a list");
    assert_eq!(readings.len(), 24);
    for reading in readings {
        let labels: Vec<bool> = reading["labels"]
            .as_str()
            .expect("a text")
            .bytes()
            .map(|label| label == b'1')
            .collect();
        let n_all = number(&reading["n_all"]) as usize;
        for (target, expected) in reading["chance"].as_object().expect("an object") {
            let target: f64 = target.parse().expect("a number");
            close(chance_of_missing(&labels, n_all, target), expected, 1e-9);
        }
        let found = knee(&labels);
        let expected = &reading["knee"];
        if expected.is_null() {
            assert_eq!(found, None);
            continue;
        }
        let found = found.expect("there is a knee");
        assert_eq!(found.at, number(&expected["at"]) as usize, "of {n_all}");
        close(found.ratio, &expected["ratio"], 1e-9);
    }
}
