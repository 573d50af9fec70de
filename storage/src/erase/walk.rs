//! Every text among the records.

use redb::{ReadTransaction, ReadableTable as _, TableDefinition};

use crate::conversations::record;
use crate::conversations::record::{ReplyRecord, SessionRecord, TurnRecord};
use crate::erase::needle::Needle;
use crate::facts::table::{ENTITIES, FACTS, last_id};
use crate::facts::{EntityRecord, FactRecord};
use crate::ground::codec::unseal;
use crate::ground::database::open_if_there as open;
use crate::ground::error::{Fault, unless_damaged};
use crate::ground::table::{
    RECEIPTS, REPLIES, SESSIONS, SPEAKERS, TURNS, TurnKey, seq_of, session_of,
};
use crate::summaries::StateKind;
use crate::summaries::record::SummaryRecord;
use crate::summaries::table::{STATES, SUMMARIES, StateKey, TRACES, is_wordless, state_parts};

/// The place where words were found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Spot {
    /// In the name of a session.
    Name(String),
    /// In the title of a session of this number.
    Title(u64),
    /// In the user's words, the reply or the receipt of a turn.
    Turn(u64, u64),
    Reply(u64, u64),
    Receipt(u64, u64),
    /// In the name of who spoke in a turn.
    Speaker(u64, u64),
    /// In anything that a fact is made of.
    Fact(u64),
    /// In the name of what there are facts about, or of its type.
    Entity(u64),
    /// In a session's summary of this number.
    Summary(u64, u64),
    /// In what the engine kept of a session.
    State(StateKey),
    /// In what the model saw in a turn.
    Trace(u64, u64),
}

/// Tells `found` of every place among the records that has the words of `needle`. In a record that
/// can't be read its bytes are searched as they are.
pub(crate) fn walk(
    transaction: &ReadTransaction,
    needle: &Needle,
    mut found: impl FnMut(Spot),
) -> Result<(), Fault> {
    for entry in transaction.open_table(SESSIONS)?.iter()? {
        let (id, bytes) = entry?;
        let name = String::from_utf8_lossy(id.value()).into_owned();
        let named = needle.is_in(&name) || needle.is_in_bytes(id.value());
        match readable(SessionRecord::read(id.value(), bytes.value()))? {
            Some(record) if needle.is_in(&record.title) => found(Spot::Title(record.number)),
            None if needle.is_in_bytes(bytes.value()) => found(Spot::Name(name.clone())),
            _ => {}
        }
        if named {
            found(Spot::Name(name));
        }
    }
    by_turn(transaction, TURNS, |(session, seq), bytes| {
        let turn = readable(TurnRecord::view(session, seq, bytes))?;
        if turn.map_or_else(|| needle.is_in_bytes(bytes), |turn| needle.is_in(turn.user)) {
            found(Spot::Turn(session, seq));
        }
        Ok(())
    })?;
    by_turn(transaction, REPLIES, |(session, seq), bytes| {
        let reply = readable(ReplyRecord::view(session, seq, bytes))?;
        if reply.map_or_else(|| needle.is_in_bytes(bytes), |reply| needle.is_in(reply.text)) {
            found(Spot::Reply(session, seq));
        }
        Ok(())
    })?;
    by_turn(transaction, RECEIPTS, |(session, seq), bytes| {
        if is_in_opaque(needle, bytes) {
            found(Spot::Receipt(session, seq));
        }
        Ok(())
    })?;
    by_turn(transaction, SPEAKERS, |(session, seq), bytes| {
        let name = readable(record::speaker(session, seq, bytes))?;
        if name.map_or_else(|| needle.is_in_bytes(bytes), |name| needle.is_in(name)) {
            found(Spot::Speaker(session, seq));
        }
        Ok(())
    })?;
    by_number(transaction, FACTS, |id, bytes| {
        let fact = readable(FactRecord::read(id, bytes))?;
        if fact.map_or_else(|| needle.is_in_bytes(bytes), |fact| is_in_fact(needle, &fact)) {
            found(Spot::Fact(id));
        }
        Ok(())
    })?;
    by_number(transaction, ENTITIES, |id, bytes| {
        let entity = readable(EntityRecord::read(id, bytes))?;
        let named = |entity: EntityRecord| needle.is_in(&entity.name) || needle.is_in(&entity.kind);
        if entity.map_or_else(|| needle.is_in_bytes(bytes), named) {
            found(Spot::Entity(id));
        }
        Ok(())
    })?;
    summaries(transaction, needle, found)
}

fn summaries(
    transaction: &ReadTransaction,
    needle: &Needle,
    mut found: impl FnMut(Spot),
) -> Result<(), Fault> {
    if open(transaction, SUMMARIES)?.is_some() {
        by_turn(transaction, SUMMARIES, |(session, id), bytes| {
            let read = readable(SummaryRecord::read(session, id, bytes))?;
            let is_in = |summary: SummaryRecord| needle.is_in(&summary.text);
            if read.map_or_else(|| needle.is_in_bytes(bytes), is_in) {
                found(Spot::Summary(session, id));
            }
            Ok(())
        })?;
    }
    if open(transaction, TRACES)?.is_some() {
        by_turn(transaction, TRACES, |(session, seq), bytes| {
            if is_in_opaque(needle, bytes) {
                found(Spot::Trace(session, seq));
            }
            Ok(())
        })?;
    }
    let Some(states) = open(transaction, STATES)? else { return Ok(()) };
    for entry in states.iter()? {
        let (key, bytes) = entry?;
        if !is_wordless(key.value()) && is_in_opaque(needle, bytes.value()) {
            found(Spot::State(*key.value()));
        }
    }
    Ok(())
}

/// Tells whether the words are in a value of bytes that only others understand.
fn is_in_opaque(needle: &Needle, value: &[u8]) -> bool {
    let bytes = unseal(value).unwrap_or(value);
    needle.is_in_bytes(bytes) || std::str::from_utf8(bytes).is_ok_and(|text| needle.is_in(text))
}

/// Says how a state is named, by the name of its session.
pub(crate) fn state_name(key: &StateKey, session: impl FnOnce(u64) -> String) -> String {
    let (number, kind) = state_parts(key);
    let kind = StateKind::from_byte(kind).map_or("state", StateKind::as_str);
    format!("{}/{kind}", session(number))
}

fn is_in_fact(needle: &Needle, fact: &FactRecord) -> bool {
    let texts = [&fact.text, &fact.quote, &fact.object, &fact.predicate, &fact.source_name];
    texts.into_iter().any(|text| needle.is_in(text))
        || needle.is_in(&fact.predicate.replace('_', " "))
}

fn by_turn(
    transaction: &ReadTransaction,
    table: TableDefinition<'static, &'static TurnKey, &'static [u8]>,
    mut visit: impl FnMut((u64, u64), &[u8]) -> Result<(), Fault>,
) -> Result<(), Fault> {
    for entry in transaction.open_table(table)?.iter()? {
        let (key, bytes) = entry?;
        visit((session_of(key.value()), seq_of(key.value())), bytes.value())?;
    }
    Ok(())
}

fn by_number(
    transaction: &ReadTransaction,
    table: TableDefinition<'static, &'static [u8; 8], &'static [u8]>,
    mut visit: impl FnMut(u64, &[u8]) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let Some(table) = open(transaction, table)? else { return Ok(()) };
    for entry in table.iter()? {
        let (key, bytes) = entry?;
        visit(last_id(key.value()), bytes.value())?;
    }
    Ok(())
}

/// A record, unless it is damaged.
fn readable<T>(read: Result<T, Fault>) -> Result<Option<T>, Fault> {
    unless_damaged(read, |_, _| ())
}
