//! Writing facts within one transaction of the database. Ids come from counters in the store, so
//! that applying an operation again gives the same.

use std::collections::{BTreeMap, BTreeSet};

use garret_core::time::Confidence;
use redb::{ReadableTable as _, Table, WriteTransaction};

use crate::facts::close::Cause;
use crate::facts::ground::origin;
use crate::facts::key::{ABOUT, is_multi_valued, name_key, predicate_key, value_key};
use crate::facts::lane::{LaneTable, heir_key_of, lane, load, missing, slot_key};
use crate::facts::op::{Draft, FactOp};
use crate::facts::record::{EntityRecord, FactRecord, GROUNDED, INFERRED, OWN_LANE, UsageRecord};
use crate::facts::table::{
    Direction, ENTITIES, FACTS, HEIR_KEY, HEIRS, IdKey, LINKS, LaneKey, NAMES, PINS, SLOT_KEY,
    SLOTS, SOURCES, USAGE, key, kind_byte, lane_of, link_key, names_key, slot_range, source_key,
};
use crate::facts::timeline;
use crate::facts::timeline::{Lane as _, Neighbours, OPEN, neighbours};
use crate::facts::view::{Added, FactKind, Link, LinkKind, Node, Outcome, Pin, Usage};
use crate::ground::codec::encode;
use crate::ground::error::{Abort, Fault, WriteError, damaged};
use crate::ground::fact_error::FactError;
use crate::ground::fact_id::FactId;
use crate::ground::stamp::byte_of;
use crate::ground::table::META;

/// The result of an operation.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Effect {
    /// For each fact that was to be stored.
    pub(crate) added: Vec<Added>,
    /// Facts that are new, or hold at other times than before, or have another successor.
    pub(crate) changed: BTreeSet<FactId>,
}

impl Effect {
    /// Tells whether facts were to be stored and all of them were said already.
    pub(crate) fn is_nothing(&self) -> bool {
        !self.added.is_empty() && self.changed.is_empty()
    }
}

/// Applies an operation. After an error or a refusal the transaction must be dropped.
pub(crate) fn apply(
    transaction: &WriteTransaction,
    op: &FactOp<'_>,
) -> Result<Effect, Abort<WriteError>> {
    let mut writer = Writer::open(transaction)?;
    writer.run(op)?;
    writer.finish()
}

type Facts<'t> = Table<'t, &'static IdKey, &'static [u8]>;
type Slots<'t> = Table<'t, &'static [u8; SLOT_KEY], ()>;

/// All tables that facts are written to, open.
pub(crate) struct Writer<'t> {
    pub(crate) transaction: &'t WriteTransaction,
    pub(crate) facts: Facts<'t>,
    pub(crate) slots: Slots<'t>,
    pub(crate) heirs: Table<'t, &'static [u8; HEIR_KEY], ()>,
    pub(crate) links: Table<'t, &'static [u8; 20], ()>,
    sources: Table<'t, &'static [u8; 24], ()>,
    pub(crate) entities: Table<'t, &'static IdKey, &'static [u8]>,
    pub(crate) names: Table<'t, &'static [u8], &'static IdKey>,
    pub(crate) usage: Table<'t, &'static IdKey, &'static [u8]>,
    pins: Table<'t, &'static IdKey, ()>,
    pub(crate) next_fact: u64,
    pub(crate) next_entity: u64,
    pub(crate) effect: Effect,
    /// Facts that the one being added replaced.
    pub(crate) superseded: Vec<FactId>,
    /// Facts that ended with those.
    pub(crate) invalidated: Vec<FactId>,
    /// Facts that ended and have no successor.
    pub(crate) ended: BTreeSet<u64>,
    /// Pins for facts that aren't stored yet.
    pub(crate) bequests: BTreeMap<u64, Pin>,
}

/// The place that a draft belongs to.
struct Place<'a> {
    subject: Option<Subject<'a>>,
    predicate: String,
    /// True if each value has its own lane.
    own: bool,
    /// The key that tells its value from others.
    value: String,
    lane: LaneKey,
}

enum Subject<'a> {
    Known(u64),
    New { id: u64, name: &'a str, kind: &'a str, folded: String, key: Vec<u8> },
}

impl<'t> Writer<'t> {
    pub(crate) fn open(transaction: &'t WriteTransaction) -> Result<Self, Abort<WriteError>> {
        let meta = transaction.open_table(META)?;
        let counter = |key| -> Result<u64, Fault> {
            let Some(bytes) = meta.get(key)? else { return Ok(1) };
            let bytes = bytes.value().try_into();
            let bytes = bytes.map_err(|_| damaged("table `meta`", format!("`{key}`")))?;
            Ok(u64::from_le_bytes(bytes))
        };
        Ok(Self {
            transaction,
            facts: transaction.open_table(FACTS)?,
            slots: transaction.open_table(SLOTS)?,
            heirs: transaction.open_table(HEIRS)?,
            links: transaction.open_table(LINKS)?,
            sources: transaction.open_table(SOURCES)?,
            entities: transaction.open_table(ENTITIES)?,
            names: transaction.open_table(NAMES)?,
            usage: transaction.open_table(USAGE)?,
            pins: transaction.open_table(PINS)?,
            next_fact: counter(key::NEXT_FACT)?,
            next_entity: counter(key::NEXT_ENTITY)?,
            effect: Effect::default(),
            superseded: Vec::new(),
            invalidated: Vec::new(),
            ended: BTreeSet::new(),
            bequests: BTreeMap::new(),
        })
    }

    fn run(&mut self, op: &FactOp<'_>) -> Result<(), Abort<WriteError>> {
        match op {
            FactOp::Add(drafts) => drafts.iter().try_for_each(|draft| self.add(draft)),
            FactOp::Supersede { old, new } => self.supersede(*old, new),
            FactOp::Retract { fact, at_ms } => self.retract(*fact, *at_ms),
            FactOp::Retire { loser, survivor } => self.retire(*loser, *survivor),
            FactOp::Link(link) => {
                let unknown = || damaged("operation", "its link".to_owned());
                self.link(link.link().ok_or_else(unknown)?)
            }
            FactOp::Touch(touches) => touches.iter().try_for_each(|touch| self.touch(*touch)),
            FactOp::Pin { fact, pin } => {
                let unknown = || damaged("operation", "its pin".to_owned());
                self.pin(*fact, Pin::from_byte(*pin).ok_or_else(unknown)?)
            }
        }
    }

    pub(crate) fn finish(self) -> Result<Effect, Abort<WriteError>> {
        let mut meta = self.transaction.open_table(META)?;
        for (key, next) in [(key::NEXT_FACT, self.next_fact), (key::NEXT_ENTITY, self.next_entity)]
        {
            if next > 1 {
                meta.insert(key, next.to_le_bytes().as_slice())?;
            }
        }
        Ok(self.effect)
    }

    fn add(&mut self, draft: &Draft<'_>) -> Result<(), Abort<WriteError>> {
        let place = self.whereabouts(draft, None)?;
        let start = self.start(draft, &place, i64::MIN)?;
        let around = self.around(place.lane, start)?;
        let holder = around.holder.map(|holder| self.known(holder.id)).transpose()?;
        if let Some(holder) = holder.filter(|holder| restates(draft, &place, holder)) {
            let id = if holder.is_retired_duplicate() { holder.superseded_by } else { holder.id };
            self.answer(id, Outcome::Restated);
            return Ok(());
        }
        let id = self.insert(draft, place, start, None)?;
        self.answer(id, Outcome::Stored);
        Ok(())
    }

    fn supersede(&mut self, old: u64, draft: &Draft<'_>) -> Result<(), Abort<WriteError>> {
        let record = self.known(old)?;
        if record.superseded_by != 0 {
            let (fact, by) = (FactId(old), FactId(record.superseded_by));
            return Err(FactError::AlreadySuperseded { fact, by }.into());
        }
        let place = self.whereabouts(draft, Some(&record))?;
        let start = self.start(draft, &place, record.valid_at)?;
        let around = self.around(place.lane, start)?;
        let holder = around.holder.filter(|holder| holder.id != old);
        let holder = holder.map(|holder| self.known(holder.id)).transpose()?;
        // One with a successor may have been followed by the old fact: that would make a circle.
        let same =
            holder.filter(|holder| holder.superseded_by == 0 && restates(draft, &place, holder));
        if let Some(holder) = same {
            self.close(old, start, Cause::Replaced(holder.id))?;
            self.answer(holder.id, Outcome::Restated);
            return Ok(());
        }
        let id = self.insert(draft, place, start, Some(old))?;
        self.answer(id, Outcome::Stored);
        Ok(())
    }

    fn retract(&mut self, fact: u64, at_ms: i64) -> Result<(), Abort<WriteError>> {
        self.known(fact)?;
        self.close(fact, at_ms, Cause::Retracted)
    }

    fn retire(&mut self, loser: u64, survivor: u64) -> Result<(), Abort<WriteError>> {
        let refused = FactError::NotDuplicates { loser: FactId(loser), survivor: FactId(survivor) };
        let record = self.known(loser)?;
        let mut heir = self.known(survivor)?;
        if heir.is_retired_duplicate() {
            heir = self.known(heir.superseded_by)?;
        }
        let current = |record: &FactRecord| record.superseded_by == 0 && record.valid_to == OPEN;
        let same = (record.subject, &record.predicate) == (heir.subject, &heir.predicate);
        if !(same && current(&record) && current(&heir) && record.id != heir.id) {
            return Err(refused.into());
        }
        for duplicate in self.duplicates(loser)?.into_iter().chain([loser]) {
            let before = self.known(duplicate)?;
            let mut after = FactRecord { superseded_by: heir.id, ..before.clone() };
            after.set_pin(Pin::None);
            self.update(&before, &after)?;
        }
        self.bequeath(heir.id, record.pin())?;
        let (used, kept) = (self.used(loser)?, self.used(heir.id)?);
        let last_ms = used.last_ms.max(kept.last_ms);
        self.save_usage(heir.id, Usage { count: used.count.saturating_add(kept.count), last_ms })
    }

    fn link(&mut self, link: Link) -> Result<(), Abort<WriteError>> {
        for node in [link.from, link.to] {
            match node {
                Node::Fact(id) => drop(self.known(id.0)?),
                Node::Entity(entity) => {
                    if self.entities.get(&entity.0.to_be_bytes())?.is_none() {
                        return Err(FactError::UnknownEntity { entity }.into());
                    }
                }
            }
        }
        self.insert_link(link)
    }

    /// Returns what is unknown by now is passed over.
    fn touch(&mut self, (fact, when_ms): (u64, i64)) -> Result<(), Abort<WriteError>> {
        if self.facts.get(&fact.to_be_bytes())?.is_none() {
            return Ok(());
        }
        let used = self.used(fact)?;
        let last_ms = used.last_ms.max(Some(when_ms));
        self.save_usage(fact, Usage { count: used.count.saturating_add(1), last_ms })
    }

    /// Where a draft goes; one that takes an older fact's place and names no subject is about the
    /// same.
    fn whereabouts<'a>(
        &self,
        draft: &Draft<'a>,
        old: Option<&FactRecord>,
    ) -> Result<Place<'a>, Abort<WriteError>> {
        let folded = name_key(draft.subject);
        let old = old.filter(|_| folded.is_empty());
        let subject = match old {
            Some(old) => (old.subject != 0).then_some(Subject::Known(old.subject)),
            None if folded.is_empty() => None,
            None => Some(self.subject(draft, folded)?),
        };
        let predicate = match (&subject, predicate_key(draft.predicate), old) {
            (None, _, _) => {
                refuse_without_subject(draft)?;
                String::new()
            }
            (Some(_), key, _) if !key.is_empty() => key,
            (Some(_), _, Some(old)) => old.predicate.clone(),
            (Some(_), _, None) => ABOUT.to_owned(),
        };
        let own = subject.is_none() || is_multi_valued(&predicate);
        let value = value_key(if draft.object.is_empty() { draft.text } else { draft.object });
        let id = subject.as_ref().map_or(0, Subject::id);
        let lane = lane(id, &predicate, own, &value, self.next_fact);
        Ok(Place { subject, predicate, own, value, lane })
    }

    fn subject<'a>(
        &self,
        draft: &Draft<'a>,
        folded: String,
    ) -> Result<Subject<'a>, Abort<WriteError>> {
        let key = names_key(&folded, &name_key(draft.subject_type));
        if let Some(id) = self.names.get(&*key)? {
            return Ok(Subject::Known(u64::from_be_bytes(*id.value())));
        }
        let (name, kind) = (draft.subject, draft.subject_type);
        Ok(Subject::New { id: self.next_entity, name, kind, folded, key })
    }

    /// Returns when a draft begins to hold. What was said just now by a clock that is wrong comes after
    /// all that was said before, else it would be taken for old news.
    fn start(
        &self,
        draft: &Draft<'_>,
        place: &Place<'_>,
        least: i64,
    ) -> Result<i64, Abort<WriteError>> {
        let now = draft.recorded_ms;
        let start = match draft.valid_at {
            Some(start) => start,
            None if draft.clock != byte_of(Confidence::Wrong) => now,
            None => {
                let newest = self.lane(place.lane).last_until(i64::MAX)?;
                newest.map_or(now, |newest| newest.start).max(now).max(least)
            }
        };
        let end = draft.valid_to.unwrap_or(OPEN);
        if end <= start {
            return Err(FactError::EndsBeforeStart { valid_at: start, valid_to: end }.into());
        }
        Ok(start)
    }

    /// Stores a fact, in the place of `old` where that is given.
    fn insert(
        &mut self,
        draft: &Draft<'_>,
        place: Place<'_>,
        start: i64,
        old: Option<u64>,
    ) -> Result<u64, Abort<WriteError>> {
        for source in &draft.derived_from {
            self.known(*source)?;
        }
        let (session, turn, grounded) = origin(self.transaction, draft)?;
        let extends = place.subject.is_some() && self.has_other_lanes(place.lane)?;
        let id = self.next_fact;
        self.next_fact = id.saturating_add(1);
        if let Some(old) = old {
            self.close(old, start, Cause::Replaced(id))?;
        }
        let around = self.around(place.lane, start)?;
        let yields = draft.inferred && old.is_none();
        let placed = timeline::place(start, draft.valid_to.unwrap_or(OPEN), yields, around);
        let heir = match placed.superseded_by {
            Some(heir) if self.would_follow_itself(heir, old, placed.cuts)? => None,
            heir => heir,
        };
        if let Some(cut) = placed.cuts {
            self.close(cut, start, Cause::Replaced(id))?;
        }
        let kind = match (draft.inferred, self.superseded.is_empty()) {
            (true, _) => FactKind::Derives,
            (false, false) => FactKind::Supersedes,
            (false, true) if extends => FactKind::Extends,
            (false, true) => FactKind::Asserts,
        };
        let flags = [(INFERRED, draft.inferred), (GROUNDED, grounded), (OWN_LANE, place.own)];
        let mut record = FactRecord {
            id,
            valid_at: start,
            valid_to: placed.end,
            recorded_ms: draft.recorded_ms,
            superseded_by: heir.unwrap_or(0),
            invalidated_by: 0,
            session,
            turn,
            subject: place.subject.as_ref().map_or(0, Subject::id),
            text: draft.text.to_owned(),
            quote: draft.quote.to_owned(),
            predicate: place.predicate,
            object: draft.object.to_owned(),
            source_name: draft.source_name.to_owned(),
            confidence: draft.confidence,
            salience: draft.salience,
            kind: kind.to_byte(),
            source: draft.source,
            flags: flags.into_iter().filter(|(_, set)| *set).map(|(flag, _)| flag).sum(),
            clock_confidence: draft.clock,
        };
        if let Some(subject) = place.subject {
            self.create(subject, draft.recorded_ms)?;
        }
        self.inherit(&mut record)?;
        self.index(&record, &draft.derived_from)?;
        self.save(&record)?;
        Ok(id)
    }

    /// Puts a new fact into the tables that lead to it.
    pub(crate) fn index(
        &mut self,
        record: &FactRecord,
        sources: &[u64],
    ) -> Result<(), Abort<WriteError>> {
        self.slots.insert(&slot_key(record), ())?;
        if let Some(key) = heir_key_of(record) {
            self.heirs.insert(&key, ())?;
        }
        if record.session != 0 {
            self.sources.insert(&source_key(record.session, record.turn, record.id), ())?;
        }
        if record.pin() != Pin::None {
            self.pins.insert(&record.id.to_be_bytes(), ())?;
        }
        let from = Node::Fact(FactId(record.id));
        for source in sources {
            let to = Node::Fact(FactId(*source));
            self.insert_link(Link { from, kind: LinkKind::DerivedFrom, to })?;
        }
        Ok(())
    }

    /// Stores a subject that is new.
    fn create(&mut self, subject: Subject<'_>, recorded_ms: i64) -> Result<(), Abort<WriteError>> {
        let Subject::New { id, name, kind, folded, key } = subject else { return Ok(()) };
        let (name, kind) = (name.to_owned(), kind.to_owned());
        let record = encode(&EntityRecord { id, recorded_ms, name, kind, key: folded })?;
        self.next_entity = id.saturating_add(1);
        self.entities.insert(&id.to_be_bytes(), record.as_slice())?;
        self.names.insert(&*key, &id.to_be_bytes())?;
        Ok(())
    }

    pub(crate) fn insert_link(
        &mut self,
        Link { from, kind, to }: Link,
    ) -> Result<(), Abort<WriteError>> {
        let kind = kind_byte(kind);
        self.links.insert(&link_key(from, Direction::From, kind, to), ())?;
        self.links.insert(&link_key(to, Direction::To, kind, from), ())?;
        Ok(())
    }

    /// Replaces a fact's record, and the keys that lead to it.
    pub(crate) fn update(
        &mut self,
        before: &FactRecord,
        after: &FactRecord,
    ) -> Result<(), Abort<WriteError>> {
        let (old, new) = (slot_key(before), slot_key(after));
        if old != new {
            self.slots.remove(&old)?;
            self.slots.insert(&new, ())?;
        }
        let (old, new) = (heir_key_of(before), heir_key_of(after));
        if old != new {
            if let Some(old) = old {
                self.heirs.remove(&old)?;
            }
            if let Some(new) = new {
                self.heirs.insert(&new, ())?;
            }
        }
        let key = after.id.to_be_bytes();
        match (before.pin(), after.pin()) {
            (Pin::None, Pin::None) => {}
            (_, Pin::None) => drop(self.pins.remove(&key)?),
            (Pin::None, _) => drop(self.pins.insert(&key, ())?),
            _ => {}
        }
        self.save(after)
    }

    pub(crate) fn save(&mut self, record: &FactRecord) -> Result<(), Abort<WriteError>> {
        self.facts.insert(&record.id.to_be_bytes(), encode(record)?.as_slice())?;
        self.effect.changed.insert(FactId(record.id));
        Ok(())
    }

    /// The record of a fact that the caller names.
    pub(crate) fn known(&self, fact: u64) -> Result<FactRecord, Abort<WriteError>> {
        let unknown = || FactError::UnknownFact { fact: FactId(fact) };
        Ok(load(&self.facts, fact)?.ok_or_else(unknown)?)
    }

    fn lane(&self, key: LaneKey) -> LaneTable<'_, Slots<'t>, Facts<'t>> {
        LaneTable { slots: &self.slots, facts: &self.facts, key }
    }

    pub(crate) fn around(&self, key: LaneKey, at: i64) -> Result<Neighbours, Abort<WriteError>> {
        Ok(neighbours(&self.lane(key), at)?)
    }

    /// Tells whether its subject has other values of the same predicate.
    fn has_other_lanes(&self, lane: LaneKey) -> Result<bool, Abort<WriteError>> {
        let (first, last) = slot_range(lane.subject, Some(lane.predicate));
        let mut ends = self.slots.range::<&[u8; SLOT_KEY]>(&first..=&last)?;
        for end in [ends.next(), ends.next_back()].into_iter().flatten() {
            if lane_of(end?.0.value()) != lane {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a fact with this heir would come after itself: when the heir leads to what the fact
    /// is about to replace. `old` has the fact as its heir already, `cut` doesn't yet.
    fn would_follow_itself(
        &self,
        heir: u64,
        old: Option<u64>,
        cut: Option<u64>,
    ) -> Result<bool, Abort<WriteError>> {
        // What comes between a fact and its heir changes nothing. So it is with most, and the way
        // along all heirs can be long.
        let cut_by =
            cut.map(|cut| self.known(cut)).transpose()?.map_or(heir, |cut| cut.superseded_by);
        if old.is_none() && cut_by == heir {
            return Ok(false);
        }
        let mut at = heir;
        while at != 0 && ![old, cut].contains(&Some(at)) {
            at = load(&self.facts, at)?.ok_or_else(|| missing(at))?.superseded_by;
        }
        Ok(at != 0)
    }

    pub(crate) fn used(&self, fact: u64) -> Result<Usage, Abort<WriteError>> {
        let found = self.usage.get(&fact.to_be_bytes())?;
        let read = found.map(|bytes| UsageRecord::read(fact, bytes.value())).transpose()?;
        Ok(read.unwrap_or_default())
    }

    pub(crate) fn save_usage(&mut self, id: u64, usage: Usage) -> Result<(), Abort<WriteError>> {
        let Usage { count, last_ms: Some(last_ms) } = usage else { return Ok(()) };
        let record = encode(&UsageRecord { id, count, last_ms })?;
        self.usage.insert(&id.to_be_bytes(), record.as_slice())?;
        Ok(())
    }

    fn answer(&mut self, id: u64, outcome: Outcome) {
        let superseded = std::mem::take(&mut self.superseded);
        let invalidated = std::mem::take(&mut self.invalidated);
        self.effect.added.push(Added { id: FactId(id), outcome, superseded, invalidated });
    }
}

/// Tells whether a draft says what a fact in its lane says already. What was inferred doesn't count as
/// said.
fn restates(draft: &Draft<'_>, place: &Place<'_>, holder: &FactRecord) -> bool {
    let said = holder.flags & INFERRED == 0;
    !place.value.is_empty() && value_key(holder.value()) == place.value && (said || draft.inferred)
}

fn refuse_without_subject(draft: &Draft<'_>) -> Result<(), FactError> {
    for (what, text) in [
        ("a predicate", draft.predicate),
        ("an object", draft.object),
        ("a type of subject", draft.subject_type),
    ] {
        if !text.is_empty() {
            return Err(FactError::NoSubject { what });
        }
    }
    Ok(())
}

impl Subject<'_> {
    const fn id(&self) -> u64 {
        match self {
            Self::Known(id) | Self::New { id, .. } => *id,
        }
    }
}
