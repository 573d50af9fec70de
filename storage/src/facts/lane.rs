//! Lanes as the table of slots keeps them.

use redb::ReadableTable;

use crate::facts::key::{digest, value_key};
use crate::facts::record::{FactRecord, OWN_LANE, fact_name};
use crate::facts::table::{HEIR_KEY, IdKey, LaneKey, SLOT_KEY, heir_key, last_id};
use crate::facts::timeline::{Lane, Span};
use crate::ground::error::{Fault, damaged};

/// The lane of the facts with this predicate and, where `own` says that each value has its own,
/// this value. A value without words has a lane for each fact.
pub(crate) fn lane(subject: u64, predicate: &str, own: bool, value: &str, id: u64) -> LaneKey {
    let value = match (own, value) {
        (false, _) => [0; 16],
        (true, "") => digest(&fact_name(id)),
        (true, value) => digest(value),
    };
    LaneKey { subject, predicate: digest(predicate), value }
}

/// The lane that a fact was put into.
pub(crate) fn lane_of_record(record: &FactRecord) -> LaneKey {
    let own = record.flags & OWN_LANE != 0;
    let value = if own { value_key(record.value()) } else { String::new() };
    lane(record.subject, &record.predicate, own, &value, record.id)
}

/// The key that leads to a fact by its slot.
pub(crate) fn slot_key(record: &FactRecord) -> [u8; SLOT_KEY] {
    let never = record.valid_to == record.valid_at;
    lane_of_record(record).fact(never, record.valid_at, record.id)
}

/// The key that leads to a fact by its successor, if it has one.
pub(crate) fn heir_key_of(record: &FactRecord) -> Option<[u8; HEIR_KEY]> {
    let (heir, duplicate) = (record.superseded_by, record.is_retired_duplicate());
    (heir != 0).then(|| heir_key(heir, duplicate, record.id))
}

/// A lane of the tables of a transaction.
pub(crate) struct LaneTable<'a, S, F> {
    pub(crate) slots: &'a S,
    pub(crate) facts: &'a F,
    pub(crate) key: LaneKey,
}

impl<S, F> Lane for LaneTable<'_, S, F>
where
    S: ReadableTable<&'static [u8; SLOT_KEY], ()>,
    F: ReadableTable<&'static IdKey, &'static [u8]>,
{
    type Error = Fault;

    fn last_until(&self, at: i64) -> Result<Option<Span>, Fault> {
        let (first, last) = (self.key.fact(false, i64::MIN, 0), self.key.fact(false, at, u64::MAX));
        let entry = self.slots.range::<&[u8; SLOT_KEY]>(&first..=&last)?.next_back();
        entry.map(|entry| self.span(last_id(entry?.0.value()))).transpose()
    }

    fn first_after(&self, at: i64) -> Result<Option<Span>, Fault> {
        let Some(at) = at.checked_add(1) else { return Ok(None) };
        let (first, last) = (self.key.fact(false, at, 0), self.key.fact(false, i64::MAX, u64::MAX));
        let entry = self.slots.range::<&[u8; SLOT_KEY]>(&first..=&last)?.next();
        entry.map(|entry| self.span(last_id(entry?.0.value()))).transpose()
    }
}

impl<S, F> LaneTable<'_, S, F>
where
    F: ReadableTable<&'static IdKey, &'static [u8]>,
{
    fn span(&self, id: u64) -> Result<Span, Fault> {
        Ok(load(self.facts, id)?.ok_or_else(|| missing(id))?.span())
    }
}

/// The record of a fact, if there is one.
pub(crate) fn load(
    facts: &impl ReadableTable<&'static IdKey, &'static [u8]>,
    id: u64,
) -> Result<Option<FactRecord>, Fault> {
    let found = facts.get(&id.to_be_bytes())?;
    found.map(|bytes| FactRecord::read(id, bytes.value())).transpose()
}

/// An index names a fact that isn't there.
pub(crate) fn missing(id: u64) -> Fault {
    damaged("fact record (missing)", fact_name(id))
}
