//! A run as a report: [`compose`] collects what is to be said, [`html`] and [`markdown`] say it. Many runs, by the models
//! that built their candidates, are a [`leaderboard`].
//!
//! The same stored run gives the same bytes: there is no clock here, and everything is sorted.

mod comparison;
mod composition;
mod html;
mod leaderboard;
mod markdown;
mod words;

pub use comparison::{Baseline, Change, Changes, Comparison, NOT_RUN, compare};
pub use composition::{
    CandidateFacts, ControlRow, DurationRow, Inputs, InvalidUnit, Report, RunFacts, SlowUnit,
    Times, UnitFacts, compose,
};
pub use html::html;
pub use leaderboard::{BoardFacts, Contestant, Leaderboard, leaderboard};
pub use markdown::markdown;
pub use words::{CaseWords, ClauseWords};
