//! `cases/CERTIFICATE.json`: sorted keys, so that git shows what changed.

use std::path::{Path, PathBuf};

use crate::domain::certificate::{CERTIFICATE_FORMAT, Certificate};

#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    #[error("cannot read or write {path}")]
    File {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{path}: {message}")]
    Broken { path: PathBuf, message: String },
}

/// What every format has.
#[derive(serde::Deserialize)]
struct Head {
    format: u32,
}

pub fn path(cases: &Path) -> PathBuf {
    cases.join("CERTIFICATE.json")
}

/// None when there is no certificate, or one of another format.
pub fn read(cases: &Path) -> Result<Option<Certificate>, CertificateError> {
    let path = path(cases);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(CertificateError::File { path, source }),
    };
    let broken = |error: serde_json::Error| CertificateError::Broken {
        path: path.clone(),
        message: error.to_string(),
    };
    let head: Head = serde_json::from_str(&text).map_err(broken)?;
    if head.format != CERTIFICATE_FORMAT {
        return Ok(None);
    }
    serde_json::from_str(&text).map(Some).map_err(broken)
}

pub fn write(cases: &Path, certificate: &Certificate) -> Result<(), CertificateError> {
    let path = path(cases);
    let mut text = serde_json::to_string_pretty(certificate).expect("a certificate is plain data");
    text.push('\n');
    let draft = path.with_extension("json.new");
    std::fs::write(&draft, text)
        .and_then(|()| std::fs::rename(&draft, &path))
        .map_err(|source| CertificateError::File { path, source })
}
