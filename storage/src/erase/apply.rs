//! Forgetting within one transaction of the database.

use std::collections::BTreeSet;

use garret_core::id::TurnSeq;
use redb::{ReadTransaction, ReadableTable as _, WriteTransaction};
use serde::{Deserialize, Serialize};

use crate::conversations::erased::{FORGOTTEN, unmark};
use crate::conversations::record::SessionRecord;
use crate::conversations::write::save;
use crate::erase::ledger::{ERASURES, ErasureRecord};
use crate::facts::erase::{Gone, remove};
use crate::ground::codec::encode;
use crate::ground::database::open_if_there as if_there;
use crate::ground::error::Fault;
use crate::ground::stamp::Stamp;
use crate::ground::table::{
    IMPORTED, META, RECEIPTS, REPLIES, SESSIONS, SPEAKERS, TURNS, TurnKey, import_key, key, seq_of,
    session_of, turn_key,
};
use crate::summaries::erase as summaries;

/// Numbers of all that is to be erased: none of its words are in the operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Removal {
    /// Sessions that go as a whole.
    pub(crate) sessions: BTreeSet<u64>,
    /// Turns of other sessions.
    pub(crate) turns: BTreeSet<(u64, u64)>,
    /// Sessions that stay without their title.
    pub(crate) titles: BTreeSet<u64>,
    pub(crate) facts: BTreeSet<u64>,
    pub(crate) entities: BTreeSet<u64>,
    /// Summaries of sessions that stay.
    pub(crate) summaries: BTreeSet<(u64, u64)>,
    /// True if a state or a trace has the words. All of them go in any case.
    pub(crate) quoted: bool,
    pub(crate) bytes: u64,
    pub(crate) at: Stamp,
}

impl Removal {
    pub(crate) fn is_empty(&self) -> bool {
        self.sessions.is_empty()
            && self.turns.is_empty()
            && self.titles.is_empty()
            && self.facts.is_empty()
            && self.entities.is_empty()
            && self.summaries.is_empty()
            && !self.quoted
    }
}

/// Removes all of `removal` and enters it in the ledger; the entry's number.
pub(crate) fn apply(transaction: &WriteTransaction, removal: &Removal) -> Result<u64, Fault> {
    let mut record = ErasureRecord {
        number: next_erasure(transaction)?,
        at_ms: removal.at.unix_ms,
        sessions: 0,
        turns: 0,
        replies: 0,
        receipts: 0,
        titles: 0,
        facts: count(&removal.facts),
        entities: count(&removal.entities),
        links: 0,
        bytes: removal.bytes,
        clock_confidence: removal.at.clock,
        summaries: count(&removal.summaries),
        states: 0,
        traces: 0,
    };
    (record.states, record.traces) = summaries::wipe(transaction)?;
    erase_sessions(transaction, removal, &mut record)?;
    erase_turns(transaction, removal, &mut record)?;
    let sessions = removal.turns.iter().map(|(session, _)| *session);
    summaries::remove(transaction, &removal.summaries, sessions)?;
    let gone = Gone { facts: removal.facts.clone(), entities: removal.entities.clone() };
    record.links = remove(transaction, &gone)?;
    let bytes = encode(&record)?;
    let number = record.number;
    transaction.open_table(ERASURES)?.insert(&number.to_be_bytes(), bytes.as_slice())?;
    transaction.open_table(META)?.insert(key::REWRITE, [1].as_slice())?;
    Ok(number)
}

fn next_erasure(transaction: &WriteTransaction) -> Result<u64, Fault> {
    let erasures = transaction.open_table(ERASURES)?;
    let last = erasures.last()?.map_or(0, |(number, _)| u64::from_be_bytes(*number.value()));
    Ok(last.saturating_add(1))
}

fn erase_sessions(
    transaction: &WriteTransaction,
    removal: &Removal,
    counts: &mut ErasureRecord,
) -> Result<(), Fault> {
    for number in &removal.sessions {
        let (first, last) = (turn_key(*number, 0), turn_key(*number, u64::MAX));
        let among = |table| -> Result<u64, Fault> {
            let found = transaction.open_table(table)?.range::<&TurnKey>(&first..=&last)?.count();
            Ok(u64::try_from(found).unwrap_or(u64::MAX))
        };
        counts.turns += among(TURNS)?;
        counts.replies += among(REPLIES)?;
        counts.receipts += among(RECEIPTS)?;
        counts.summaries += summaries::count(transaction, *number)?;
        remove_turns(transaction, *number)?;
    }
    let mut changed = Vec::new();
    for entry in transaction.open_table(SESSIONS)?.iter()? {
        let (id, bytes) = entry?;
        match SessionRecord::read(id.value(), bytes.value()) {
            Ok(record) => changed.push(record),
            Err(Fault::Damaged { .. }) => {}
            Err(fault) => return Err(fault),
        }
    }
    for mut record in changed {
        if removal.sessions.contains(&record.number) {
            transaction.open_table(SESSIONS)?.remove(record.id.as_bytes())?;
            counts.sessions += 1;
        } else if removal.titles.contains(&record.number) {
            record.title.clear();
            save(transaction, &record)?;
            counts.titles += 1;
        }
    }
    Ok(())
}

fn erase_turns(
    transaction: &WriteTransaction,
    removal: &Removal,
    counts: &mut ErasureRecord,
) -> Result<(), Fault> {
    let mark = counts.number.to_be_bytes();
    let mut forgotten = transaction.open_table(FORGOTTEN)?;
    let (mut turns, mut replies) =
        (transaction.open_table(TURNS)?, transaction.open_table(REPLIES)?);
    let mut receipts = transaction.open_table(RECEIPTS)?;
    let mut speakers = transaction.open_table(SPEAKERS)?;
    for (session, seq) in &removal.turns {
        let key = turn_key(*session, *seq);
        counts.turns += u64::from(turns.remove(&key)?.is_some());
        counts.replies += u64::from(replies.remove(&key)?.is_some());
        counts.receipts += u64::from(receipts.remove(&key)?.is_some());
        speakers.remove(&key)?;
        // What an import calls it stays, as a hash: so the next one doesn't bring it back.
        forgotten.insert(&key, &mark)?;
    }
    Ok(())
}

/// The turns of a session from `from` on that were forgotten, in order.
pub(crate) fn turns(
    transaction: &ReadTransaction,
    session: u64,
    from: TurnSeq,
) -> Result<Vec<TurnSeq>, Fault> {
    let Some(forgotten) = if_there(transaction, FORGOTTEN)? else { return Ok(Vec::new()) };
    let (first, last) = (turn_key(session, from), turn_key(session, u64::MAX));
    let range = forgotten.range::<&TurnKey>(&first..=&last)?;
    range.map(|entry| Ok(seq_of(entry?.0.value()))).collect()
}

/// All turns that were forgotten, by session and turn.
pub(crate) fn all_turns(transaction: &ReadTransaction) -> Result<Vec<(u64, TurnSeq)>, Fault> {
    let Some(forgotten) = if_there(transaction, FORGOTTEN)? else { return Ok(Vec::new()) };
    let entries = forgotten.range::<&TurnKey>(..)?;
    entries
        .map(|entry| {
            let (key, _) = entry?;
            Ok((session_of(key.value()), seq_of(key.value())))
        })
        .collect()
}

fn count<T>(set: &BTreeSet<T>) -> u64 {
    u64::try_from(set.len()).unwrap_or(u64::MAX)
}

/// Removes all turns of a session, and what belongs to them.
pub(crate) fn remove_turns(transaction: &WriteTransaction, session: u64) -> Result<(), Fault> {
    let (first, last) = (turn_key(session, 0), turn_key(session, u64::MAX));
    for table in [TURNS, REPLIES, RECEIPTS, SPEAKERS] {
        transaction.open_table(table)?.retain_in::<&TurnKey, _>(&first..=&last, |_, _| false)?;
    }
    let (first, last) = (import_key(session, [0; 16]), import_key(session, [0xff; 16]));
    transaction.open_table(IMPORTED)?.retain_in::<&[u8; 24], _>(&first..=&last, |_, _| false)?;
    crate::summaries::remove_session(transaction, session)?;
    unmark(transaction, session)
}
