//! Whether two things of two trees are the same thing.

use super::tokens::Bag;

/// Exceptions that a wider one covers; who handles the wider one handles them.
const COVERED: &[(&str, &[&str])] = &[
    (
        "OSError",
        &[
            "FileNotFoundError",
            "PermissionError",
            "IsADirectoryError",
            "NotADirectoryError",
            "FileExistsError",
            "BrokenPipeError",
            "ConnectionError",
            "ProcessLookupError",
            "TimeoutError",
            "IOError",
        ],
    ),
    (
        "ValueError",
        &["JSONDecodeError", "UnicodeDecodeError", "UnicodeError"],
    ),
    ("LookupError", &["KeyError", "IndexError"]),
    ("TimeoutError", &["TimeoutExpired"]),
    ("TimeoutExpired", &["TimeoutError"]),
];

/// Whether a handler of `ours` handles `theirs` too.
pub fn covers(ours: &str, theirs: &str) -> bool {
    ours == theirs
        || ["Exception", "BaseException"].contains(&ours)
        || COVERED
            .iter()
            .any(|(wide, narrow)| *wide == ours && narrow.contains(&theirs))
}

/// The shared weight of two bags, 0 to 1: intersection over union.
pub fn overlap(a: &Bag, b: &Bag) -> f64 {
    let shared: f64 = a
        .iter()
        .filter_map(|(token, ours)| b.get(token).map(|theirs| ours.min(*theirs)))
        .sum();
    let union = a.values().sum::<f64>() + b.values().sum::<f64>() - shared;
    if union > 0.0 { shared / union } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlap_is_what_both_have() {
        let bag = |tokens: &[(&str, f64)]| -> Bag {
            let owned = tokens
                .iter()
                .map(|(token, weight)| ((*token).to_owned(), *weight));
            owned.collect()
        };
        let check = |a: &[(&str, f64)], b: &[(&str, f64)], expected: f64| {
            assert_eq!(overlap(&bag(a), &bag(b)), expected);
        };
        check(&[("x", 1.0), ("y", 1.0)], &[("x", 1.0), ("z", 2.0)], 0.25);
        check(&[("x", 1.0)], &[("x", 1.0)], 1.0);
        check(&[], &[], 0.0);
    }

    #[test]
    fn a_wider_handler_covers_a_narrower_one() {
        let check = |ours: &str, theirs: &str, expected: bool| {
            assert_eq!(covers(ours, theirs), expected, "{ours} {theirs}");
        };
        check("OSError", "PermissionError", true);
        check("PermissionError", "OSError", false);
        check("ValueError", "JSONDecodeError", true);
        check("Exception", "KeyError", true);
        check("KeyError", "KeyError", true);
        check("KeyError", "ValueError", false);
    }
}
