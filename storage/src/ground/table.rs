//! Tables and keys, as `FORMAT.md` lays them out.

use garret_core::id::TurnSeq;
use redb::{AccessGuard, TableDefinition, WriteTransaction};

use crate::ground::error::{Fault, damaged};

/// Version of the format that is written; the highest that can be read.
pub(crate) const VERSION: u32 = 3;
/// [`VERSION`] as it is stored.
pub(crate) const FORMAT: [u8; 4] = VERSION.to_le_bytes();

/// Session's number and turn's sequence number, big-endian.
pub(crate) type TurnKey = [u8; 16];
type ByTurn = TableDefinition<'static, &'static TurnKey, &'static [u8]>;
type ByName = TableDefinition<'static, &'static str, &'static [u8]>;
/// Bytes, not text: redb panics at a text that was damaged and isn't UTF-8 any more.
type ById = TableDefinition<'static, &'static [u8], &'static [u8]>;

pub(crate) const META: ByName = TableDefinition::new("meta");
pub(crate) const SESSIONS: ById = TableDefinition::new("sessions");
pub(crate) const TURNS: ByTurn = TableDefinition::new("turns");
pub(crate) const REPLIES: ByTurn = TableDefinition::new("replies");
pub(crate) const RECEIPTS: ByTurn = TableDefinition::new("receipts");
pub(crate) const SPEAKERS: ByTurn = TableDefinition::new("speakers");
pub(crate) const IMPORTED: TableDefinition<'static, &'static [u8; 24], &'static [u8; 8]> =
    TableDefinition::new("imported");

/// Keys of [`META`].
pub(crate) mod key {
    pub(crate) const FORMAT: &str = "format";
    pub(crate) const NAMESPACE: &str = "namespace";
    pub(crate) const NEXT_SESSION: &str = "next_session";
    pub(crate) const ACTIVITY: &str = "activity";
    pub(crate) const JOURNAL: &str = "journal";
    /// There while what was forgotten may still be in the files.
    pub(crate) const REWRITE: &str = "rewrite";
}

/// Makes the tables that aren't there: all of them in a new store, those of later versions in an
/// older one.
pub(crate) fn make_all(transaction: &WriteTransaction) -> Result<(), Fault> {
    transaction.open_table(META)?;
    transaction.open_table(SESSIONS)?;
    transaction.open_table(TURNS)?;
    transaction.open_table(REPLIES)?;
    transaction.open_table(RECEIPTS)?;
    transaction.open_table(SPEAKERS)?;
    transaction.open_table(IMPORTED)?;
    Ok(())
}

/// A counter in [`META`]: u64, little-endian.
pub(crate) fn counter(
    value: Option<AccessGuard<'_, &[u8]>>,
    key: &'static str,
) -> Result<u64, Fault> {
    value
        .and_then(|bytes| bytes.value().try_into().ok())
        .map(u64::from_le_bytes)
        .ok_or_else(|| damaged("table `meta`", format!("`{key}`")))
}

/// The key of a turn in [`TURNS`], [`REPLIES`], [`RECEIPTS`] and [`SPEAKERS`].
pub(crate) fn turn_key(session: u64, seq: TurnSeq) -> TurnKey {
    (u128::from(session) << 64 | u128::from(seq)).to_be_bytes()
}

/// The key in [`IMPORTED`] of what has this hash of a name where it comes from.
pub(crate) fn import_key(session: u64, id: [u8; 16]) -> [u8; 24] {
    let mut key = [0; 24];
    let (number, hash) = key.split_at_mut(8);
    number.copy_from_slice(&session.to_be_bytes());
    hash.copy_from_slice(&id);
    key
}

/// The session's number in a turn's key.
pub(crate) fn session_of(key: &TurnKey) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = *key;
    u64::from_be_bytes([a, b, c, d, e, f, g, h])
}

/// The turn's number in its key.
pub(crate) fn seq_of(key: &TurnKey) -> TurnSeq {
    let [.., a, b, c, d, e, f, g, h] = *key;
    u64::from_be_bytes([a, b, c, d, e, f, g, h])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn byte_order_is_session_then_turn(a: (u64, u64), b: (u64, u64)) {
            prop_assert_eq!(turn_key(a.0, a.1).cmp(&turn_key(b.0, b.1)), a.cmp(&b));
            let key = turn_key(a.0, a.1);
            prop_assert_eq!((session_of(&key), seq_of(&key)), a);
        }
    }
}
