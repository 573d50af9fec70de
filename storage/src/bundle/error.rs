//! Why a bundle was not written, or not taken in.

use std::fmt;
use std::io;

use garret_core::id::SessionId;

use crate::ground::error::{Fault, ReadError, WriteError};

/// Why nothing was exported, or not all: what was written has no end, so no import takes it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The bundle can't be written.
    #[error("the export could not be written: {0}; free some space or write it elsewhere")]
    To(#[source] io::Error),
    /// The records can't be read.
    #[error("the export was not made: {0}")]
    From(#[from] ReadError),
}

/// Why nothing was imported. The store is as it was, save as [`WriteError`] says.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The bundle can't be read.
    #[error("the import could not be read ({at}): {source}; nothing was imported")]
    From {
        /// The place where.
        at: Place,
        /// The system's answer.
        source: io::Error,
    },
    /// It is something else.
    #[error(
        "this is no export of Garret: it begins neither like a bundle nor with a line of kind \
         `garret`; nothing was imported"
    )]
    NotABundle,
    /// It was written by a newer Garret.
    #[error(
        "the export has version {found}, this program knows up to {known}: use a newer Garret; \
         nothing was imported"
    )]
    Newer {
        /// Its version.
        found: u32,
        /// Highest version that can be read.
        known: u32,
    },
    /// It ends too early.
    #[error("the export is cut short at {at}: copy or export it again; nothing was imported")]
    CutShort {
        /// The place where.
        at: Place,
    },
    /// Its bytes aren't those that were written, or say what can't be.
    #[error("the export is damaged at {at} ({why}): copy or export it again; nothing was imported")]
    Damaged {
        /// The place where.
        at: Place,
        /// The fault that was met there.
        why: String,
    },
    /// A session of its name is there.
    #[error(
        "session `{session}` ({at}) exists already: import with renaming, or rename or delete it \
         first; nothing was imported"
    )]
    SessionExists {
        /// The place where.
        at: Place,
        /// The name that is taken.
        session: SessionId,
    },
    /// The store can't take it.
    #[error("nothing was imported: {0}")]
    Store(#[from] WriteError),
}

/// A place in an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// A frame of a bundle, from 1; 0 is what comes before the first.
    Frame(u64),
    /// A line of JSON Lines, from 1.
    Line(u64),
}

impl From<Fault> for ImportError {
    fn from(fault: Fault) -> Self {
        WriteError::from(fault).into()
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Frame(0) => f.write_str("its header"),
            Self::Frame(number) => write!(f, "frame {number}"),
            Self::Line(number) => write!(f, "line {number}"),
        }
    }
}
