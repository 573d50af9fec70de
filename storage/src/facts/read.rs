//! Reading facts within one transaction of the database.

use std::collections::BTreeSet;

use redb::{ReadOnlyTable, ReadTransaction, ReadableTable as _, ReadableTableMetadata as _};

use crate::facts::key::{digest, name_key, predicate_key};
use crate::facts::record::{EntityRecord, FactRecord, UsageRecord};
use crate::facts::table::{
    Direction, ENTITIES, FACTS, HEIR_KEY, HEIRS, IdKey, LINKS, NAMES, PINS, SLOT_KEY, SLOTS,
    SOURCES, USAGE, heir_range, last_id, link_parts, link_range, names_key, slot_range, source_key,
};
use crate::facts::view::{Entity, Fact, FactFilter, FactPage, FactView, Link, Node, Usage};
use crate::ground::database::open_if_there as open;
use crate::ground::error::{Fault, unless_damaged};
use crate::ground::fact_id::{EntityId, FactId};

/// Hands every fact that can be read to `f`, in the order of writing. A damaged one is left out,
/// with a warning.
pub(crate) fn for_each(
    transaction: &ReadTransaction,
    mut f: impl FnMut(&FactView<'_>),
) -> Result<(), Fault> {
    let Some(facts) = open(transaction, FACTS)? else { return Ok(()) };
    for entry in facts.iter()? {
        let (key, bytes) = entry?;
        if let Some(view) = spared(FactRecord::view(last_id(key.value()), bytes.value()))? {
            f(&view);
        }
    }
    Ok(())
}

/// A fact.
pub(crate) fn fact(transaction: &ReadTransaction, id: FactId) -> Result<Option<Fact>, Fault> {
    let Some(facts) = open(transaction, FACTS)? else { return Ok(None) };
    load(&facts, id.0)
}

/// The facts that tell how a value changed, in the order of their starts: all of its slot where
/// one value holds at a time, else those that say the same; and whatever replaced any of them or
/// was replaced by one.
pub(crate) fn history(transaction: &ReadTransaction, id: FactId) -> Result<Vec<Fact>, Fault> {
    let Some(facts) = open(transaction, FACTS)? else { return Ok(Vec::new()) };
    let Some(start) = facts.get(&id.0.to_be_bytes())? else { return Ok(Vec::new()) };
    let start = FactRecord::read(id.0, start.value())?;
    let (slots, heirs) = (open(transaction, SLOTS)?, open(transaction, HEIRS)?);
    let mut seen = BTreeSet::from([id.0]);
    if let Some(slots) = slots {
        let lane = super::lane::lane_of_record(&start);
        let (first, last) = (lane.fact(false, i64::MIN, 0), lane.fact(true, i64::MAX, u64::MAX));
        for entry in slots.range::<&[u8; SLOT_KEY]>(&first..=&last)? {
            seen.insert(last_id(entry?.0.value()));
        }
    }
    let mut found: Vec<Fact> = Vec::new();
    let mut waiting: Vec<u64> = seen.iter().copied().collect();
    while let Some(at) = waiting.pop() {
        let Some(fact) = load(&facts, at)? else { continue };
        waiting.extend(fact.superseded_by.map(|heir| heir.0).filter(|heir| seen.insert(*heir)));
        if let Some(heirs) = &heirs {
            let (first, last) = heir_range(at, false);
            for entry in heirs.range::<&[u8; HEIR_KEY]>(&first..=&last)? {
                let fact = last_id(entry?.0.value());
                waiting.extend(seen.insert(fact).then_some(fact));
            }
        }
        found.push(fact);
    }
    found.sort_unstable_by_key(|fact| (fact.valid_at, fact.id));
    Ok(found)
}

/// The facts that are pinned and pass `holds`: the user's pins first, then what matters more, then
/// what was written later. A damaged one is left out, with a warning.
pub(crate) fn pinned(
    transaction: &ReadTransaction,
    holds: impl Fn(&FactView<'_>) -> bool,
) -> Result<Vec<Fact>, Fault> {
    let (Some(facts), Some(pins)) = (open(transaction, FACTS)?, open(transaction, PINS)?) else {
        return Ok(Vec::new());
    };
    let mut found: Vec<Fact> = Vec::new();
    for entry in pins.iter()? {
        let key = entry?.0;
        let Some(bytes) = facts.get(key.value())? else { continue };
        let view = spared(FactRecord::view(last_id(key.value()), bytes.value()))?;
        found.extend(view.filter(|view| holds(view)).map(|view| view.to_fact()));
    }
    found.sort_by(|a, b| {
        let by = (b.pinned.cmp(&a.pinned)).then(b.salience.total_cmp(&a.salience));
        by.then(b.id.cmp(&a.id))
    });
    Ok(found)
}

/// A page of the facts asked for; `session` is the number of the one in the filter.
pub(crate) fn page(
    transaction: &ReadTransaction,
    filter: &FactFilter<'_>,
    session: Option<u64>,
) -> Result<FactPage, Fault> {
    let nothing = FactPage { facts: Vec::new(), next: None };
    let Some(facts) = open(transaction, FACTS)? else { return Ok(nothing) };
    let after = filter.after.map_or(0, |after| after.0);
    let limit = if filter.limit == 0 { FactFilter::PAGE } else { filter.limit };
    let mut page = nothing;
    let mut take = |id: u64, bytes: &[u8]| -> Result<bool, Fault> {
        let Some(view) = spared(FactRecord::view(id, bytes))?.filter(|view| passes(filter, view))
        else {
            return Ok(true);
        };
        if page.facts.len() == limit {
            page.next = page.facts.last().map(|fact| fact.id);
            return Ok(false);
        }
        page.facts.push(view.to_fact());
        Ok(true)
    };
    match candidates(transaction, filter, session)? {
        Some(ids) => {
            for id in ids.range(after.saturating_add(1)..) {
                let Some(bytes) = facts.get(&id.to_be_bytes())? else { continue };
                if !take(*id, bytes.value())? {
                    break;
                }
            }
        }
        None => {
            let first = after.saturating_add(1).to_be_bytes();
            for entry in facts.range::<&IdKey>(&first..)? {
                let (key, bytes) = entry?;
                if !take(last_id(key.value()), bytes.value())? {
                    break;
                }
            }
        }
    }
    Ok(page)
}

fn passes(filter: &FactFilter<'_>, view: &FactView<'_>) -> bool {
    filter.as_of.is_none_or(|at| view.holds_at(at))
        && (!filter.latest || view.latest)
        && filter.kind.is_none_or(|kind| view.kind == kind)
        && filter.source.as_ref().is_none_or(|source| view.source == *source)
        && filter.predicate.is_none_or(|predicate| view.predicate == predicate_key(predicate))
}

/// The facts that an index leads to, where the filter names a subject or a session.
fn candidates(
    transaction: &ReadTransaction,
    filter: &FactFilter<'_>,
    session: Option<u64>,
) -> Result<Option<BTreeSet<u64>>, Fault> {
    let mut found: Option<BTreeSet<u64>> = None;
    if let Some(name) = filter.subject {
        let mut of_subject = BTreeSet::new();
        let predicate = filter.predicate.map(|predicate| digest(&predicate_key(predicate)));
        if let Some(slots) = open(transaction, SLOTS)? {
            for entity in named(transaction, name)? {
                let (first, last) = slot_range(entity, predicate);
                for entry in slots.range::<&[u8; SLOT_KEY]>(&first..=&last)? {
                    of_subject.insert(last_id(entry?.0.value()));
                }
            }
        }
        found = Some(of_subject);
    }
    if let Some(session) = session {
        let mut of_session = BTreeSet::new();
        if let Some(sources) = open(transaction, SOURCES)? {
            let (first, last) =
                (source_key(session, 0, 0), source_key(session, u64::MAX, u64::MAX));
            for entry in sources.range::<&[u8; 24]>(&first..=&last)? {
                of_session.insert(last_id(entry?.0.value()));
            }
        }
        found = Some(match found {
            Some(of_subject) => &of_subject & &of_session,
            None => of_session,
        });
    }
    Ok(found)
}

/// The entities of a name, of whatever type.
fn named(transaction: &ReadTransaction, name: &str) -> Result<Vec<u64>, Fault> {
    let Some(names) = open(transaction, NAMES)? else { return Ok(Vec::new()) };
    let first = names_key(&name_key(name), "");
    let last = [&*first, &[u8::MAX]].concat();
    let range = names.range::<&[u8]>(&*first..&*last)?;
    range.map(|entry| Ok(u64::from_be_bytes(*entry?.1.value()))).collect()
}

/// The facts said in a turn, in the order of writing.
pub(crate) fn of_turn(
    transaction: &ReadTransaction,
    session: u64,
    turn: u64,
) -> Result<Vec<FactId>, Fault> {
    let Some(sources) = open(transaction, SOURCES)? else { return Ok(Vec::new()) };
    let (first, last) = (source_key(session, turn, 0), source_key(session, turn, u64::MAX));
    let range = sources.range::<&[u8; 24]>(&first..=&last)?;
    range.map(|entry| Ok(FactId(last_id(entry?.0.value())))).collect()
}

/// Counts entities there are, and the number of the last one.
pub(crate) fn entity_extent(transaction: &ReadTransaction) -> Result<(u64, u64), Fault> {
    let Some(entities) = open(transaction, ENTITIES)? else { return Ok((0, 0)) };
    let last = entities.last()?.map_or(0, |(key, _)| last_id(key.value()));
    Ok((entities.len()?, last))
}

/// Hands the name of each entity from a number on to `take`, in the order of writing; none for one
/// that can't be read.
pub(crate) fn each_entity(
    transaction: &ReadTransaction,
    first: u64,
    take: &mut dyn FnMut(Option<&str>),
) -> Result<(), Fault> {
    let Some(entities) = open(transaction, ENTITIES)? else { return Ok(()) };
    for entry in entities.range::<&IdKey>(&first.to_be_bytes()..)? {
        let (key, bytes) = entry?;
        let read = spared(EntityRecord::read(last_id(key.value()), bytes.value()))?;
        let entity = read.map(EntityRecord::into_entity);
        take(entity.as_ref().map(|entity| &*entity.name));
    }
    Ok(())
}

/// All entities that can be read, in the order of writing.
pub(crate) fn entities(transaction: &ReadTransaction) -> Result<Vec<Entity>, Fault> {
    let Some(entities) = open(transaction, ENTITIES)? else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for entry in entities.iter()? {
        let (key, bytes) = entry?;
        let read = spared(EntityRecord::read(last_id(key.value()), bytes.value()))?;
        found.extend(read.map(EntityRecord::into_entity));
    }
    Ok(found)
}

/// An entity.
pub(crate) fn entity(
    transaction: &ReadTransaction,
    EntityId(id): EntityId,
) -> Result<Option<Entity>, Fault> {
    let Some(entities) = open(transaction, ENTITIES)? else { return Ok(None) };
    let found = entities.get(&id.to_be_bytes())?;
    let read = found.map(|bytes| EntityRecord::read(id, bytes.value())).transpose()?;
    Ok(read.map(EntityRecord::into_entity))
}

/// All links that start or end at a node.
pub(crate) fn links_of(transaction: &ReadTransaction, node: Node) -> Result<Vec<Link>, Fault> {
    let Some(links) = open(transaction, LINKS)? else { return Ok(Vec::new()) };
    let (first, last) = link_range(node, None);
    let mut found = Vec::new();
    for entry in links.range::<&[u8; 20]>(&first..=&last)? {
        found.extend(link_parts(entry?.0.value()).map(|(direction, kind, far)| match direction {
            Direction::From => Link { from: node, kind, to: far },
            Direction::To => Link { from: far, kind, to: node },
        }));
    }
    Ok(found)
}

/// The number of times a fact was of use.
pub(crate) fn usage(transaction: &ReadTransaction, FactId(id): FactId) -> Result<Usage, Fault> {
    let Some(usage) = open(transaction, USAGE)? else { return Ok(Usage::default()) };
    let found = usage.get(&id.to_be_bytes())?;
    let read = found.map(|bytes| UsageRecord::read(id, bytes.value())).transpose()?;
    Ok(read.unwrap_or_default())
}

fn load(
    facts: &ReadOnlyTable<&'static IdKey, &'static [u8]>,
    id: u64,
) -> Result<Option<Fact>, Fault> {
    let found = facts.get(&id.to_be_bytes())?;
    found.map(|bytes| Ok(FactRecord::view(id, bytes.value())?.to_fact())).transpose()
}

/// Returns what was read, unless the record is damaged.
fn spared<T>(read: Result<T, Fault>) -> Result<Option<T>, Fault> {
    unless_damaged(read, |what, key| tracing::warn!(what, key, "damaged; the others go on"))
}
