//! The index of a store: built from its records, then kept as they change.

use std::collections::HashMap;

use garret_core::id::{SessionId, TurnSeq};
use garret_core::time::{Confidence, WallTime};
use redb::{ReadableDatabase as _, ReadableTable as _};

use super::index::Index;
use super::unit::{Speaker, Unit};
use crate::error::Fault;
use crate::open::Open;
use crate::record::{ReplyRecord, SessionRecord, TurnRecord, speaker};
use crate::table::{REPLIES, SESSIONS, SPEAKERS, TURNS, TurnKey, seq_of, turn_key};

/// An index that agrees with the records of an open store.
#[derive(Debug, Default)]
pub(crate) struct Derived {
    pub(super) index: Index,
    /// The names of the sessions in it.
    pub(super) names: HashMap<u64, SessionId>,
}

impl Derived {
    /// Reads the whole store. A damaged record is left out, with a warning: it can't be found, the
    /// others can.
    pub(super) fn build(open: &Open) -> Result<Self, Fault> {
        let transaction = open.database.begin_read()?;
        let (turns, replies) = (transaction.open_table(TURNS)?, transaction.open_table(REPLIES)?);
        let speakers = transaction.open_table(SPEAKERS)?;
        let mut derived = Self::default();
        for entry in transaction.open_table(SESSIONS)?.iter()? {
            let (id, bytes) = entry?;
            let record = SessionRecord::read(id.value(), bytes.value())
                .and_then(|record| Ok((record.number, record.into_info()?)));
            let Some((number, info)) = spared(record)? else { continue };
            derived.name(number, &info.id);
            let (first, last) = (turn_key(number, 0), turn_key(number, u64::MAX));
            for entry in turns.range::<&TurnKey>(&first..=&last)? {
                let (key, bytes) = entry?;
                let seq = seq_of(key.value());
                if let Some(turn) = spared(TurnRecord::view(number, seq, bytes.value()))? {
                    let name = speakers.get(key.value())?;
                    let name = name.as_ref().map(|name| speaker(number, seq, name.value()));
                    let Some(name) = spared(name.transpose())? else { continue };
                    let at = time(turn.accepted_ms, turn.clock);
                    derived.said(number, seq, name, turn.user, at);
                }
            }
            for entry in replies.range::<&TurnKey>(&first..=&last)? {
                let (key, bytes) = entry?;
                let seq = seq_of(key.value());
                if let Some(reply) = spared(ReplyRecord::view(number, seq, bytes.value()))? {
                    let at = time(reply.finished_ms, reply.clock);
                    derived.answered(number, seq, reply.text, at);
                }
            }
        }
        Ok(derived)
    }

    /// A session has this name now.
    pub(crate) fn name(&mut self, session: u64, id: &SessionId) {
        self.names.insert(session, id.clone());
    }

    /// The words of a turn were accepted: the user's, unless they are somebody's with a name.
    pub(crate) fn said(
        &mut self,
        session: u64,
        turn: TurnSeq,
        name: Option<&str>,
        text: &str,
        at: WallTime,
    ) {
        self.add(session, turn, name.map_or(Speaker::User, Speaker::Named), text, at);
    }

    /// A turn was answered.
    pub(crate) fn answered(&mut self, session: u64, turn: TurnSeq, text: &str, at: WallTime) {
        self.add(session, turn, Speaker::Assistant, text, at);
    }

    /// A session was deleted.
    pub(crate) fn removed(&mut self, session: u64) {
        self.index.remove(session);
        self.names.remove(&session);
    }

    fn add(&mut self, session: u64, turn: u64, speaker: Speaker<'_>, text: &str, at: WallTime) {
        let at_ms = (at.confidence != Confidence::Wrong).then_some(at.unix_ms);
        self.index.add(&Unit { session, turn, speaker, at_ms, text });
    }
}

const fn time(unix_ms: i64, confidence: Confidence) -> WallTime {
    WallTime { unix_ms, confidence }
}

/// What was read, unless the record is damaged.
fn spared<T>(read: Result<T, Fault>) -> Result<Option<T>, Fault> {
    match read {
        Err(Fault::Damaged { what, key }) => {
            tracing::warn!(what, key, "damaged, so it can't be searched");
            Ok(None)
        }
        read => read.map(Some),
    }
}
