//! Reading summaries, states and traces within one transaction of the database.

use redb::ReadTransaction;

use super::record::{HeadRecord, SummaryRecord};
use super::table::{HEADS, STATES, SUMMARIES, SummaryKey, TRACES, state_key, summary_key};
use super::view::{StateKind, Summary};
use crate::error::{Fault, unless_damaged};
use crate::facts::read::open;
use crate::record::{damaged, turn_name, unseal};
use crate::table::{seq_of, turn_key};

/// All summaries of a session that can be read, in the order of their turns, those of the turns
/// themselves first. A damaged one is left out, with a warning.
pub(super) fn all(transaction: &ReadTransaction, session: u64) -> Result<Vec<Summary>, Fault> {
    let mut found = Vec::new();
    for_each(transaction, session, |_, record, _| {
        let read = record.and_then(SummaryRecord::into_summary);
        let tell = |what, key| tracing::warn!(what, key, "damaged; the others go on");
        found.extend(unless_damaged(read, tell)?);
        Ok(())
    })?;
    found.sort_by_key(|summary| (summary.from, summary.depth));
    Ok(found)
}

/// Hands every summary of a session to `f` by its number, and the length of its value.
pub(crate) fn for_each(
    transaction: &ReadTransaction,
    session: u64,
    mut f: impl FnMut(u64, Result<SummaryRecord, Fault>, usize) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let Some(summaries) = open(transaction, SUMMARIES)? else { return Ok(()) };
    let (first, last) = (summary_key(session, 0), summary_key(session, u64::MAX));
    for entry in summaries.range::<&SummaryKey>(&first..=&last)? {
        let (key, bytes) = entry?;
        let id = seq_of(key.value());
        let bytes = bytes.value();
        f(id, SummaryRecord::read(session, id, bytes), bytes.len())?;
    }
    Ok(())
}

pub(super) fn one(
    transaction: &ReadTransaction,
    session: u64,
    id: u64,
) -> Result<Option<Summary>, Fault> {
    let Some(summaries) = open(transaction, SUMMARIES)? else { return Ok(None) };
    let Some(bytes) = summaries.get(&summary_key(session, id))? else { return Ok(None) };
    Ok(Some(SummaryRecord::read(session, id, bytes.value())?.into_summary()?))
}

/// What a session's summaries come to.
pub(crate) fn head(transaction: &ReadTransaction, session: u64) -> Result<HeadRecord, Fault> {
    let Some(heads) = open(transaction, HEADS)? else { return Ok(HeadRecord::new(session)) };
    match heads.get(&session.to_be_bytes())? {
        Some(bytes) => HeadRecord::read(session, bytes.value()),
        None => Ok(HeadRecord::new(session)),
    }
}

pub(super) fn state(
    transaction: &ReadTransaction,
    session: u64,
    kind: StateKind,
) -> Result<Option<Vec<u8>>, Fault> {
    let Some(states) = open(transaction, STATES)? else { return Ok(None) };
    let Some(value) = states.get(&state_key(session, kind))? else { return Ok(None) };
    let name = || format!("`{}` of session number {session}", kind.as_str());
    let bytes = unseal(value.value()).ok_or_else(|| damaged("state", name()))?;
    Ok(Some(bytes.to_vec()))
}

pub(super) fn trace(
    transaction: &ReadTransaction,
    session: u64,
    turn: u64,
) -> Result<Option<Vec<u8>>, Fault> {
    let Some(traces) = open(transaction, TRACES)? else { return Ok(None) };
    let Some(value) = traces.get(&turn_key(session, turn))? else { return Ok(None) };
    let bytes = unseal(value.value()).ok_or_else(|| damaged("trace", turn_name(session, turn)))?;
    Ok(Some(bytes.to_vec()))
}
