//! Which unit is in which row: keys by slot, and slots by key, in about 19 bytes a unit.

use std::collections::BTreeMap;

use crate::vectors::key::UnitKey;
use crate::vectors::layout::mix;

/// The place of a row in both files, from 0.
pub(crate) type Slot = u32;

/// Most rows that a store holds.
pub(crate) const MAX_SLOTS: usize = (u32::MAX - 2) as usize;

/// The rows of a store. A dead one belongs to no unit; the next new unit gets it.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    /// First part of each key, 0 where the row is dead; with [`WIDE`] where the other parts are in
    /// `wide`.
    kinds: Vec<u8>,
    firsts: Vec<u32>,
    seconds: Vec<u32>,
    /// Numbers that don't fit above: few stores have any.
    wide: BTreeMap<Slot, (u64, u64)>,
    /// Check of each row's whole vector.
    checks: Vec<u32>,
    dead: Vec<Slot>,
    /// Open addressing: slots by the hash of their key, plus one; see [`FREE`] and [`GONE`].
    table: Vec<u32>,
    /// Places of `table` that aren't [`FREE`].
    taken: usize,
}

const FREE: u32 = 0;
const GONE: u32 = u32::MAX;
const WIDE: u8 = 0x80;

impl Slots {
    /// Rows, dead ones included.
    pub(crate) fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Units.
    pub(crate) fn live(&self) -> usize {
        self.kinds.len() - self.dead.len()
    }

    /// The unit in a row, if one is.
    pub(crate) fn key(&self, slot: Slot) -> Option<UnitKey> {
        let at = slot as usize;
        let kind = *self.kinds.get(at)?;
        if kind & WIDE != 0 {
            let (first, second) = *self.wide.get(&slot)?;
            return UnitKey::from_parts(kind & !WIDE, first, second);
        }
        let (first, second) = (*self.firsts.get(at)?, *self.seconds.get(at)?);
        UnitKey::from_parts(kind, first.into(), second.into())
    }

    /// Check of the vector in a row.
    pub(crate) fn check(&self, slot: Slot) -> u32 {
        self.checks.get(slot as usize).copied().unwrap_or_default()
    }

    /// The row of a unit.
    pub(crate) fn find(&self, key: UnitKey) -> Option<Slot> {
        self.place(key).map(|(_, slot)| slot)
    }

    /// All units and their rows, in the order of rows.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Slot, UnitKey)> {
        (0..self.len() as Slot).filter_map(|slot| Some((slot, self.key(slot)?)))
    }

    /// Rows without a unit, in no particular order.
    pub(crate) fn dead(&self) -> &[Slot] {
        &self.dead
    }

    /// Rows that the next `count` new units get, in order: dead ones first.
    pub(crate) fn vacant(&self, count: usize) -> impl Iterator<Item = Slot> {
        let dead = self.dead.iter().rev().copied();
        dead.chain(self.len() as Slot..).take(count)
    }

    /// Puts a unit, which has no row, into a dead row or one behind the last.
    pub(crate) fn put(&mut self, slot: Slot, key: UnitKey, check: u32) {
        let (kind, first, second) = key.parts();
        let at = slot as usize;
        if at >= self.len() {
            self.dead.extend(self.len() as Slot..slot);
            self.kinds.resize(at + 1, 0);
            self.firsts.resize(at + 1, 0);
            self.seconds.resize(at + 1, 0);
            self.checks.resize(at + 1, 0);
        } else if self.dead.last() == Some(&slot) {
            self.dead.pop();
        } else {
            self.dead.retain(|dead| *dead != slot);
        }
        (self.kinds[at], self.checks[at]) = (kind, check);
        if let (Ok(first), Ok(second)) = (u32::try_from(first), u32::try_from(second)) {
            (self.firsts[at], self.seconds[at]) = (first, second);
        } else {
            self.kinds[at] |= WIDE;
            self.wide.insert(slot, (first, second));
        }
        self.enter(key, slot);
    }

    /// Takes a unit out of its row.
    pub(crate) fn remove(&mut self, key: UnitKey) -> Option<Slot> {
        let (place, slot) = self.place(key)?;
        self.table[place] = GONE;
        let at = slot as usize;
        (self.kinds[at], self.firsts[at], self.seconds[at], self.checks[at]) = (0, 0, 0, 0);
        self.wide.remove(&slot);
        self.dead.push(slot);
        Some(slot)
    }

    /// Makes room for as many rows in all.
    pub(crate) fn reserve(&mut self, rows: usize) {
        let more = rows.saturating_sub(self.len());
        self.kinds.reserve_exact(more);
        self.firsts.reserve_exact(more);
        self.seconds.reserve_exact(more);
        self.checks.reserve_exact(more);
        self.rebuild(rows);
    }

    fn place(&self, key: UnitKey) -> Option<(usize, Slot)> {
        let mut place = self.home(key)?;
        loop {
            match self.table[place] {
                FREE => return None,
                GONE => {}
                taken if self.key(taken - 1) == Some(key) => return Some((place, taken - 1)),
                _ => {}
            }
            place = self.next(place);
        }
    }

    /// The place behind another one.
    fn next(&self, place: usize) -> usize {
        if place + 1 < self.table.len() { place + 1 } else { 0 }
    }

    fn enter(&mut self, key: UnitKey, slot: Slot) {
        if (self.taken + 1) * 4 > self.table.len() * 3 {
            return self.rebuild(self.live());
        }
        let Some(mut place) = self.home(key) else { return };
        while !matches!(self.table[place], FREE | GONE) {
            place = self.next(place);
        }
        self.taken += usize::from(self.table[place] == FREE);
        self.table[place] = slot + 1;
    }

    /// Enters every unit into a table with room for half as many again as there are, or else for
    /// `units`, of which a quarter stays free.
    fn rebuild(&mut self, units: usize) {
        let live = self.live();
        let room = if units > live { units } else { live + live / 2 };
        self.table = vec![FREE; room * 4 / 3 + 8];
        self.taken = 0;
        for slot in 0..self.len() as Slot {
            if let Some(key) = self.key(slot) {
                self.enter(key, slot);
            }
        }
    }

    /// Returns where a key is looked for first; none where there is no table yet.
    fn home(&self, key: UnitKey) -> Option<usize> {
        let (kind, first, second) = key.parts();
        let hash = mix(mix(u64::from(kind) ^ first.rotate_left(8)) ^ second);
        // The hash as a share of all hashes.
        let place = (u128::from(hash) * self.table.len() as u128) >> 64;
        (!self.table.is_empty()).then_some(place as usize)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn key() -> impl Strategy<Value = UnitKey> {
        let (few, many) =
            (prop_oneof![0..6_u64, Just(1 << 32)], prop_oneof![0..20_u64, Just(u64::MAX)]);
        prop_oneof![
            (few.clone(), many.clone())
                .prop_map(|(session, turn)| UnitKey::Words { session, turn }),
            (few, many.clone()).prop_map(|(session, turn)| UnitKey::Reply { session, turn }),
            many.prop_map(|id| UnitKey::Fact { id }),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        #[test]
        fn slots_are_a_map(steps in vec((any::<bool>(), key()), 0..300)) {
            let (mut slots, mut model) = (Slots::default(), BTreeMap::new());
            for (add, key) in steps {
                if add && !model.contains_key(&key) {
                    let slot = slots.vacant(1).next().unwrap();
                    prop_assert_eq!(slots.key(slot), None);
                    slots.put(slot, key, slot + 7);
                    model.insert(key, slot);
                } else if !add {
                    prop_assert_eq!(slots.remove(key), model.remove(&key));
                }
                prop_assert_eq!(slots.live(), model.len());
                prop_assert_eq!(slots.find(key), model.get(&key).copied());
            }
            for (key, slot) in &model {
                prop_assert_eq!(slots.find(*key), Some(*slot));
                prop_assert_eq!(slots.check(*slot), *slot + 7);
            }
            let found: BTreeMap<_, _> = slots.iter().map(|(slot, key)| (key, slot)).collect();
            prop_assert_eq!(found, model);
        }
    }
}
