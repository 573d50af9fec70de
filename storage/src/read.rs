//! Operations that read. Texts are not copied: views borrow from the database's pages.

use garret_core::id::{SessionId, TurnSeq};
use redb::{OwnedAccessGuard, ReadOnlyTable, ReadableDatabase as _, ReadableTable as _};

use crate::error::{Fault, ReadError};
use crate::open::{Open, contain};
use crate::record::{ReplyRecord, SessionRecord, TurnRecord, damaged, turn_name};
use crate::store::Store;
use crate::table::{RECEIPTS, REPLIES, SESSIONS, TURNS, TurnKey, turn_key};
use crate::view::{SessionInfo, TurnView};

impl Store {
    /// All sessions, the one used last first.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn sessions(&self) -> Result<Vec<SessionInfo>, ReadError> {
        self.reading(|open| {
            let mut records = records(open)?;
            records.sort_unstable_by_key(|record| std::cmp::Reverse(record.activity));
            Ok(Ok(records.into_iter().map(SessionRecord::into_info).collect::<Result<_, _>>()?))
        })
    }

    /// The session named `id`, if there is one.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn session(&self, id: &SessionId) -> Result<Option<SessionInfo>, ReadError> {
        self.reading(|open| Ok(Ok(find(open, id)?.map(SessionRecord::into_info).transpose()?)))
    }

    /// The session that was used last, if there is any.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn latest_session(&self) -> Result<Option<SessionInfo>, ReadError> {
        self.reading(|open| {
            let latest = records(open)?.into_iter().max_by_key(|record| record.activity);
            Ok(Ok(latest.map(SessionRecord::into_info).transpose()?))
        })
    }

    /// Hands the turns of `session` from number `from` on to `f`, in order.
    ///
    /// The views borrow from pages that this call holds; `f` may use the store, and sees the turns
    /// as they were when the call began.
    ///
    /// # Errors
    /// [`ReadError::UnknownSession`] and others; `f` isn't called then.
    pub fn with_turns<R>(
        &self,
        session: &SessionId,
        from: TurnSeq,
        f: impl FnOnce(&[TurnView<'_>]) -> R,
    ) -> Result<R, ReadError> {
        let rows = self.reading(|open| {
            let Some(record) = find(open, session)? else {
                return Ok(Err(ReadError::UnknownSession { session: session.clone() }));
            };
            Ok(Ok(Rows::load(open, &record, from)?))
        })?;
        let views = contain(|| rows.views())?;
        Ok(f(&views))
    }

    /// The receipt stored with the reply to a turn, if there are session, turn and reply.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn receipt(&self, session: &SessionId, seq: TurnSeq) -> Result<Option<Vec<u8>>, ReadError> {
        self.reading(|open| {
            let Some(record) = find(open, session)? else { return Ok(Ok(None)) };
            let receipts = open.database.begin_read()?.open_table(RECEIPTS)?;
            let found = receipts.get(&turn_key(record.number, seq))?;
            Ok(Ok(found.map(|bytes| bytes.value().to_vec())))
        })
    }

    /// The receipt of the newest turn that has one.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn last_receipt(
        &self,
        session: &SessionId,
    ) -> Result<Option<(TurnSeq, Vec<u8>)>, ReadError> {
        self.reading(|open| {
            let Some(record) = find(open, session)? else { return Ok(Ok(None)) };
            let receipts = open.database.begin_read()?.open_table(RECEIPTS)?;
            let (first, last) = (turn_key(record.number, 0), turn_key(record.number, u64::MAX));
            let Some(entry) = receipts.range::<&TurnKey>(&first..=&last)?.next_back() else {
                return Ok(Ok(None));
            };
            let (key, bytes) = entry?;
            Ok(Ok(Some((seq_of(key.value()), bytes.value().to_vec()))))
        })
    }
}

/// Keeps its page, and the moment it was read at, from being reused.
type Guard = OwnedAccessGuard<&'static [u8]>;
type Table = ReadOnlyTable<&'static TurnKey, &'static [u8]>;

/// Pages that hold the records of a run of turns.
struct Rows {
    session: u64,
    from: TurnSeq,
    turns: Vec<Guard>,
    /// In order, each with its turn's number; not every turn has one.
    replies: Vec<(TurnSeq, Guard)>,
}

impl Rows {
    fn load(open: &Open, record: &SessionRecord, from: TurnSeq) -> Result<Self, Fault> {
        let from = from.max(1);
        let transaction = open.database.begin_read()?;
        let turns = rows(&transaction.open_table(TURNS)?, record, from)?;
        let complete = (from..=record.turns).eq(turns.iter().map(|(seq, _)| *seq));
        if !complete {
            return Err(damaged(
                "list of turns (one is missing or too many)",
                turn_name(record.number, from),
            ));
        }
        Ok(Self {
            session: record.number,
            from,
            turns: turns.into_iter().map(|(_, guard)| guard).collect(),
            replies: rows(&transaction.open_table(REPLIES)?, record, from)?,
        })
    }

    fn views(&self) -> Result<Vec<TurnView<'_>>, Fault> {
        let mut replies = self.replies.iter().peekable();
        let turns = self.turns.iter().zip(self.from..);
        turns
            .map(|(turn, seq)| {
                let mut view = TurnRecord::view(self.session, seq, turn.value())?;
                if let Some((_, reply)) = replies.next_if(|(of, _)| *of == seq) {
                    view.reply = Some(ReplyRecord::view(self.session, seq, reply.value())?);
                }
                Ok(view)
            })
            .collect()
    }
}

/// The rows of a session from turn `from` on.
fn rows(
    table: &Table,
    record: &SessionRecord,
    from: TurnSeq,
) -> Result<Vec<(TurnSeq, Guard)>, Fault> {
    let (first, last) = (turn_key(record.number, from), turn_key(record.number, u64::MAX));
    let range = table.range_owned::<&TurnKey>(&first..=&last)?;
    range
        .map(|entry| {
            let (key, value) = entry?;
            Ok((seq_of(key.value()), value))
        })
        .collect()
}

fn seq_of(key: &TurnKey) -> TurnSeq {
    let [.., a, b, c, d, e, f, g, h] = *key;
    u64::from_be_bytes([a, b, c, d, e, f, g, h])
}

fn find(open: &Open, id: &SessionId) -> Result<Option<SessionRecord>, Fault> {
    let sessions = open.database.begin_read()?.open_table(SESSIONS)?;
    let found = sessions.get(id.as_str())?;
    found.map(|bytes| SessionRecord::read(id.as_str(), bytes.value())).transpose()
}

fn records(open: &Open) -> Result<Vec<SessionRecord>, Fault> {
    let sessions = open.database.begin_read()?.open_table(SESSIONS)?;
    sessions
        .iter()?
        .map(|entry| {
            let (id, bytes) = entry?;
            SessionRecord::read(id.value(), bytes.value())
        })
        .collect()
}
