//! The SQLite file: opening it, bringing its schema up to date, and transactions.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};

use super::migrations;

#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// The folder cannot be written, the disk is full, or the file is no database.
    #[error("cannot open {path}")]
    Open {
        path: PathBuf,
        source: rusqlite::Error,
    },
    #[error("cannot make the folder {path}")]
    Folder {
        path: PathBuf,
        source: std::io::Error,
    },
    /// The file was made by a newer version.
    #[error("{path} knows the migration {name:?}, this program does not")]
    Newer { path: PathBuf, name: String },
    /// It lies where it can only be read.
    #[error("{path} can only be read")]
    ReadOnly { path: PathBuf },
    #[error("the database refused a statement")]
    Sql(#[from] rusqlite::Error),
}

#[derive(Debug)]
pub struct Database {
    connection: Connection,
}

impl Database {
    /// Opens the file, and makes it and its folder when they are not there.
    pub fn open(path: &Path) -> Result<Self, DatabaseError> {
        match Self::make(path) {
            Err(DatabaseError::Open { source, .. } | DatabaseError::Sql(source))
                if is_refusal(&source) && path.is_file() =>
            {
                Err(DatabaseError::ReadOnly {
                    path: path.to_path_buf(),
                })
            }
            opened => opened,
        }
    }

    /// The same for who only reads, so that a file that cannot be written will do.
    pub fn open_to_read(path: &Path) -> Result<Self, DatabaseError> {
        match Self::open(path) {
            Err(DatabaseError::ReadOnly { .. }) => Self::immutable(path),
            opened => opened,
        }
    }

    fn make(path: &Path) -> Result<Self, DatabaseError> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|source| DatabaseError::Folder {
                path: folder.to_path_buf(),
                source,
            })?;
        }
        let connection = Connection::open(path).map_err(|source| DatabaseError::Open {
            path: path.to_path_buf(),
            source,
        })?;
        Self::prepare(connection, path)
    }

    /// For tests.
    pub fn in_memory() -> Result<Self, DatabaseError> {
        Self::prepare(Connection::open_in_memory()?, Path::new(":memory:"))
    }

    fn prepare(mut connection: Connection, path: &Path) -> Result<Self, DatabaseError> {
        connection
            .execute_batch(
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON;",
            )
            .map_err(|source| DatabaseError::Open {
                path: path.to_path_buf(),
                source,
            })?;
        migrations::apply(&mut connection, path)?;
        Ok(Self { connection })
    }

    /// Without the files that SQLite writes beside a database, which nobody else can write either.
    fn immutable(path: &Path) -> Result<Self, DatabaseError> {
        let fault = |source| DatabaseError::Open {
            path: path.to_path_buf(),
            source,
        };
        let mut address = url::Url::from_file_path(std::path::absolute(path).unwrap_or_default())
            .expect("the path is absolute");
        address.set_query(Some("immutable=1"));
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        let connection = Connection::open_with_flags(address.as_str(), flags).map_err(fault)?;
        migrations::check(&connection, path)?;
        Ok(Self { connection })
    }

    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// A writing transaction; immediate, since a read that turns into a write would fail at once when busy.
    pub fn write(&mut self) -> Result<Transaction<'_>, DatabaseError> {
        Ok(self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)?)
    }
}

/// The file or its folder cannot be written.
fn is_refusal(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied)
    )
}
