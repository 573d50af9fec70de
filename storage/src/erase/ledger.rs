//! The ledger of erasures, as `FORMAT.md` lays it out.

use redb::TableDefinition;
use rkyv::{Archive, Serialize};

use crate::erase::Erasure;
use crate::ground::codec::{access, seal, unseal};
use crate::ground::error::{Fault, damaged};
use crate::ground::stamp::confidence_of;

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
    pub(crate) summaries: u64,
    pub(crate) states: u64,
    pub(crate) traces: u64,
}

// The size that FORMAT.md promises.
const _: () = assert!(size_of::<ArchivedErasureRecord>() == 113);

/// Size of the records from before there were summaries: they end where those are counted.
const EARLY: usize = 89;

impl ErasureRecord {
    pub(crate) fn read(number: u64, bytes: &[u8]) -> Result<Erasure, Fault> {
        let name = || format!("number {number}");
        let longer = early(bytes);
        let bytes = longer.as_deref().unwrap_or(bytes);
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
            summaries: record.summaries.to_native(),
            states: record.states.to_native(),
            traces: record.traces.to_native(),
        })
    }
}

/// The value that an early record has now.
fn early(value: &[u8]) -> Option<Vec<u8>> {
    let record = unseal(value).filter(|record| record.len() == EARLY)?;
    let mut longer = record.to_vec();
    longer.resize(size_of::<ArchivedErasureRecord>(), 0);
    longer.extend(seal(&longer));
    Some(longer)
}

#[cfg(test)]
mod tests {
    use garret_core::time::Confidence;

    use super::*;
    use crate::ground::codec::{SEAL, encode};

    fn record() -> ErasureRecord {
        ErasureRecord {
            number: 3,
            at_ms: -2,
            sessions: 1,
            turns: 2,
            replies: 3,
            receipts: 4,
            titles: 5,
            facts: 6,
            entities: 7,
            links: 8,
            bytes: 9,
            clock_confidence: 2,
            summaries: 10,
            states: 11,
            traces: 12,
        }
    }

    /// A ledger that was begun before there were summaries.
    #[test]
    fn an_early_record_is_read() {
        let value = encode(&record()).unwrap().to_vec();
        let now = ErasureRecord::read(3, &value).unwrap();
        assert_eq!((now.summaries, now.states, now.traces), (10, 11, 12));
        let mut early = value[..EARLY].to_vec();
        early.extend(seal(&early));
        let then = ErasureRecord::read(3, &early).unwrap();
        assert_eq!((then.at_ms, then.bytes, then.clock), (-2, 9, Confidence::Good));
        assert_eq!(then, Erasure { summaries: 0, states: 0, traces: 0, ..now });
        early[8] ^= 1;
        assert!(ErasureRecord::read(3, &early).is_err());
        assert!(ErasureRecord::read(3, &value[..EARLY + SEAL]).is_err());
    }
}
