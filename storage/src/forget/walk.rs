//! Every text among the records.

use redb::{ReadTransaction, ReadableTable as _, TableDefinition};

use super::needle::Needle;
use crate::error::{Fault, unless_damaged};
use crate::facts::table::{ENTITIES, FACTS, last_id};
use crate::facts::{EntityRecord, FactRecord};
use crate::record::{self, ReplyRecord, SessionRecord, TurnRecord, unseal};
use crate::table::{RECEIPTS, REPLIES, SESSIONS, SPEAKERS, TURNS, TurnKey, seq_of, session_of};

/// Where words were found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Spot {
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
}

/// Tells `found` of every place among the records that has the words of `needle`. In a record that
/// can't be read its bytes are searched as they are.
pub(super) fn walk(
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
        let bytes = unseal(bytes).unwrap_or(bytes);
        let text = std::str::from_utf8(bytes);
        if needle.is_in_bytes(bytes) || text.is_ok_and(|text| needle.is_in(text)) {
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
    })
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
    let Some(table) = crate::facts::read::open(transaction, table)? else { return Ok(()) };
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
