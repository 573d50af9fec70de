//! Operations that write, one durable transaction each.

use std::collections::BTreeSet;

use garret_core::id::{SessionId, TurnSeq};
use garret_core::time::WallTime;
use redb::{Durability, ReadableTable, Table, WriteTransaction};

use crate::error::{Fault, WriteError};
use crate::open::Open;
use crate::record::{ReplyRecord, SessionRecord, TurnRecord, damaged, encode, seal, turn_name};
use crate::store::{MAX_BYTES, Store};
use crate::table::{META, RECEIPTS, REPLIES, SESSIONS, TURNS, TurnKey, key, session_of, turn_key};
use crate::view::NewReply;

impl Store {
    /// Takes the user's message into `session`, which comes into being with its first one. The
    /// message is durable when this returns; its turn's number is counted from 1.
    ///
    /// # Errors
    /// [`WriteError`]; nothing of the message is stored then, save as that type says.
    pub fn accept(
        &self,
        session: &SessionId,
        text: &str,
        at: WallTime,
    ) -> Result<TurnSeq, WriteError> {
        check_size("the message", text.len())?;
        self.writing(|open| {
            let transaction = begin(open)?;
            let mut record = match load(&transaction.open_table(SESSIONS)?, session)? {
                Some(record) => record,
                None => new_session(&transaction, session, at)?,
            };
            record.turns = record.turns.saturating_add(1);
            record.updated_ms = at.unix_ms;
            record.activity = open.activity.saturating_add(1);
            let (number, seq) = (record.number, record.turns);
            let turn = encode(&TurnRecord::new(number, seq, text, at))?;
            let key = turn_key(number, seq);
            if transaction.open_table(TURNS)?.insert(&key, turn.as_slice())?.is_some() {
                return Err(damaged(
                    "turn record (beyond its session's count)",
                    turn_name(number, seq),
                ));
            }
            save(&transaction, &record)?;
            transaction.commit()?;
            open.activity = record.activity;
            if let Some(derived) = &mut open.derived {
                derived.name(number, session);
                derived.said(number, seq, text, at);
            }
            Ok(Ok(seq))
        })
    }

    /// Stores the reply to a turn together with the turn's receipt, once.
    ///
    /// # Errors
    /// [`WriteError::AlreadyReplied`], [`WriteError::UnknownTurn`] and others; nothing of the reply
    /// is stored then, save as that type says.
    pub fn reply(
        &self,
        session: &SessionId,
        seq: TurnSeq,
        reply: NewReply<'_>,
    ) -> Result<(), WriteError> {
        check_size("the reply", reply.text.len())?;
        check_size("the list of the reply's token ids", reply.tokens.len().saturating_mul(4))?;
        check_size("the receipt", reply.receipt.len())?;
        self.writing(|open| {
            let transaction = begin(open)?;
            let Some(record) = load(&transaction.open_table(SESSIONS)?, session)? else {
                return Ok(Err(WriteError::UnknownSession { session: session.clone() }));
            };
            if seq == 0 || seq > record.turns {
                return Ok(Err(WriteError::UnknownTurn { session: session.clone(), turn: seq }));
            }
            let key = turn_key(record.number, seq);
            let bytes = encode(&ReplyRecord::new(record.number, seq, &reply))?;
            if transaction.open_table(REPLIES)?.insert(&key, bytes.as_slice())?.is_some() {
                return Ok(Err(WriteError::AlreadyReplied { session: session.clone(), turn: seq }));
            }
            let receipt = [reply.receipt, &seal(reply.receipt)].concat();
            transaction.open_table(RECEIPTS)?.insert(&key, receipt.as_slice())?;
            transaction.commit()?;
            if let Some(derived) = &mut open.derived {
                derived.answered(record.number, seq, reply.text, reply.at);
            }
            Ok(Ok(()))
        })
    }

    /// Gives a session another name; turns, replies and receipts stay where they are.
    ///
    /// # Errors
    /// [`WriteError::UnknownSession`], [`WriteError::SessionExists`] (also when both names are the
    /// same) and others.
    pub fn rename(&self, session: &SessionId, to: &SessionId) -> Result<(), WriteError> {
        self.writing(|open| {
            let transaction = begin(open)?;
            let mut sessions = transaction.open_table(SESSIONS)?;
            let Some(mut record) = load(&sessions, session)? else {
                return Ok(Err(WriteError::UnknownSession { session: session.clone() }));
            };
            if sessions.get(to.as_str().as_bytes())?.is_some() {
                return Ok(Err(WriteError::SessionExists { session: to.clone() }));
            }
            sessions.remove(session.as_str().as_bytes())?;
            drop(sessions);
            record.id = to.as_str().to_owned();
            save(&transaction, &record)?;
            transaction.commit()?;
            if let Some(derived) = &mut open.derived {
                derived.name(record.number, to);
            }
            Ok(Ok(()))
        })
    }

    /// Gives a session a title; an empty one takes it away.
    ///
    /// # Errors
    /// [`WriteError::UnknownSession`] and others.
    pub fn set_title(&self, session: &SessionId, title: &str) -> Result<(), WriteError> {
        check_size("the title", title.len())?;
        self.writing(|open| {
            let transaction = begin(open)?;
            let Some(mut record) = load(&transaction.open_table(SESSIONS)?, session)? else {
                return Ok(Err(WriteError::UnknownSession { session: session.clone() }));
            };
            record.title = title.to_owned();
            save(&transaction, &record)?;
            transaction.commit()?;
            Ok(Ok(()))
        })
    }

    /// Removes a session with all its turns, replies and receipts.
    ///
    /// # Errors
    /// [`WriteError::UnknownSession`] and others; the session is whole then, save as that type
    /// says.
    pub fn delete(&self, session: &SessionId) -> Result<(), WriteError> {
        self.writing(|open| {
            let transaction = begin(open)?;
            let loaded = load(&transaction.open_table(SESSIONS)?, session);
            let numbers = match loaded {
                Ok(Some(record)) => vec![record.number],
                Ok(None) => {
                    return Ok(Err(WriteError::UnknownSession { session: session.clone() }));
                }
                Err(Fault::Damaged { .. }) => numbers_of_damaged(&transaction, session)?,
                Err(fault) => return Err(fault),
            };
            for number in numbers.iter().copied() {
                let (first, last) = (turn_key(number, 0), turn_key(number, u64::MAX));
                for table in [TURNS, REPLIES, RECEIPTS] {
                    transaction
                        .open_table(table)?
                        .retain_in::<&TurnKey, _>(&first..=&last, |_, _| false)?;
                }
            }
            transaction.open_table(SESSIONS)?.remove(session.as_str().as_bytes())?;
            transaction.commit()?;
            if let Some(derived) = &mut open.derived {
                numbers.into_iter().for_each(|number| derived.removed(number));
            }
            Ok(Ok(()))
        })
    }
}

/// The numbers of a session whose record can't be read: the one that it claims, where there are
/// turns of that number and no other session has it; else all that no session has, unless another
/// damaged session may have them.
fn numbers_of_damaged(
    transaction: &WriteTransaction,
    session: &SessionId,
) -> Result<Vec<u64>, Fault> {
    let (mut owned, mut claimed, mut others) = (BTreeSet::new(), None, false);
    for entry in transaction.open_table(SESSIONS)?.iter()? {
        let (id, bytes) = entry?;
        match SessionRecord::read(id.value(), bytes.value()) {
            Ok(record) => {
                owned.insert(record.number);
            }
            Err(_) if id.value() == session.as_str().as_bytes() => {
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
        tracing::warn!(%session, "its turns can't be told from another damaged session's; they stay");
        return Ok(Vec::new());
    }
    Ok(unowned)
}

fn begin(open: &Open) -> Result<WriteTransaction, Fault> {
    let mut transaction = open.database.begin_write()?;
    // Else the first open after a crash reads every page, and refuses a store with any wrong one.
    transaction.set_quick_repair(true);
    transaction
        .set_durability(Durability::Immediate)
        .map_err(|error| Fault::Engine(error.to_string()))?;
    Ok(transaction)
}

fn load(
    sessions: &impl ReadableTable<&'static [u8], &'static [u8]>,
    session: &SessionId,
) -> Result<Option<SessionRecord>, Fault> {
    let id = session.as_str().as_bytes();
    let found = sessions.get(id)?;
    found.map(|bytes| SessionRecord::read(id, bytes.value())).transpose()
}

fn save(transaction: &WriteTransaction, record: &SessionRecord) -> Result<(), Fault> {
    let bytes = encode(record)?;
    let mut sessions: Table<'_, &[u8], &[u8]> = transaction.open_table(SESSIONS)?;
    sessions.insert(record.id.as_bytes(), bytes.as_slice())?;
    Ok(())
}

fn new_session(
    transaction: &WriteTransaction,
    session: &SessionId,
    at: WallTime,
) -> Result<SessionRecord, Fault> {
    let mut meta = transaction.open_table(META)?;
    let number = meta
        .get(key::NEXT_SESSION)?
        .and_then(|bytes| bytes.value().try_into().ok())
        .map(u64::from_le_bytes)
        .ok_or_else(|| damaged("table `meta`", format!("`{}`", key::NEXT_SESSION)))?;
    let next = number.saturating_add(1).to_le_bytes();
    meta.insert(key::NEXT_SESSION, next.as_slice())?;
    Ok(SessionRecord {
        id: session.as_str().to_owned(),
        title: String::new(),
        number,
        created_ms: at.unix_ms,
        updated_ms: at.unix_ms,
        turns: 0,
        activity: 0,
    })
}

fn check_size(what: &'static str, bytes: usize) -> Result<(), WriteError> {
    if bytes > MAX_BYTES {
        return Err(WriteError::TooLarge { what, bytes, max: MAX_BYTES });
    }
    Ok(())
}
