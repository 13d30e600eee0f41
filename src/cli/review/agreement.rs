//! `pipeline review agreement`, in words.

use super::super::output;
use crate::domain::visible::visible_line;
use crate::stages::review::Double;

pub(super) fn words(double: &Double) -> String {
    let figure = |value: Option<f64>| value.map_or("n/a".to_owned(), |value| format!("{value:.3}"));
    let rows = double.agreements.iter().map(|one| {
        vec![
            visible_line(&one.reviewers.0).into_owned(),
            visible_line(&one.reviewers.1).into_owned(),
            one.n_both.to_string(),
            figure(one.agreed),
            figure(one.kappa),
            figure(one.ac1),
        ]
    });
    let table = output::table(&["first", "second", "both", "agreed", "kappa", "AC1"], rows);
    let conflicts = double.conflicts.iter().map(|conflict| {
        let votes = conflict.votes.iter();
        let votes: Vec<String> = votes
            .map(|vote| format!("{} {}", vote.decision.done(), visible_line(&vote.by)))
            .collect();
        let subject = conflict.subject.to_string();
        vec![visible_line(&subject).into_owned(), votes.join(", ")]
    });
    format!(
        "{} voted on by two or more, {} by one\n\n{table}\n\n{}",
        double.n_twice,
        double.n_once,
        output::table(&["conflict", "first votes"], conflicts)
    )
}
