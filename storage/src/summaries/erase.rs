//! Forgetting summaries: which go, and what becomes of the rest.

use std::collections::{BTreeMap, BTreeSet};

use redb::{ReadTransaction, ReadableTable, ReadableTableMetadata as _, WriteTransaction};

use crate::conversations::erased::FORGOTTEN;
use crate::ground::codec::encode;
use crate::ground::error::{Fault, unless_damaged};
use crate::ground::table::seq_of;
use crate::summaries::read::for_each;
use crate::summaries::record::{HeadRecord, SummaryRecord};
use crate::summaries::table::{
    HEADS, LEAVES, STATES, SUMMARIES, SummaryKey, TRACES, is_wordless, summary_key,
};
use crate::summaries::write::frontier;

/// The summaries of a session that go with turns and summaries that are forgotten, each with the
/// length of its value: those that cover one of the turns, those above a summary that goes, and
/// those that can't be read, as nobody knows what they say.
pub(crate) fn going(
    transaction: &ReadTransaction,
    session: u64,
    turns: &BTreeSet<u64>,
    summaries: &BTreeSet<u64>,
) -> Result<BTreeMap<u64, usize>, Fault> {
    let (mut gone, mut all) = (BTreeMap::new(), Vec::new());
    for_each(transaction, session, |id, read, len| {
        let Some(record) = unless_damaged(read, |_, _| ())? else {
            gone.insert(id, len);
            return Ok(());
        };
        let covers = turns.range(record.first..=record.last).next().is_some();
        if covers || summaries.contains(&id) {
            gone.insert(id, len);
        }
        all.push((record, len));
        Ok(())
    })?;
    // A condensed summary has a higher number than its sources, so one pass finds all above.
    for (record, len) in all {
        if record.sources.iter().any(|source| gone.contains_key(source)) {
            gone.insert(record.id, len);
        }
    }
    Ok(gone)
}

/// Removes summaries, each by its session and number. Those whose parent is among them have none
/// then; the frontiers of the sessions are found anew, and those of `sessions`.
pub(crate) fn remove(
    transaction: &WriteTransaction,
    gone: &BTreeSet<(u64, u64)>,
    sessions: impl Iterator<Item = u64>,
) -> Result<(), Fault> {
    let sessions: BTreeSet<u64> =
        gone.iter().map(|(session, _)| *session).chain(sessions).collect();
    for session in sessions {
        let next = orphan(transaction, session, gone)?;
        let mut leaves = transaction.open_table(LEAVES)?;
        let (first, last) = (summary_key(session, 0), summary_key(session, u64::MAX));
        leaves.retain_in::<&SummaryKey, _>(&first..=&last, |_, leaf| {
            !gone.contains(&(session, seq_of(leaf)))
        })?;
        let mut heads = transaction.open_table(HEADS)?;
        let head = match heads.get(&session.to_be_bytes())? {
            Some(bytes) => unless_damaged(HeadRecord::read(session, bytes.value()), |_, _| ())?,
            None => None,
        };
        let next = head.map_or(next, |head| head.next.max(next));
        let frontier = frontier(session, 0, &leaves, &transaction.open_table(FORGOTTEN)?)?;
        let head = encode(&HeadRecord { session, next, frontier })?;
        heads.insert(&session.to_be_bytes(), head.as_slice())?;
    }
    Ok(())
}

/// Removes a session's summaries; what stays has no parent among them. The number after the
/// highest there was.
fn orphan(
    transaction: &WriteTransaction,
    session: u64,
    gone: &BTreeSet<(u64, u64)>,
) -> Result<u64, Fault> {
    let mut summaries = transaction.open_table(SUMMARIES)?;
    let (first, last) = (summary_key(session, 0), summary_key(session, u64::MAX));
    let (mut orphans, mut next) = (Vec::new(), 1);
    for entry in summaries.range::<&SummaryKey>(&first..=&last)? {
        let (key, bytes) = entry?;
        let id = seq_of(key.value());
        next = id.saturating_add(1);
        // One that can't be read goes.
        let read = SummaryRecord::read(session, id, bytes.value());
        orphans.extend(unless_damaged(read, |_, _| ())?.filter(|record| {
            gone.contains(&(session, record.parent)) && !gone.contains(&(session, id))
        }));
    }
    for record in orphans {
        let key = summary_key(session, record.id);
        summaries.insert(&key, encode(&SummaryRecord { parent: 0, ..record })?.as_slice())?;
    }
    for (_, id) in gone.range((session, 0)..=(session, u64::MAX)) {
        summaries.remove(&summary_key(session, *id))?;
    }
    Ok(next)
}

/// Removes all traces, and all states but those that have no words; how many.
pub(crate) fn wipe(transaction: &WriteTransaction) -> Result<(u64, u64), Fault> {
    let mut states = transaction.open_table(STATES)?;
    let mut traces = transaction.open_table(TRACES)?;
    let (all, gone) = (states.len()?, traces.len()?);
    states.retain(|key, _| is_wordless(key))?;
    traces.retain(|_, _| false)?;
    Ok((all.saturating_sub(states.len()?), gone))
}

/// Counts summaries a session has.
pub(crate) fn count(transaction: &WriteTransaction, session: u64) -> Result<u64, Fault> {
    let summaries = transaction.open_table(SUMMARIES)?;
    let (first, last) = (summary_key(session, 0), summary_key(session, u64::MAX));
    let range = summaries.range::<&SummaryKey>(&first..=&last)?;
    Ok(u64::try_from(range.count()).unwrap_or(u64::MAX))
}
