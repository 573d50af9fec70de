//! From records to a bundle.

use std::borrow::Cow;
use std::io::{self, Write};
use std::ops::Range;

use redb::{ReadOnlyTable, ReadTransaction, ReadableTable as _};

use crate::bundle::frames::FrameWriter;
use crate::bundle::lines::LineWriter;
use crate::bundle::record::{
    BundleCounts, Counters, End, Entity, Erased, Erasure, Fact, Forgotten, Imported, Link, Record,
    Reply, Session, Summary, Trace, Turn, Usage,
};
use crate::conversations::erased::FORGOTTEN;
use crate::conversations::record::{
    ReplyRecord, SessionRecord, TurnRecord, session_name, speaker as speaker_name, turn_name,
};
use crate::erase::ledger::{ERASURES, ErasureRecord};
use crate::facts::record::{EntityRecord, FactRecord, UsageRecord};
use crate::facts::table::{
    Direction, ENTITIES, FACTS, LINKS, USAGE, key as fact_key, kind_byte, last_id, link_near,
    link_parts, node_parts,
};
use crate::ground::codec::unseal;
use crate::ground::database::open_if_there as open;
use crate::ground::error::{Fault, damaged};
use crate::ground::stamp::{Stamp, byte_of};
use crate::ground::table::{
    IMPORTED, META, RECEIPTS, REPLIES, SESSIONS, SPEAKERS, TURNS, TurnKey, counter, import_key,
    key, seq_of, turn_key,
};
use crate::summaries::read::for_each as for_each_summary;
use crate::summaries::record::SummaryRecord;
use crate::summaries::table::TRACES;

/// The form of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Frames of bytes, small and quick.
    Bundle,
    /// JSON Lines: a line for each session, turn, reply, fact, entity and link.
    Lines,
}

/// Bytes that are written at a time.
pub(crate) const BUFFER: usize = 64 << 10;

pub(crate) enum Writer<W: Write> {
    Frames(FrameWriter<W>),
    Lines(LineWriter<W>),
}

pub(crate) struct Sink<W: Write> {
    pub(crate) writer: Writer<W>,
    pub(crate) counts: BundleCounts,
    /// The error that ended the writing.
    pub(crate) refused: Option<io::Error>,
}

impl<W: Write> Sink<W> {
    fn put(&mut self, record: &Record<'_>) -> Result<(), Fault> {
        self.counts.count(record);
        let written = match &mut self.writer {
            Writer::Frames(frames) => frames.write(record),
            Writer::Lines(lines) => lines.write(record),
        };
        written.map_err(|error| {
            let fault = Fault::Engine(error.to_string());
            self.refused = Some(error);
            fault
        })
    }

    pub(crate) fn end(self) -> io::Result<BundleCounts> {
        let end = End { counts: self.counts, sha256: None };
        match self.writer {
            Writer::Frames(frames) => frames.end(end)?,
            Writer::Lines(lines) => lines.end(end)?,
        }
        Ok(self.counts)
    }
}

pub(crate) fn all<W: Write>(
    transaction: &ReadTransaction,
    sink: &mut Sink<W>,
) -> Result<(), Fault> {
    counters(transaction, sink)?;
    erasures(transaction, sink)?;
    sessions(transaction, sink)?;
    entities(transaction, sink)?;
    facts(transaction, sink)?;
    links(transaction, sink)
}

fn counters<W: Write>(transaction: &ReadTransaction, sink: &mut Sink<W>) -> Result<(), Fault> {
    let meta = transaction.open_table(META)?;
    let next = |key| match meta.get(key)? {
        None => Ok(1),
        value => counter(value, key),
    };
    sink.put(&Record::Counters(Counters {
        next_session: counter(meta.get(key::NEXT_SESSION)?, key::NEXT_SESSION)?,
        activity: counter(meta.get(key::ACTIVITY)?, key::ACTIVITY)?,
        next_fact: next(fact_key::NEXT_FACT)?,
        next_entity: next(fact_key::NEXT_ENTITY)?,
    }))
}

fn erasures<W: Write>(transaction: &ReadTransaction, sink: &mut Sink<W>) -> Result<(), Fault> {
    let Some(erasures) = open(transaction, ERASURES)? else { return Ok(()) };
    for entry in erasures.iter()? {
        let (key, bytes) = entry?;
        let found = ErasureRecord::read(last_id(key.value()), bytes.value())?;
        let (summaries, states, traces) = (found.summaries, found.states, found.traces);
        let erasure = Erasure {
            number: found.number,
            at_ms: found.at_ms,
            sessions: found.sessions,
            turns: found.turns,
            replies: found.replies,
            receipts: found.receipts,
            titles: found.titles,
            facts: found.facts,
            entities: found.entities,
            links: found.links,
            bytes: found.bytes,
            clock_confidence: byte_of(found.clock),
        };
        sink.put(&match (summaries, states, traces) {
            (0, 0, 0) => Record::Erasure(erasure),
            _ => Record::Erased(Erased { erasure, summaries, states, traces }),
        })?;
    }
    Ok(())
}

type ByTurn = ReadOnlyTable<&'static TurnKey, &'static [u8]>;

/// The tables of conversations.
struct Conversations<'t> {
    transaction: &'t ReadTransaction,
    turns: ByTurn,
    replies: ByTurn,
    receipts: ByTurn,
    speakers: ByTurn,
    imported: ReadOnlyTable<&'static [u8; 24], &'static [u8; 8]>,
    forgotten: Option<ReadOnlyTable<&'static TurnKey, &'static [u8; 8]>>,
    traces: Option<ByTurn>,
}

fn sessions<W: Write>(transaction: &ReadTransaction, sink: &mut Sink<W>) -> Result<(), Fault> {
    let tables = Conversations {
        turns: transaction.open_table(TURNS)?,
        replies: transaction.open_table(REPLIES)?,
        receipts: transaction.open_table(RECEIPTS)?,
        speakers: transaction.open_table(SPEAKERS)?,
        imported: transaction.open_table(IMPORTED)?,
        forgotten: open(transaction, FORGOTTEN)?,
        traces: open(transaction, TRACES)?,
        transaction,
    };
    let mut sessions = Vec::new();
    for entry in transaction.open_table(SESSIONS)?.iter()? {
        let (id, bytes) = entry?;
        sessions.push(SessionRecord::read(id.value(), bytes.value())?);
    }
    sessions.sort_unstable_by_key(|session| session.number);
    for session in sessions {
        sink.put(&Record::Session(Session {
            number: session.number,
            id: session.id.as_str().into(),
            title: session.title.as_str().into(),
            created_ms: session.created_ms,
            updated_ms: session.updated_ms,
            turns: session.turns,
            activity: session.activity,
        }))?;
        tables.session(&session, sink)?;
    }
    Ok(())
}

impl Conversations<'_> {
    fn session<W: Write>(&self, session: &SessionRecord, sink: &mut Sink<W>) -> Result<(), Fault> {
        let (number, mut next) = (session.number, 1);
        let (first, last) = (turn_key(number, 0), turn_key(number, u64::MAX));
        for entry in self.turns.range::<&TurnKey>(&first..=&last)? {
            let (key, bytes) = entry?;
            let seq = seq_of(key.value());
            self.forgotten(number, next..seq, sink)?;
            next = seq.saturating_add(1);
            self.turn(number, seq, bytes.value(), sink)?;
        }
        let end = session.turns.saturating_add(1);
        if next > end {
            let what = "session record (its count of turns)";
            return Err(damaged(what, session_name(&session.id)));
        }
        self.forgotten(number, next..end, sink)?;
        let (first, last) = (import_key(number, [0; 16]), import_key(number, [0xff; 16]));
        for entry in self.imported.range::<&[u8; 24]>(&first..=&last)? {
            let (key, seq) = entry?;
            let key: &[u8; 24] = key.value();
            let name = *key.last_chunk().unwrap_or(&[0; 16]);
            let seq = u64::from_be_bytes(*seq.value());
            sink.put(&Record::Imported(Imported { seq, name }))?;
        }
        for_each_summary(self.transaction, number, |_, record, _| {
            sink.put(&Record::Summary(Box::new(Summary::from(&record?))))
        })
    }

    /// Turns without a record: those that were forgotten.
    fn forgotten<W: Write>(
        &self,
        number: u64,
        seqs: Range<u64>,
        sink: &mut Sink<W>,
    ) -> Result<(), Fault> {
        for seq in seqs {
            let missing = || damaged("turn record (missing)", turn_name(number, seq));
            let forgotten = self.forgotten.as_ref().ok_or_else(missing)?;
            let erasure = forgotten.get(&turn_key(number, seq))?.ok_or_else(missing)?;
            let erasure = u64::from_be_bytes(*erasure.value());
            sink.put(&Record::Forgotten(Forgotten { seq, erasure }))?;
        }
        Ok(())
    }

    fn turn<W: Write>(
        &self,
        number: u64,
        seq: u64,
        bytes: &[u8],
        sink: &mut Sink<W>,
    ) -> Result<(), Fault> {
        let key = turn_key(number, seq);
        let view = TurnRecord::view(number, seq, bytes)?;
        let speaker = self.speakers.get(&key)?;
        let speaker =
            speaker.as_ref().map(|bytes| speaker_name(number, seq, bytes.value())).transpose()?;
        sink.put(&Record::Turn(Turn {
            seq,
            text: view.user.into(),
            speaker: speaker.map(Into::into),
            at: Stamp { unix_ms: view.accepted_ms, clock: byte_of(view.clock) },
        }))?;
        let Some(bytes) = self.replies.get(&key)? else { return Ok(()) };
        let view = ReplyRecord::view(number, seq, bytes.value())?;
        let receipt = self.receipts.get(&key)?;
        let receipt = receipt.as_ref().and_then(|bytes| unseal(bytes.value()));
        let receipt = receipt.ok_or_else(|| damaged("receipt", turn_name(number, seq)))?;
        let tokens: Vec<u8> = view.tokens.iter().flat_map(|token| token.0.to_le_bytes()).collect();
        sink.put(&Record::Reply(Reply {
            text: view.text.into(),
            tokens: tokens.into(),
            model_fingerprint: *view.model_fingerprint,
            finish: view.finish.to_byte(),
            at: Stamp { unix_ms: view.finished_ms, clock: byte_of(view.clock) },
            receipt: receipt.into(),
        }))?;
        let Some(traces) = &self.traces else { return Ok(()) };
        let Some(bytes) = traces.get(&key)? else { return Ok(()) };
        let bytes = unseal(bytes.value());
        let bytes = bytes.ok_or_else(|| damaged("trace", turn_name(number, seq)))?;
        sink.put(&Record::Trace(Trace { bytes: bytes.into() }))
    }
}

impl<'a> From<&'a SummaryRecord> for Summary<'a> {
    fn from(summary: &'a SummaryRecord) -> Self {
        Self {
            id: summary.id,
            depth: summary.depth,
            first: summary.first,
            last: summary.last,
            sources: summary.sources.clone(),
            text: Cow::Borrowed(&summary.text),
            tokens: summary.tokens,
            source_tokens: summary.source_tokens,
            method: summary.method,
            model_fingerprint: summary.model_fingerprint,
            made: Stamp { unix_ms: summary.made_ms, clock: summary.clock_confidence },
        }
    }
}

fn entities<W: Write>(transaction: &ReadTransaction, sink: &mut Sink<W>) -> Result<(), Fault> {
    let Some(entities) = open(transaction, ENTITIES)? else { return Ok(()) };
    for entry in entities.iter()? {
        let (key, bytes) = entry?;
        let record = EntityRecord::read(last_id(key.value()), bytes.value())?;
        sink.put(&Record::Entity(Entity {
            id: record.id,
            name: record.name.into(),
            kind: record.kind.into(),
            recorded_ms: record.recorded_ms,
        }))?;
    }
    Ok(())
}

fn facts<W: Write>(transaction: &ReadTransaction, sink: &mut Sink<W>) -> Result<(), Fault> {
    let Some(facts) = open(transaction, FACTS)? else { return Ok(()) };
    for entry in facts.iter()? {
        let (key, bytes) = entry?;
        let id = last_id(key.value());
        FactRecord::view(id, bytes.value())?;
        let fact = FactRecord::read(id, bytes.value())?;
        sink.put(&Record::Fact(Box::new(Fact::from(fact))))?;
    }
    let Some(usage) = open(transaction, USAGE)? else { return Ok(()) };
    for entry in usage.iter()? {
        let (key, bytes) = entry?;
        let fact = last_id(key.value());
        let used = UsageRecord::read(fact, bytes.value())?;
        let Some(last_ms) = used.last_ms else { continue };
        sink.put(&Record::Usage(Usage { fact, count: used.count, last_ms }))?;
    }
    Ok(())
}

fn links<W: Write>(transaction: &ReadTransaction, sink: &mut Sink<W>) -> Result<(), Fault> {
    let Some(links) = open(transaction, LINKS)? else { return Ok(()) };
    for entry in links.iter()? {
        let (key, _) = entry?;
        let (Some(near), Some((way, kind, far))) =
            (link_near(key.value()), link_parts(key.value()))
        else {
            return Err(damaged("link", format!("{:02x?}", key.value())));
        };
        // The row at its other end says the same.
        if way == Direction::From {
            let kind = kind_byte(kind);
            sink.put(&Record::Link(Link { from: node_parts(near), kind, to: node_parts(far) }))?;
        }
    }
    Ok(())
}

impl From<FactRecord> for Fact<'static> {
    fn from(fact: FactRecord) -> Self {
        Self {
            id: fact.id,
            valid_at: fact.valid_at,
            valid_to: fact.valid_to,
            recorded_ms: fact.recorded_ms,
            superseded_by: fact.superseded_by,
            invalidated_by: fact.invalidated_by,
            session: fact.session,
            turn: fact.turn,
            subject: fact.subject,
            text: fact.text.into(),
            quote: fact.quote.into(),
            predicate: fact.predicate.into(),
            object: fact.object.into(),
            source_name: fact.source_name.into(),
            confidence: fact.confidence,
            salience: fact.salience,
            kind: fact.kind,
            source: fact.source,
            flags: fact.flags,
            clock_confidence: fact.clock_confidence,
        }
    }
}
