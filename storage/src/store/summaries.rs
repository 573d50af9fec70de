//! Summaries, states and traces of a store: its methods.

use garret_core::id::{SessionId, TurnSeq};
use garret_core::time::WallTime;
use redb::{ReadTransaction, ReadableDatabase as _};

use crate::ground::error::{Abort, Fault, ReadError, WriteError};
use crate::ground::limits::{MAX_BYTES, check_size};
use crate::ground::summary_id::SummaryId;
use crate::journal::apply::Outcome;
use crate::journal::op::Op;
use crate::store::Store;
use crate::store::snapshot::ErasureEpoch;
use crate::store::turns::unexpected;
use crate::summaries::op::{Compaction, Draft};
use crate::summaries::read;
use crate::summaries::view::{NewSummary, StateKind, Summary};

/// Most bytes that a state can have.
pub const MAX_STATE_BYTES: usize = 64 << 10;

impl Store {
    /// Stores summaries of a session, made at `at`, and the state [`StateKind::Context`] that goes
    /// with them, where that is given (nothing removes it): all of it or nothing, durably. Their
    /// numbers, in their order. Each may have those before it as sources.
    ///
    /// A leaf covers a run of turns of which none is covered yet. Some of them may be forgotten, not
    /// all, and the session's newest turn must have its reply. A condensed summary covers two or
    /// more that follow each other, have one depth and no parent.
    ///
    /// # Errors
    /// [`WriteError::Summary`], [`WriteError::UnknownSession`] and others; nothing is stored then,
    /// save as that type says.
    pub fn compact_session(
        &self,
        session: &SessionId,
        summaries: &[NewSummary<'_>],
        context: Option<&[u8]>,
        at: WallTime,
    ) -> Result<Vec<SummaryId>, WriteError> {
        self.compact_since(None, session, summaries, context, at)
    }

    pub(crate) fn compact_since(
        &self,
        epoch: Option<ErasureEpoch>,
        session: &SessionId,
        summaries: &[NewSummary<'_>],
        context: Option<&[u8]>,
        at: WallTime,
    ) -> Result<Vec<SummaryId>, WriteError> {
        for summary in summaries {
            check_size("the summary", summary.text.len())?;
        }
        check_state(context.unwrap_or_default())?;
        if summaries.is_empty() && context.is_none() {
            return Ok(Vec::new());
        }
        let op = Op::Compact(Compaction {
            session: session.as_str(),
            summaries: summaries.iter().map(Draft::from).collect(),
            context,
            at: at.into(),
        });
        self.writing(|open| {
            if !self.is_current(epoch) {
                return Err(Abort::Refused(WriteError::Outdated));
            }
            match open.perform(&op)? {
                Outcome::Compacted(ids) => Ok(ids),
                other => unexpected(&other),
            }
        })
    }

    /// All summaries of a session, by their first turn, then by depth. None where there is no such
    /// session. A damaged one is left out, and logged.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn summaries(&self, session: &SessionId) -> Result<Vec<Summary>, ReadError> {
        self.of_session(session, read::all)
    }

    /// The summaries of a session that are no other one's source, in the order of their turns. None
    /// where there is no such session.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn roots(&self, session: &SessionId) -> Result<Vec<Summary>, ReadError> {
        self.of_session(session, read::roots)
    }

    /// A summary of a session, if there is one of this id.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn summary(
        &self,
        session: &SessionId,
        id: SummaryId,
    ) -> Result<Option<Summary>, ReadError> {
        self.of_session(session, |transaction, number| read::one(transaction, number, id.0))
    }

    /// The last turn up to which every turn of a session is covered by a leaf, or forgotten; 0 where
    /// the first one isn't. Turns that are covered further on don't count.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn frontier(&self, session: &SessionId) -> Result<TurnSeq, ReadError> {
        self.of_session(
            session,
            |transaction, number| Ok(read::head(transaction, number)?.frontier),
        )
    }

    /// The first turn of the leaf that is next behind a turn, if there is one.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn leaf_after(
        &self,
        session: &SessionId,
        turn: TurnSeq,
    ) -> Result<Option<TurnSeq>, ReadError> {
        self.of_session(session, |transaction, number| read::leaf_after(transaction, number, turn))
    }

    /// Returns what the engine keeps of a session, as it was set last; `None` where there is none, and
    /// after an erasure, which removes all but [`StateKind::Gate`].
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn state(
        &self,
        session: &SessionId,
        kind: StateKind,
    ) -> Result<Option<Vec<u8>>, ReadError> {
        self.of_session(session, |transaction, number| read::state(transaction, number, kind))
    }

    /// Sets what the engine keeps of a session, at most [`MAX_STATE_BYTES`]; nothing removes it.
    ///
    /// # Errors
    /// [`WriteError::UnknownSession`], [`WriteError::TooLarge`] and others.
    pub fn set_state(
        &self,
        session: &SessionId,
        kind: StateKind,
        bytes: &[u8],
    ) -> Result<(), WriteError> {
        self.set_state_since(None, session, kind, bytes)
    }

    pub(crate) fn set_state_since(
        &self,
        epoch: Option<ErasureEpoch>,
        session: &SessionId,
        kind: StateKind,
        bytes: &[u8],
    ) -> Result<(), WriteError> {
        check_state(bytes)?;
        let op = Op::SetState { session: session.as_str(), kind: kind.to_byte(), bytes };
        self.writing(|open| match self.is_current(epoch) {
            true => open.perform(&op).map(|_| ()),
            false => Err(Abort::Refused(WriteError::Outdated)),
        })
    }

    /// Returns the trace of a turn, as it was stored with the reply; `None` where nothing was, and
    /// after an erasure, which removes all.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn trace(&self, session: &SessionId, turn: TurnSeq) -> Result<Option<Vec<u8>>, ReadError> {
        self.of_session(session, |transaction, number| read::trace(transaction, number, turn))
    }

    /// Returns what is read of a session; nothing where there is none.
    fn of_session<T: Default>(
        &self,
        session: &SessionId,
        read: impl FnOnce(&ReadTransaction, u64) -> Result<T, Fault>,
    ) -> Result<T, ReadError> {
        self.reading(|open| {
            let Some(record) = crate::store::sessions::find(open, session)? else {
                return Ok(T::default());
            };
            Ok(read(&open.database.begin_read()?, record.number)?)
        })
    }
}

fn check_state(bytes: &[u8]) -> Result<(), WriteError> {
    const { assert!(MAX_STATE_BYTES <= MAX_BYTES) };
    let (what, bytes, max) = ("the state", bytes.len(), MAX_STATE_BYTES);
    if bytes > max { Err(WriteError::TooLarge { what, bytes, max }) } else { Ok(()) }
}
