//! Pure calculation: the random generator, the seed and the time are arguments.

pub mod judge;
pub mod summary;
pub mod issue_form;
pub mod judge;
pub mod ranking_quality;
pub mod relevance;
pub mod text;
pub mod topics;
