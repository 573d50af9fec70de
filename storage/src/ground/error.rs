//! What can go wrong, one small enum per kind of operation.

use garret_core::id::{SessionId, TurnSeq};
use garret_core::medium::MediumError;

use crate::facts::FactError;
use crate::summaries::SummaryError;

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
        /// The part that is wrong.
        what: &'static str,
        /// The record.
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
        /// The thing that is too long.
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
        /// The part that is wrong.
        what: &'static str,
        /// The record.
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

/// A failure of the layers below an operation; each operation widens it to its own enum.
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
    /// Tells whether the open database can't be used after this; `wrote` when it was writing.
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

/// The name in errors of a page that the database found wrong.
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

        impl<E> From<$error> for Abort<E> {
            fn from(error: $error) -> Self {
                Self::Fault(error.into())
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

/// The end of an operation that wasn't done: refused, or broken off by a fault below it.
///
/// After a refusal the store is sound and its tables are as they were once the transaction is
/// dropped; after a fault [`Fault::is_fatal`] says whether the database can go on.
#[derive(Debug)]
pub(crate) enum Abort<E> {
    Refused(E),
    Fault(Fault),
}

impl<E> Abort<E> {
    /// Turns the refusal into one of the layer above.
    pub(crate) fn map<F>(self, widen: impl FnOnce(E) -> F) -> Abort<F> {
        match self {
            Self::Refused(refusal) => Abort::Refused(widen(refusal)),
            Self::Fault(fault) => Abort::Fault(fault),
        }
    }

    /// The same in the operation's own enum.
    pub(crate) fn into_error(self) -> E
    where
        E: From<Fault>,
    {
        match self {
            Self::Refused(error) => error,
            Self::Fault(fault) => fault.into(),
        }
    }
}

impl<E> From<Fault> for Abort<E> {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// Lets `?` widen an error of an operation to its end.
macro_rules! refusals {
    ($($error:ty => $refusal:ty),*) => {$(
        impl From<$error> for Abort<$refusal> {
            fn from(error: $error) -> Self {
                Self::Refused(error.into())
            }
        }
    )*};
}

refusals!(
    ReadError => ReadError,
    WriteError => WriteError,
    FactError => WriteError,
    SummaryError => SummaryError
);

/// Returns what was read; nothing where it is damaged, of which `tell` hears what and which.
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

/// A record that isn't as it was written.
pub(crate) fn damaged(what: &'static str, key: String) -> Fault {
    Fault::Damaged { what, key }
}
