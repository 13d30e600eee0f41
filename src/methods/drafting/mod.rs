//! Drafts of cases from clusters of issues: a scenario to start from, the text of a case, what a model is asked, and
//! what is taken of its answer.
//!
//! Texts of issues and of models are data here: they end up in values and comments of a case and nowhere else, and no
//! name of a file comes from them. What a drafted case does, it does in a cell.

pub mod answer;
pub mod case_text;
pub mod question;
pub mod scenario;

/// The comment that keeps a draft out of the suite until somebody has finished it.
pub const TO_FINISH: &str = "To finish: ";
