//! Tables and keys of summaries, as `FORMAT.md` lays them out.

use redb::TableDefinition;

use crate::ground::table::{TurnKey, turn_key};
use crate::summaries::view::StateKind;

/// Session's and summary's number, big-endian.
pub(crate) type SummaryKey = [u8; 16];
/// Session's number, big-endian, and a kind.
pub(crate) type StateKey = [u8; 9];

pub(crate) const SUMMARIES: TableDefinition<'static, &'static SummaryKey, &'static [u8]> =
    TableDefinition::new("summaries");
pub(crate) const LEAVES: TableDefinition<'static, &'static TurnKey, &'static [u8; 16]> =
    TableDefinition::new("summary_leaves");
pub(crate) const HEADS: TableDefinition<'static, &'static [u8; 8], &'static [u8]> =
    TableDefinition::new("summary_heads");
pub(crate) const STATES: TableDefinition<'static, &'static StateKey, &'static [u8]> =
    TableDefinition::new("states");
pub(crate) const TRACES: TableDefinition<'static, &'static TurnKey, &'static [u8]> =
    TableDefinition::new("traces");

/// The key of a summary: two numbers, as a turn's.
pub(crate) fn summary_key(session: u64, id: u64) -> SummaryKey {
    turn_key(session, id)
}

/// Returns what [`LEAVES`] says of a leaf: the last turn covered, and its number.
pub(crate) fn leaf_value(last: u64, id: u64) -> [u8; 16] {
    turn_key(last, id)
}

pub(crate) fn state_key(session: u64, kind: StateKind) -> StateKey {
    state_key_of(session, kind.to_byte())
}

pub(crate) fn state_key_of(session: u64, kind: u8) -> StateKey {
    let [a, b, c, d, e, f, g, h] = session.to_be_bytes();
    [a, b, c, d, e, f, g, h, kind]
}

/// Tells whether a state has numbers alone, so that it can't quote what is forgotten.
pub(crate) fn is_wordless(key: &StateKey) -> bool {
    state_parts(key).1 == StateKind::Gate.to_byte()
}

/// The session's number and the kind's byte in a state's key.
pub(crate) fn state_parts(key: &StateKey) -> (u64, u8) {
    let [a, b, c, d, e, f, g, h, kind] = *key;
    (u64::from_be_bytes([a, b, c, d, e, f, g, h]), kind)
}
