//! The tables that lead to facts and entities, and links.

use redb::{ReadOnlyTable, ReadTransaction, ReadableTable as _};

use crate::facts::key::name_key;
use crate::facts::lane::heir_key_of;
use crate::facts::record::{EntityRecord, UsageRecord};
use crate::facts::table::{
    Direction, ENTITIES, FACTS, HEIRS, IdKey, LINKS, NAMES, PINS, SOURCES, USAGE, key, kind_byte,
    last_id, link_key, link_near, link_parts, names_key,
};
use crate::facts::{EntityId, FactId, Node};
use crate::ground::database::open_if_there as table;
use crate::ground::error::Fault;
use crate::ground::table::{seq_of, session_of};
use crate::verify::facts::{counter, fact, has, wrong};
use crate::verify::readable;
use crate::verify::report::{Advice, Report};

/// Successors, turns with facts, and how often facts were of use.
pub(crate) fn of_facts(transaction: &ReadTransaction, report: &mut Report) -> Result<(), Fault> {
    let facts = table(transaction, FACTS)?;
    if let Some(heirs) = table(transaction, HEIRS)? {
        for entry in heirs.iter()? {
            let (key, _) = entry?;
            report.checked.references += 1;
            let id = last_id(key.value());
            let fact = fact(&facts, id, "table of successors", report)?;
            if fact.is_some_and(|fact| heir_key_of(&fact).as_ref() != Some(key.value())) {
                wrong(id, "the table of successors has another one", report);
            }
        }
    }
    if let Some(sources) = table(transaction, SOURCES)? {
        for entry in sources.iter()? {
            let (key, _) = entry?;
            report.checked.references += 1;
            let key: &[u8; 24] = key.value();
            let turn = key.first_chunk().unwrap_or(&[0; 16]);
            let (session, turn, id) = (session_of(turn), seq_of(turn), last_id(key));
            let fact = fact(&facts, id, "table of turns with facts", report)?;
            if fact.is_some_and(|fact| (fact.session, fact.turn) != (session, turn)) {
                wrong(id, "the table of turns with facts has another turn", report);
            }
        }
    }
    if let Some(pins) = table(transaction, PINS)? {
        for entry in pins.iter()? {
            report.checked.references += 1;
            fact(&facts, last_id(entry?.0.value()), "table of pins", report)?;
        }
    }
    if let Some(usage) = table(transaction, USAGE)? {
        for entry in usage.iter()? {
            let (key, bytes) = entry?;
            report.checked.references += 1;
            let id = last_id(key.value());
            readable(UsageRecord::read(id, bytes.value()), Advice::Restore, report)?;
            fact(&facts, id, "table of use", report)?;
        }
    }
    Ok(())
}

/// Entities, their names, and links.
pub(crate) fn of_entities(transaction: &ReadTransaction, report: &mut Report) -> Result<(), Fault> {
    let (entities, names) = (table(transaction, ENTITIES)?, table(transaction, NAMES)?);
    let mut highest = 0;
    if let Some(entities) = &entities {
        for entry in entities.iter()? {
            let (key, bytes) = entry?;
            report.checked.entities += 1;
            let id = last_id(key.value());
            highest = id;
            let record = EntityRecord::read(id, bytes.value());
            let Some(record) = readable(record, Advice::Restore, report)? else { continue };
            let named = match &names {
                None => None,
                Some(names) => names.get(&*names_key(&record.key, &name_key(&record.kind)))?,
            };
            let named = named.map(|named| u64::from_be_bytes(*named.value()));
            if record.key != name_key(&record.name) || named != Some(id) {
                let what = "entity (its name doesn't lead to it)";
                report.add(what, EntityId(id).to_string(), Advice::Restore);
            }
        }
    }
    if let Some(names) = &names {
        for entry in names.iter()? {
            let (name, id) = entry?;
            report.checked.references += 1;
            if !leads_back(&entities, u64::from_be_bytes(*id.value()), name.value())? {
                let name = String::from_utf8_lossy(name.value()).escape_debug().to_string();
                report.add("name (no entity has it)", format!("`{name}`"), Advice::Restore);
            }
        }
    }
    counter(transaction, key::NEXT_ENTITY, highest, report)?;
    links(transaction, report)
}

/// Tells whether an entity has this name in the table of names; one that is damaged may have it.
fn leads_back(
    entities: &Option<ReadOnlyTable<&'static IdKey, &'static [u8]>>,
    id: u64,
    name: &[u8],
) -> Result<bool, Fault> {
    let Some(entities) = entities else { return Ok(false) };
    let Some(bytes) = entities.get(&id.to_be_bytes())? else { return Ok(false) };
    match EntityRecord::read(id, bytes.value()) {
        Ok(record) => Ok(names_key(&record.key, &name_key(&record.kind)) == name),
        Err(Fault::Damaged { .. }) => Ok(true),
        Err(fault) => Err(fault),
    }
}

/// Each link has a row at each of its ends, and ends that are there.
fn links(transaction: &ReadTransaction, report: &mut Report) -> Result<(), Fault> {
    let Some(links) = table(transaction, LINKS)? else { return Ok(()) };
    let (facts, entities) = (table(transaction, FACTS)?, table(transaction, ENTITIES)?);
    for entry in links.iter()? {
        let (key, _) = entry?;
        report.checked.references += 1;
        let key = key.value();
        let (Some(near), Some((direction, kind, far))) = (link_near(key), link_parts(key)) else {
            report.add("link (it can't be read)", format!("{key:02x?}"), Advice::Restore);
            continue;
        };
        let name = format!("{near} and {far}");
        let back = match direction {
            Direction::From => Direction::To,
            Direction::To => Direction::From,
        };
        if links.get(&link_key(far, back, kind_byte(kind), near))?.is_none() {
            report.add("link (it has one end only)", &*name, Advice::Restore);
        }
        let there = match near {
            Node::Fact(FactId(id)) => has(&facts, &id.to_be_bytes())?,
            Node::Entity(EntityId(id)) => has(&entities, &id.to_be_bytes())?,
        };
        if !there {
            report.add(format!("link ({near} isn't there)"), name, Advice::Restore);
        }
    }
    Ok(())
}
