//! All that was collected as JSON lines, in the form that `collect --from` reads.

use std::io::{BufWriter, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::methods::issue_form::{self, Row};
use crate::stages::{Classify, Failure, Kind, Result};
use crate::storage::database::Database;
use crate::storage::{comments, issues};

/// Writes the file, whole or not at all; packed when its name ends in `.gz`. Gives the number of rows.
pub(super) fn write(database: &Database, path: &Path) -> Result<u64> {
    let fault = |error: std::io::Error| {
        Failure::environment(format!("cannot write {}: {error}", path.display()))
    };
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    if !folder.is_dir() {
        let message = format!("there is no folder {}", folder.display());
        return Err(Failure::user(message));
    }
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(fault)?;
    let n_rows = if path.extension().is_some_and(|end| end == "gz") {
        let mut packed = GzEncoder::new(file.as_file_mut(), Compression::default());
        let n_rows = rows(database, &mut packed)?;
        packed.finish().map_err(fault)?;
        n_rows
    } else {
        rows(database, file.as_file_mut())?
    };
    file.persist(path).map_err(|error| fault(error.error))?;
    Ok(n_rows)
}

fn rows(database: &Database, to: &mut impl Write) -> Result<u64> {
    let mut to = BufWriter::new(to);
    let mut n_rows = 0;
    let mut line = |row: &Row| -> Result<()> {
        writeln!(to, "{}", issue_form::export(row)).kind(Kind::Environment)?;
        n_rows += 1;
        Ok(())
    };
    issues::each(database, |issue| line(&Row::Issue(Box::new(issue))))?;
    for key in issues::pull_requests(database)? {
        line(&Row::PullRequest(key))?;
    }
    comments::each(database, |comment| line(&Row::Comment(comment)))?;
    for (key, moved_to) in issues::gone(database)? {
        line(&Row::Gone { key, moved_to })?;
    }
    to.flush().kind(Kind::Environment)?;
    Ok(n_rows)
}
