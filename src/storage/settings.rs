//! Settings files, `pipeline/<stage>.toml`: strict TOML, with the line in every error.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use crate::domain::place::Place;

#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error("cannot read {path}")]
    Read {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{place}: {message}")]
    Parse { place: Place, message: String },
}

/// Reads a whole TOML file into a type.
pub fn read<T: DeserializeOwned>(path: &Path) -> Result<T, SettingsError> {
    let text = std::fs::read_to_string(path).map_err(|source| SettingsError::Read {
        path: path.to_path_buf(),
        source,
    })?;
    toml::from_str(&text).map_err(|error| SettingsError::Parse {
        place: Place::of_offset(path, &text, error.span().map_or(0, |span| span.start)),
        message: error.message().trim().to_owned(),
    })
}
