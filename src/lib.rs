//! Doc2Harness: mines, builds, proves and runs a conformance suite for coding-agent harnesses.
//!
//! Layers, imports only downward: [`cli`], [`web`] → [`stages`] → [`methods`], [`storage`], [`adapters`] → [`domain`].
//! `docs/architecture.md` says what each layer may do.

pub mod adapters;
pub mod cli;
pub mod domain;
pub mod methods;
pub mod paths;
pub mod stages;
pub mod storage;
pub mod web;
