//! Ending facts, and what ends with them.

use redb::ReadableTable as _;

use super::id::FactId;
use super::lane::{lane_of_record, load, missing};
use super::table::{Direction, heir_key, kind_byte, last_id, link_parts, link_range};
use super::timeline::OPEN;
use super::view::{LinkKind, Node};
use super::write::{Stop, Writer};

/// Why a fact ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// This fact takes its place.
    Replaced(u64),
    /// It was said to have ended.
    Retracted,
    /// It was a retired duplicate of one that ends.
    Duplicate,
    /// It was derived from one that ends; this fact is behind that.
    Derived(u64),
}

impl Writer<'_> {
    /// Ends a fact at a moment, or at its start where that is later, unless it has ended before.
    /// Duplicates that were retired in its favour and still hold end with it, and so does what was
    /// derived from any of them.
    pub(super) fn close(&mut self, fact: u64, at: i64, cause: Cause) -> Result<(), Stop> {
        let mut open = vec![(fact, at, cause)];
        while let Some((fact, at, cause)) = open.pop() {
            let Some(end) = self.close_one(fact, at, cause)? else { continue };
            let behind = match cause {
                Cause::Replaced(by) | Cause::Derived(by) => by,
                Cause::Retracted | Cause::Duplicate => fact,
            };
            let derived = self.derived_from(fact)?;
            open.extend(derived.into_iter().map(|fact| (fact, end, Cause::Derived(behind))));
            let duplicates = self.duplicates(fact)?;
            open.extend(duplicates.into_iter().map(|fact| (fact, end, Cause::Duplicate)));
        }
        Ok(())
    }

    /// The end that the fact has now, if it held longer before.
    fn close_one(&mut self, fact: u64, at: i64, cause: Cause) -> Result<Option<i64>, Stop> {
        let mut record = load(&self.facts, fact)?.ok_or_else(|| missing(fact))?;
        let end = at.max(record.valid_at);
        let shrinks = end < record.valid_to;
        if shrinks {
            let lane = lane_of_record(&record);
            if end == record.valid_at {
                self.slots.remove(&lane.fact(false, record.valid_at, fact))?;
                self.slots.insert(&lane.fact(true, record.valid_at, fact), ())?;
            }
            record.valid_to = end;
        }
        match cause {
            Cause::Replaced(heir) => {
                self.superseded.push(FactId(fact));
                self.set_heir(record, heir)?;
            }
            _ if !shrinks => {}
            Cause::Retracted => self.save(&record)?,
            Cause::Duplicate => {
                self.superseded.push(FactId(fact));
                self.save(&record)?;
            }
            Cause::Derived(by) => {
                self.invalidated.push(FactId(fact));
                record.invalidated_by = by;
                self.save(&record)?;
            }
        }
        Ok(shrinks.then_some(end))
    }

    /// The duplicates that were retired in favour of a fact and still hold.
    pub(super) fn duplicates(&self, of: u64) -> Result<Vec<u64>, Stop> {
        let (first, last) = (heir_key(of, 0), heir_key(of, u64::MAX));
        let mut found = Vec::new();
        for entry in self.heirs.range::<&[u8; 16]>(&first..=&last)? {
            let fact = last_id(entry?.0.value());
            let record = load(&self.facts, fact)?.ok_or_else(|| missing(fact))?;
            if record.valid_to == OPEN {
                found.push(fact);
            }
        }
        Ok(found)
    }

    fn derived_from(&self, fact: u64) -> Result<Vec<u64>, Stop> {
        let way = (Direction::To, kind_byte(LinkKind::DerivedFrom));
        let (first, last) = link_range(Node::Fact(FactId(fact)), Some(way));
        let mut found = Vec::new();
        for entry in self.links.range::<&[u8; 20]>(&first..=&last)? {
            if let Some((_, _, Node::Fact(FactId(derived)))) = link_parts(entry?.0.value()) {
                found.push(derived);
            }
        }
        Ok(found)
    }
}
