//! Changes of the conversations' tables.

use std::collections::BTreeSet;

use garret_core::id::{SessionId, TurnSeq};
use redb::{ReadableTable, Table, WriteTransaction};

use crate::conversations::erased;
use crate::conversations::op::Reply;
use crate::conversations::record::{
    ReplyRecord, SessionRecord, TurnRecord, session_name, turn_name,
};
use crate::ground::codec::{encode, seal};
use crate::ground::error::{Abort, Fault, WriteError, damaged};
use crate::ground::stamp::Stamp;
use crate::ground::table::{
    META, RECEIPTS, REPLIES, SESSIONS, TURNS, TurnKey, counter, key, session_of, turn_key,
};

/// Adds a user's message, to a new session if there is none of that name; the session's number and
/// the turn's.
pub(crate) fn accept(
    transaction: &WriteTransaction,
    session: &str,
    text: &str,
    at: Stamp,
) -> Result<(u64, TurnSeq), Fault> {
    let mut record = match load(&transaction.open_table(SESSIONS)?, session)? {
        Some(record) => record,
        None => new_session(transaction, session, at)?,
    };
    record.turns = record.turns.saturating_add(1);
    record.updated_ms = at.unix_ms;
    record.activity = count(transaction, key::ACTIVITY)?;
    let (number, seq) = (record.number, record.turns);
    let turn = TurnRecord::encode(number, seq, text, at.time()?)?;
    let key = turn_key(number, seq);
    if transaction.open_table(TURNS)?.insert(&key, turn.as_slice())?.is_some() {
        return Err(damaged("turn record (beyond its session's count)", turn_name(number, seq)));
    }
    save(transaction, &record)?;
    Ok((number, seq))
}

/// Gives a session another name; its number.
pub(crate) fn rename(
    transaction: &WriteTransaction,
    session: &str,
    to: &str,
) -> Result<u64, Abort<WriteError>> {
    let mut sessions = transaction.open_table(SESSIONS)?;
    let Some(mut record) = load(&sessions, session)? else { return unknown(session) };
    if sessions.get(to.as_bytes())?.is_some() {
        return Err(Abort::Refused(WriteError::SessionExists { session: id(to)? }));
    }
    sessions.remove(session.as_bytes())?;
    drop(sessions);
    to.clone_into(&mut record.id);
    save(transaction, &record)?;
    Ok(record.number)
}

/// Gives a session a title.
pub(crate) fn set_title(
    transaction: &WriteTransaction,
    session: &str,
    title: &str,
) -> Result<(), Abort<WriteError>> {
    let Some(mut record) = load(&transaction.open_table(SESSIONS)?, session)? else {
        return unknown(session);
    };
    title.clone_into(&mut record.title);
    save(transaction, &record)?;
    Ok(())
}

/// The numbers of a session whose record can't be read: the one that it claims, where there are
/// turns of that number and no other session has it; else all that no session has, unless another
/// damaged session may have them.
pub(crate) fn numbers_of_damaged(
    transaction: &WriteTransaction,
    session: &str,
) -> Result<Vec<u64>, Fault> {
    let (mut owned, mut claimed, mut others) = (BTreeSet::new(), None, false);
    for entry in transaction.open_table(SESSIONS)?.iter()? {
        let (id, bytes) = entry?;
        match SessionRecord::read(id.value(), bytes.value()) {
            Ok(record) => {
                owned.insert(record.number);
            }
            Err(_) if id.value() == session.as_bytes() => {
                claimed = SessionRecord::claimed_number(bytes.value());
            }
            Err(_) => others = true,
        }
    }
    let (turns, mut unowned, mut from) = (transaction.open_table(TURNS)?, Vec::new(), Some(0));
    while let Some(at) = from {
        let Some(entry) = turns.range::<&TurnKey>(&turn_key(at, 0)..)?.next() else { break };
        let number = session_of(entry?.0.value());
        if !owned.contains(&number) {
            unowned.push(number);
        }
        from = number.checked_add(1);
    }
    if let Some(number) = claimed.filter(|number| unowned.contains(number)) {
        return Ok(vec![number]);
    }
    if others && !unowned.is_empty() {
        tracing::warn!(
            session,
            "its turns can't be told from another damaged session's; they stay"
        );
        return Ok(Vec::new());
    }
    Ok(unowned)
}

pub(crate) fn load(
    sessions: &impl ReadableTable<&'static [u8], &'static [u8]>,
    session: &str,
) -> Result<Option<SessionRecord>, Fault> {
    let id = session.as_bytes();
    let found = sessions.get(id)?;
    found.map(|bytes| SessionRecord::read(id, bytes.value())).transpose()
}

pub(crate) fn save(transaction: &WriteTransaction, record: &SessionRecord) -> Result<(), Fault> {
    put_session(&mut transaction.open_table(SESSIONS)?, record)
}

pub(crate) fn put_session(
    sessions: &mut Table<'_, &[u8], &[u8]>,
    record: &SessionRecord,
) -> Result<(), Fault> {
    sessions.insert(record.id.as_bytes(), encode(record)?.as_slice())?;
    Ok(())
}

pub(crate) fn new_session(
    transaction: &WriteTransaction,
    session: &str,
    at: Stamp,
) -> Result<SessionRecord, Fault> {
    let number = count(transaction, key::NEXT_SESSION)?.saturating_sub(1);
    Ok(SessionRecord {
        id: session.to_owned(),
        title: String::new(),
        number,
        created_ms: at.unix_ms,
        updated_ms: at.unix_ms,
        turns: 0,
        activity: 0,
    })
}

/// Raises a counter in `meta` by one; what it is then.
pub(crate) fn count(transaction: &WriteTransaction, key: &'static str) -> Result<u64, Fault> {
    let mut meta = transaction.open_table(META)?;
    let next = counter(meta.get(key)?, key)?.saturating_add(1);
    meta.insert(key, next.to_le_bytes().as_slice())?;
    Ok(next)
}

pub(crate) fn unknown<T>(session: &str) -> Result<T, Abort<WriteError>> {
    Err(Abort::Refused(WriteError::UnknownSession { session: id(session)? }))
}

/// A session's id, which was one when the operation was made.
pub(crate) fn id(session: &str) -> Result<SessionId, Fault> {
    session
        .parse()
        .map_err(|_| damaged("operation (its session can't be one)", session_name(session)))
}

/// Adds the reply to a turn; the session's number and the turn's key.
pub(crate) fn reply(
    transaction: &WriteTransaction,
    op: &Reply<'_>,
) -> Result<(u64, TurnKey), Abort<WriteError>> {
    let Some(record) = load(&transaction.open_table(SESSIONS)?, op.session)? else {
        return unknown(op.session);
    };
    let (number, seq) = (record.number, op.seq);
    if seq == 0 || seq > record.turns {
        return Err(Abort::Refused(WriteError::UnknownTurn {
            session: id(op.session)?,
            turn: seq,
        }));
    }
    let key = turn_key(number, seq);
    if erased::is_forgotten(transaction, &key)? {
        return Err(Abort::Refused(WriteError::ForgottenTurn {
            session: id(op.session)?,
            turn: seq,
        }));
    }
    let bytes = encode(&ReplyRecord::new(number, op))?;
    if transaction.open_table(REPLIES)?.insert(&key, bytes.as_slice())?.is_some() {
        return Err(Abort::Refused(WriteError::AlreadyReplied {
            session: id(op.session)?,
            turn: seq,
        }));
    }
    let receipt = [op.receipt, &seal(op.receipt)].concat();
    transaction.open_table(RECEIPTS)?.insert(&key, receipt.as_slice())?;
    Ok((number, key))
}
