//! Conversations that were held elsewhere, taken in many turns at a time.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use garret_core::id::{SessionId, TurnSeq};
use garret_core::time::WallTime;
use redb::ReadTransaction;
use sha2::{Digest as _, Sha256};

use crate::conversations::op::Said;
use crate::conversations::write::load;
use crate::ground::error::Fault;
use crate::ground::table::{IMPORTED, SESSIONS, import_key};
use crate::search::Speaker;

/// Most bytes that the texts of one batch can have together.
pub const MAX_BATCH_BYTES: usize = 64 << 20;

/// Something that was said in a conversation held elsewhere.
///
/// It becomes a turn of its session, whose `user` is what was said and whose `speaker` is who said
/// it, when it wasn't the user. What the assistant said becomes the reply of the turn before it,
/// where that has none and isn't the assistant's itself; else it is a turn of speaker `assistant`.
#[derive(Clone, Copy, Debug)]
pub struct ImportedTurn<'a> {
    /// The session, which comes into being with its first turn.
    pub session: &'a SessionId,
    /// The one who said it. A name of `user` or `assistant` means those.
    pub speaker: Speaker<'a>,
    /// The words, unchanged.
    pub text: &'a str,
    /// The moment at which it was said.
    pub at: WallTime,
    /// Its name where it comes from. A session takes in each name once, so that an import
    /// that was cut short can be run again from its beginning.
    pub id: Option<&'a str>,
}

/// The result of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Imported {
    /// Turns and replies that are new.
    pub added: usize,
    /// Turns and replies that were there already.
    pub skipped: usize,
}

/// The place where something that was said went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The session's number.
    pub(crate) number: u64,
    pub(crate) seq: TurnSeq,
    pub(crate) as_reply: bool,
}

/// Returns the turns that their sessions haven't taken in yet.
pub(crate) fn unknown<'b, 'a>(
    transaction: &ReadTransaction,
    turns: &'b [ImportedTurn<'a>],
) -> Result<Vec<&'b ImportedTurn<'a>>, Fault> {
    let sessions = transaction.open_table(SESSIONS)?;
    let imported = transaction.open_table(IMPORTED)?;
    let (mut numbers, mut new) = (BTreeMap::new(), Vec::with_capacity(turns.len()));
    for turn in turns {
        let number = match numbers.entry(turn.session) {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(entry) => {
                let found = load(&sessions, turn.session.as_str())?;
                *entry.insert(found.map(|record| record.number))
            }
        };
        let known = match (number, turn.id) {
            (Some(number), Some(id)) => imported.get(&import_key(number, hash(id)))?.is_some(),
            _ => false,
        };
        if !known {
            new.push(turn);
        }
    }
    Ok(new)
}

/// Returns what stands for an id.
fn hash(id: &str) -> [u8; 16] {
    let hash = <[u8; 32]>::from(Sha256::digest(id));
    std::array::from_fn(|at| hash[at])
}

pub(crate) fn said<'a>(turn: &ImportedTurn<'a>) -> Said<'a> {
    Said {
        session: turn.session.as_str(),
        speaker: name_of(turn.speaker),
        text: turn.text,
        at: turn.at.into(),
        id: turn.id.map(hash),
    }
}

/// Says how a turn of this speaker names them; the user's has no name.
pub(crate) fn name_of(speaker: Speaker<'_>) -> Option<&str> {
    match speaker {
        Speaker::User | Speaker::Named("user") => None,
        Speaker::Assistant => Some(ASSISTANT),
        Speaker::Named(name) => Some(name),
    }
}

/// The name of the assistant as a speaker.
pub(crate) const ASSISTANT: &str = "assistant";
