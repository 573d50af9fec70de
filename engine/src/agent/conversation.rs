//! The cache of the session that is being talked in: one struct, one key, one way of noticing a change.

use garret_core::id::{SessionId, TurnSeq};
use garret_storage::{ErasureEpoch, ReadError, Store};

use crate::companion::schedule::Schedule;
use crate::prompt::history::TurnCounts;
use crate::trace::{Piece, System, Trace};

/// Everything that is cached of the active session. All of it can be made anew from the store.
#[derive(Debug, Default)]
pub(super) struct Conversation {
    key: Option<Key>,
    /// Counts of the turns that were in a prompt.
    pub(super) counts: TurnCounts,
    /// The model's cache holds the conversation as the next prompt begins.
    pub(super) is_prefilled: bool,
    /// The companions that are to run; `None` until it is asked for.
    pub(super) schedule: Option<Schedule>,
    /// The newest snapshot of it, so that it isn't written again for nothing.
    pub(super) snapshot: Option<KeptSnapshot>,
    /// The trace to which those of the newest turns refer.
    trace_base: Option<TraceBase>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Key {
    session: SessionId,
    /// Changes with every erasure.
    epoch: ErasureEpoch,
}

/// A snapshot that was written or used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeptSnapshot {
    /// The newest turn in it.
    pub(super) turn: TurnSeq,
    pub(super) tokens: usize,
}

/// The trace of the turn in which the system message stands, as far as later ones refer to it.
#[derive(Clone, Debug)]
struct TraceBase {
    turn: TurnSeq,
    pieces: Vec<Piece>,
}

impl Conversation {
    /// Turns to `session`: another one's cache is dropped, and so is all that was made of words that may
    /// have been erased since.
    pub(super) fn turn_to(&mut self, store: &Store, session: &SessionId) -> &mut Self {
        let epoch = store.erasure_epoch();
        match &mut self.key {
            Some(key) if key.session == *session && key.epoch == epoch => {}
            key => {
                let same = key.as_ref().is_some_and(|key| key.session == *session);
                // The schedule has numbers alone, and says up to which turn facts were read: those of
                // an erasure must not be read again.
                let schedule = self.schedule.take().filter(|_| same);
                let key = Some(Key { session: session.clone(), epoch });
                *self = Self { key, schedule, ..Self::default() };
            }
        }
        self
    }

    /// Returns the schedule of `session`, opened at turn `turn` if it isn't open.
    ///
    /// # Errors
    /// When the store can't be read.
    pub(super) fn schedule(
        &mut self,
        store: &Store,
        session: &SessionId,
        turn: TurnSeq,
    ) -> Result<&mut Schedule, ReadError> {
        let schedule = match self.turn_to(store, session).schedule.take() {
            Some(schedule) => schedule,
            None => Schedule::open(store, session, turn)?,
        };
        Ok(self.schedule.insert(schedule))
    }

    /// Returns whether nothing was erased since `epoch` was taken, by what the cache knows.
    pub(super) fn is_of(&self, epoch: ErasureEpoch) -> bool {
        self.key.as_ref().is_some_and(|key| key.epoch == epoch)
    }

    /// Sees to it that the trace of `turn` is the one that others refer to, if it is there and has a
    /// system message; reads it once. Returns whether it is.
    pub(super) fn find_trace_base(
        &mut self,
        store: &Store,
        session: &SessionId,
        turn: TurnSeq,
    ) -> bool {
        self.turn_to(store, session);
        if self.trace_pieces(turn).is_none() {
            let trace = Trace::read(store, session, turn);
            let trace =
                trace.inspect_err(|error| tracing::warn!(%error, turn, "a trace is begun anew"));
            self.trace_base = None;
            if let Ok(Some(trace)) = trace {
                self.set_trace_base(turn, &trace);
            }
        }
        self.trace_base.is_some()
    }

    /// Has later traces refer to that of `turn`, if it has a system message.
    pub(super) fn set_trace_base(&mut self, turn: TurnSeq, trace: &Trace) {
        if matches!(trace.system, System::Text(_)) {
            self.trace_base = Some(TraceBase { turn, pieces: trace.pieces().to_vec() });
        }
    }

    /// Returns the pieces of the trace of `turn`, if that is the one that others refer to.
    pub(super) fn trace_pieces(&self, turn: TurnSeq) -> Option<&[Piece]> {
        let base = self.trace_base.as_ref().filter(|base| base.turn == turn);
        base.map(|base| base.pieces.as_slice())
    }
}
