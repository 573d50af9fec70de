//! What an operation does to the tables. The same operation on the same tables always does the
//! same: numbers come from counters in the store, times from the operation.

use std::collections::BTreeSet;

use garret_core::id::{SessionId, TurnSeq};
use redb::{ReadableTable, Table, WriteTransaction};

use crate::conversations::importer::import;
use crate::journal::op::Op;
use crate::conversations::op::Reply;
use crate::ground::stamp::Stamp;
use crate::ground::error::{Fault, WriteError};
use crate::facts::Effect;
use crate::erase as forget;
use crate::conversations::import::Place;
use crate::conversations::record::{ReplyRecord, SessionRecord, TurnRecord, session_name, turn_name};
use crate::ground::error::damaged;
use crate::ground::codec::{encode, seal};
use crate::summaries::{Compaction, SummaryId};
use crate::ground::table::{IMPORTED, META, RECEIPTS, REPLIES, SESSIONS, SPEAKERS, TURNS, TurnKey, counter, import_key, key, session_of, turn_key};

/// What came of an operation.
#[derive(Debug, PartialEq)]
pub(crate) enum Outcome {
    /// A user's message is this turn.
    Accepted { number: u64, seq: TurnSeq },
    /// A turn of the session of this number has its reply.
    Replied { number: u64 },
    /// The session of this number has another name.
    Renamed { number: u64 },
    /// Nothing that the store has to know.
    Done,
    /// The sessions of these numbers are gone.
    Deleted { numbers: Vec<u64> },
    /// What became of facts.
    Facts(Effect),
    /// Where each went; `None` for what was there already.
    Imported(Vec<Option<Place>>),
    /// Something was forgotten; the erasure has this number.
    Forgotten { erasure: u64 },
    /// Summaries have these numbers.
    Compacted(Vec<SummaryId>),
}

impl Outcome {
    /// Whether nothing changed, so that there is nothing to keep.
    pub(crate) fn is_nothing(&self) -> bool {
        match self {
            Self::Imported(places) => places.iter().all(Option::is_none),
            Self::Facts(effect) => effect.is_nothing(),
            _ => false,
        }
    }
}

/// Applies `op` within `transaction`. After a refusal the transaction must be dropped.
pub(crate) fn apply(
    transaction: &WriteTransaction,
    op: &Op<'_>,
) -> Result<Result<Outcome, WriteError>, Fault> {
    match op {
        Op::Accept { session, text, at } => accept(transaction, session, text, *at).map(Ok),
        Op::Reply(op) => reply(transaction, op, &[]),
        Op::TracedReply { reply: op, trace } => reply(transaction, op, trace),
        Op::Rename { session, to } => rename(transaction, session, to),
        Op::SetTitle { session, title } => set_title(transaction, session, title),
        Op::Delete { session } => delete(transaction, session),
        Op::Facts(op) => Ok(facts::apply(transaction, op)?.map(Outcome::Facts)),
        Op::Import(all) => Ok(Ok(Outcome::Imported(import(transaction, all)?))),
        Op::Forget(removal) => {
            let erasure = forget::apply(transaction, removal)?;
            Ok(Ok(Outcome::Forgotten { erasure }))
        }
        Op::Compact(op) => compact(transaction, op),
        Op::SetState { session, kind, bytes } => {
            let Some(record) = load(&transaction.open_table(SESSIONS)?, session)? else {
                return unknown(session);
            };
            summaries::set_state(transaction, record.number, *kind, bytes)?;
            Ok(Ok(Outcome::Done))
        }
    }
}

fn accept(
    transaction: &WriteTransaction,
    session: &str,
    text: &str,
    at: Stamp,
) -> Result<Outcome, Fault> {
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
    Ok(Outcome::Accepted { number, seq })
}

fn reply(
    transaction: &WriteTransaction,
    op: &Reply<'_>,
    trace: &[u8],
) -> Result<Result<Outcome, WriteError>, Fault> {
    let Some(record) = load(&transaction.open_table(SESSIONS)?, op.session)? else {
        return unknown(op.session);
    };
    let (number, seq) = (record.number, op.seq);
    if seq == 0 || seq > record.turns {
        return Ok(Err(WriteError::UnknownTurn { session: id(op.session)?, turn: seq }));
    }
    let key = turn_key(number, seq);
    if forget::is_forgotten(transaction, &key)? {
        return Ok(Err(WriteError::ForgottenTurn { session: id(op.session)?, turn: seq }));
    }
    let bytes = encode(&ReplyRecord::new(number, op))?;
    if transaction.open_table(REPLIES)?.insert(&key, bytes.as_slice())?.is_some() {
        return Ok(Err(WriteError::AlreadyReplied { session: id(op.session)?, turn: seq }));
    }
    let receipt = [op.receipt, &seal(op.receipt)].concat();
    transaction.open_table(RECEIPTS)?.insert(&key, receipt.as_slice())?;
    summaries::put_trace(transaction, &key, trace)?;
    Ok(Ok(Outcome::Replied { number }))
}

fn rename(
    transaction: &WriteTransaction,
    session: &str,
    to: &str,
) -> Result<Result<Outcome, WriteError>, Fault> {
    let mut sessions = transaction.open_table(SESSIONS)?;
    let Some(mut record) = load(&sessions, session)? else { return unknown(session) };
    if sessions.get(to.as_bytes())?.is_some() {
        return Ok(Err(WriteError::SessionExists { session: id(to)? }));
    }
    sessions.remove(session.as_bytes())?;
    drop(sessions);
    to.clone_into(&mut record.id);
    save(transaction, &record)?;
    Ok(Ok(Outcome::Renamed { number: record.number }))
}

fn set_title(
    transaction: &WriteTransaction,
    session: &str,
    title: &str,
) -> Result<Result<Outcome, WriteError>, Fault> {
    let Some(mut record) = load(&transaction.open_table(SESSIONS)?, session)? else {
        return unknown(session);
    };
    title.clone_into(&mut record.title);
    save(transaction, &record)?;
    Ok(Ok(Outcome::Done))
}

fn compact(
    transaction: &WriteTransaction,
    op: &Compaction<'_>,
) -> Result<Result<Outcome, WriteError>, Fault> {
    let Some(record) = load(&transaction.open_table(SESSIONS)?, op.session)? else {
        return unknown(op.session);
    };
    let ids = summaries::apply(transaction, record.number, record.turns, op)?;
    Ok(ids.map(Outcome::Compacted))
}

fn delete(
    transaction: &WriteTransaction,
    session: &str,
) -> Result<Result<Outcome, WriteError>, Fault> {
    let loaded = load(&transaction.open_table(SESSIONS)?, session);
    let numbers = match loaded {
        Ok(Some(record)) => vec![record.number],
        Ok(None) => return unknown(session),
        Err(Fault::Damaged { .. }) => numbers_of_damaged(transaction, session)?,
        Err(fault) => return Err(fault),
    };
    numbers.iter().try_for_each(|number| remove_turns(transaction, *number))?;
    transaction.open_table(SESSIONS)?.remove(session.as_bytes())?;
    Ok(Ok(Outcome::Deleted { numbers }))
}

/// Removes all turns of a session, and what belongs to them.
pub(crate) fn remove_turns(transaction: &WriteTransaction, session: u64) -> Result<(), Fault> {
    let (first, last) = (turn_key(session, 0), turn_key(session, u64::MAX));
    for table in [TURNS, REPLIES, RECEIPTS, SPEAKERS] {
        transaction.open_table(table)?.retain_in::<&TurnKey, _>(&first..=&last, |_, _| false)?;
    }
    let (first, last) = (import_key(session, [0; 16]), import_key(session, [0xff; 16]));
    transaction.open_table(IMPORTED)?.retain_in::<&[u8; 24], _>(&first..=&last, |_, _| false)?;
    summaries::remove_session(transaction, session)?;
    forget::unmark(transaction, session)
}

/// The numbers of a session whose record can't be read: the one that it claims, where there are
/// turns of that number and no other session has it; else all that no session has, unless another
/// damaged session may have them.
fn numbers_of_damaged(transaction: &WriteTransaction, session: &str) -> Result<Vec<u64>, Fault> {
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

fn unknown<T>(session: &str) -> Result<Result<T, WriteError>, Fault> {
    Ok(Err(WriteError::UnknownSession { session: id(session)? }))
}

/// A session's id, which was one when the operation was made.
fn id(session: &str) -> Result<SessionId, Fault> {
    session
        .parse()
        .map_err(|_| damaged("operation (its session can't be one)", session_name(session)))
}
