//! A copy of a whole namespace, made while it is in use.

use std::sync::Arc;

use garret_core::medium::{Medium, MediumError};

use crate::ground::error::ReadError;
use crate::store::Store;
use crate::store::vacuum::{Snapshot, Uncopied, rewrite};

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

impl Store {
    /// Copies everything that was acknowledged, as it was at one moment, to a medium that holds
    /// nothing. The copy is a whole `NAME.redb` without a journal: under that name, in any data
    /// directory, it is this namespace. It is durable when this returns, save its name: sync the
    /// directory of a new file.
    ///
    /// Others may read and write meanwhile. A copy that was cut short is no store, and can be
    /// written over. Records that are damaged are copied as they are; see [`Store::verify`].
    ///
    /// # Errors
    /// [`BackupError`].
    pub fn backup(&self, to: Box<dyn Medium>) -> Result<Backup, BackupError> {
        let to: Arc<dyn Medium> = Arc::from(to);
        let copied = self.on_snapshot(|transaction, last| {
            match rewrite(&Snapshot { transaction, last }, to.clone()) {
                Err(Uncopied::From(fault)) => Err(fault),
                copied => Ok(copied),
            }
        })?;
        let copied = copied.map_err(|why| match why {
            Uncopied::NotEmpty => BackupError::NotEmpty,
            Uncopied::To(MediumError::Full) => BackupError::Full,
            Uncopied::To(error) => BackupError::To(error),
            Uncopied::From(fault) => BackupError::From(fault.into()),
        })?;
        Ok(Backup { bytes: copied.bytes, rows: copied.rows })
    }
}
