//! The index of a store: built from its records, then kept as they change.
//!
//! Writers only note what they changed, in a short queue. A search takes the queue together with
//! a snapshot of the records, in one moment under the store's lock, and catches up from that
//! snapshot under the index's own lock. So no writer waits for a search, or for the first one,
//! which reads all records; and a search sees whatever was written before it began.

use std::collections::HashMap;
use std::mem::take;
use std::ops::RangeInclusive;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use garret_core::id::{SessionId, TurnSeq};
use garret_core::time::Confidence;
use redb::{ReadOnlyTable, ReadTransaction, ReadableTable as _};

use crate::conversations::record::{ReplyRecord, SessionRecord, TurnRecord, speaker};
use crate::facts;
use crate::facts::{Fact, FactId};
use crate::ground::error::{Fault, unless_damaged};
use crate::ground::position::Position;
use crate::ground::table::{REPLIES, SESSIONS, SPEAKERS, TURNS, TurnKey, seq_of, turn_key};
use crate::index::{Basis, Changes, Fresh};
use crate::open::Open;
use crate::search::entities::Entities;
use crate::search::index::Index;
use crate::search::stored::{Base, Dirty};
use crate::search::unit::{Speaker, Unit};

/// The text index of an open store, in memory.
#[derive(Debug, Default)]
pub(crate) struct Derived {
    queue: Mutex<Queue>,
    pub(crate) kept: Mutex<Option<Kept>>,
}

/// Changes that an index doesn't know yet.
#[derive(Debug, Default)]
struct Queue {
    /// There is an index, or one is being made.
    wanted: bool,
    /// True if the changes can't be told: the index must be made anew.
    lost: bool,
    changes: Changes,
}

/// Most changes that wait; beyond, reading everything is no slower.
const MOST_WAITING: usize = 1 << 18;

impl Derived {
    /// Notes what changed, if anybody will ask for it. Called while the store is locked.
    pub(crate) fn note(&self, fresh: &Fresh) {
        if fresh.changes.is_empty() && !fresh.lost {
            return;
        }
        let mut queue = self.queue();
        if !queue.wanted || queue.lost {
            return;
        }
        queue.changes.extend(&fresh.changes);
        if fresh.lost || queue.changes.len() > MOST_WAITING {
            queue.lost = true;
            queue.changes = Changes::default();
        }
    }

    /// The records may hold something else than was noted: a write failed on its way, or removed
    /// more than can be told.
    pub(crate) fn forget(&self) {
        let mut queue = self.queue();
        queue.lost = queue.wanted;
        queue.changes = Changes::default();
        drop(queue);
        // Unless it is searched now: then the next search drops it.
        if let Ok(mut kept) = self.kept.try_lock() {
            *kept = None;
        }
    }

    /// Waits for searches to end, and keeps others from beginning while the guard is there. Whoever
    /// needs the locks of the vectors or the records as well takes this one first.
    pub(crate) fn hold(&self) -> Held<'_> {
        Held(self.kept.lock().unwrap_or_else(|poisoned| self.sound(poisoned)))
    }

    /// For who has one of those locks already, and so can't wait.
    pub(crate) fn try_hold(&self) -> Option<Held<'_>> {
        match self.kept.try_lock() {
            Ok(kept) => Some(Held(kept)),
            Err(TryLockError::Poisoned(poisoned)) => Some(Held(self.sound(poisoned))),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// A panic came in the way of a change.
    fn sound<'a>(&self, poisoned: PoisonError<MutexGuard<'a, Option<Kept>>>) -> KeptGuard<'a> {
        let mut kept = poisoned.into_inner();
        *kept = None;
        self.kept.clear_poison();
        kept
    }

    /// Tells whether there is an index.
    pub(crate) fn is_kept(&self) -> bool {
        self.kept.lock().is_ok_and(|kept| kept.is_some())
    }

    /// Hands an index that agrees with the records to `act`, and the snapshot that it agrees with.
    /// `snapshot` takes one under the store's lock and calls what it is given while it holds that.
    pub(crate) fn with<T, E: From<Fault>>(
        &self,
        snapshot: impl FnOnce(AtOnce<'_>) -> Result<ReadTransaction, E>,
        act: impl FnOnce(&Kept, &ReadTransaction) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut held = self.hold();
        let now = self.catch_up(&mut held, snapshot)?;
        now.kept.entities.catch_up(&now.transaction)?;
        act(now.kept, &now.transaction)
    }

    /// Brings the index up to date with the records, or makes one: from its file where that can be.
    pub(crate) fn catch_up<'a, E: From<Fault>>(
        &self,
        held: &'a mut Held<'_>,
        snapshot: impl FnOnce(AtOnce<'_>) -> Result<ReadTransaction, E>,
    ) -> Result<Now<'a>, E> {
        let slot = &mut *held.0;
        let (mut changes, mut basis, mut last) = (Changes::default(), None, Position::default());
        let mut known = slot.is_some();
        let transaction = snapshot(&mut |open| {
            let mut queue = self.queue();
            changes = take(&mut queue.changes);
            known &= !take(&mut queue.lost);
            queue.wanted = true;
            basis = if known { None } else { open.index.basis() };
            last = open.journal.last();
        })?;
        // Until it has caught up there is none.
        let kept = match (slot.take().filter(|_| known), basis) {
            (Some(mut kept), _) => {
                kept.catch_up(&transaction, &changes)?;
                kept
            }
            (None, Some(basis)) => Kept::of(&basis, &transaction)?,
            (None, None) => Kept::build(&transaction)?,
        };
        Ok(Now { kept: slot.insert(kept), transaction, last })
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        // Whole at every moment.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Called in the moment of a snapshot, under the store's lock.
pub(crate) type AtOnce<'a> = &'a mut dyn FnMut(&mut Open);

/// An index, and the moment that it agrees with.
pub(crate) struct Now<'a> {
    pub(crate) kept: &'a mut Kept,
    pub(crate) transaction: ReadTransaction,
    /// The last write then.
    pub(crate) last: Position,
}

type KeptGuard<'a> = MutexGuard<'a, Option<Kept>>;

/// While it is there, nothing is searched.
pub(crate) struct Held<'a>(KeptGuard<'a>);

impl Held<'_> {
    /// Tells whether there is an index.
    pub(crate) fn is_kept(&self) -> bool {
        self.0.is_some()
    }

    /// Drops the index, and all words in it.
    pub(crate) fn discard(&mut self) {
        *self.0 = None;
    }
}

/// An index that agrees with one moment of the records.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    pub(crate) index: Index,
    /// The names of the sessions in it.
    pub(crate) names: HashMap<u64, SessionId>,
    /// Entities that facts are about.
    pub(crate) entities: Entities,
    /// The segments in its file that it begins with.
    pub(crate) base: Option<Base>,
    /// Differences between the segments and what is there.
    pub(crate) dirty: Dirty,
}

impl Kept {
    /// Returns what the file holds, and what changed since; made anew where it doesn't hold that.
    fn of(basis: &Basis, transaction: &ReadTransaction) -> Result<Self, Fault> {
        match Self::load(basis) {
            Ok(Some(mut kept)) => {
                kept.catch_up(transaction, &basis.changes)?;
                return Ok(kept);
            }
            Ok(None) => tracing::warn!("the text index is damaged; it is made anew"),
            Err(error) => tracing::warn!(%error, "the text index can't be read; it is made anew"),
        }
        Self::build(transaction)
    }

    /// Reads the whole store. A damaged record is left out, with a warning: it can't be found, the
    /// others can.
    fn build(transaction: &ReadTransaction) -> Result<Self, Fault> {
        let (turns, replies) = (transaction.open_table(TURNS)?, transaction.open_table(REPLIES)?);
        let speakers = transaction.open_table(SPEAKERS)?;
        let mut kept = Self::default();
        for entry in transaction.open_table(SESSIONS)?.iter()? {
            let (id, bytes) = entry?;
            let record = SessionRecord::read(id.value(), bytes.value())
                .and_then(|record| Ok((record.number, record.into_info()?)));
            let Some((number, info)) = spared(record)? else { continue };
            kept.names.insert(number, info.id);
            kept.all_said(&turns, &speakers, number, 0..=u64::MAX)?;
            kept.all_answered(&replies, number, 0..=u64::MAX)?;
        }
        let mut done = Ok(());
        facts::for_each(transaction, |fact| {
            if done.is_ok() {
                done = kept.put_fact(transaction, &fact.to_fact());
            }
        })?;
        done?;
        Ok(kept)
    }

    /// Takes over what changed.
    fn catch_up(&mut self, transaction: &ReadTransaction, changes: &Changes) -> Result<(), Fault> {
        if changes.is_empty() {
            return Ok(());
        }
        for (number, id) in &changes.sessions {
            let Ok(id) = id.parse() else { continue };
            if self.names.get(number) != Some(&id) {
                self.names.insert(*number, id);
                self.dirty.sessions.insert(*number);
            }
        }
        let (turns, replies) = (transaction.open_table(TURNS)?, transaction.open_table(REPLIES)?);
        let speakers = transaction.open_table(SPEAKERS)?;
        for run in &changes.said {
            let last = run.first.saturating_add(run.count.saturating_sub(1));
            self.all_said(&turns, &speakers, run.session, run.first..=last)?;
        }
        for run in &changes.answered {
            let last = run.first.saturating_add(run.count.saturating_sub(1));
            self.all_answered(&replies, run.session, run.first..=last)?;
        }
        for number in &changes.removed {
            self.remove(*number);
        }
        let mut gone = Vec::new();
        for id in &changes.facts {
            match spared(facts::fact(transaction, FactId(*id)))?.flatten() {
                Some(fact) => {
                    self.put_fact(transaction, &fact)?;
                    self.dirty.facts.insert(*id);
                }
                None => gone.push(*id),
            }
        }
        self.remove_facts(&gone);
        Ok(())
    }

    /// Removes a session. What is in the segments is then not what is in the index.
    pub(crate) fn remove(&mut self, session: u64) {
        let named = self.names.remove(&session).is_some();
        if named || self.index.by_number.contains_key(&session) {
            self.index.remove(session);
            self.base = None;
        }
    }

    pub(crate) fn remove_facts(&mut self, gone: &[u64]) {
        if gone.iter().any(|id| self.index.by_fact.contains_key(id)) {
            self.index.remove_facts(gone);
            self.base = None;
        }
    }

    /// The words of some turns of a session.
    fn all_said(
        &mut self,
        turns: &ByTurn,
        speakers: &ByTurn,
        session: u64,
        range: RangeInclusive<TurnSeq>,
    ) -> Result<(), Fault> {
        let (first, last) = (turn_key(session, *range.start()), turn_key(session, *range.end()));
        for entry in turns.range::<&TurnKey>(&first..=&last)? {
            let (key, bytes) = entry?;
            let name = speakers.get(key.value())?;
            let name = name.as_ref().map(|name| name.value());
            self.said(session, seq_of(key.value()), name, bytes.value())?;
        }
        Ok(())
    }

    fn all_answered(
        &mut self,
        replies: &ByTurn,
        session: u64,
        range: RangeInclusive<TurnSeq>,
    ) -> Result<(), Fault> {
        let (first, last) = (turn_key(session, *range.start()), turn_key(session, *range.end()));
        for entry in replies.range::<&TurnKey>(&first..=&last)? {
            let (key, bytes) = entry?;
            self.answered(session, seq_of(key.value()), bytes.value())?;
        }
        Ok(())
    }

    fn put_fact(&mut self, transaction: &ReadTransaction, fact: &Fact) -> Result<(), Fault> {
        let usage = spared(facts::usage(transaction, fact.id))?;
        let subject = match fact.subject {
            Some(subject) => spared(facts::entity(transaction, subject))?.flatten(),
            None => None,
        };
        let subject = subject.as_ref().map(|subject| &*subject.name);
        self.index.put_fact(fact, subject, usage.and_then(|usage| usage.last_ms));
        Ok(())
    }

    fn said(
        &mut self,
        session: u64,
        seq: TurnSeq,
        name: Option<&[u8]>,
        bytes: &[u8],
    ) -> Result<(), Fault> {
        let name = name.map(|name| speaker(session, seq, name)).transpose();
        let (Some(name), Some(turn)) =
            (spared(name)?, spared(TurnRecord::view(session, seq, bytes))?)
        else {
            return Ok(());
        };
        let speaker = name.map_or(Speaker::User, Speaker::Named);
        self.add(session, seq, speaker, turn.user, time(turn.accepted_ms, turn.clock));
        Ok(())
    }

    fn answered(&mut self, session: u64, seq: TurnSeq, bytes: &[u8]) -> Result<(), Fault> {
        if let Some(reply) = spared(ReplyRecord::view(session, seq, bytes))? {
            let at_ms = time(reply.finished_ms, reply.clock);
            self.add(session, seq, Speaker::Assistant, reply.text, at_ms);
        }
        Ok(())
    }

    fn add(
        &mut self,
        session: u64,
        turn: TurnSeq,
        speaker: Speaker<'_>,
        text: &str,
        at_ms: Option<i64>,
    ) {
        self.index.add(&Unit { session, turn, speaker, at_ms, text });
    }
}

type ByTurn = ReadOnlyTable<&'static TurnKey, &'static [u8]>;

/// A moment, unless the clock was known to be wrong.
pub(crate) fn time(unix_ms: i64, clock: Confidence) -> Option<i64> {
    (clock != Confidence::Wrong).then_some(unix_ms)
}

/// Returns what was read, unless the record is damaged.
pub(crate) fn spared<T>(read: Result<T, Fault>) -> Result<Option<T>, Fault> {
    unless_damaged(read, |what, key| tracing::warn!(what, key, "damaged, so it can't be searched"))
}
