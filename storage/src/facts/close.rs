//! Ending facts, and what ends with them.

use redb::ReadableTable as _;

use crate::facts::lane::{load, missing};
use crate::facts::table::{
    Direction, HEIR_KEY, heir_range, kind_byte, last_id, link_parts, link_range,
};
use crate::facts::view::{LinkKind, Node, Pin};
use crate::facts::write::Writer;
use crate::ground::error::{Abort, WriteError};
use crate::ground::fact_id::FactId;

/// Why a fact ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
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
    pub(crate) fn close(
        &mut self,
        fact: u64,
        at: i64,
        cause: Cause,
    ) -> Result<(), Abort<WriteError>> {
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
    fn close_one(
        &mut self,
        fact: u64,
        at: i64,
        cause: Cause,
    ) -> Result<Option<i64>, Abort<WriteError>> {
        let before = load(&self.facts, fact)?.ok_or_else(|| missing(fact))?;
        let mut after = before.clone();
        after.valid_to = before.valid_to.min(at.max(before.valid_at));
        let shrinks = after.valid_to < before.valid_to;
        after.set_pin(Pin::None);
        match cause {
            Cause::Replaced(heir) => {
                self.superseded.push(FactId(fact));
                after.superseded_by = heir;
            }
            _ if !shrinks => return Ok(None),
            Cause::Retracted => {}
            Cause::Duplicate => self.superseded.push(FactId(fact)),
            Cause::Derived(by) => {
                self.invalidated.push(FactId(fact));
                after.invalidated_by = by;
            }
        }
        if after.superseded_by == 0 {
            self.ended.insert(fact);
        }
        self.update(&before, &after)?;
        if let Cause::Replaced(heir) = cause {
            self.bequeath(heir, before.pin())?;
        }
        Ok(shrinks.then_some(after.valid_to))
    }

    /// The duplicates that were retired in favour of a fact and still hold.
    pub(crate) fn duplicates(&self, of: u64) -> Result<Vec<u64>, Abort<WriteError>> {
        let (first, last) = heir_range(of, true);
        let range = self.heirs.range::<&[u8; HEIR_KEY]>(&first..=&last)?;
        range.map(|entry| Ok(last_id(entry?.0.value()))).collect()
    }

    pub(crate) fn derived_from(&self, fact: u64) -> Result<Vec<u64>, Abort<WriteError>> {
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
