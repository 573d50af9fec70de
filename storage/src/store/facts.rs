//! Facts of a store: its methods.

use garret_core::id::{SessionId, TurnSeq};
use garret_core::time::{Confidence, WallTime};
use redb::{ReadTransaction, ReadableDatabase as _, ReadableTable as _};

use crate::conversations::record::SessionRecord;
use crate::facts::op::{Draft, FactOp};
use crate::facts::read;
use crate::facts::view::{
    Added, Entity, Fact, FactFilter, FactPage, FactView, Link, LinkKind, NewFact, Node, Pin, Usage,
};
use crate::facts::write::Effect;
use crate::ground::error::{Abort, Fault, ReadError, WriteError, damaged};
use crate::ground::fact_id::{EntityId, FactId};
use crate::ground::table::SESSIONS;
use crate::journal::apply::Outcome;
use crate::journal::op::Op;
use crate::store::Store;
use crate::store::snapshot::ErasureEpoch;
use crate::store::turns::unexpected;

impl Store {
    /// Stores a fact told at `at`; it is durable when this returns.
    ///
    /// Where one value holds at a time, it ends the fact that holds from its start on and is ended
    /// by the next one that starts later. Where a fact that holds then says the same, nothing is
    /// written.
    ///
    /// # Errors
    /// [`WriteError::Fact`], [`WriteError::UnknownSession`] and [`WriteError::UnknownTurn`] for an
    /// origin that isn't there, and others; nothing of the fact is stored then, save as that type
    /// says.
    pub fn add_fact(&self, fact: &NewFact<'_>, at: WallTime) -> Result<Added, WriteError> {
        self.add_fact_since(None, fact, at)
    }

    pub(crate) fn add_fact_since(
        &self,
        epoch: Option<ErasureEpoch>,
        fact: &NewFact<'_>,
        at: WallTime,
    ) -> Result<Added, WriteError> {
        let drafts = vec![Draft::new(fact, at)?];
        self.change_since(epoch, FactOp::Add(drafts))?.one()
    }

    /// Stores facts told at `at`, one after another, all or none.
    ///
    /// # Errors
    /// As [`Store::add_fact`], of the first that can't be stored.
    pub fn add_facts(&self, facts: &[NewFact<'_>], at: WallTime) -> Result<Vec<Added>, WriteError> {
        let drafts =
            facts.iter().map(|fact| Draft::new(fact, at)).collect::<Result<Vec<_>, _>>()?;
        Ok(self.change(FactOp::Add(drafts))?.added)
    }

    /// Stores a fact in the place of `old`, which ends where the new one starts. A new fact
    /// without a subject is about the same as the old one.
    ///
    /// An old fact that starts later never was true then. Where another fact already says the
    /// same, that one replaces the old one, and no fact is written.
    ///
    /// # Errors
    /// [`FactError::AlreadySuperseded`](crate::FactError::AlreadySuperseded),
    /// [`FactError::UnknownFact`](crate::FactError::UnknownFact), and as [`Store::add_fact`].
    pub fn supersede(
        &self,
        old: FactId,
        fact: &NewFact<'_>,
        at: WallTime,
    ) -> Result<Added, WriteError> {
        self.supersede_since(None, old, fact, at)
    }

    pub(crate) fn supersede_since(
        &self,
        epoch: Option<ErasureEpoch>,
        old: FactId,
        fact: &NewFact<'_>,
        at: WallTime,
    ) -> Result<Added, WriteError> {
        let new = Draft::new(fact, at)?;
        self.change_since(epoch, FactOp::Supersede { old: old.0, new })?.one()
    }

    /// Ends a fact at a moment, in milliseconds since 1970, without another in its place. One that
    /// starts later never was true then; one that ended before stays as it is.
    ///
    /// # Errors
    /// [`FactError::UnknownFact`](crate::FactError::UnknownFact) and others.
    pub fn retract(&self, fact: FactId, at_ms: i64) -> Result<(), WriteError> {
        self.change(FactOp::Retract { fact: fact.0, at_ms }).map(drop)
    }

    /// Retires a fact in favour of another one of its subject and predicate that says the same. It
    /// stays true as long as the other one, but isn't the latest any more.
    ///
    /// # Errors
    /// [`FactError::NotDuplicates`](crate::FactError::NotDuplicates) and others.
    pub fn retire_duplicate(&self, loser: FactId, survivor: FactId) -> Result<(), WriteError> {
        self.change(FactOp::Retire { loser: loser.0, survivor: survivor.0 }).map(drop)
    }

    /// Links two things that are there; a link that is there already stays.
    ///
    /// # Errors
    /// [`FactError::UnknownFact`](crate::FactError::UnknownFact),
    /// [`FactError::UnknownEntity`](crate::FactError::UnknownEntity) and others.
    pub fn link(&self, from: Node, kind: LinkKind, to: Node) -> Result<(), WriteError> {
        self.change(FactOp::Link(Link { from, kind, to }.into())).map(drop)
    }

    /// Counts that facts were of use, each with the moment in milliseconds since 1970. Facts that
    /// aren't there are passed over.
    ///
    /// # Errors
    /// [`WriteError`].
    pub fn touch(&self, touches: &[(FactId, i64)]) -> Result<(), WriteError> {
        let touches = touches.iter().map(|(fact, when_ms)| (fact.0, *when_ms)).collect();
        self.change(FactOp::Touch(touches)).map(drop)
    }

    /// Pins a fact, or takes its pin away ([`Pin::None`]); [`Pin::Auto`] leaves the user's pin as it
    /// is. What replaces a pinned fact gets its pin; a fact that ends otherwise loses it.
    ///
    /// # Errors
    /// [`FactError::UnknownFact`](crate::FactError::UnknownFact),
    /// [`FactError::NotCurrent`](crate::FactError::NotCurrent) for one that was replaced, and others.
    pub fn pin(&self, fact: FactId, pin: Pin) -> Result<(), WriteError> {
        self.change(FactOp::Pin { fact: fact.0, pin: pin.to_byte() }).map(drop)
    }

    /// The pinned facts that are true at `now`: the user's pins first, then what matters more, then
    /// what was written later. By a clock that is wrong it can't be said what is true now; then
    /// these are the ones without an end. A damaged one is left out, and logged.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn pinned(&self, now: WallTime) -> Result<Vec<Fact>, ReadError> {
        let by_clock = now.confidence != Confidence::Wrong;
        self.snapshot(|transaction| {
            read::pinned(transaction, |fact| {
                if by_clock { fact.holds_at(now.unix_ms) } else { fact.latest }
            })
        })
    }

    /// A fact, if there is one of this id.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn fact(&self, id: FactId) -> Result<Option<Fact>, ReadError> {
        self.snapshot(|transaction| read::fact(transaction, id))
    }

    /// Says how what a fact says changed, the oldest first: the facts of its slot where a subject has
    /// one value at a time, else those that say the same, and in both cases whatever replaced any
    /// of them or was replaced by one. Empty when there is no such fact.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn history(&self, id: FactId) -> Result<Vec<Fact>, ReadError> {
        self.snapshot(|transaction| read::history(transaction, id))
    }

    /// A page of facts, in the order of writing. A damaged one is left out, and logged.
    ///
    /// # Errors
    /// [`ReadError::UnknownSession`] and others.
    pub fn facts(&self, filter: &FactFilter<'_>) -> Result<FactPage, ReadError> {
        let session = match filter.session {
            None => None,
            Some(id) => Some(self.number_of(id)?),
        };
        self.snapshot(|transaction| read::page(transaction, filter, session))
    }

    /// Hands every fact that can be read to `f`, in the order of writing and read in place. A
    /// damaged one is left out, and logged. `f` may use the store, and sees the facts as they were
    /// when the call began, or when their file was last written anew.
    ///
    /// # Errors
    /// [`ReadError`]; `f` may have had some of them then.
    pub fn for_each_fact(&self, mut f: impl FnMut(&FactView<'_>)) -> Result<(), ReadError> {
        let mut last = FactId(0);
        self.on_snapshot(|transaction, _| {
            read::for_each(transaction, |fact| {
                if fact.id > last {
                    last = fact.id;
                    f(fact);
                }
            })
        })
    }

    /// The facts said in a turn, in the order of writing.
    ///
    /// # Errors
    /// [`ReadError::UnknownSession`] and others.
    pub fn facts_of_turn(
        &self,
        session: &SessionId,
        turn: TurnSeq,
    ) -> Result<Vec<FactId>, ReadError> {
        let number = self.number_of(session)?;
        self.snapshot(|transaction| read::of_turn(transaction, number, turn))
    }

    /// Lists the people and things that there are facts about, in the order in which they were
    /// first named.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn entities(&self) -> Result<Vec<Entity>, ReadError> {
        self.snapshot(read::entities)
    }

    /// An entity, if there is one of this id.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn entity(&self, id: EntityId) -> Result<Option<Entity>, ReadError> {
        self.snapshot(|transaction| read::entity(transaction, id))
    }

    /// The links that start or end at `node`.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn links_of(&self, node: Node) -> Result<Vec<Link>, ReadError> {
        self.snapshot(|transaction| read::links_of(transaction, node))
    }

    /// The number of times a fact was of use.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn usage(&self, id: FactId) -> Result<Usage, ReadError> {
        self.snapshot(|transaction| read::usage(transaction, id))
    }

    /// The session of this number, as [`Fact::session`] has it; `None` when it was deleted.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn session_of_number(&self, number: u64) -> Result<Option<SessionId>, ReadError> {
        self.snapshot(|transaction| {
            for entry in transaction.open_table(SESSIONS)?.iter()? {
                let (id, bytes) = entry?;
                if let Ok(record) = SessionRecord::read(id.value(), bytes.value())
                    && record.number == number
                {
                    return Ok(Some(record.into_info()?.id));
                }
            }
            Ok(None)
        })
    }

    /// Lists the faults of facts, entities and links, one line each, in words: records that can't
    /// be
    /// read, tables that don't agree, chains that end nowhere, two facts that are true at the same
    /// time where one can be. Empty when all is well.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn check_facts(&self) -> Result<Vec<String>, ReadError> {
        self.snapshot(crate::verify::check_facts)
    }

    pub(crate) fn number_of(&self, id: &SessionId) -> Result<u64, ReadError> {
        self.reading(|open| match crate::store::sessions::find(open, id)? {
            Some(record) => Ok(record.number),
            None => Err(Abort::Refused(ReadError::UnknownSession { session: id.clone() })),
        })
    }

    fn snapshot<T>(
        &self,
        read: impl FnOnce(&ReadTransaction) -> Result<T, Fault>,
    ) -> Result<T, ReadError> {
        self.reading(|open| Ok(read(&open.database.begin_read()?)?))
    }

    fn change(&self, op: FactOp<'_>) -> Result<Effect, WriteError> {
        self.change_since(None, op)
    }

    fn change_since(
        &self,
        epoch: Option<ErasureEpoch>,
        op: FactOp<'_>,
    ) -> Result<Effect, WriteError> {
        let op = Op::Facts(op);
        self.writing(|open| {
            if !self.is_current(epoch) {
                return Err(Abort::Refused(WriteError::Outdated));
            }
            match open.perform(&op)? {
                Outcome::Facts(effect) => Ok(effect),
                other => unexpected(&other),
            }
        })
    }
}

impl Effect {
    /// Returns what became of the only fact that was to be stored.
    fn one(mut self) -> Result<Added, WriteError> {
        let added = self.added.pop();
        let none = || damaged("operation", "it stored no fact".to_owned());
        added.ok_or_else(|| none().into())
    }
}
