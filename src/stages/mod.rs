//! Stages: each is a `Config`, a `Summary` and a `run`. A stage reads stored facts, calls methods, and stores facts;
//! what is left to do is a query, so a second run continues, and a third does nothing and says so.

pub mod collect;
pub mod compare;
pub mod context;
pub mod document;
pub mod expand;
pub mod failure;
pub mod stored_run;

pub mod analyze;
pub mod rank;
pub mod report;
pub mod show;

// Mining.
pub mod cluster;
pub mod draft;
pub mod filter;
pub mod judged_set;
pub mod scoring;

// Running candidates.
pub mod adapted;
pub mod build;
pub mod case;
pub mod certify;
pub mod check;
pub mod contract;
pub mod doctor;
pub mod evaluate;
pub mod install;
pub mod interrupt;
pub mod leaderboard;
pub mod line;
pub mod merge;
pub mod owned_folder;
pub mod plan;
pub mod prepare;
pub mod rejudge;
pub mod repetitions;
pub mod review;
pub mod sandboxes;
pub mod shard;
pub mod status;
pub mod submit;
pub mod trial;

pub use context::{Context, Progress};
pub use failure::{Classify, Failure, Kind, Result};
