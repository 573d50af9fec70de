//! Whether the words that a fact rests on are in the turn that it names, and said by its source.

use garret_core::id::{SessionId, TurnSeq};
use redb::{ReadableTable, WriteTransaction};

use crate::conversations::record::{ReplyRecord, SessionRecord, TurnRecord, session_name};
use crate::conversations::{erased, record};
use crate::facts::key::{name_key, quote_key};
use crate::facts::op::Draft;
use crate::facts::record::{ASSISTANT, NAMED, USER};
use crate::facts::view::FactSource;
use crate::ground::error::{Abort, Fault, WriteError};
use crate::ground::table::{REPLIES, SESSIONS, SPEAKERS, TURNS, TurnKey, turn_key};

/// The number of a draft's session, its turn, and whether the draft's quote is found there. Zeros
/// where it names none.
pub(crate) fn origin(
    transaction: &WriteTransaction,
    draft: &Draft<'_>,
) -> Result<(u64, u64, bool), Abort<WriteError>> {
    if draft.session.is_empty() {
        return Ok((0, 0, false));
    }
    let id = draft.session.as_bytes();
    let sessions = transaction.open_table(SESSIONS)?;
    let record =
        sessions.get(id)?.map(|bytes| SessionRecord::read(id, bytes.value())).transpose()?;
    let session: SessionId = draft
        .session
        .parse()
        .map_err(|_| Fault::Damaged { what: "operation", key: session_name(draft.session) })?;
    let Some(record) = record else {
        return Err(WriteError::UnknownSession { session }.into());
    };
    if draft.turn == 0 || draft.turn > record.turns {
        return Err(WriteError::UnknownTurn { session, turn: draft.turn }.into());
    }
    if erased::is_forgotten(transaction, &turn_key(record.number, draft.turn))? {
        return Err(WriteError::ForgottenTurn { session, turn: draft.turn }.into());
    }
    let grounded = is_said(transaction, record.number, draft)?;
    Ok((record.number, draft.turn, grounded))
}

fn is_said(
    transaction: &WriteTransaction,
    session: u64,
    draft: &Draft<'_>,
) -> Result<bool, Abort<WriteError>> {
    let quote = quote_key(draft.quote);
    if quote.is_empty() {
        return Ok(false);
    }
    let key = turn_key(session, draft.turn);
    let (in_turn, in_reply) = match speaker(transaction, session, draft.turn)? {
        None => (draft.source != ASSISTANT, draft.source != USER),
        Some(speaker) => match draft.source {
            USER => (false, false),
            ASSISTANT => (speaker == FactSource::Assistant.as_str(), true),
            NAMED => (name_key(&speaker) == name_key(draft.source_name), false),
            _ => (true, true),
        },
    };
    let found = in_turn
        && holds(&transaction.open_table(TURNS)?, &key, &quote, |bytes| {
            TurnRecord::view(session, draft.turn, bytes).map(|turn| turn.user)
        })?;
    let found = found
        || in_reply
            && holds(&transaction.open_table(REPLIES)?, &key, &quote, |bytes| {
                ReplyRecord::view(session, draft.turn, bytes).map(|reply| reply.text)
            })?;
    Ok(found)
}

/// Returns the speaker of a turn's words, where it wasn't the user.
fn speaker(
    transaction: &WriteTransaction,
    session: u64,
    turn: TurnSeq,
) -> Result<Option<String>, Abort<WriteError>> {
    let speakers = transaction.open_table(SPEAKERS)?;
    let name = speakers.get(&turn_key(session, turn))?;
    let read = name.map(|name| record::speaker(session, turn, name.value()).map(str::to_owned));
    Ok(read.transpose()?)
}

/// Tells whether there is a text under `key` that can be read and has the words of `quote` in it.
fn holds(
    table: &impl ReadableTable<&'static TurnKey, &'static [u8]>,
    key: &TurnKey,
    quote: &str,
    text: impl for<'a> Fn(&'a [u8]) -> Result<&'a str, Fault>,
) -> Result<bool, Fault> {
    let Some(bytes) = table.get(key)? else { return Ok(false) };
    match text(bytes.value()) {
        Ok(text) => Ok(quote_key(text).contains(quote)),
        Err(Fault::Damaged { what, key }) => {
            tracing::warn!(what, key, "damaged, so a quote can't be looked for in it");
            Ok(false)
        }
        Err(fault) => Err(fault),
    }
}
