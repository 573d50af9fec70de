//! The files of a namespace, and how a store gets at them.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use garret_core::medium::{Medium, MediumError};

use crate::store::vacuum::Memory;

/// One of the files that make up a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Part {
    /// Every record.
    Records,
    /// Writes that aren't among the records yet.
    Journal,
    /// The first dimensions of the vectors; made from the records.
    Coarse,
    /// The whole vectors and their keys; made from the records.
    Full,
    /// The text index as it was some time ago; made from the records.
    Index,
    /// The records while they are written anew; else empty, or not there.
    Next,
    /// A model's state after a conversation; see [`SnapshotKind`](crate::SnapshotKind).
    Conversation,
    /// A model's state after what every conversation begins with.
    Prefix,
}

impl Part {
    /// All of them, the one of the records first.
    pub const ALL: [Self; 8] = [
        Self::Records,
        Self::Journal,
        Self::Coarse,
        Self::Full,
        Self::Index,
        Self::Next,
        Self::Conversation,
        Self::Prefix,
    ];

    /// Returns what its file's name ends with, after the dot.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Records => "redb",
            Self::Journal => "log",
            Self::Coarse => "i8",
            Self::Full => "f16",
            Self::Index => "idx",
            Self::Next => "next",
            Self::Conversation => "kv",
            Self::Prefix => "kvp",
        }
    }
}

type OpenPart = Box<dyn Fn(Part) -> Result<Arc<dyn Medium>, MediumError> + Send + Sync>;

/// The way by which a store gets at its parts.
pub(crate) struct Media {
    open: OpenPart,
    /// The place where the parts are files: the one of the records.
    records: Option<PathBuf>,
    /// True if there is nothing but the records.
    alone: bool,
}

impl Media {
    /// Files beside `records`, opened or created by `open`.
    pub(crate) fn files(
        records: PathBuf,
        open: impl Fn(&std::path::Path) -> Result<Box<dyn Medium>, MediumError> + Send + Sync + 'static,
    ) -> Self {
        let path = records.clone();
        let open = move |part: Part| open(&path.with_extension(part.extension())).map(Arc::from);
        Self { open: Box::new(open), records: Some(records), alone: false }
    }

    /// Whatever `open` gives.
    pub(crate) fn any(
        open: impl Fn(Part) -> Result<Box<dyn Medium>, MediumError> + Send + Sync + 'static,
    ) -> Self {
        let open = move |part| open(part).map(Arc::from);
        Self { open: Box::new(open), records: None, alone: false }
    }

    /// Records on `medium`, and in memory what is needed to write them anew.
    pub(crate) fn alone(medium: Box<dyn Medium>) -> Self {
        let medium: Arc<dyn Medium> = medium.into();
        let next: Arc<dyn Medium> = Arc::new(Memory::default());
        let open = move |part| match part {
            Part::Records => Ok(medium.clone()),
            Part::Next => Ok(next.clone()),
            _ => Err(MediumError::Denied),
        };
        Self { open: Box::new(open), records: None, alone: true }
    }

    /// Opens a part, or creates it where it isn't there; so only where it [exists](Self::exists),
    /// or is about to be written.
    pub(crate) fn open(&self, part: Part) -> Result<Arc<dyn Medium>, MediumError> {
        (self.open)(part)
    }

    /// A part, unless that would create it.
    pub(crate) fn open_existing(&self, part: Part) -> Result<Option<Arc<dyn Medium>>, MediumError> {
        if !self.has(part) || !self.exists(part) {
            return Ok(None);
        }
        match self.open(part) {
            // Media that aren't files may lack a part.
            Err(MediumError::Denied) if self.records.is_none() => Ok(None),
            medium => medium.map(Some),
        }
    }

    /// Returns where a part is, if it is a file.
    pub(crate) fn path(&self, part: Part) -> Option<PathBuf> {
        self.records.as_ref().map(|records| records.with_extension(part.extension()))
    }

    /// Tells whether a part can be opened without creating it.
    pub(crate) fn exists(&self, part: Part) -> bool {
        match &self.records {
            // One that can't be looked for is opened, which says why.
            Some(records) => records.with_extension(part.extension()).try_exists().unwrap_or(true),
            None => self.has(part),
        }
    }

    /// Tells whether the store may have this part at all.
    pub(crate) fn has(&self, part: Part) -> bool {
        !self.alone || matches!(part, Part::Records | Part::Next)
    }
}

impl fmt::Debug for Media {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Media").field("records", &self.records).finish_non_exhaustive()
    }
}
