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
    let certificate: Certificate =
        serde_json::from_str(&text).map_err(|error| CertificateError::Broken {
            path,
            message: error.to_string(),
        })?;
    Ok(Some(certificate).filter(|certificate| certificate.format == CERTIFICATE_FORMAT))
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
