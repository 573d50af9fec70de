//! Facts that come from another store, each as it was there, among those that are here.
//!
//! Numbers are given anew: each moves up by as many as were given here before. What is here
//! already isn't written again: a name is the entity that has it here, and what a fact says that
//! holds here at that time is that fact. Where different facts of one slot meet, the usual order
//! is made: each ends where the next one starts.

use std::collections::{HashMap, HashSet};

use redb::{ReadableTable as _, StorageError, WriteTransaction};

use crate::facts::close::Cause;
use crate::facts::key::{name_key, predicate_key, value_key};
use crate::facts::lane::{lane_of_record, load};
use crate::facts::record::{EntityRecord, FactRecord, GROUNDED, INFERRED, OWN_LANE, PINS};
use crate::facts::table::{IdKey, LaneKey, SLOT_KEY, last_id, names_key, node_of};
use crate::facts::timeline::{OPEN, place};
use crate::facts::view::{Link, LinkKind, Node, Usage};
use crate::facts::write::Writer;
use crate::ground::codec::encode;
use crate::ground::error::{Abort, Fault, WriteError};
use crate::ground::fact_id::FactId;
use crate::ground::limits::{MAX_BYTES, MAX_NAME_BYTES};

/// Takes in facts and what belongs to them, in the order of their numbers: entities first.
pub(crate) struct Restorer<'t> {
    writer: Writer<'t>,
    facts: Numbers,
    entities: Numbers,
    /// Facts that end earlier than they did.
    cut: HashSet<u64>,
}

/// Why something can't be taken in.
pub(crate) enum Unrestored {
    /// The store can't do it.
    Fault(Fault),
    /// It can't be.
    Wrong(String),
}

/// Numbers from elsewhere and what they are here.
struct Numbers {
    /// Added to each.
    base: u64,
    /// All are below this.
    limit: u64,
    /// The last one met.
    last: u64,
    /// Facts that stand for something that was here before.
    known: HashMap<u64, u64>,
}

impl Numbers {
    fn new(next_here: u64, limit: u64) -> Self {
        Self { base: next_here.saturating_sub(1), limit, last: 0, known: HashMap::new() }
    }

    /// The number here of the next one.
    fn give(&mut self, number: u64) -> Result<u64, Unrestored> {
        if number <= self.last {
            return Err(wrong("its number isn't above the one before"));
        }
        self.last = number;
        self.of(number)
    }

    fn of(&self, number: u64) -> Result<u64, Unrestored> {
        if number == 0 || number >= self.limit {
            return Err(wrong("it names a number that was never given"));
        }
        Ok(self.known.get(&number).copied().unwrap_or(self.base + number))
    }

    /// As [`Self::of`], 0 staying what it is.
    fn maybe(&self, number: u64) -> Result<u64, Unrestored> {
        if number == 0 { Ok(0) } else { self.of(number) }
    }

    /// Returns what was here before, where that is what a new number stands for.
    fn settled(&self, here: u64) -> u64 {
        let number = here.saturating_sub(self.base);
        self.known.get(&number).copied().unwrap_or(here)
    }

    fn next(&self) -> u64 {
        self.base + self.limit
    }
}

impl<'t> Restorer<'t> {
    /// Begins; what comes has numbers below these, at most 2^48.
    pub(crate) fn open(
        transaction: &'t WriteTransaction,
        next_fact: u64,
        next_entity: u64,
    ) -> Result<Self, Unrestored> {
        let mut writer = Writer::open(transaction)?;
        let facts = Numbers::new(writer.next_fact, next_fact);
        let entities = Numbers::new(writer.next_entity, next_entity);
        (writer.next_fact, writer.next_entity) = (facts.next(), entities.next());
        Ok(Self { writer, facts, entities, cut: HashSet::new() })
    }

    /// An entity of this number.
    pub(crate) fn entity(&mut self, entity: EntityRecord) -> Result<(), Unrestored> {
        let id = self.entities.give(entity.id)?;
        let (folded, kind) = (name_key(&entity.name), name_key(&entity.kind));
        if folded.is_empty() || entity.name.len().max(entity.kind.len()) > MAX_NAME_BYTES {
            return Err(wrong("its name or type has no length that can be"));
        }
        let key = names_key(&folded, &kind);
        if let Some(known) = self.writer.names.get(&*key)? {
            self.entities.known.insert(entity.id, u64::from_be_bytes(*known.value()));
            return Ok(());
        }
        let record = encode(&EntityRecord { id, key: folded, ..entity })?;
        self.writer.entities.insert(&id.to_be_bytes(), record.as_slice())?;
        self.writer.names.insert(&*key, &id.to_be_bytes())?;
        Ok(())
    }

    /// A fact, with the numbers that it has elsewhere, save that of its session. Whether it is
    /// written, and not here already.
    pub(crate) fn fact(&mut self, mut fact: FactRecord) -> Result<bool, Unrestored> {
        let number = fact.id;
        fact.id = self.facts.give(number)?;
        fact.subject = self.entities.maybe(fact.subject)?;
        fact.superseded_by = self.facts.maybe(fact.superseded_by)?;
        fact.invalidated_by = self.facts.maybe(fact.invalidated_by)?;
        fact.predicate = predicate_key(&fact.predicate);
        check(&fact)?;
        if fact.subject != 0 && self.writer.entities.get(&fact.subject.to_be_bytes())?.is_none() {
            return Err(wrong("its subject isn't there"));
        }
        let lane = lane_of_record(&fact);
        if let Some(known) = self.twin(&fact, lane)? {
            self.facts.known.insert(number, known);
            self.writer.bequeath(known, fact.pin())?;
            return Ok(false);
        }
        if fact.valid_to > fact.valid_at {
            self.place(&mut fact, lane)?;
        }
        self.writer.inherit(&mut fact)?;
        self.writer.index(&fact, &[])?;
        self.writer.save(&fact)?;
        self.forget();
        Ok(true)
    }

    /// The fact that is the same, and was here before.
    fn twin(&self, fact: &FactRecord, lane: LaneKey) -> Result<Option<u64>, Unrestored> {
        let (never, start) = (fact.valid_to == fact.valid_at, fact.valid_at);
        let (first, last) = (lane.fact(never, start, 0), lane.fact(never, start, self.facts.base));
        for entry in self.writer.slots.range::<&[u8; SLOT_KEY]>(&first..=&last)? {
            let id = last_id(entry?.0.value());
            if load(&self.writer.facts, id)?.is_some_and(|here| same(fact, &here)) {
                return Ok(Some(id));
            }
        }
        let holder = self.writer.around(lane, start)?.holder;
        let holder = holder.filter(|holder| !never && holder.id <= self.facts.base);
        let Some(holder) = holder.map(|holder| load(&self.writer.facts, holder.id)).transpose()?
        else {
            return Ok(None);
        };
        let value = value_key(fact.value());
        Ok(holder
            .filter(|holder| !value.is_empty() && value_key(holder.value()) == value)
            .filter(|holder| holder.flags & INFERRED == 0 || fact.flags & INFERRED != 0)
            .map(|holder| match holder.is_retired_duplicate() {
                true => holder.superseded_by,
                false => holder.id,
            }))
    }

    /// Makes room for a fact among those that are here, or ends it where one of them starts.
    fn place(&mut self, fact: &mut FactRecord, lane: LaneKey) -> Result<(), Unrestored> {
        let around = self.writer.around(lane, fact.valid_at)?;
        let placed = place(fact.valid_at, fact.valid_to, fact.flags & INFERRED != 0, around);
        let met = [placed.cuts, placed.superseded_by].into_iter().flatten().max();
        if met.is_some_and(|met| met > self.facts.base) {
            return Err(wrong("another one is true at the same time"));
        }
        if let Some(cut) = placed.cuts {
            self.writer.close(cut, fact.valid_at, Cause::Replaced(fact.id))?;
        }
        if placed.end < fact.valid_to {
            fact.valid_to = placed.end;
            fact.superseded_by = placed.superseded_by.unwrap_or(0);
            self.cut.insert(fact.id);
        }
        Ok(())
    }

    /// The number of times a fact was of use; of one that was here before the higher count holds.
    pub(crate) fn usage(&mut self, fact: u64, used: Usage) -> Result<(), Unrestored> {
        let id = self.facts.of(fact)?;
        if self.writer.facts.get(&id.to_be_bytes())?.is_none() {
            return Err(wrong("the fact isn't there"));
        }
        let before = self.writer.used(id)?;
        let (count, last_ms) = (used.count.max(before.count), used.last_ms.max(before.last_ms));
        Ok(self.writer.save_usage(id, Usage { count, last_ms })?)
    }

    /// A link; a node is 0 and a fact's number, or 1 and an entity's.
    pub(crate) fn link(
        &mut self,
        from: (u8, u64),
        kind: u8,
        to: (u8, u64),
    ) -> Result<(), Unrestored> {
        let (from, to) = (self.node(from)?, self.node(to)?);
        let kind = LinkKind::ALL.get(usize::from(kind)).ok_or_else(|| wrong("its kind"))?;
        Ok(self.writer.insert_link(Link { from, kind: *kind, to })?)
    }

    fn node(&self, (tag, number): (u8, u64)) -> Result<Node, Unrestored> {
        let (number, table) = match tag {
            0 => (self.facts.of(number)?, &self.writer.facts),
            _ => (self.entities.of(number)?, &self.writer.entities),
        };
        let node = node_of(tag, number).ok_or_else(|| wrong("it links nothing"))?;
        match table.get(&number.to_be_bytes())? {
            Some(_) => Ok(node),
            None => Err(wrong(&format!("it links {node}, which isn't there"))),
        }
    }

    /// Sees to it that what was taken in agrees with all else.
    pub(crate) fn finish(mut self) -> Result<(), Unrestored> {
        let mut at = self.facts.base;
        while let Some(before) = self.after(at)? {
            at = before.id;
            let mut after = before.clone();
            after.superseded_by = self.facts.settled(before.superseded_by);
            after.invalidated_by = self.facts.settled(before.invalidated_by);
            if after != before {
                self.writer.update(&before, &after)?;
            }
        }
        let (mut at, mut done) = (self.facts.base, HashSet::new());
        while let Some(fact) = self.after(at)? {
            at = fact.id;
            if fact.superseded_by != 0 {
                self.heir(&fact)?;
                if fact.superseded_by <= fact.id {
                    self.follow(fact.id, &mut done)?;
                }
            }
        }
        let mut at = self.facts.base;
        while let Some(fact) = self.after(at)? {
            at = fact.id;
            if fact.is_retired_duplicate() {
                self.survive(fact)?;
            }
        }
        for cut in std::mem::take(&mut self.cut) {
            self.end_derived(cut)?;
        }
        self.writer.finish()?;
        Ok(())
    }

    /// The first fact after a number.
    fn after(&mut self, number: u64) -> Result<Option<FactRecord>, Unrestored> {
        self.forget();
        let first = number.saturating_add(1).to_be_bytes();
        let mut range = self.writer.facts.range::<&IdKey>(&first..)?;
        let Some(entry) = range.next() else { return Ok(None) };
        let (key, bytes) = entry?;
        Ok(Some(FactRecord::read(last_id(key.value()), bytes.value())?))
    }

    fn heir(&self, fact: &FactRecord) -> Result<FactRecord, Unrestored> {
        let (id, heir) = (FactId(fact.id), FactId(fact.superseded_by));
        let found = load(&self.writer.facts, heir.0)?;
        found.ok_or_else(|| wrong(&format!("{heir} replaced {id} and isn't there")))
    }

    /// Follows the successors of a fact. Where facts from both places lead in a circle, one from
    /// elsewhere has no successor here.
    fn follow(&mut self, start: u64, done: &mut HashSet<u64>) -> Result<(), Unrestored> {
        let (mut path, mut met) = (Vec::new(), HashSet::new());
        let mut at = start;
        while at != 0 && !done.contains(&at) {
            if !met.insert(at) {
                return self.open_circle(&path, at);
            }
            path.push(at);
            at = load(&self.writer.facts, at)?.map_or(0, |fact| fact.superseded_by);
        }
        done.extend(path);
        Ok(())
    }

    /// Opens the circle in which a path ends, whose first fact is `at`.
    fn open_circle(&mut self, path: &[u64], at: u64) -> Result<(), Unrestored> {
        let base = self.facts.base;
        for id in path.iter().skip_while(|id| **id != at).filter(|id| **id > base) {
            let Some(before) = load(&self.writer.facts, *id)? else { continue };
            if before.superseded_by <= base {
                let after = FactRecord { superseded_by: 0, ..before.clone() };
                return Ok(self.writer.update(&before, &after)?);
            }
        }
        Err(wrong(&format!("{} replaced itself in the end", FactId(at))))
    }

    /// A retired duplicate is one of what isn't replaced itself, and ends with it.
    fn survive(&mut self, before: FactRecord) -> Result<(), Unrestored> {
        let mut heir = self.heir(&before)?;
        while heir.is_retired_duplicate() {
            heir = self.heir(&heir)?;
        }
        let end = if heir.valid_to == OPEN { OPEN } else { heir.valid_to.max(before.valid_at) };
        let after = FactRecord { superseded_by: heir.id, valid_to: end, ..before.clone() };
        Ok(self.writer.update(&before, &after)?)
    }

    /// Returns what was derived from a fact that ends earlier than it did ends with it.
    fn end_derived(&mut self, fact: u64) -> Result<(), Unrestored> {
        let Some(fact) = load(&self.writer.facts, fact)? else { return Ok(()) };
        let behind = if fact.superseded_by == 0 { fact.id } else { fact.superseded_by };
        for derived in self.writer.derived_from(fact.id)? {
            self.writer.close(derived, fact.valid_to, Cause::Derived(behind))?;
        }
        Ok(())
    }

    /// Drops what would be told of a single write.
    fn forget(&mut self) {
        self.writer.effect.changed.clear();
        self.writer.superseded.clear();
        self.writer.invalidated.clear();
    }
}

/// Tells whether a fact could have been written here.
fn check(fact: &FactRecord) -> Result<(), Unrestored> {
    FactRecord::view(fact.id, &encode(fact)?).map_err(|fault| match fault {
        Fault::Damaged { what, .. } => wrong(what),
        fault => Unrestored::Fault(fault),
    })?;
    let own = fact.flags & OWN_LANE != 0;
    let sizes = [
        (fact.text.len(), MAX_BYTES),
        (fact.quote.len(), MAX_BYTES),
        (fact.object.len(), MAX_BYTES),
        (fact.predicate.len(), MAX_BYTES),
        (fact.source_name.len(), MAX_NAME_BYTES),
    ];
    let about_nothing = fact.predicate.is_empty() && fact.object.is_empty() && own;
    let right = [
        (!fact.text.trim().is_empty(), "it has no words"),
        (sizes.iter().all(|(len, most)| len <= most), "a text of it is too long"),
        (fact.flags & !(INFERRED | GROUNDED | OWN_LANE | PINS) == 0, "a flag that isn't known"),
        (fact.flags & PINS != PINS, "two pins"),
        (fact.superseded_by == 0 || fact.flags & PINS == 0, "a pin, although it was replaced"),
        (fact.salience <= 1_000, "its salience is out of range"),
        ((0.0..=1.0).contains(&fact.confidence), "its confidence is out of range"),
        ((fact.session == 0) == (fact.turn == 0), "a turn without a session, or none in one"),
        (fact.subject != 0 || about_nothing, "a predicate or an object without a subject"),
        (fact.subject == 0 || !fact.predicate.is_empty(), "a subject without a predicate"),
    ];
    match right.into_iter().find(|(right, _)| !right) {
        None => Ok(()),
        Some((_, why)) => Err(wrong(why)),
    }
}

/// Tells whether a fact from elsewhere is one that is here: the same words, told at the same time.
fn same(fact: &FactRecord, here: &FactRecord) -> bool {
    let told =
        |fact: &FactRecord| (fact.recorded_ms, fact.valid_at, fact.source, fact.flags & !PINS);
    told(fact) == told(here)
        && fact.text == here.text
        && fact.quote == here.quote
        && fact.object == here.object
        && fact.source_name == here.source_name
}

fn wrong(why: &str) -> Unrestored {
    Unrestored::Wrong(why.to_owned())
}

impl From<Abort<WriteError>> for Unrestored {
    fn from(abort: Abort<WriteError>) -> Self {
        match abort {
            Abort::Fault(fault) => Self::Fault(fault),
            Abort::Refused(error) => Self::Wrong(error.to_string()),
        }
    }
}

impl From<Fault> for Unrestored {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<StorageError> for Unrestored {
    fn from(error: StorageError) -> Self {
        Self::Fault(error.into())
    }
}
