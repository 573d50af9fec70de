//! Tables of what was forgotten, as `FORMAT.md` lays them out.

use redb::TableDefinition;
use rkyv::{Archive, Serialize};

use super::Erasure;
use crate::error::Fault;
use crate::record::{access, confidence_of, damaged};
use crate::table::TurnKey;

/// Turns that were forgotten, each with the number of the erasure, big-endian.
pub(crate) const FORGOTTEN: TableDefinition<'static, &'static TurnKey, &'static [u8; 8]> =
    TableDefinition::new("forgotten");
/// The ledger, by the number of the erasure, big-endian.
pub(crate) const ERASURES: TableDefinition<'static, &'static [u8; 8], &'static [u8]> =
    TableDefinition::new("erasures");

#[derive(Archive, Serialize)]
pub(crate) struct ErasureRecord {
    pub(crate) number: u64,
    pub(crate) at_ms: i64,
    pub(crate) sessions: u64,
    pub(crate) turns: u64,
    pub(crate) replies: u64,
    pub(crate) receipts: u64,
    pub(crate) titles: u64,
    pub(crate) facts: u64,
    pub(crate) entities: u64,
    pub(crate) links: u64,
    pub(crate) bytes: u64,
    pub(crate) clock_confidence: u8,
}

// The size that FORMAT.md promises.
const _: () = assert!(size_of::<ArchivedErasureRecord>() == 89);

impl ErasureRecord {
    pub(crate) fn read(number: u64, bytes: &[u8]) -> Result<Erasure, Fault> {
        let name = || format!("number {number}");
        let record: &ArchivedErasureRecord = access(bytes, "record of an erasure", name)?;
        if record.number.to_native() != number {
            return Err(damaged("record of an erasure (its number isn't its key)", name()));
        }
        let Some(clock) = confidence_of(record.clock_confidence) else {
            return Err(damaged("record of an erasure (clock confidence)", name()));
        };
        Ok(Erasure {
            number,
            at_ms: record.at_ms.to_native(),
            clock,
            sessions: record.sessions.to_native(),
            turns: record.turns.to_native(),
            replies: record.replies.to_native(),
            receipts: record.receipts.to_native(),
            titles: record.titles.to_native(),
            facts: record.facts.to_native(),
            entities: record.entities.to_native(),
            links: record.links.to_native(),
            bytes: record.bytes.to_native(),
        })
    }
}
