//! Conversations that were held elsewhere, taken in many turns at a time.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use garret_core::id::{SessionId, TurnSeq};
use garret_core::time::WallTime;
use redb::{ReadTransaction, ReadableDatabase as _};
use sha2::{Digest as _, Sha256};

use crate::conversations::op::Said;
use crate::conversations::write::load;
use crate::ground::error::{Fault, WriteError};
use crate::ground::limits::{MAX_NAME_BYTES, check_size};
use crate::ground::table::{IMPORTED, SESSIONS, import_key};
use crate::journal::apply::Outcome;
use crate::journal::op::Op;
use crate::search::Speaker;
use crate::store::Store;
use crate::store::turns::unexpected;

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
    /// Who said it. A name of `user` or `assistant` means those.
    pub speaker: Speaker<'a>,
    /// What was said.
    pub text: &'a str,
    /// When.
    pub at: WallTime,
    /// What it is called where it comes from. A session takes in each name once, so that an import
    /// that was cut short can be run again from its beginning.
    pub id: Option<&'a str>,
}

/// What came of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Imported {
    /// Turns and replies that are new.
    pub added: usize,
    /// Those that were there already.
    pub skipped: usize,
}

/// Where something that was said went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The session's number.
    pub(crate) number: u64,
    pub(crate) seq: TurnSeq,
    pub(crate) as_reply: bool,
}

impl Store {
    /// Takes in turns of conversations that were held elsewhere, in their order, all or none; they
    /// are durable when this returns. One step costs about as much as any other write, so many
    /// turns at a time are much faster: 1,000 are a good number.
    ///
    /// ```
    /// # use garret_core::time::{Confidence, WallTime};
    /// # use garret_hal::media::RamMedium;
    /// use garret_storage::{ImportedTurn, Store, search::Speaker};
    ///
    /// # let store = Store::on_medium("home", Box::new(RamMedium::new()))?;
    /// let session = "letters".parse()?;
    /// let at = WallTime { unix_ms: 1_683_550_800_000, confidence: Confidence::Good };
    /// let ada = Speaker::Named("Ada");
    /// let text = "The bees have swarmed.";
    /// let turn = ImportedTurn { session: &session, speaker: ada, text, at, id: Some("1:1") };
    /// assert_eq!(store.import_turns(&[turn])?.added, 1);
    /// assert_eq!(store.import_turns(&[turn])?.skipped, 1);
    /// store.with_turns(&session, 1, |turns| assert_eq!(turns[0].speaker, Some("Ada")))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`WriteError`]; nothing of the batch is stored then, save as that type says.
    pub fn import_turns(&self, turns: &[ImportedTurn<'_>]) -> Result<Imported, WriteError> {
        let mut total = 0_usize;
        for turn in turns {
            check_size("a turn", turn.text.len())?;
            let name = name_of(turn.speaker).map_or(0, str::len);
            if name > MAX_NAME_BYTES {
                let what = "a speaker's name";
                return Err(WriteError::TooLarge { what, bytes: name, max: MAX_NAME_BYTES });
            }
            total = total.saturating_add(turn.text.len());
        }
        if total > MAX_BATCH_BYTES {
            let what = "the batch";
            return Err(WriteError::TooLarge { what, bytes: total, max: MAX_BATCH_BYTES });
        }
        self.writing(|open| {
            // What is there already isn't written anywhere again, least of all what was forgotten.
            let new = unknown(&open.database.begin_read()?, turns)?;
            if new.is_empty() {
                return Ok(Imported { added: 0, skipped: turns.len() });
            }
            let op = Op::Import(new.iter().map(|turn| said(turn)).collect());
            let places = match open.perform(&op)? {
                Outcome::Imported(places) => places,
                other => return unexpected(&other),
            };
            let added = places.iter().flatten().count();
            Ok(Imported { added, skipped: turns.len() - added })
        })
    }
}

/// Those turns that their sessions haven't taken in yet.
fn unknown<'b, 'a>(
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

/// What stands for an id.
fn hash(id: &str) -> [u8; 16] {
    let hash = <[u8; 32]>::from(Sha256::digest(id));
    std::array::from_fn(|at| hash[at])
}

fn said<'a>(turn: &ImportedTurn<'a>) -> Said<'a> {
    Said {
        session: turn.session.as_str(),
        speaker: name_of(turn.speaker),
        text: turn.text,
        at: turn.at.into(),
        id: turn.id.map(hash),
    }
}

/// How a turn of this speaker names them; the user's has no name.
fn name_of(speaker: Speaker<'_>) -> Option<&str> {
    match speaker {
        Speaker::User | Speaker::Named("user") => None,
        Speaker::Assistant => Some(ASSISTANT),
        Speaker::Named(name) => Some(name),
    }
}

/// The name of the assistant as a speaker.
pub(crate) const ASSISTANT: &str = "assistant";
