//! Operations that write, one durable step each.

use garret_core::id::{SessionId, TurnSeq};
use garret_core::time::WallTime;
use garret_core::token::Token;

use crate::conversations::op::Reply;
use crate::conversations::view::NewReply;
use crate::ground::error::{Abort, Fault, WriteError};
use crate::ground::limits::check_size;
use crate::journal::apply::Outcome;
use crate::journal::op::Op;
use crate::store::Store;
use crate::store::sessions::find;
use crate::store::snapshot::ErasureEpoch;
use crate::vectors::UnitKey;

impl Store {
    /// Takes the user's message into `session`, which comes into being with its first one. The
    /// message is durable when this returns; its turn's number is counted from 1.
    ///
    /// # Errors
    /// [`WriteError`]; nothing of the message is stored then, save as that type says.
    pub fn accept(
        &self,
        session: &SessionId,
        text: &str,
        at: WallTime,
    ) -> Result<TurnSeq, WriteError> {
        check_size("the message", text.len())?;
        let op = Op::Accept { session: session.as_str(), text, at: at.into() };
        self.writing(|open| match open.perform(&op)? {
            Outcome::Accepted { seq, .. } => Ok(seq),
            other => unexpected(&other),
        })
    }

    /// Stores the reply to a turn together with the turn's receipt, once.
    ///
    /// # Errors
    /// [`WriteError::AlreadyReplied`], [`WriteError::UnknownTurn`] and others; nothing of the reply
    /// is stored then, save as that type says.
    pub fn reply(
        &self,
        session: &SessionId,
        seq: TurnSeq,
        reply: NewReply<'_>,
    ) -> Result<(), WriteError> {
        self.reply_since(None, session, seq, reply)
    }

    pub(crate) fn reply_since(
        &self,
        epoch: Option<ErasureEpoch>,
        session: &SessionId,
        seq: TurnSeq,
        reply: NewReply<'_>,
    ) -> Result<(), WriteError> {
        check_size("the reply", reply.text.len())?;
        check_size("the list of the reply's token ids", reply.tokens.len().saturating_mul(4))?;
        check_size("the receipt", reply.receipt.len())?;
        check_size("the trace", reply.trace.len())?;
        let tokens: Vec<u8> = reply.tokens.iter().flat_map(|Token(id)| id.to_le_bytes()).collect();
        let bare = Reply {
            session: session.as_str(),
            seq,
            text: reply.text,
            tokens: &tokens,
            model_fingerprint: *reply.model_fingerprint,
            finish: reply.finish.to_byte(),
            at: reply.at.into(),
            receipt: reply.receipt,
        };
        let op = match reply.trace {
            [] => Op::Reply(bare),
            trace => Op::TracedReply { reply: bare, trace },
        };
        self.writing(|open| {
            if !self.is_current(epoch) {
                return Err(Abort::Refused(WriteError::Outdated));
            }
            match open.perform(&op)? {
                Outcome::Replied { .. } => Ok(()),
                other => unexpected(&other),
            }
        })
    }

    /// Gives a session another name; turns, replies and receipts stay where they are.
    ///
    /// # Errors
    /// [`WriteError::UnknownSession`], [`WriteError::SessionExists`] (also when both names are the
    /// same) and others.
    pub fn rename(&self, session: &SessionId, to: &SessionId) -> Result<(), WriteError> {
        let op = Op::Rename { session: session.as_str(), to: to.as_str() };
        self.writing(|open| match open.perform(&op)? {
            Outcome::Renamed { .. } => Ok(()),
            other => unexpected(&other),
        })
    }

    /// Gives a session a title; an empty one takes it away.
    ///
    /// # Errors
    /// [`WriteError::UnknownSession`] and others.
    pub fn set_title(&self, session: &SessionId, title: &str) -> Result<(), WriteError> {
        check_size("the title", title.len())?;
        let op = Op::SetTitle { session: session.as_str(), title };
        self.writing(|open| open.perform(&op).map(|_| ()))
    }

    /// Removes a session with all its turns, replies, receipts and vectors. Neither the journal nor
    /// the files of vectors hold anything of them any more when this returns; the text index's does
    /// until it is written next, by [`tend_index`](Self::tend_index) or when the store is closed.
    ///
    /// # Errors
    /// [`WriteError::UnknownSession`] and others; the session is whole then, save as that type
    /// says, and save that vectors may have to be made anew.
    pub fn delete(&self, session: &SessionId) -> Result<(), WriteError> {
        let number = self.reading(|open| match find(open, session) {
            Ok(found) => Ok(found.map(|record| record.number)),
            Err(Fault::Damaged { .. }) => Ok(None),
            Err(fault) => Err(fault.into()),
        });
        let known: Vec<u64> = number.unwrap_or_default().into_iter().collect();
        let is_of = |numbers: &[u64], key: UnitKey| {
            key.session().is_some_and(|number| numbers.contains(&number))
        };
        let removed =
            self.without_vectors(&|key| is_of(&known, key), || self.remove(session))??;
        if removed != known {
            // Which sessions a damaged one was, only its removal could tell.
            self.without_vectors(&|key| is_of(&removed, key), || ())?;
        }
        Ok(())
    }

    /// Removes a session's records; gives the numbers that it had.
    fn remove(&self, session: &SessionId) -> Result<Vec<u64>, WriteError> {
        let op = Op::Delete { session: session.as_str() };
        self.writing(|open| {
            // Whoever has an epoch and writes comes before this or is refused.
            self.snapshots.wipe(self.media())?;
            match open.perform(&op)? {
                Outcome::Deleted { numbers } => Ok(numbers),
                other => unexpected(&other),
            }
        })
    }

    /// Moves the writes that wait in the journal into the records, all at once. They are durable
    /// before as well, and a store does it by itself from time to time; [`Store::tend_journal`] is
    /// for quiet moments.
    ///
    /// # Errors
    /// [`WriteError`]; the writes stay in the journal then.
    pub fn fold(&self) -> Result<(), WriteError> {
        self.writing(|open| Ok(open.fold()?))
    }

    /// Idle work on the journal: a [fold](Self::fold), if so much waits that one will be due before
    /// long. Folding fewer writes more often would wear the device more. Says whether it folded.
    ///
    /// # Errors
    /// As [`Store::fold`].
    pub fn tend_journal(&self) -> Result<bool, WriteError> {
        self.writing(|open| match open.journal.is_half_full() {
            true => Ok(open.fold().map(|()| true)?),
            false => Ok(false),
        })
    }

    /// Returns the number of writes that wait in the journal.
    ///
    /// # Errors
    /// [`ReadError`](crate::ReadError).
    pub fn pending(&self) -> Result<u64, crate::ReadError> {
        self.reading(|open| Ok(open.journal.pending()))
    }
}

/// Reports an outcome that isn't one of its operation.
pub(crate) fn unexpected<T, E>(outcome: &Outcome) -> Result<T, Abort<E>> {
    Err(Fault::Engine(format!("an operation came to {outcome:?}")).into())
}
