//! Writes of what took long to be made of what was said.
//!
//! Whoever reads something, works on it and stores the result may be overtaken by an erasure: the
//! result then quotes what is gone. An [`ErasureEpoch`] that was taken before the reading tells, and these
//! writes look at it in the same step in which they write, so that nothing comes in between.

use garret_core::id::{SessionId, TurnSeq};
use garret_core::time::WallTime;

use crate::conversations::view::NewReply;
use crate::facts::{Added, FactId, NewFact};
use crate::ground::error::WriteError;
use crate::store::Store;
use crate::store::snapshot::ErasureEpoch;
use crate::summaries::{NewSummary, StateKind, SummaryId};

impl Store {
    /// Writes that are refused with [`WriteError::Outdated`] once anything was deleted or forgotten
    /// after `epoch` was taken: for what takes long to be made of what was said.
    pub const fn since(&self, epoch: ErasureEpoch) -> Since<'_> {
        Since { store: self, epoch }
    }

    /// Returns whether nothing was deleted or forgotten since `epoch` was taken; true without one. Holds for
    /// as long as the store is being written to.
    pub(crate) fn is_current(&self, epoch: Option<ErasureEpoch>) -> bool {
        epoch.is_none_or(|epoch| epoch == self.erasure_epoch())
    }
}

/// See [`Store::since`].
#[derive(Clone, Copy, Debug)]
pub struct Since<'s> {
    store: &'s Store,
    epoch: ErasureEpoch,
}

impl<'s> Since<'s> {
    /// The store, for what has no words.
    pub const fn store(&self) -> &'s Store {
        self.store
    }

    /// Does [`Store::reply`].
    ///
    /// # Errors
    /// [`WriteError::Outdated`] and as there.
    pub fn reply(
        &self,
        session: &SessionId,
        seq: TurnSeq,
        reply: NewReply<'_>,
    ) -> Result<(), WriteError> {
        self.store.reply_since(Some(self.epoch), session, seq, reply)
    }

    /// Does [`Store::add_fact`].
    ///
    /// # Errors
    /// [`WriteError::Outdated`] and as there.
    pub fn add_fact(&self, fact: &NewFact<'_>, at: WallTime) -> Result<Added, WriteError> {
        self.store.add_fact_since(Some(self.epoch), fact, at)
    }

    /// Does [`Store::supersede`].
    ///
    /// # Errors
    /// [`WriteError::Outdated`] and as there.
    pub fn supersede(
        &self,
        old: FactId,
        fact: &NewFact<'_>,
        at: WallTime,
    ) -> Result<Added, WriteError> {
        self.store.supersede_since(Some(self.epoch), old, fact, at)
    }

    /// Does [`Store::compact_session`].
    ///
    /// # Errors
    /// [`WriteError::Outdated`] and as there.
    pub fn compact_session(
        &self,
        session: &SessionId,
        summaries: &[NewSummary<'_>],
        context: Option<&[u8]>,
        at: WallTime,
    ) -> Result<Vec<SummaryId>, WriteError> {
        self.store.compact_since(Some(self.epoch), session, summaries, context, at)
    }

    /// Does [`Store::set_state`].
    ///
    /// # Errors
    /// [`WriteError::Outdated`] and as there.
    pub fn set_state(
        &self,
        session: &SessionId,
        kind: StateKind,
        bytes: &[u8],
    ) -> Result<(), WriteError> {
        self.store.set_state_since(Some(self.epoch), session, kind, bytes)
    }
}
