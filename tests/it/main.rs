//! Integration tests: the `pipeline` program and its stages, one file a stage.

mod collect;
mod docs;
mod document;
mod evaluate;
mod layers;
mod project;
mod sandbox;
