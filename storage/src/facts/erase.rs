//! Forgetting facts: what goes with them, and what becomes of the rest.

use std::collections::{BTreeMap, BTreeSet};

use redb::{ReadOnlyTable, ReadTransaction, ReadableTable, WriteTransaction};

use crate::facts::lane::{heir_key_of, load};
use crate::facts::record::FactRecord;
use crate::facts::table::{
    Direction, ENTITIES, FACTS, HEIRS, LINKS, NAMES, PINS, SLOT_KEY, SLOTS, SOURCES, USAGE,
    first_id, kind_byte, last_id, link_near, link_parts, link_range, slot_range, source_key,
};
use crate::facts::view::{LinkKind, Node};
use crate::ground::codec::encode;
use crate::ground::database::open_if_there as open;
use crate::ground::error::{Fault, unless_damaged};
use crate::ground::fact_id::{EntityId, FactId};

/// Facts that are to be forgotten, and whom or what nothing is left to say about.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Gone {
    pub(crate) facts: BTreeSet<u64>,
    pub(crate) entities: BTreeSet<u64>,
}

/// Adds the facts that were said in turns of a session.
pub(crate) fn said_in(
    transaction: &ReadTransaction,
    session: u64,
    turns: std::ops::RangeInclusive<u64>,
    gone: &mut Gone,
) -> Result<(), Fault> {
    let Some(sources) = open(transaction, SOURCES)? else { return Ok(()) };
    let (first, last) =
        (source_key(session, *turns.start(), 0), source_key(session, *turns.end(), u64::MAX));
    for entry in sources.range::<&[u8; 24]>(&first..=&last)? {
        gone.facts.insert(last_id(entry?.0.value()));
    }
    Ok(())
}

/// Adds what rests on the facts and entities in `gone`: facts about an entity, facts derived from
/// a fact, and entities that nothing else is said about or linked to.
pub(crate) fn close_over(transaction: &ReadTransaction, gone: &mut Gone) -> Result<(), Fault> {
    let (Some(slots), Some(links)) = (open(transaction, SLOTS)?, open(transaction, LINKS)?) else {
        return Ok(());
    };
    for entity in &gone.entities {
        gone.facts.extend(about(&slots, *entity)?);
    }
    let mut waiting: Vec<u64> = gone.facts.iter().copied().collect();
    while let Some(fact) = waiting.pop() {
        for derived in derived_from(&links, fact)? {
            waiting.extend(gone.facts.insert(derived).then_some(derived));
        }
    }
    let Some(facts) = open(transaction, FACTS)? else { return Ok(()) };
    let mut subjects = BTreeSet::new();
    for fact in &gone.facts {
        // One that is damaged doesn't tell whom it is about.
        if let Ok(Some(record)) = load(&facts, *fact) {
            subjects.extend((record.subject != 0).then_some(record.subject));
        }
    }
    for subject in subjects {
        let unsaid = about(&slots, subject)?.is_subset(&gone.facts);
        if unsaid && linked_facts(&links, subject)?.is_subset(&gone.facts) {
            gone.entities.insert(subject);
        }
    }
    Ok(())
}

fn about(
    slots: &ReadOnlyTable<&'static [u8; SLOT_KEY], ()>,
    entity: u64,
) -> Result<BTreeSet<u64>, Fault> {
    let (first, last) = slot_range(entity, None);
    let range = slots.range::<&[u8; SLOT_KEY]>(&first..=&last)?;
    range.map(|entry| Ok(last_id(entry?.0.value()))).collect()
}

type Links = ReadOnlyTable<&'static [u8; 20], ()>;

fn derived_from(links: &Links, fact: u64) -> Result<BTreeSet<u64>, Fault> {
    let way = (Direction::To, kind_byte(LinkKind::DerivedFrom));
    let (first, last) = link_range(Node::Fact(FactId(fact)), Some(way));
    far_facts(links, &first, &last)
}

fn linked_facts(links: &Links, entity: u64) -> Result<BTreeSet<u64>, Fault> {
    let (first, last) = link_range(Node::Entity(EntityId(entity)), None);
    far_facts(links, &first, &last)
}

fn far_facts(links: &Links, first: &[u8; 20], last: &[u8; 20]) -> Result<BTreeSet<u64>, Fault> {
    let mut found = BTreeSet::new();
    for entry in links.range::<&[u8; 20]>(first..=last)? {
        if let Some((_, _, Node::Fact(FactId(id)))) = link_parts(entry?.0.value()) {
            found.insert(id);
        }
    }
    Ok(found)
}

/// Removes facts and entities from all tables, and says how many links went with them.
///
/// What was true when, apart from them, stays: a fact that one of them replaced keeps its end, so
/// that nothing is true while the forgotten one was; its successor is the forgotten one's. A
/// duplicate that was retired in favour of one is current again.
///
/// The indexes are swept rather than looked up, so that a damaged record can be forgotten as well.
pub(crate) fn remove(transaction: &WriteTransaction, gone: &Gone) -> Result<u64, Fault> {
    let Gone { facts, entities } = gone;
    if facts.is_empty() && entities.is_empty() {
        return Ok(0);
    }
    repair(transaction, facts)?;
    let there = |id: u64| !facts.contains(&id);
    transaction.open_table(SLOTS)?.retain(|key, ()| there(last_id(key)))?;
    transaction.open_table(SOURCES)?.retain(|key, ()| there(last_id(key)))?;
    transaction.open_table(USAGE)?.retain(|key, _| there(last_id(key)))?;
    transaction.open_table(PINS)?.retain(|key, ()| there(last_id(key)))?;
    let names = |id: &[u8; 8]| entities.contains(&last_id(id));
    transaction.open_table(NAMES)?.retain(|_, id| !names(id))?;
    let is_gone = |node: Node| match node {
        Node::Fact(FactId(id)) => facts.contains(&id),
        Node::Entity(EntityId(id)) => entities.contains(&id),
    };
    let mut ends = 0;
    transaction.open_table(LINKS)?.retain(|key, ()| {
        let near = link_near(key).is_some_and(is_gone);
        let far = link_parts(key).is_some_and(|(_, _, far)| is_gone(far));
        ends += u64::from(near || far);
        !(near || far)
    })?;
    let mut table = transaction.open_table(FACTS)?;
    for fact in facts {
        table.remove(&fact.to_be_bytes())?;
    }
    let mut table = transaction.open_table(ENTITIES)?;
    for entity in entities {
        table.remove(&entity.to_be_bytes())?;
    }
    Ok(ends / 2)
}

/// Leads what points to forgotten facts elsewhere.
fn repair(transaction: &WriteTransaction, gone: &BTreeSet<u64>) -> Result<(), Fault> {
    let mut heirs = transaction.open_table(HEIRS)?;
    let (mut after, mut before) = (BTreeMap::new(), Vec::new());
    heirs.retain(|key, ()| {
        let (heir, fact) = (first_id(key), last_id(key));
        if gone.contains(&fact) {
            after.insert(fact, heir);
        } else if gone.contains(&heir) {
            before.push((fact, heir));
        }
        !gone.contains(&fact) && !gone.contains(&heir)
    })?;
    let mut changed = BTreeMap::new();
    let mut facts = transaction.open_table(FACTS)?;
    for (fact, mut heir) in before {
        while gone.contains(&heir) {
            heir = after.get(&heir).copied().unwrap_or(0);
        }
        let Some(mut record) = spared(load(&facts, fact))? else { continue };
        record.superseded_by = heir;
        if let Some(key) = heir_key_of(&record) {
            heirs.insert(&key, ())?;
        }
        changed.insert(fact, record);
    }
    for fact in derived(transaction)?.difference(gone) {
        let Some(stored) = spared(load(&facts, *fact))? else { continue };
        if gone.contains(&stored.invalidated_by) {
            changed.entry(*fact).or_insert(stored).invalidated_by = 0;
        }
    }
    for (fact, record) in changed {
        facts.insert(&fact.to_be_bytes(), encode(&record)?.as_slice())?;
    }
    Ok(())
}

/// All facts that were derived from others.
fn derived(transaction: &WriteTransaction) -> Result<BTreeSet<u64>, Fault> {
    let links = transaction.open_table(LINKS)?;
    let mut found = BTreeSet::new();
    for entry in links.iter()? {
        let (key, _) = entry?;
        if let (Some(Node::Fact(FactId(id))), Some((Direction::From, LinkKind::DerivedFrom, _))) =
            (link_near(key.value()), link_parts(key.value()))
        {
            found.insert(id);
        }
    }
    Ok(found)
}

/// A record, unless it is damaged: it stays as it is then.
fn spared(read: Result<Option<FactRecord>, Fault>) -> Result<Option<FactRecord>, Fault> {
    let tell = |what, key| tracing::warn!(what, key, "damaged, so its successor stays as it is");
    Ok(unless_damaged(read, tell)?.flatten())
}
