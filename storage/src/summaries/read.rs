//! Reading summaries, states and traces within one transaction of the database.

use garret_core::id::TurnSeq;
use redb::ReadTransaction;

use crate::conversations::record::turn_name;
use crate::ground::codec::unseal;
use crate::ground::database::open_if_there as open;
use crate::ground::error::{Fault, damaged, unless_damaged};
use crate::ground::table::{TurnKey, seq_of, turn_key};
use crate::summaries::record::{HeadRecord, SummaryRecord};
use crate::summaries::table::{
    HEADS, LEAVES, STATES, SUMMARIES, SummaryKey, TRACES, state_key, summary_key,
};
use crate::summaries::view::{StateKind, Summary};

/// All summaries of a session that can be read, in the order of their turns, those of the turns
/// themselves first. A damaged one is left out, with a warning.
pub(crate) fn all(transaction: &ReadTransaction, session: u64) -> Result<Vec<Summary>, Fault> {
    some(transaction, session, |_| true)
}

/// Those of them that are no other one's source. Of the others no more is read than that.
pub(crate) fn roots(transaction: &ReadTransaction, session: u64) -> Result<Vec<Summary>, Fault> {
    let mut found = some(transaction, session, |value| !SummaryRecord::claims_parent(value))?;
    found.retain(|summary| summary.parent.is_none());
    Ok(found)
}

fn some(
    transaction: &ReadTransaction,
    session: u64,
    wanted: impl Fn(&[u8]) -> bool,
) -> Result<Vec<Summary>, Fault> {
    let mut found = Vec::new();
    each_value(transaction, session, |id, value| {
        if wanted(value) {
            let read = SummaryRecord::read(session, id, value);
            let tell = |what, key| tracing::warn!(what, key, "damaged; the others go on");
            found.extend(unless_damaged(read.and_then(SummaryRecord::into_summary), tell)?);
        }
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
    each_value(transaction, session, |id, value| {
        f(id, SummaryRecord::read(session, id, value), value.len())
    })
}

fn each_value(
    transaction: &ReadTransaction,
    session: u64,
    mut f: impl FnMut(u64, &[u8]) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let Some(summaries) = open(transaction, SUMMARIES)? else { return Ok(()) };
    let (first, last) = (summary_key(session, 0), summary_key(session, u64::MAX));
    for entry in summaries.range::<&SummaryKey>(&first..=&last)? {
        let (key, bytes) = entry?;
        f(seq_of(key.value()), bytes.value())?;
    }
    Ok(())
}

/// The first turn of the next leaf that begins behind a turn.
pub(crate) fn leaf_after(
    transaction: &ReadTransaction,
    session: u64,
    turn: TurnSeq,
) -> Result<Option<TurnSeq>, Fault> {
    let Some(leaves) = open(transaction, LEAVES)? else { return Ok(None) };
    let Some(first) = turn.checked_add(1) else { return Ok(None) };
    let (first, last) = (turn_key(session, first), turn_key(session, u64::MAX));
    let next = leaves.range::<&TurnKey>(&first..=&last)?.next().transpose()?;
    Ok(next.map(|(key, _)| seq_of(key.value())))
}

pub(crate) fn one(
    transaction: &ReadTransaction,
    session: u64,
    id: u64,
) -> Result<Option<Summary>, Fault> {
    let Some(summaries) = open(transaction, SUMMARIES)? else { return Ok(None) };
    let Some(bytes) = summaries.get(&summary_key(session, id))? else { return Ok(None) };
    Ok(Some(SummaryRecord::read(session, id, bytes.value())?.into_summary()?))
}

/// Returns what a session's summaries come to.
pub(crate) fn head(transaction: &ReadTransaction, session: u64) -> Result<HeadRecord, Fault> {
    let Some(heads) = open(transaction, HEADS)? else { return Ok(HeadRecord::new(session)) };
    match heads.get(&session.to_be_bytes())? {
        Some(bytes) => HeadRecord::read(session, bytes.value()),
        None => Ok(HeadRecord::new(session)),
    }
}

pub(crate) fn state(
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

pub(crate) fn trace(
    transaction: &ReadTransaction,
    session: u64,
    turn: u64,
) -> Result<Option<Vec<u8>>, Fault> {
    let Some(traces) = open(transaction, TRACES)? else { return Ok(None) };
    let Some(value) = traces.get(&turn_key(session, turn))? else { return Ok(None) };
    let bytes = unseal(value.value()).ok_or_else(|| damaged("trace", turn_name(session, turn)))?;
    Ok(Some(bytes.to_vec()))
}
