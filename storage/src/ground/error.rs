//! What can go wrong, one small enum per kind of operation.

use std::path::PathBuf;

use garret_core::id::{SessionId, TurnSeq};
use garret_core::medium::MediumError;

use crate::facts::FactError;
use crate::files::name::NamespaceError;
use crate::summaries::SummaryError;
use crate::vectors::VectorError;

/// Why a store wasn't opened. The file is as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The namespace can't be one.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// Another process, or another `Store` in this one, has it.
    #[error(
        "namespace `{namespace}` is in use by {}: use that one, end it, or choose another \
         namespace",
        owner(*pid)
    )]
    InUse {
        /// The namespace asked for.
        namespace: String,
        /// Process id of the owner, where it could be read.
        pid: Option<u32>,
    },
    /// The data directory or the lock file can't be made.
    #[error(
        "can't prepare {}: {source}; check the data directory's owner, mode and space",
        path.display()
    )]
    Directory {
        /// What was to be made or opened.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// The medium can't be opened or read.
    #[error("can't open the store of namespace `{namespace}`: {source}")]
    Medium {
        /// The namespace asked for.
        namespace: String,
        /// What the medium said.
        source: MediumError,
    },
    /// The file holds something else.
    #[error(
        "the file of namespace `{namespace}` is not a Garret store ({why}): it was left as it is; \
         move it away or use another data directory"
    )]
    NotAStore {
        /// The namespace asked for.
        namespace: String,
        /// How it was recognised.
        why: String,
    },
    /// The file is a store, but broken.
    #[error(
        "the store of namespace `{namespace}` is damaged ({why}): it was left as it is; \
         copy it, check the disk, and restore a backup"
    )]
    Damaged {
        /// The namespace asked for.
        namespace: String,
        /// What was found.
        why: String,
    },
    /// The journal can't be followed.
    #[error("the journal of namespace `{namespace}` {why}; nothing was changed")]
    Journal {
        /// The namespace asked for.
        namespace: String,
        /// What is wrong with it, and what to do.
        why: String,
    },
    /// The file belongs to another namespace.
    #[error(
        "the file of namespace `{namespace}` holds namespace `{found}`: it was renamed or copied \
         by hand; give it back its name"
    )]
    OtherNamespace {
        /// The namespace asked for.
        namespace: String,
        /// The one that the file names.
        found: String,
    },
    /// The file was written by a newer Garret.
    #[error(
        "the store of namespace `{namespace}` has format version {found}, this program knows up to \
         {known}: it was left as it is; use a newer Garret"
    )]
    NewerFormat {
        /// The namespace asked for.
        namespace: String,
        /// Version of the file.
        found: u32,
        /// Highest version that can be read.
        known: u32,
    },
}

/// Why nothing was written. What was acknowledged before is still there.
///
/// After [`WriteError::Full`], [`WriteError::Medium`] or [`WriteError::Engine`] the write itself
/// may be there all the same, whole, when the device refused nothing but the last step: before
/// saying it again, ask [`Store::session`](crate::Store::session) for the number of turns. After
/// every other variant it certainly isn't.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// No room on the device.
    #[error(
        "no space left on the device: free some and try again; nothing accepted before is lost"
    )]
    Full,
    /// The device failed.
    #[error("the message could not be stored: {0}")]
    Medium(MediumError),
    /// A record needed for the write is broken.
    #[error("damaged {what}, {key}: copy the store, check the disk, restore a backup")]
    Damaged {
        /// Which part is wrong.
        what: &'static str,
        /// Which record.
        key: String,
    },
    /// The database failed in a way of its own.
    #[error("the database failed: {0}; it is reopened on the next use")]
    Engine(String),
    /// There is no such session.
    #[error("there is no session `{session}`: list the sessions to see those that exist")]
    UnknownSession {
        /// The id asked for.
        session: SessionId,
    },
    /// There is a session of the new name.
    #[error("session `{session}` exists already: choose another name or delete it first")]
    SessionExists {
        /// The id that is taken.
        session: SessionId,
    },
    /// The session has no such turn.
    #[error("session `{session}` has no turn {turn}: accept the user's message first")]
    UnknownTurn {
        /// The session.
        session: SessionId,
        /// The turn that was to be answered.
        turn: TurnSeq,
    },
    /// The turn has its reply.
    #[error("turn {turn} of session `{session}` has a reply already: replies are never replaced")]
    AlreadyReplied {
        /// The session.
        session: SessionId,
        /// The turn.
        turn: TurnSeq,
    },
    /// The turn was forgotten.
    #[error("turn {turn} of session `{session}` was forgotten: nothing more is stored of it")]
    ForgottenTurn {
        /// The session.
        session: SessionId,
        /// The turn.
        turn: TurnSeq,
    },
    /// It was made of what there was before something was deleted or forgotten.
    #[error("something was deleted or forgotten meanwhile: what was made before isn't stored")]
    Outdated,
    /// A pattern that is in every text.
    #[error("nothing but white space is in every text: say which words are to be forgotten")]
    BlankPattern,
    /// A fact that can't be taken or found.
    #[error(transparent)]
    Fact(#[from] FactError),
    /// A summary that can't be taken.
    #[error(transparent)]
    Summary(#[from] SummaryError),
    /// Over [`MAX_BYTES`](crate::MAX_BYTES).
    #[error("{what} has {bytes} bytes, at most {max} can be stored: split it")]
    TooLarge {
        /// What is too long.
        what: &'static str,
        /// Its length in bytes.
        bytes: usize,
        /// Most that is taken.
        max: usize,
    },
}

/// Why nothing could be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The device failed.
    #[error("the store could not be read: {0}")]
    Medium(MediumError),
    /// A record is broken.
    #[error("damaged {what}, {key}: copy the store, check the disk, restore a backup")]
    Damaged {
        /// Which part is wrong.
        what: &'static str,
        /// Which record.
        key: String,
    },
    /// The database failed in a way of its own.
    #[error("the database failed: {0}; it is reopened on the next use")]
    Engine(String),
    /// There is no such session.
    #[error("there is no session `{session}`: list the sessions to see those that exist")]
    UnknownSession {
        /// The id asked for.
        session: SessionId,
    },
    /// A pattern that is in every text.
    #[error("nothing but white space is in every text: say which words to look for")]
    BlankPattern,
}

/// What the layers below an operation report; each operation widens it to its own enum.
#[derive(Debug)]
pub(crate) enum Fault {
    Medium(MediumError),
    /// A record is wrong.
    Damaged {
        what: &'static str,
        key: String,
    },
    /// The database found its own structure wrong.
    Corrupted(String),
    Engine(String),
}

impl Fault {
    /// Whether the open database can't be used after this; `wrote` when it was writing.
    ///
    /// A write that meets a wrong page can leave the database without its list of free pages; it
    /// then refuses every later write, until it is opened again.
    pub(crate) fn is_fatal(&self, wrote: bool) -> bool {
        match self {
            Self::Damaged { .. } => false,
            Self::Corrupted(_) => wrote,
            Self::Medium(_) | Self::Engine(_) => true,
        }
    }
}

/// What an error calls a page that the database found wrong.
pub(crate) const PAGE: &str = "page of the database";

impl From<Fault> for WriteError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Medium(MediumError::Full) => Self::Full,
            Fault::Medium(error) => Self::Medium(error),
            Fault::Damaged { what, key } => Self::Damaged { what, key },
            Fault::Corrupted(why) => Self::Damaged { what: PAGE, key: why },
            Fault::Engine(why) => Self::Engine(why),
        }
    }
}

impl From<VectorError> for WriteError {
    fn from(error: VectorError) -> Self {
        match error {
            VectorError::Medium(MediumError::Full) => Self::Full,
            VectorError::Medium(error) => Self::Medium(error),
            other => Self::Engine(other.to_string()),
        }
    }
}

impl From<Fault> for ReadError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Medium(error) => Self::Medium(error),
            Fault::Damaged { what, key } => Self::Damaged { what, key },
            Fault::Corrupted(why) => Self::Damaged { what: PAGE, key: why },
            Fault::Engine(why) => Self::Engine(why),
        }
    }
}

impl From<redb::Error> for Fault {
    fn from(error: redb::Error) -> Self {
        match error {
            redb::Error::Corrupted(why) => Self::Corrupted(why),
            redb::Error::TableDoesNotExist(_)
            | redb::Error::TableTypeMismatch { .. }
            | redb::Error::TableIsMultimap(_)
            | redb::Error::TableIsNotMultimap(_)
            | redb::Error::TypeDefinitionChanged { .. } => {
                Self::Damaged { what: "table of the database", key: error.to_string() }
            }
            other => Self::Engine(other.to_string()),
        }
    }
}

macro_rules! from_redb {
    ($($error:ty),*) => {$(
        impl From<$error> for Fault {
            fn from(error: $error) -> Self {
                redb::Error::from(error).into()
            }
        }
    )*};
}

from_redb!(
    redb::StorageError,
    redb::TableError,
    redb::TransactionError,
    redb::CommitError,
    redb::DatabaseError
);

/// Lets `?` widen what redb says to an error that has a variant `Fault`.
macro_rules! fault_from_redb {
    ($target:ty: $($error:ident),*) => {$(
        impl From<redb::$error> for $target {
            fn from(error: redb::$error) -> Self {
                Self::Fault(error.into())
            }
        }
    )*};
}
pub(crate) use fault_from_redb;

/// What was read; nothing where it is damaged, of which `tell` hears what and which.
pub(crate) fn unless_damaged<T>(
    read: Result<T, Fault>,
    tell: impl FnOnce(&'static str, String),
) -> Result<Option<T>, Fault> {
    match read {
        Err(Fault::Damaged { what, key }) => {
            tell(what, key);
            Ok(None)
        }
        read => read.map(Some),
    }
}

fn owner(pid: Option<u32>) -> String {
    pid.map_or_else(|| "another process".to_owned(), |pid| format!("pid {pid}"))
}
