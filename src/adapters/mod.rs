//! Each file knows one outside thing: GitHub, the index, Docker, the scripted model.

pub mod folders;
pub mod github;
pub mod index;
pub mod junit;
pub mod mock;
pub mod processes;
pub mod registry;
pub mod sandbox;
