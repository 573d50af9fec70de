//! What an import does to the tables.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use redb::{ReadableTable as _, Table, WriteTransaction};

use crate::conversations::import::{ASSISTANT, Place};
use crate::conversations::op::{Reply, Said};
use crate::conversations::record::{ReplyRecord, SessionRecord, TurnRecord, turn_name};
use crate::conversations::view::StoredFinish;
use crate::conversations::write::{load, new_session, put_session};
use crate::ground::codec::{encode, seal, unseal};
use crate::ground::error::{Fault, damaged};
use crate::ground::table::{
    IMPORTED, META, RECEIPTS, REPLIES, SESSIONS, SPEAKERS, TURNS, TurnKey, counter, import_key,
    key, turn_key,
};

type ByTurn<'t> = Table<'t, &'static TurnKey, &'static [u8]>;

struct Importer<'t, 'a> {
    transaction: &'t WriteTransaction,
    turns: ByTurn<'t>,
    replies: ByTurn<'t>,
    receipts: ByTurn<'t>,
    speakers: ByTurn<'t>,
    imported: Table<'t, &'static [u8; 24], &'static [u8; 8]>,
    /// Sessions met so far, as they will be.
    sessions: BTreeMap<&'a str, SessionRecord>,
    /// Highest rank in any session's `activity`.
    activity: u64,
}

/// Takes in what was said, in order; where each went, `None` for what is there already.
pub(crate) fn import(
    transaction: &WriteTransaction,
    all: &[Said<'_>],
) -> Result<Vec<Option<Place>>, Fault> {
    let mut importer = Importer {
        transaction,
        turns: transaction.open_table(TURNS)?,
        replies: transaction.open_table(REPLIES)?,
        receipts: transaction.open_table(RECEIPTS)?,
        speakers: transaction.open_table(SPEAKERS)?,
        imported: transaction.open_table(IMPORTED)?,
        sessions: BTreeMap::new(),
        activity: counter(transaction.open_table(META)?.get(key::ACTIVITY)?, key::ACTIVITY)?,
    };
    let places = all.iter().map(|said| importer.take(said)).collect::<Result<_, _>>()?;
    importer.finish()?;
    Ok(places)
}

impl<'a> Importer<'_, 'a> {
    fn take(&mut self, said: &Said<'a>) -> Result<Option<Place>, Fault> {
        let (number, turns) = self.session(said)?;
        let id = said.id.map(|id| import_key(number, id));
        if let Some(id) = &id
            && self.imported.get(id)?.is_some()
        {
            return Ok(None);
        }
        let as_reply = said.speaker == Some(ASSISTANT) && self.can_be_answered(number, turns)?;
        let seq = if as_reply { turns } else { turns.saturating_add(1) };
        if as_reply {
            self.answer(number, seq, said)?;
        } else {
            self.add(number, seq, said)?;
        }
        if let Some(id) = &id {
            self.imported.insert(id, &seq.to_be_bytes())?;
        }
        Ok(Some(Place { number, seq, as_reply }))
    }

    /// The number of the session, and how many turns it has.
    fn session(&mut self, said: &Said<'a>) -> Result<(u64, u64), Fault> {
        let record = match self.sessions.entry(said.session) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let found = load(&self.transaction.open_table(SESSIONS)?, said.session)?;
                entry.insert(match found {
                    Some(record) => record,
                    None => new_session(self.transaction, said.session, said.at)?,
                })
            }
        };
        Ok((record.number, record.turns))
    }

    /// Whether the last turn of a session has no reply, and is somebody else's than the assistant's.
    fn can_be_answered(&self, number: u64, turns: u64) -> Result<bool, Fault> {
        let key = turn_key(number, turns);
        // A turn that was forgotten gets nothing more.
        if self.turns.get(&key)?.is_none() || self.replies.get(&key)?.is_some() {
            return Ok(false);
        }
        let speaker = self.speakers.get(&key)?;
        Ok(speaker.is_none_or(|name| unseal(name.value()) != Some(ASSISTANT.as_bytes())))
    }

    fn answer(&mut self, number: u64, seq: u64, said: &Said<'a>) -> Result<(), Fault> {
        let reply = Reply {
            session: said.session,
            seq,
            text: said.text,
            tokens: &[],
            model_fingerprint: [0; 32],
            finish: StoredFinish::Stop.to_byte(),
            at: said.at,
            receipt: &[],
        };
        let key = turn_key(number, seq);
        self.replies.insert(&key, encode(&ReplyRecord::new(number, &reply))?.as_slice())?;
        self.receipts.insert(&key, seal(reply.receipt).as_slice())?;
        Ok(())
    }

    fn add(&mut self, number: u64, seq: u64, said: &Said<'a>) -> Result<(), Fault> {
        let key = turn_key(number, seq);
        let turn = TurnRecord::encode(number, seq, said.text, said.at.time()?)?;
        if self.turns.insert(&key, turn.as_slice())?.is_some() {
            return Err(damaged(
                "turn record (beyond its session's count)",
                turn_name(number, seq),
            ));
        }
        if let Some(name) = said.speaker {
            let name = [name.as_bytes(), &seal(name.as_bytes())].concat();
            self.speakers.insert(&key, name.as_slice())?;
        }
        self.activity = self.activity.saturating_add(1);
        if let Some(record) = self.sessions.get_mut(said.session) {
            (record.turns, record.activity) = (seq, self.activity);
            record.updated_ms = said.at.unix_ms;
        }
        Ok(())
    }

    fn finish(self) -> Result<(), Fault> {
        let mut meta = self.transaction.open_table(META)?;
        meta.insert(key::ACTIVITY, self.activity.to_le_bytes().as_slice())?;
        let mut sessions = self.transaction.open_table(SESSIONS)?;
        self.sessions.values().try_for_each(|record| put_session(&mut sessions, record))
    }
}
