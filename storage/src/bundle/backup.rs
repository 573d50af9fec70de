//! A copy of a whole namespace, made while it is in use.

use garret_core::medium::MediumError;

use crate::ground::error::ReadError;

/// A backup that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Backup {
    /// Its length.
    pub bytes: u64,
    /// Rows of the tables in it.
    pub rows: u64,
}

/// Why no backup was made. What was begun is no store and can be written over by the next try.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// The place isn't empty.
    #[error("there is something where the backup should go: choose a new file")]
    NotEmpty,
    /// No room for it.
    #[error("no space left for the backup: free some, or write it to another device")]
    Full,
    /// The device that it should go to failed.
    #[error("the backup could not be written: {0}")]
    To(MediumError),
    /// The records can't be read.
    #[error("the backup was not made: {0}")]
    From(#[from] ReadError),
}
