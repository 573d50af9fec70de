//! Facts themselves: their records, their place in time, what replaced them.

use std::collections::HashSet;

use redb::Value;
use redb::{Key, ReadOnlyTable, ReadTransaction, ReadableTable as _};

use crate::facts::Pin;
use crate::facts::lane::{heir_key_of, lane_of_record, load, slot_key};
use crate::facts::record::{FactRecord, PINS, fact_name};
use crate::facts::table::{
    ENTITIES, FACTS, HEIRS, IdKey, LaneKey, PINS as PINNED, SLOT_KEY, SLOTS, SOURCES, key, last_id,
    source_key,
};
use crate::ground::database::open_if_there as table;
use crate::ground::error::Fault;
use crate::ground::table::META;
use crate::verify::readable;
use crate::verify::report::{Advice, Report};

/// Tells whether a table has a key; one that isn't there has none.
pub(crate) fn has<K: Key + 'static, V: Value + 'static>(
    table: &Option<ReadOnlyTable<K, V>>,
    key: K::SelfType<'_>,
) -> Result<bool, Fault> {
    let Some(table) = table else { return Ok(false) };
    Ok(table.get(key)?.is_some())
}

/// Reports a fact.
pub(crate) fn wrong(fact: u64, what: &str, report: &mut Report) {
    report.add(format!("fact ({what})"), fact_name(fact), Advice::Restore);
}

/// Every fact's record, and the tables that should lead to it.
pub(crate) fn facts(transaction: &ReadTransaction, report: &mut Report) -> Result<(), Fault> {
    let Some(facts) = table(transaction, FACTS)? else { return Ok(()) };
    let slots = table(transaction, SLOTS)?;
    let heirs = table(transaction, HEIRS)?;
    let sources = table(transaction, SOURCES)?;
    let entities = table(transaction, ENTITIES)?;
    let pins = table(transaction, PINNED)?;
    let mut chains = Chains { facts: &facts, done: HashSet::new() };
    let mut highest = 0;
    for entry in facts.iter()? {
        let (key, bytes) = entry?;
        report.checked.facts += 1;
        let id = last_id(key.value());
        highest = id;
        let view = FactRecord::view(id, bytes.value()).map(drop);
        if readable(view, Advice::Restore, report)?.is_none() {
            continue;
        }
        let fact = FactRecord::read(id, bytes.value())?;
        if !has(&slots, &slot_key(&fact))? {
            wrong(id, "the table of slots doesn't have it", report);
        }
        if fact.session != 0 && !has(&sources, &source_key(fact.session, fact.turn, id))? {
            wrong(id, "the table of turns with facts doesn't have it", report);
        }
        if (fact.pin() != Pin::None) != has(&pins, &id.to_be_bytes())? {
            wrong(id, "the table of pins says otherwise than it", report);
        }
        if fact.flags & PINS == PINS || fact.pin() != Pin::None && fact.superseded_by != 0 {
            wrong(id, "it has two pins, or one although it was replaced", report);
        }
        if fact.subject != 0 && !has(&entities, &fact.subject.to_be_bytes())? {
            wrong(id, &format!("it is about e{}, which isn't there", fact.subject), report);
        }
        if let Some(key) = heir_key_of(&fact) {
            if !has(&heirs, &key)? {
                wrong(id, "the table of successors doesn't have it", report);
            }
            chains.check(&fact, report)?;
        }
    }
    counter(transaction, key::NEXT_FACT, highest, report)
}

/// A counter is above every number that was given.
pub(crate) fn counter(
    transaction: &ReadTransaction,
    key: &'static str,
    highest: u64,
    report: &mut Report,
) -> Result<(), Fault> {
    let meta = transaction.open_table(META)?;
    let next = match meta.get(key)? {
        None => Some(1),
        Some(bytes) => bytes.value().try_into().ok().map(u64::from_le_bytes),
    };
    if next.is_none_or(|next| next <= highest) {
        let what = "table `meta` (it would give a number again)";
        report.add(what, format!("`{key}`"), Advice::Restore);
    }
    Ok(())
}

type Facts = ReadOnlyTable<&'static IdKey, &'static [u8]>;

/// The one who replaced whom.
struct Chains<'t> {
    facts: &'t Facts,
    /// Facts whose successors were followed.
    done: HashSet<u64>,
}

impl Chains<'_> {
    fn check(&mut self, fact: &FactRecord, report: &mut Report) -> Result<(), Fault> {
        match self.record(fact.superseded_by)? {
            Found::Missing => {
                let what = format!("f{} replaced it, which isn't there", fact.superseded_by);
                wrong(fact.id, &what, report);
            }
            Found::Record(heir) if fact.is_retired_duplicate() && heir.superseded_by != 0 => {
                wrong(fact.id, "it is a duplicate of what was replaced itself", report);
            }
            _ => {}
        }
        // A circle has at least one fact that was replaced by an older one, or by itself.
        if fact.superseded_by <= fact.id {
            self.follow(fact, report)?;
        }
        Ok(())
    }

    fn follow(&mut self, fact: &FactRecord, report: &mut Report) -> Result<(), Fault> {
        let (mut path, mut at, mut next) = (HashSet::new(), fact.id, fact.superseded_by);
        while !self.done.contains(&at) {
            if !path.insert(at) {
                wrong(at, "it replaced itself in the end", report);
                break;
            }
            if next == 0 {
                break;
            }
            at = next;
            next = match self.record(at)? {
                Found::Record(record) => record.superseded_by,
                Found::Missing | Found::Damaged => break,
            };
        }
        self.done.extend(path);
        Ok(())
    }

    fn record(&self, id: u64) -> Result<Found, Fault> {
        match load(self.facts, id) {
            Ok(None) => Ok(Found::Missing),
            Ok(Some(record)) => Ok(Found::Record(Box::new(record))),
            // It is reported where it is met among all facts.
            Err(Fault::Damaged { .. }) => Ok(Found::Damaged),
            Err(fault) => Err(fault),
        }
    }
}

enum Found {
    Missing,
    Damaged,
    Record(Box<FactRecord>),
}

/// Every slot's facts, in the order of their starts: one at a time.
pub(crate) fn slots(transaction: &ReadTransaction, report: &mut Report) -> Result<(), Fault> {
    let Some(slots) = table(transaction, SLOTS)? else { return Ok(()) };
    let facts = table(transaction, FACTS)?;
    let mut before: Option<(LaneKey, FactRecord)> = None;
    for entry in slots.iter()? {
        let (key, _) = entry?;
        report.checked.references += 1;
        let key: &[u8; SLOT_KEY] = key.value();
        let id = last_id(key);
        let Some(fact) = fact(&facts, id, "table of slots", report)? else { continue };
        let lane = lane_of_record(&fact);
        if slot_key(&fact) != *key {
            wrong(id, "the table of slots has it in another place", report);
            continue;
        }
        if fact.valid_to == fact.valid_at {
            continue;
        }
        if let Some((_, before)) =
            before.filter(|(of, before)| *of == lane && before.valid_to > fact.valid_at)
        {
            wrong(id, &format!("f{} is true at the same time", before.id), report);
        }
        before = Some((lane, fact));
    }
    Ok(())
}

/// The fact that a row of another table names; one that isn't there is reported, one that is
/// damaged is where it is met among all facts.
pub(crate) fn fact(
    facts: &Option<Facts>,
    id: u64,
    by: &str,
    report: &mut Report,
) -> Result<Option<FactRecord>, Fault> {
    let found = match facts {
        None => Ok(None),
        Some(facts) => load(facts, id),
    };
    match found {
        Ok(Some(fact)) => Ok(Some(fact)),
        Ok(None) => {
            wrong(id, &format!("the {by} has it, but it isn't there"), report);
            Ok(None)
        }
        Err(Fault::Damaged { .. }) => Ok(None),
        Err(fault) => Err(fault),
    }
}
