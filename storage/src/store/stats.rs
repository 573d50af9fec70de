//! How much there is.

use redb::{Key, TableDefinition, TableError, Value};
use redb::{ReadTransaction, ReadableTable as _, ReadableTableMetadata as _};

use crate::erase::ledger::ERASURES;
use crate::facts::record::FactRecord;
use crate::facts::table::{ENTITIES, FACTS, LINKS, PINS, last_id};
use crate::files::part::Part;
use crate::ground::error::{Fault, ReadError};
use crate::ground::table::{REPLIES, SESSIONS, TURNS};
use crate::store::Store;
use crate::summaries::table::{SUMMARIES, TRACES};

/// Counts of all that is in a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Sessions, damaged ones too.
    pub sessions: u64,
    /// Turns of all sessions.
    pub turns: u64,
    /// Turns that have a reply.
    pub replies: u64,
    /// Facts.
    pub facts: FactStats,
    /// The number of people and things that there are facts about.
    pub entities: u64,
    /// Links between facts and entities.
    pub links: u64,
    /// Facts that are pinned.
    pub pinned: u64,
    /// Summaries of all sessions.
    pub summaries: u64,
    /// Turns of which it is kept what the model saw.
    pub traces: u64,
    /// Times that something was forgotten.
    pub erasures: u64,
    /// Vectors of the embedder that is set.
    pub vectors: u64,
    /// The embedder's fingerprint.
    pub embedder: Option<[u8; 32]>,
    /// Writes that wait in the journal.
    pub pending: u64,
    /// Bytes of each file that is there.
    pub bytes: Vec<(Part, u64)>,
}

/// The number of facts there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FactStats {
    /// All of them, those that are counted below too.
    pub all: u64,
    /// Facts that nothing replaced and that have no end.
    pub latest: u64,
    /// Facts that another one replaced.
    pub superseded: u64,
    /// Facts that ended without another in their place.
    pub ended: u64,
    /// Facts whose record can't be read; see [`Store::verify`].
    pub damaged: u64,
}

impl Stats {
    /// Bytes of all files.
    pub fn total_bytes(&self) -> u64 {
        self.bytes.iter().map(|(_, bytes)| bytes).sum()
    }
}

impl Store {
    /// Says how much there is, as of one moment. It reads every fact, and of the rest only how many
    /// there are.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn stats(&self) -> Result<Stats, ReadError> {
        let pending = self.pending()?;
        let mut stats = self.on_snapshot(|transaction, _| count(transaction))?;
        stats.pending = pending;
        if let Some((embedder, vectors)) = self.embedded() {
            stats.embedder = Some(embedder);
            stats.vectors = u64::try_from(vectors).unwrap_or(u64::MAX);
        }
        for part in Part::ALL {
            let len = self.part_len(part).map_err(ReadError::Medium)?;
            stats.bytes.extend(len.map(|len| (part, len)));
        }
        Ok(stats)
    }
}

fn count(transaction: &ReadTransaction) -> Result<Stats, Fault> {
    Ok(Stats {
        sessions: rows(transaction, SESSIONS)?,
        turns: rows(transaction, TURNS)?,
        replies: rows(transaction, REPLIES)?,
        facts: facts(transaction)?,
        entities: rows(transaction, ENTITIES)?,
        // Each has a row for each of its ends.
        links: rows(transaction, LINKS)? / 2,
        pinned: rows(transaction, PINS)?,
        summaries: rows(transaction, SUMMARIES)?,
        traces: rows(transaction, TRACES)?,
        erasures: rows(transaction, ERASURES)?,
        ..Stats::default()
    })
}

fn facts(transaction: &ReadTransaction) -> Result<FactStats, Fault> {
    let mut stats = FactStats::default();
    let facts = match transaction.open_table(FACTS) {
        Err(TableError::TableDoesNotExist(_)) => return Ok(stats),
        facts => facts?,
    };
    for entry in facts.iter()? {
        let (key, bytes) = entry?;
        stats.all += 1;
        match FactRecord::view(last_id(key.value()), bytes.value()) {
            Ok(fact) if fact.superseded_by.is_some() => stats.superseded += 1,
            Ok(fact) if fact.latest => stats.latest += 1,
            Ok(_) => stats.ended += 1,
            Err(Fault::Damaged { .. }) => stats.damaged += 1,
            Err(fault) => return Err(fault),
        }
    }
    Ok(stats)
}

fn rows<K: Key + 'static, V: Value + 'static>(
    transaction: &ReadTransaction,
    table: TableDefinition<'static, K, V>,
) -> Result<u64, Fault> {
    match transaction.open_table(table) {
        Err(TableError::TableDoesNotExist(_)) => Ok(0),
        table => Ok(table?.len()?),
    }
}
