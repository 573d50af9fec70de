//! Compactions within one transaction of the database.

use garret_core::time::Confidence;
use redb::{ReadableTable, Table, WriteTransaction};

use crate::conversations::erased::FORGOTTEN;
use crate::conversations::record::{ReplyRecord, TurnRecord};
use crate::ground::codec::{encode, seal};
use crate::ground::error::{Abort, Fault, WriteError, damaged};
use crate::ground::stamp::Stamp;
use crate::ground::summary_error::SummaryError;
use crate::ground::summary_id::SummaryId;
use crate::ground::table::{REPLIES, TURNS, TurnKey, seq_of, session_of, turn_key};
use crate::summaries::op::{Compaction, Draft};
use crate::summaries::record::{HeadRecord, SummaryRecord};
use crate::summaries::table::{
    HEADS, LEAVES, STATES, SUMMARIES, SummaryKey, TRACES, leaf_value, state_key_of, summary_key,
};
use crate::summaries::view::{StateKind, SummaryMethod};

/// Stores the summaries of `op`, of the session of this number and with so many turns; their
/// numbers. After a refusal the transaction must be dropped.
pub(crate) fn apply(
    transaction: &WriteTransaction,
    session: u64,
    turns: u64,
    op: &Compaction<'_>,
) -> Result<Vec<SummaryId>, Abort<WriteError>> {
    if let Some(context) = op.context {
        set_state(transaction, session, StateKind::Context.to_byte(), context)?;
    }
    if op.summaries.is_empty() {
        return Ok(Vec::new());
    }
    let mut tables = Tables::open(transaction)?;
    let said = Said {
        turns: &transaction.open_table(TURNS)?,
        replies: &transaction.open_table(REPLIES)?,
        forgotten: &transaction.open_table(FORGOTTEN)?,
    };
    let write = || {
        let mut writer = Writer::open(&mut tables, said, session, turns)?;
        let ids = op.summaries.iter().map(|draft| writer.take(draft, op.at));
        let ids = ids.collect::<Result<Vec<_>, _>>()?;
        writer.finish()?;
        Ok(ids)
    };
    write().map_err(|abort: Abort<SummaryError>| abort.map(WriteError::from))
}

/// Stores a state of a session; nothing removes it.
pub(crate) fn set_state(
    transaction: &WriteTransaction,
    session: u64,
    kind: u8,
    bytes: &[u8],
) -> Result<(), Fault> {
    if StateKind::from_byte(kind).is_none() {
        return Err(damaged("operation", "the kind of its state".to_owned()));
    }
    let mut states = transaction.open_table(STATES)?;
    let key = state_key_of(session, kind);
    if bytes.is_empty() {
        states.remove(&key)?;
    } else {
        states.insert(&key, [bytes, &seal(bytes)].concat().as_slice())?;
    }
    Ok(())
}

/// Stores what the model saw in a turn.
pub(crate) fn put_trace(
    transaction: &WriteTransaction,
    turn: &TurnKey,
    trace: &[u8],
) -> Result<(), Fault> {
    if !trace.is_empty() {
        let value = [trace, &seal(trace)].concat();
        transaction.open_table(TRACES)?.insert(turn, value.as_slice())?;
    }
    Ok(())
}

/// Removes everything about a session that is gone, and what the model saw in any turn, which may be
/// of it.
pub(crate) fn remove_session(transaction: &WriteTransaction, session: u64) -> Result<(), Fault> {
    let (first, last) = (turn_key(session, 0), turn_key(session, u64::MAX));
    transaction.open_table(SUMMARIES)?.retain_in::<&TurnKey, _>(&first..=&last, |_, _| false)?;
    transaction.open_table(TRACES)?.retain(|_, _| false)?;
    transaction.open_table(LEAVES)?.retain_in::<&TurnKey, _>(&first..=&last, |_, _| false)?;
    transaction.open_table(HEADS)?.remove(&session.to_be_bytes())?;
    let (first, last) = (state_key_of(session, 0), state_key_of(session, u8::MAX));
    let mut states = transaction.open_table(STATES)?;
    Ok(states.retain_in::<&[u8; 9], _>(&first..=&last, |_, _| false)?)
}

type ByTurn<'t> = Table<'t, &'static TurnKey, &'static [u8]>;

/// The tables that summaries are written to.
pub(crate) struct Tables<'t> {
    summaries: Table<'t, &'static SummaryKey, &'static [u8]>,
    leaves: Table<'t, &'static TurnKey, &'static [u8; 16]>,
    heads: Table<'t, &'static [u8; 8], &'static [u8]>,
}

impl<'t> Tables<'t> {
    pub(crate) fn open(transaction: &'t WriteTransaction) -> Result<Self, Fault> {
        Ok(Self {
            summaries: transaction.open_table(SUMMARIES)?,
            leaves: transaction.open_table(LEAVES)?,
            heads: transaction.open_table(HEADS)?,
        })
    }
}

/// The tables that say what can be summed up.
pub(crate) struct Said<'w, 't> {
    pub(crate) turns: &'w ByTurn<'t>,
    pub(crate) replies: &'w ByTurn<'t>,
    pub(crate) forgotten: &'w Table<'t, &'static TurnKey, &'static [u8; 8]>,
}

/// Writes a session's summaries.
pub(crate) struct Writer<'w, 't> {
    session: u64,
    /// Turns that it has.
    turns: u64,
    head: HeadRecord,
    to: &'w mut Tables<'t>,
    said: Said<'w, 't>,
}

/// The extent of a summary.
struct Extent {
    first: u64,
    last: u64,
    depth: u8,
    earliest_ms: i64,
    latest_ms: i64,
}

impl<'w, 't> Writer<'w, 't> {
    pub(crate) fn open(
        to: &'w mut Tables<'t>,
        said: Said<'w, 't>,
        session: u64,
        turns: u64,
    ) -> Result<Self, Abort<SummaryError>> {
        let head = match to.heads.get(&session.to_be_bytes())? {
            Some(bytes) => HeadRecord::read(session, bytes.value())?,
            None => HeadRecord::new(session),
        };
        Ok(Self { session, turns, head, to, said })
    }

    /// Gives the next summary this number, if that is none that was given.
    pub(crate) fn number(&mut self, id: u64) -> bool {
        let free = id >= self.head.next && id < u64::MAX;
        self.head.next = if free { id } else { self.head.next };
        free
    }

    /// Stores a summary, with the next number.
    pub(crate) fn take(
        &mut self,
        draft: &Draft<'_>,
        at: Stamp,
    ) -> Result<SummaryId, Abort<SummaryError>> {
        let (from, to) = (draft.first, draft.last);
        if draft.text.trim().is_empty() {
            return Err(SummaryError::Blank { from, to }.into());
        }
        let (tokens, source_tokens) = (draft.tokens, draft.source_tokens);
        if tokens >= source_tokens {
            return Err(SummaryError::NotShorter { tokens, source_tokens }.into());
        }
        let id = self.head.next;
        let extent =
            if draft.sources.is_empty() { self.leaf(draft, id)? } else { self.node(draft, id)? };
        if SummaryMethod::from_byte(draft.method).is_none() {
            return Err(damaged("operation", "how its summary was made".to_owned()).into());
        }
        at.time()?;
        self.head.next = id.saturating_add(1);
        self.save(&SummaryRecord {
            session: self.session,
            id,
            first: extent.first,
            last: extent.last,
            parent: 0,
            made_ms: at.unix_ms,
            earliest_ms: extent.earliest_ms,
            latest_ms: extent.latest_ms,
            model_fingerprint: draft.model_fingerprint,
            text: draft.text.to_owned(),
            sources: draft.sources.clone(),
            tokens,
            source_tokens,
            depth: extent.depth,
            method: draft.method,
            clock_confidence: at.clock,
        })?;
        Ok(SummaryId(id))
    }

    /// Enters a leaf of this number.
    fn leaf(&mut self, draft: &Draft<'_>, id: u64) -> Result<Extent, Abort<SummaryError>> {
        let (from, to, turns) = (draft.first, draft.last, self.turns);
        if from == 0 || from > to || to > turns {
            return Err(SummaryError::UnknownTurns { from, to, turns }.into());
        }
        if draft.depth != 0 {
            return Err(mismatch(draft, 0, (from, to)));
        }
        let (first, last) = (turn_key(self.session, 0), turn_key(self.session, to));
        if let Some(entry) = self.to.leaves.range::<&TurnKey>(&first..=&last)?.next_back() {
            let (start, leaf) = entry?;
            let (end, by) = (session_of(leaf.value()), SummaryId(seq_of(leaf.value())));
            if end >= from {
                let turn = seq_of(start.value()).max(from);
                return Err(SummaryError::Covered { turn, by }.into());
            }
        }
        if self.forgotten_among(from, to)? == to - from + 1 {
            return Err(SummaryError::Forgotten { from, to }.into());
        }
        let key = turn_key(self.session, to);
        let waits =
            self.said.replies.get(&key)?.is_none() && self.said.forgotten.get(&key)?.is_none();
        if to == turns && waits {
            return Err(SummaryError::Unanswered { turn: to }.into());
        }
        let (earliest_ms, latest_ms) = self.times(from, to)?;
        let value = leaf_value(to, id);
        self.to.leaves.insert(&turn_key(self.session, from), &value)?;
        Ok(Extent { first: from, last: to, depth: 0, earliest_ms, latest_ms })
    }

    /// When the first and the last of the turns was said, by clocks that could be trusted; 0 for
    /// neither. What can't be read doesn't count.
    fn times(&self, from: u64, to: u64) -> Result<(i64, i64), Abort<SummaryError>> {
        let (first, last) = (turn_key(self.session, from), turn_key(self.session, to));
        let mut times = Vec::new();
        for entry in self.said.turns.range::<&TurnKey>(&first..=&last)? {
            let (key, bytes) = entry?;
            let turn = TurnRecord::view(self.session, seq_of(key.value()), bytes.value());
            let turn = turn.ok().filter(|turn| turn.clock != Confidence::Wrong);
            times.extend(turn.map(|turn| turn.accepted_ms));
        }
        for entry in self.said.replies.range::<&TurnKey>(&first..=&last)? {
            let (key, bytes) = entry?;
            let reply = ReplyRecord::view(self.session, seq_of(key.value()), bytes.value());
            let reply = reply.ok().filter(|reply| reply.clock != Confidence::Wrong);
            times.extend(reply.map(|reply| reply.finished_ms));
        }
        Ok((times.iter().copied().min().unwrap_or(0), times.iter().copied().max().unwrap_or(0)))
    }

    /// Makes a condensed summary of this number the parent of its sources.
    fn node(&mut self, draft: &Draft<'_>, id: u64) -> Result<Extent, Abort<SummaryError>> {
        let sources = draft.sources.iter().map(|source| self.source(*source));
        let sources = sources.collect::<Result<Vec<_>, _>>()?;
        let [head, .., tail] = &*sources else { return Err(SummaryError::TooFew.into()) };
        for (before, after) in sources.iter().zip(sources.iter().skip(1)) {
            if after.depth != head.depth {
                let (id, depth, expected) = (SummaryId(after.id), after.depth, head.depth);
                return Err(SummaryError::OtherDepth { id, depth, expected }.into());
            }
            self.follow(before, after)?;
        }
        let (first, last, depth) = (head.first, tail.last, u16::from(head.depth) + 1);
        if (u16::from(draft.depth), draft.first, draft.last) != (depth, first, last) {
            return Err(mismatch(draft, depth, (first, last)));
        }
        let dated = || sources.iter().filter(|source| source.latest_ms != 0);
        let earliest_ms = dated().map(|source| source.earliest_ms).min().unwrap_or(0);
        let latest_ms = dated().map(|source| source.latest_ms).max().unwrap_or(0);
        for source in sources {
            self.save(&SummaryRecord { parent: id, ..source })?;
        }
        Ok(Extent { first, last, depth: draft.depth, earliest_ms, latest_ms })
    }

    /// A summary that can become a source.
    fn source(&self, id: u64) -> Result<SummaryRecord, Abort<SummaryError>> {
        let Some(bytes) = self.to.summaries.get(&summary_key(self.session, id))? else {
            return Err(SummaryError::UnknownSummary { id: SummaryId(id) }.into());
        };
        let source = SummaryRecord::read(self.session, id, bytes.value())?;
        if source.parent != 0 {
            let (id, parent) = (SummaryId(id), SummaryId(source.parent));
            return Err(SummaryError::HasParent { id, parent }.into());
        }
        Ok(source)
    }

    /// Tells whether a source starts where the one before ends, apart from forgotten turns.
    fn follow(
        &self,
        before: &SummaryRecord,
        after: &SummaryRecord,
    ) -> Result<(), Abort<SummaryError>> {
        let gap = SummaryError::Gap { before: SummaryId(before.id), after: SummaryId(after.id) };
        let (from, to) = (before.last.saturating_add(1), after.first.saturating_sub(1));
        let missing = after.first.checked_sub(from).ok_or_else(|| gap.clone())?;
        match missing > 0 && self.forgotten_among(from, to)? != missing {
            true => Err(gap.into()),
            false => Ok(()),
        }
    }

    fn forgotten_among(&self, from: u64, to: u64) -> Result<u64, Abort<SummaryError>> {
        let (first, last) = (turn_key(self.session, from), turn_key(self.session, to));
        let count = self.said.forgotten.range::<&TurnKey>(&first..=&last)?.count();
        Ok(u64::try_from(count).unwrap_or(u64::MAX))
    }

    fn save(&mut self, record: &SummaryRecord) -> Result<(), Abort<SummaryError>> {
        let key = summary_key(self.session, record.id);
        self.to.summaries.insert(&key, encode(record)?.as_slice())?;
        Ok(())
    }

    /// Moves the frontier on.
    pub(crate) fn finish(self) -> Result<(), Abort<SummaryError>> {
        let (session, from) = (self.session, self.head.frontier);
        let frontier = frontier(session, from, &self.to.leaves, self.said.forgotten)?;
        let head = HeadRecord { frontier, ..self.head };
        self.to.heads.insert(&session.to_be_bytes(), encode(&head)?.as_slice())?;
        Ok(())
    }
}

/// Returns where the turns that are covered by leaves or forgotten, in a row, end. They reach `from` at
/// least.
pub(crate) fn frontier(
    session: u64,
    from: u64,
    leaves: &impl ReadableTable<&'static TurnKey, &'static [u8; 16]>,
    forgotten: &impl ReadableTable<&'static TurnKey, &'static [u8; 8]>,
) -> Result<u64, Fault> {
    let mut frontier = from;
    while let Some(turn) = frontier.checked_add(1) {
        let next = turn_key(session, turn);
        // It may start before, with a turn that was forgotten.
        let before = leaves.range::<&TurnKey>(&turn_key(session, 0)..=&next)?.next_back();
        let leaf = before.transpose()?.map(|(_, leaf)| session_of(leaf.value()));
        match leaf.filter(|last| *last > frontier) {
            Some(last) => frontier = last,
            None if forgotten.get(&next)?.is_some() => frontier = turn,
            None => break,
        }
    }
    Ok(frontier)
}

fn mismatch(
    draft: &Draft<'_>,
    real_depth: u16,
    (real_from, real_to): (u64, u64),
) -> Abort<SummaryError> {
    let (depth, from, to) = (draft.depth, draft.first, draft.last);
    SummaryError::Mismatch { depth, from, to, real_depth, real_from, real_to }.into()
}
