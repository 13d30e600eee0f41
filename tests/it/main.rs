//! Integration tests: the `pipeline` program and its stages, one file a stage.

mod collect;
mod document;
mod evaluate;
mod project;
mod sandbox;
