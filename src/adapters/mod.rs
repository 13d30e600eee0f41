//! Each file knows one outside thing: GitHub, the index, Docker, the scripted model, formats of pictures.

pub mod chat_model;
pub mod folders;
pub mod gateway;
pub mod github;
pub mod http;
pub mod index;
pub mod junit;
#[cfg(feature = "kubernetes")]
pub mod kubernetes;
pub mod left_groups;
pub mod mock;
pub mod plots;
pub mod processes;
pub mod program;
pub mod registry;
pub mod sandbox;
pub mod slurm;
