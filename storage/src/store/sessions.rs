//! Operations that read. Texts are not copied: views borrow from the database's pages.

use std::ops::RangeInclusive;

use garret_core::id::{SessionId, TurnSeq};
use redb::{OwnedAccessGuard, ReadOnlyTable, ReadableDatabase as _, ReadableTable as _};

use crate::conversations::record;
use crate::conversations::record::{ReplyRecord, SessionRecord, TurnRecord, turn_name};
use crate::conversations::view::{DamagedTurn, SessionInfo, TurnView};
use crate::erase;
use crate::ground::codec::unseal;
use crate::ground::database::contain;
use crate::ground::error::{Abort, Fault, ReadError, damaged};
use crate::ground::table::{
    RECEIPTS, REPLIES, SESSIONS, SPEAKERS, TURNS, TurnKey, seq_of, turn_key,
};
use crate::open::Open;
use crate::store::Store;

impl Store {
    /// All sessions that can be read, the one used last first;
    /// [`Store::damaged_sessions`] names the others.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn sessions(&self) -> Result<Vec<SessionInfo>, ReadError> {
        self.reading(|open| {
            let mut found = listing(open)?.readable;
            found.sort_unstable_by_key(|(activity, _)| std::cmp::Reverse(*activity));
            Ok(found.into_iter().map(|(_, info)| info).collect())
        })
    }

    /// The ids of the sessions whose records can't be read, as far as the ids can. Such a session
    /// can be deleted; its turns are still there until then.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn damaged_sessions(&self) -> Result<Vec<String>, ReadError> {
        self.reading(|open| Ok(listing(open)?.damaged))
    }

    /// The session named `id`, if there is one.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn session(&self, id: &SessionId) -> Result<Option<SessionInfo>, ReadError> {
        self.reading(|open| Ok(find(open, id)?.map(SessionRecord::into_info).transpose()?))
    }

    /// The session that was used last among those that can be read, if there is any.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn latest_session(&self) -> Result<Option<SessionInfo>, ReadError> {
        self.reading(|open| {
            let found = listing(open)?.readable;
            Ok(found.into_iter().max_by_key(|(activity, _)| *activity).map(|(_, info)| info))
        })
    }

    /// Hands the turns of `session` from number `from` on to `f`, in order.
    ///
    /// A turn that can't be read is left out, so its number is missing, and logged;
    /// [`Store::damaged_turns`] names it. One that was [forgotten](Store::erase) is left out, too. The views borrow from pages that this call holds; `f` may
    /// use the store, and sees the turns as they were when the call began.
    ///
    /// # Errors
    /// [`ReadError::UnknownSession`] and others; `f` isn't called then.
    pub fn with_turns<R>(
        &self,
        session: &SessionId,
        from: TurnSeq,
        f: impl FnOnce(&[TurnView<'_>]) -> R,
    ) -> Result<R, ReadError> {
        self.with_turns_in(session, from..=TurnSeq::MAX, f)
    }

    /// The same for the turns with numbers in `range` alone: no page of another one is read.
    ///
    /// # Errors
    /// [`ReadError::UnknownSession`] and others; `f` isn't called then.
    pub fn with_turns_in<R>(
        &self,
        session: &SessionId,
        range: RangeInclusive<TurnSeq>,
        f: impl FnOnce(&[TurnView<'_>]) -> R,
    ) -> Result<R, ReadError> {
        let rows = self.rows(session, range)?;
        let (views, damaged) = contain(|| rows.views())?;
        for DamagedTurn { seq, what, .. } in damaged {
            tracing::warn!(%session, turn = seq, what, "a turn can't be read; the others go on");
        }
        Ok(f(&views))
    }

    /// Every turn of `session` that can't be read as it was stored, in order.
    ///
    /// # Errors
    /// [`ReadError::UnknownSession`] and others.
    pub fn damaged_turns(&self, session: &SessionId) -> Result<Vec<DamagedTurn>, ReadError> {
        self.damaged_turns_in(session, 1..=TurnSeq::MAX)
    }

    /// The same for the turns with numbers in `range` alone.
    ///
    /// # Errors
    /// [`ReadError::UnknownSession`] and others.
    pub fn damaged_turns_in(
        &self,
        session: &SessionId,
        range: RangeInclusive<TurnSeq>,
    ) -> Result<Vec<DamagedTurn>, ReadError> {
        let rows = self.rows(session, range)?;
        Ok(contain(|| rows.views().map(|(_, damaged)| damaged))?)
    }

    fn rows(&self, session: &SessionId, range: RangeInclusive<TurnSeq>) -> Result<Rows, ReadError> {
        self.reading(|open| match find(open, session)? {
            Some(record) => Ok(Rows::load(open, &record, range)?),
            None => Err(Abort::Refused(ReadError::UnknownSession { session: session.clone() })),
        })
    }

    /// The receipt stored with the reply to a turn, if there are session, turn and reply.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn receipt(&self, session: &SessionId, seq: TurnSeq) -> Result<Option<Vec<u8>>, ReadError> {
        self.reading(|open| {
            let Some(record) = find(open, session)? else { return Ok(None) };
            let receipts = open.database.begin_read()?.open_table(RECEIPTS)?;
            let Some(value) = receipts.get(&turn_key(record.number, seq))? else {
                return Ok(None);
            };
            let Some(receipt) = unseal(value.value()) else {
                return Err(damaged("receipt", turn_name(record.number, seq)).into());
            };
            Ok(Some(receipt.to_vec()))
        })
    }

    /// The receipt of the newest turn that has one that can be read.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn last_receipt(
        &self,
        session: &SessionId,
    ) -> Result<Option<(TurnSeq, Vec<u8>)>, ReadError> {
        self.reading(|open| {
            let Some(record) = find(open, session)? else { return Ok(None) };
            let receipts = open.database.begin_read()?.open_table(RECEIPTS)?;
            let (first, last) = (turn_key(record.number, 0), turn_key(record.number, u64::MAX));
            for entry in receipts.range::<&TurnKey>(&first..=&last)?.rev() {
                let (key, value) = entry?;
                let seq = seq_of(key.value());
                if let Some(receipt) = unseal(value.value()) {
                    return Ok(Some((seq, receipt.to_vec())));
                }
                tracing::warn!(%session, turn = seq, "damaged receipt");
            }
            Ok(None)
        })
    }
}

/// Keeps its page, and the moment it was read at, from being reused.
type Guard = OwnedAccessGuard<&'static [u8]>;
type Table = ReadOnlyTable<&'static TurnKey, &'static [u8]>;

/// Pages that hold the records of a run of turns.
struct Rows {
    session: u64,
    /// The numbers that the turns should have.
    seqs: RangeInclusive<TurnSeq>,
    /// In order, each with its turn's number.
    turns: Vec<(TurnSeq, Guard)>,
    /// Replies by turn; not every turn has one.
    replies: Vec<(TurnSeq, Guard)>,
    /// Speakers by turn.
    speakers: Vec<(TurnSeq, Guard)>,
    /// In order, those that are gone on purpose.
    forgotten: Vec<TurnSeq>,
}

impl Rows {
    fn load(
        open: &Open,
        record: &SessionRecord,
        range: RangeInclusive<TurnSeq>,
    ) -> Result<Self, Fault> {
        let (from, to) = ((*range.start()).max(1), *range.end());
        let transaction = open.database.begin_read()?;
        Ok(Self {
            session: record.number,
            seqs: from..=record.turns.min(to),
            turns: rows(&transaction.open_table(TURNS)?, record, from, to)?,
            replies: rows(&transaction.open_table(REPLIES)?, record, from, to)?,
            speakers: rows(&transaction.open_table(SPEAKERS)?, record, from, to)?,
            forgotten: erase::turns(&transaction, record.number, from)?,
        })
    }

    /// The turns that can be read, and those that can't wholly be.
    fn views(&self) -> Result<(Vec<TurnView<'_>>, Vec<DamagedTurn>), Fault> {
        let (mut views, mut damaged) = (Vec::with_capacity(self.turns.len()), Vec::new());
        let mut forgotten = self.forgotten.iter().peekable();
        let mut turns = self.turns.iter().peekable();
        let mut replies = self.replies.iter().peekable();
        let mut speakers = self.speakers.iter().peekable();
        for seq in self.seqs.clone() {
            let turn = turns.next_if(|(of, _)| *of == seq).map(|(_, guard)| guard);
            let reply = replies.next_if(|(of, _)| *of == seq).map(|(_, guard)| guard);
            let speaker = speakers.next_if(|(of, _)| *of == seq).map(|(_, guard)| guard);
            let is_forgotten = forgotten.next_if(|of| **of == seq).is_some();
            let Some(turn) = turn else {
                if is_forgotten {
                    continue;
                }
                damaged.push(DamagedTurn { seq, what: "turn record (missing)", only_reply: false });
                continue;
            };
            match self.view(seq, turn, speaker) {
                Ok(view) => views.push(view),
                Err(Fault::Damaged { what, .. }) => {
                    damaged.push(DamagedTurn { seq, what, only_reply: false });
                    continue;
                }
                Err(fault) => return Err(fault),
            }
            let (Some(reply), Some(view)) = (reply, views.last_mut()) else { continue };
            match ReplyRecord::view(self.session, seq, reply.value()) {
                Ok(reply) => view.reply = Some(reply),
                Err(Fault::Damaged { what, .. }) => {
                    view.reply_damaged = true;
                    damaged.push(DamagedTurn { seq, what, only_reply: true });
                }
                Err(fault) => return Err(fault),
            }
        }
        let beyond = turns.map(|(seq, _)| *seq);
        let what = "turn record (beyond its session's count)";
        damaged.extend(beyond.map(|seq| DamagedTurn { seq, what, only_reply: false }));
        Ok((views, damaged))
    }

    /// A turn without its reply. One whose speaker can't be read is damaged: somebody else's words
    /// mustn't pass for the user's.
    fn view<'a>(
        &self,
        seq: TurnSeq,
        turn: &'a Guard,
        speaker: Option<&'a Guard>,
    ) -> Result<TurnView<'a>, Fault> {
        let mut view = TurnRecord::view(self.session, seq, turn.value())?;
        if let Some(name) = speaker {
            view.speaker = Some(record::speaker(self.session, seq, name.value())?);
        }
        Ok(view)
    }
}

/// The rows of a session from turn `from` to turn `to`.
fn rows(
    table: &Table,
    record: &SessionRecord,
    from: TurnSeq,
    to: TurnSeq,
) -> Result<Vec<(TurnSeq, Guard)>, Fault> {
    let (first, last) = (turn_key(record.number, from), turn_key(record.number, from.max(to)));
    let range = table.range_owned::<&TurnKey>(&first..=&last)?;
    range
        .map(|entry| {
            let (key, value) = entry?;
            Ok((seq_of(key.value()), value))
        })
        .collect()
}

pub(crate) fn find(open: &Open, id: &SessionId) -> Result<Option<SessionRecord>, Fault> {
    let sessions = open.database.begin_read()?.open_table(SESSIONS)?;
    let id = id.as_str().as_bytes();
    let found = sessions.get(id)?;
    found.map(|bytes| SessionRecord::read(id, bytes.value())).transpose()
}

/// Contents of the table of sessions.
#[derive(Default)]
struct Listing {
    /// Each with the rank of its newest turn.
    readable: Vec<(u64, SessionInfo)>,
    damaged: Vec<String>,
}

fn listing(open: &Open) -> Result<Listing, Fault> {
    let mut listing = Listing::default();
    for entry in open.database.begin_read()?.open_table(SESSIONS)?.iter()? {
        let (id, bytes) = entry?;
        let read = SessionRecord::read(id.value(), bytes.value())
            .and_then(|record| Ok((record.activity, record.into_info()?)));
        match read {
            Ok(found) => listing.readable.push(found),
            Err(Fault::Damaged { .. }) => {
                listing.damaged.push(String::from_utf8_lossy(id.value()).into_owned());
            }
            Err(fault) => return Err(fault),
        }
    }
    Ok(listing)
}
