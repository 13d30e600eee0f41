//! Integration tests: the `pipeline` program and its stages, one file a stage.

mod adapters;
mod analyze;
mod build;
mod check;
mod cluster;
mod collect;
mod collect_full;
mod collect_github;
mod compare;
mod docs;
mod document;
mod evaluate;
mod expand;
mod fake_github;
mod full_github;
mod killed;
mod layers;
mod project;
mod rank;
mod report;
mod review;
mod run;
mod sandbox;
mod show;
mod stored_run;
mod trial;
