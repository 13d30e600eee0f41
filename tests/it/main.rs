//! Integration tests: the `pipeline` program and its stages, one file a stage.
//! tests

mod collect;
mod document;
mod project;
mod sandbox;
