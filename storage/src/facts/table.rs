//! Tables and keys of facts, as `FORMAT.md` lays them out.

use redb::TableDefinition;

use crate::facts::view::{LinkKind, Node};
use crate::ground::fact_id::{EntityId, FactId};

/// A number, big-endian.
pub(crate) type IdKey = [u8; 8];
type ById = TableDefinition<'static, &'static IdKey, &'static [u8]>;
type Index<const N: usize> = TableDefinition<'static, &'static [u8; N], ()>;

pub(crate) const FACTS: ById = TableDefinition::new("facts");
pub(crate) const ENTITIES: ById = TableDefinition::new("entities");
pub(crate) const USAGE: ById = TableDefinition::new("fact_usage");
pub(crate) const NAMES: TableDefinition<'static, &'static [u8], &'static IdKey> =
    TableDefinition::new("entity_names");
pub(crate) const SLOTS: Index<SLOT_KEY> = TableDefinition::new("fact_slots");
pub(crate) const HEIRS: Index<HEIR_KEY> = TableDefinition::new("fact_heirs");
pub(crate) const SOURCES: Index<24> = TableDefinition::new("fact_sources");
pub(crate) const PINS: Index<8> = TableDefinition::new("fact_pins");
pub(crate) const LINKS: Index<20> = TableDefinition::new("links");

/// Keys of the table `meta`.
pub(crate) mod key {
    pub(crate) const NEXT_FACT: &str = "next_fact";
    pub(crate) const NEXT_ENTITY: &str = "next_entity";
}

/// Bytes of a key of [`SLOTS`]: subject, predicate, lane, whether it ever holds, start, id.
pub(crate) const SLOT_KEY: usize = 8 + 8 + 16 + 1 + 8 + 8;

/// A lane: subject, digest of the predicate, digest of the value where several are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LaneKey {
    pub(crate) subject: u64,
    pub(crate) predicate: [u8; 8],
    pub(crate) value: [u8; 16],
}

impl LaneKey {
    /// The key of a fact in this lane; `never` when it holds at no moment.
    pub(crate) fn fact(&self, never: bool, start: i64, id: u64) -> [u8; SLOT_KEY] {
        let start = start.cast_unsigned() ^ (1 << 63);
        concat(&[
            &self.subject.to_be_bytes(),
            &self.predicate,
            &self.value,
            &[u8::from(never)],
            &start.to_be_bytes(),
            &id.to_be_bytes(),
        ])
    }
}

/// All keys of a subject, or of one of its predicates.
pub(crate) fn slot_range(
    subject: u64,
    predicate: Option<[u8; 8]>,
) -> ([u8; SLOT_KEY], [u8; SLOT_KEY]) {
    let end =
        |fill: u8| concat(&[&subject.to_be_bytes(), &predicate.unwrap_or([fill; 8]), &[fill; 33]]);
    (end(0), end(u8::MAX))
}

/// Returns what a key of [`SLOTS`] says of its lane.
pub(crate) fn lane_of(key: &[u8; SLOT_KEY]) -> LaneKey {
    LaneKey { subject: word(key, 0), predicate: part(key, 8), value: part(key, 16) }
}

/// The number that a key begins with.
pub(crate) fn first_id(key: &[u8]) -> u64 {
    word(key, 0)
}

/// The number at the end of a key.
pub(crate) fn last_id(key: &[u8]) -> u64 {
    word(key, key.len().saturating_sub(8))
}

/// The key of a name in [`NAMES`]: folded name, a byte that no text has, folded type.
pub(crate) fn names_key(name: &str, kind: &str) -> Vec<u8> {
    [name.as_bytes(), &[u8::MAX], kind.as_bytes()].concat()
}

/// Bytes of a key of [`HEIRS`]: successor, whether the fact holds beside it, fact.
pub(crate) const HEIR_KEY: usize = 8 + 1 + 8;

/// Whoever replaced a fact, and that fact; `duplicate` when it holds all the same.
pub(crate) fn heir_key(heir: u64, duplicate: bool, fact: u64) -> [u8; HEIR_KEY] {
    concat(&[&heir.to_be_bytes(), &[u8::from(duplicate)], &fact.to_be_bytes()])
}

/// The least and the greatest key of a successor, or of the duplicates among those it replaced.
pub(crate) fn heir_range(heir: u64, duplicates: bool) -> ([u8; HEIR_KEY], [u8; HEIR_KEY]) {
    (heir_key(heir, duplicates, 0), heir_key(heir, true, u64::MAX))
}

/// A turn and a fact said there.
pub(crate) fn source_key(session: u64, turn: u64, fact: u64) -> [u8; 24] {
    concat(&[&session.to_be_bytes(), &turn.to_be_bytes(), &fact.to_be_bytes()])
}

/// The end of a link that its key begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    From,
    To,
}

/// One of a link's two keys: `near` is its start with [`Direction::From`], else its end.
pub(crate) fn link_key(near: Node, direction: Direction, kind: u8, far: Node) -> [u8; 20] {
    let ((near_tag, near), (far_tag, far)) = (node_parts(near), node_parts(far));
    let way = u8::from(direction == Direction::To);
    concat(&[&[near_tag], &near.to_be_bytes(), &[way, kind, far_tag], &far.to_be_bytes()])
}

/// The node that a key of [`LINKS`] begins with.
pub(crate) fn link_near(key: &[u8; 20]) -> Option<Node> {
    node_of(key.first().copied()?, word(key, 1))
}

/// Returns what a key of [`LINKS`] holds beside its first node.
pub(crate) fn link_parts(key: &[u8; 20]) -> Option<(Direction, LinkKind, Node)> {
    let [_, _, _, _, _, _, _, _, _, way, kind, tag, ..] = *key;
    let direction = match way {
        0 => Direction::From,
        1 => Direction::To,
        _ => return None,
    };
    let far = node_of(tag, word(key, 12))?;
    Some((direction, *LinkKind::ALL.get(usize::from(kind))?, far))
}

pub(crate) fn kind_byte(kind: LinkKind) -> u8 {
    match kind {
        LinkKind::DerivedFrom => 0,
        LinkKind::Related => 1,
        LinkKind::Extends => 2,
        LinkKind::Contradicts => 3,
        LinkKind::PartOf => 4,
    }
}

pub(crate) fn node_of(tag: u8, id: u64) -> Option<Node> {
    match tag {
        0 => Some(Node::Fact(FactId(id))),
        1 => Some(Node::Entity(EntityId(id))),
        _ => None,
    }
}

pub(crate) fn node_parts(node: Node) -> (u8, u64) {
    match node {
        Node::Fact(FactId(id)) => (0, id),
        Node::Entity(EntityId(id)) => (1, id),
    }
}

/// The least and the greatest key of all links at a node, or of one direction and kind there.
pub(crate) fn link_range(near: Node, only: Option<(Direction, u8)>) -> ([u8; 20], [u8; 20]) {
    let (tag, id) = node_parts(near);
    let end = |fill: u8| {
        let (way, kind) = only
            .map_or((fill, fill), |(direction, kind)| (u8::from(direction == Direction::To), kind));
        concat(&[&[tag], &id.to_be_bytes(), &[way, kind], &[fill; 9]])
    };
    (end(0), end(u8::MAX))
}

/// The parts one after another; their lengths must add up to `N`.
fn concat<const N: usize>(parts: &[&[u8]]) -> [u8; N] {
    debug_assert_eq!(parts.iter().map(|part| part.len()).sum::<usize>(), N);
    let mut bytes = parts.iter().flat_map(|part| part.iter().copied());
    std::array::from_fn(|_| bytes.next().unwrap_or(0))
}

fn part<const N: usize>(key: &[u8], from: usize) -> [u8; N] {
    std::array::from_fn(|at| key.get(from + at).copied().unwrap_or(0))
}

fn word(key: &[u8], from: usize) -> u64 {
    u64::from_be_bytes(part(key, from))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LANE: LaneKey = LaneKey { subject: 7, predicate: [1; 8], value: [2; 16] };

    proptest! {
        #[test]
        fn in_a_lane_byte_order_is_start_then_id(a: (bool, i64, u64), b: (bool, i64, u64)) {
            let key = |(never, start, id)| LANE.fact(never, start, id);
            prop_assert_eq!(key(a).cmp(&key(b)), a.cmp(&b));
            prop_assert_eq!(last_id(&key(a)), a.2);
            prop_assert_eq!(lane_of(&key(a)), LANE);
            let (first, last) = slot_range(7, Some([1; 8]));
            prop_assert!(first <= key(a) && key(a) <= last);
            let (first, last) = slot_range(7, None);
            prop_assert!(first <= key(a) && key(a) <= last);
            prop_assert!(slot_range(8, None).0 > key(a));
        }
    }

    #[test]
    fn a_link_is_found_from_both_ends() {
        let (a, b) = (Node::Fact(FactId(3)), Node::Entity(EntityId(u64::MAX)));
        for kind in LinkKind::ALL {
            for (near, direction, far) in [(a, Direction::From, b), (b, Direction::To, a)] {
                let key = link_key(near, direction, kind_byte(kind), far);
                assert_eq!(link_parts(&key), Some((direction, kind, far)));
                for only in [None, Some((direction, kind_byte(kind)))] {
                    let (first, last) = link_range(near, only);
                    assert!(first <= key && key <= last);
                }
                let (_, last) = link_range(near, Some((Direction::From, 0)));
                assert_eq!(
                    key <= last,
                    (direction, kind) == (Direction::From, LinkKind::DerivedFrom)
                );
            }
        }
    }
}
