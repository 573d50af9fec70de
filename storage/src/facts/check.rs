//! Whether the tables of facts agree with each other.

use std::collections::{BTreeMap, BTreeSet};

use redb::{ReadTransaction, ReadableTable as _};

use super::id::{EntityId, FactId};
use super::key::name_key;
use super::lane::{heir_key_of, lane_of_record, slot_key};
use super::read::open;
use super::record::{EntityRecord, FactRecord, UsageRecord};
use super::table::{
    Direction, ENTITIES, FACTS, HEIRS, LINKS, NAMES, SLOT_KEY, SLOTS, SOURCES, USAGE, key,
    kind_byte, last_id, link_key, link_near, link_parts, names_key, source_key,
};
use super::timeline::OPEN;
use super::view::Node;
use crate::error::Fault;
use crate::table::META;

/// What is wrong with facts, entities, links and the tables that lead to them, one line each, in
/// words.
pub(crate) fn check(transaction: &ReadTransaction) -> Result<Vec<String>, Fault> {
    let mut check = Check { transaction, wrong: Vec::new() };
    let facts = check.facts()?;
    let entities = check.entities()?;
    check.slots(&facts)?;
    check.chains(&facts)?;
    check.sources(&facts)?;
    check.links(&facts, &entities)?;
    check.usage(&facts)?;
    let subjects = facts.values().filter(|fact| fact.subject != 0);
    for fact in subjects.filter(|fact| !entities.contains(&fact.subject)) {
        let (fact, entity) = (FactId(fact.id), EntityId(fact.subject));
        check.wrong.push(format!("{fact} is about {entity}, which isn't there"));
    }
    Ok(check.wrong)
}

struct Check<'t> {
    transaction: &'t ReadTransaction,
    wrong: Vec<String>,
}

type Facts = BTreeMap<u64, FactRecord>;

impl Check<'_> {
    fn facts(&mut self) -> Result<Facts, Fault> {
        let mut found = BTreeMap::new();
        let Some(facts) = open(self.transaction, FACTS)? else { return Ok(found) };
        for entry in facts.iter()? {
            let (key, bytes) = entry?;
            let id = last_id(key.value());
            let record = FactRecord::view(id, bytes.value())
                .and_then(|_| FactRecord::read(id, bytes.value()));
            if let Some(record) = self.readable(record)? {
                found.insert(id, record);
            }
        }
        self.counter(key::NEXT_FACT, found.keys().next_back().copied())?;
        Ok(found)
    }

    fn entities(&mut self) -> Result<BTreeSet<u64>, Fault> {
        let (mut found, mut expected) = (BTreeSet::new(), BTreeSet::new());
        let Some(entities) = open(self.transaction, ENTITIES)? else { return Ok(found) };
        for entry in entities.iter()? {
            let (key, bytes) = entry?;
            let record = EntityRecord::read(last_id(key.value()), bytes.value());
            if let Some(record) = self.readable(record)? {
                found.insert(record.id);
                expected.insert((names_key(&record.key, &name_key(&record.kind)), record.id));
            }
        }
        let mut names = BTreeSet::new();
        if let Some(table) = open(self.transaction, NAMES)? {
            for entry in table.iter()? {
                let (key, id) = entry?;
                names.insert((key.value().to_vec(), u64::from_be_bytes(*id.value())));
            }
        }
        for (name, id) in names.symmetric_difference(&expected) {
            let name = String::from_utf8_lossy(name).escape_debug().to_string();
            self.wrong.push(format!("the name `{name}` and {} don't agree", EntityId(*id)));
        }
        self.counter(key::NEXT_ENTITY, found.last().copied())?;
        Ok(found)
    }

    /// Each fact has its key and nothing else has; the facts of a lane don't overlap.
    fn slots(&mut self, facts: &Facts) -> Result<(), Fault> {
        let expected: BTreeSet<[u8; SLOT_KEY]> = facts.values().map(slot_key).collect();
        let mut found = BTreeSet::new();
        if let Some(slots) = open(self.transaction, SLOTS)? {
            for entry in slots.iter()? {
                found.insert(*entry?.0.value());
            }
        }
        for key in found.symmetric_difference(&expected) {
            let fact = FactId(last_id(key));
            self.wrong.push(format!("{fact} and the table of slots don't agree"));
        }
        let mut lanes: BTreeMap<_, Vec<&FactRecord>> = BTreeMap::new();
        for fact in facts.values().filter(|fact| fact.valid_to > fact.valid_at) {
            lanes.entry(lane_of_record(fact)).or_default().push(fact);
        }
        for lane in lanes.values_mut() {
            lane.sort_by_key(|fact| fact.valid_at);
            for pair in lane.windows(2) {
                if let [a, b] = pair
                    && a.valid_to > b.valid_at
                {
                    let (a, b) = (FactId(a.id), FactId(b.id));
                    self.wrong.push(format!("{a} and {b} are true at the same time"));
                }
            }
        }
        Ok(())
    }

    /// Successors are there, know whom they replaced, and never lead back.
    fn chains(&mut self, facts: &Facts) -> Result<(), Fault> {
        let replaced = facts.values().filter(|fact| fact.superseded_by != 0);
        let expected: BTreeSet<_> = facts.values().filter_map(heir_key_of).collect();
        let mut found = BTreeSet::new();
        if let Some(heirs) = open(self.transaction, HEIRS)? {
            for entry in heirs.iter()? {
                found.insert(*entry?.0.value());
            }
        }
        for key in found.symmetric_difference(&expected) {
            let fact = FactId(last_id(key));
            self.wrong.push(format!("{fact} and the table of successors don't agree"));
        }
        let mut ends = BTreeSet::new();
        for fact in replaced {
            let (mut path, mut at) = (BTreeSet::new(), fact);
            while at.superseded_by != 0 && !ends.contains(&at.id) && path.insert(at.id) {
                match facts.get(&at.superseded_by) {
                    Some(heir) => at = heir,
                    None => {
                        let (fact, heir) = (FactId(at.id), FactId(at.superseded_by));
                        self.wrong.push(format!("{fact} was replaced by {heir}, not there"));
                        break;
                    }
                }
            }
            if path.contains(&at.id) && facts.contains_key(&at.superseded_by) {
                self.wrong.push(format!("{} replaced itself in the end", FactId(at.id)));
            }
            ends.extend(path);
            let heir = facts.get(&fact.superseded_by);
            if heir.is_some_and(|heir| fact.valid_to == OPEN && heir.superseded_by != 0) {
                let fact = FactId(fact.id);
                self.wrong.push(format!("{fact} is a duplicate of what was replaced itself"));
            }
        }
        Ok(())
    }

    fn sources(&mut self, facts: &Facts) -> Result<(), Fault> {
        let said = facts.values().filter(|fact| fact.session != 0);
        let expected: BTreeSet<_> =
            said.map(|fact| source_key(fact.session, fact.turn, fact.id)).collect();
        let mut found = BTreeSet::new();
        if let Some(sources) = open(self.transaction, SOURCES)? {
            for entry in sources.iter()? {
                found.insert(*entry?.0.value());
            }
        }
        for key in found.symmetric_difference(&expected) {
            let fact = FactId(last_id(key));
            self.wrong.push(format!("{fact} and the table of turns with facts don't agree"));
        }
        Ok(())
    }

    /// Each link has both its keys, and ends that are there.
    fn links(&mut self, facts: &Facts, entities: &BTreeSet<u64>) -> Result<(), Fault> {
        let Some(links) = open(self.transaction, LINKS)? else { return Ok(()) };
        for entry in links.iter()? {
            let (key, _) = entry?;
            let key = key.value();
            let (Some(near), Some((direction, kind, far))) = (link_near(key), link_parts(key))
            else {
                self.wrong.push(format!("a link can't be read: {key:02x?}"));
                continue;
            };
            let back = match direction {
                Direction::From => Direction::To,
                Direction::To => Direction::From,
            };
            if links.get(&link_key(far, back, kind_byte(kind), near))?.is_none() {
                self.wrong.push(format!("the link of {near} and {far} has one end only"));
            }
            let is_there = match near {
                Node::Fact(FactId(id)) => facts.contains_key(&id),
                Node::Entity(EntityId(id)) => entities.contains(&id),
            };
            if !is_there {
                self.wrong.push(format!("{near} has a link to {far} but isn't there"));
            }
        }
        Ok(())
    }

    fn usage(&mut self, facts: &Facts) -> Result<(), Fault> {
        let Some(usage) = open(self.transaction, USAGE)? else { return Ok(()) };
        for entry in usage.iter()? {
            let (key, bytes) = entry?;
            let id = last_id(key.value());
            self.readable(UsageRecord::read(id, bytes.value()))?;
            if !facts.contains_key(&id) {
                self.wrong.push(format!("{} was of use but isn't there", FactId(id)));
            }
        }
        Ok(())
    }

    /// The next number is above those that were given.
    fn counter(&mut self, key: &str, highest: Option<u64>) -> Result<(), Fault> {
        let meta = self.transaction.open_table(META)?;
        let next = meta.get(key)?;
        let next =
            next.map_or(Some(1), |bytes| bytes.value().try_into().ok().map(u64::from_le_bytes));
        if next.is_none_or(|next| next <= highest.unwrap_or(0)) {
            self.wrong.push(format!("`{key}` in the table `meta` would give a number again"));
        }
        Ok(())
    }

    /// What was read, unless it is damaged.
    fn readable<T>(&mut self, read: Result<T, Fault>) -> Result<Option<T>, Fault> {
        match read {
            Ok(read) => Ok(Some(read)),
            Err(Fault::Damaged { what, key }) => {
                self.wrong.push(format!("damaged {what}, {key}"));
                Ok(None)
            }
            Err(fault) => Err(fault),
        }
    }
}
