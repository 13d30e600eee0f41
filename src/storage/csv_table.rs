//! Tables that people write, as CSV: columns are found by name and others are ignored, and a fault names its line.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use crate::domain::place::{Finding, Place};

#[derive(Debug, thiserror::Error)]
pub enum CsvError {
    #[error("cannot read {path}")]
    Read {
        path: PathBuf,
        source: std::io::Error,
    },
    /// A row that means nothing, or a column that is not there; the text names the line.
    #[error(transparent)]
    Row(#[from] Finding),
}

pub(super) struct CsvTable<R> {
    pub columns: Vec<String>,
    /// Each with the place on which it begins.
    pub rows: Vec<(Place, R)>,
}

pub(super) fn bytes(path: &Path) -> Result<Vec<u8>, CsvError> {
    std::fs::read(path).map_err(|source| CsvError::Read {
        path: path.to_path_buf(),
        source,
    })
}

/// Reads the rows of a table that has at least the columns `needed`; blanks around fields count for nothing.
pub(super) fn parse<R: DeserializeOwned>(
    path: &Path,
    text: &[u8],
    needed: &[&str],
) -> Result<CsvTable<R>, Finding> {
    let at = |position: Option<&csv::Position>| {
        Place::new(path, position.map_or(1, csv::Position::line) as usize)
    };
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .from_reader(text);
    let header = reader
        .headers()
        .map_err(|error| Finding::new(at(None), error.to_string()))?
        .clone();
    let missing: Vec<&str> = needed
        .iter()
        .copied()
        .filter(|column| !header.iter().any(|name| name == *column))
        .collect();
    if !missing.is_empty() {
        let message = format!("lacks the columns {}", missing.join(", "));
        return Err(Finding::new(at(None), message));
    }
    let rows = reader
        .records()
        .map(|record| {
            let record =
                record.map_err(|error| Finding::new(at(error.position()), error.to_string()))?;
            let place = at(record.position());
            match record.deserialize(Some(&header)) {
                Ok(row) => Ok((place, row)),
                Err(error) => Err(Finding::new(place, error.to_string())),
            }
        })
        .collect::<Result<_, Finding>>()?;
    Ok(CsvTable {
        columns: header.iter().map(str::to_owned).collect(),
        rows,
    })
}

/// Holds what a reader gives against the number of rows, or a part of the fault.
#[cfg(test)]
pub(super) fn check(found: Result<usize, Finding>, expected: Result<usize, &str>) {
    match (found, expected) {
        (Ok(found), Ok(n_rows)) => assert_eq!(found, n_rows),
        (Err(finding), Err(part)) => {
            let message = finding.to_string();
            assert!(message.contains(part), "{message}");
        }
        (found, expected) => panic!("{found:?} is not {expected:?}"),
    }
}
