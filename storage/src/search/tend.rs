//! Writing the index to its file: idle work, and some when a store is closed.

use crate::ground::error::{ReadError, WriteError};

/// The number of messages and facts that the file of the index lacks.
pub(crate) struct Lacking {
    /// Messages and facts that it doesn't have, of how many.
    pub(crate) unread: u64,
    pub(crate) all: u64,
    /// Something in it was deleted.
    pub(crate) deleted: bool,
}

/// Texts that are read when a store is closed, however few of them were written since it was opened.
pub(crate) const MOST_AT_END: u64 = 65_536;

impl Lacking {
    pub(crate) fn is_due(&self, least: u64) -> bool {
        self.deleted || self.unread >= least.max(self.all / 32).max(1)
    }
}

pub(crate) fn widen(error: ReadError) -> WriteError {
    match error {
        ReadError::Medium(error) => WriteError::Medium(error),
        ReadError::Damaged { what, key } => WriteError::Damaged { what, key },
        other => WriteError::Engine(other.to_string()),
    }
}
