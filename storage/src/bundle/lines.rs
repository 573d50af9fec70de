//! A bundle as JSON Lines: one object a record, for people and other programs.
//!
//! Each time is there twice: in RFC 3339, to be read, and in milliseconds since 1970 (`_ms`), which
//! counts.

use std::borrow::Cow;
use std::io::{self, BufRead, Read as _, Write};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::bundle::error::{ImportError, Place};
use crate::bundle::frames::VERSION;
use crate::bundle::import::Next;
use crate::bundle::record::{
    BundleCounts, Counters, End, Entity, Erased, Erasure, Fact, Forgotten, Imported, Link, Record,
    Reply, Session, Summary, Trace, Turn, Usage,
};
use crate::bundle::words::{
    clock, clock_name, from_hex, link_kind, link_kind_name, moment, node, node_name, to_hex,
};
use crate::conversations::view::StoredFinish;
use crate::facts::record::{GROUNDED, INFERRED, OWN_LANE, pin_flags, source_of, source_parts};
use crate::facts::timeline::OPEN;
use crate::facts::{FactKind, FactSource, Pin};
use crate::ground::limits::MAX_BYTES;
use crate::ground::stamp::Stamp;
use crate::summaries::SummaryMethod;

/// Longest line: a text of which every byte is escaped, with a list of tokens and a receipt.
const MAX_LINE: u64 = 12 * MAX_BYTES as u64;

/// Writes lines.
pub(crate) struct LineWriter<W> {
    out: W,
    hash: Sha256,
    /// The session that turns are of.
    session: String,
    turn: u64,
}

impl<W: Write> LineWriter<W> {
    pub(crate) fn begin(out: W, namespace: &str) -> io::Result<Self> {
        let mut writer = Self { out, hash: Sha256::new(), session: String::new(), turn: 0 };
        writer.put(&Line::Garret(Head { version: VERSION, namespace: namespace.into() }))?;
        Ok(writer)
    }

    pub(crate) fn write(&mut self, record: &Record<'_>) -> io::Result<()> {
        match record {
            Record::Session(session) => self.session = session.id.to_string(),
            Record::Turn(turn) => self.turn = turn.seq,
            _ => {}
        }
        let session = std::mem::take(&mut self.session);
        let written = line_of(record, &session, self.turn).and_then(|line| self.put(&line));
        self.session = session;
        written
    }

    pub(crate) fn end(mut self, mut end: End) -> io::Result<()> {
        end.sha256 = Some(self.hash.clone().finalize().into());
        self.write(&Record::End(end))?;
        self.out.flush()
    }

    fn put(&mut self, line: &Line<'_>) -> io::Result<()> {
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        self.hash.update(&bytes);
        self.out.write_all(&bytes)
    }
}

/// Reads lines.
pub(crate) struct LineReader<R> {
    from: R,
    hash: Sha256,
    line: u64,
    bytes: Vec<u8>,
}

impl<R: BufRead> LineReader<R> {
    /// Reads the first line. Also the namespace.
    pub(crate) fn begin(from: R) -> Result<(Self, String), ImportError> {
        let mut reader = Self { from, hash: Sha256::new(), line: 0, bytes: Vec::new() };
        reader.fill()?;
        // Whatever else a newer one says there.
        #[derive(Deserialize)]
        struct Any<'a> {
            kind: &'a str,
            version: u32,
        }
        match serde_json::from_slice::<Any<'_>>(&reader.bytes) {
            Ok(Any { kind: "garret", version }) if version > VERSION => {
                return Err(ImportError::Newer { found: version, known: VERSION });
            }
            Ok(Any { kind: "garret", .. }) => {}
            _ => return Err(ImportError::NotABundle),
        }
        let namespace = match serde_json::from_slice(&reader.bytes) {
            Ok(Line::Garret(head)) if head.version > 0 => head.namespace.into_owned(),
            _ => return Err(reader.damaged("it is no head of an export")),
        };
        Ok((reader, namespace))
    }

    /// The next record.
    pub(crate) fn next(&mut self) -> Result<Next<'_>, ImportError> {
        self.hash.update(&self.bytes);
        let before = self.hash.clone().finalize().into();
        self.fill()?;
        let at = self.place();
        let damaged = |why: String| ImportError::Damaged { at, why };
        let line =
            serde_json::from_slice(&self.bytes).map_err(|error| damaged(error.to_string()))?;
        let record = record_of(line).map_err(|why| damaged(why.to_owned()))?;
        Ok(Next { record, before, at })
    }

    /// Sees to it that nothing follows.
    pub(crate) fn end(&mut self) -> Result<(), ImportError> {
        self.line += 1;
        match self.from.fill_buf() {
            Ok([]) => Ok(()),
            Ok(_) => Err(self.damaged("something follows the end")),
            Err(source) => Err(ImportError::From { at: self.place(), source }),
        }
    }

    fn place(&self) -> Place {
        Place::Line(self.line)
    }

    fn damaged(&self, why: &str) -> ImportError {
        ImportError::Damaged { at: self.place(), why: why.to_owned() }
    }

    fn fill(&mut self) -> Result<(), ImportError> {
        self.line += 1;
        self.bytes.clear();
        let read = self.from.by_ref().take(MAX_LINE).read_until(b'\n', &mut self.bytes);
        read.map_err(|source| ImportError::From { at: self.place(), source })?;
        match self.bytes.last() {
            Some(b'\n') => Ok(()),
            _ if self.bytes.len() as u64 == MAX_LINE => Err(self.damaged("it is too long")),
            _ => Err(ImportError::CutShort { at: self.place() }),
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Line<'a> {
    #[serde(borrow)]
    Garret(Head<'a>),
    Counters(CountersLine),
    Erasure(Erasure),
    Erased(ErasedLine),
    Session(SessionLine<'a>),
    Turn(TurnLine<'a>),
    Reply(ReplyLine<'a>),
    Forgotten(ForgottenLine<'a>),
    Imported(ImportedLine<'a>),
    Trace(TraceLine<'a>),
    Summary(Box<SummaryLine<'a>>),
    Entity(EntityLine<'a>),
    Fact(Box<FactLine<'a>>),
    Usage(UsageLine<'a>),
    Link(LinkLine<'a>),
    End(EndLine),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head<'a> {
    version: u32,
    #[serde(borrow)]
    namespace: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CountersLine {
    next_session: u64,
    activity: u64,
    next_fact: u64,
    next_entity: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SessionLine<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    number: u64,
    title: Cow<'a, str>,
    turns: u64,
    created: Option<Cow<'a, str>>,
    created_ms: i64,
    updated: Option<Cow<'a, str>>,
    updated_ms: i64,
    activity: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TurnLine<'a> {
    #[serde(borrow)]
    session: Cow<'a, str>,
    turn: u64,
    speaker: Option<Cow<'a, str>>,
    text: Cow<'a, str>,
    at: Option<Cow<'a, str>>,
    at_ms: i64,
    clock: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReplyLine<'a> {
    #[serde(borrow)]
    session: Cow<'a, str>,
    turn: u64,
    text: Cow<'a, str>,
    finish: Cow<'a, str>,
    at: Option<Cow<'a, str>>,
    at_ms: i64,
    clock: Cow<'a, str>,
    model_fingerprint: Cow<'a, str>,
    tokens: Vec<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    receipt: Option<Cow<'a, str>>,
    /// The place where it isn't text.
    #[serde(skip_serializing_if = "Option::is_none")]
    receipt_hex: Option<Cow<'a, str>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ForgottenLine<'a> {
    #[serde(borrow)]
    session: Cow<'a, str>,
    turn: u64,
    erasure: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ImportedLine<'a> {
    #[serde(borrow)]
    session: Cow<'a, str>,
    turn: u64,
    name: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ErasedLine {
    erasure: Erasure,
    summaries: u64,
    states: u64,
    traces: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TraceLine<'a> {
    #[serde(borrow)]
    session: Cow<'a, str>,
    turn: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<Cow<'a, str>>,
    /// The place where it isn't text.
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_hex: Option<Cow<'a, str>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SummaryLine<'a> {
    #[serde(borrow)]
    session: Cow<'a, str>,
    id: u64,
    depth: u8,
    from: u64,
    to: u64,
    /// Numbers of summaries.
    sources: Vec<u64>,
    text: Cow<'a, str>,
    tokens: u32,
    source_tokens: u32,
    method: Cow<'a, str>,
    model_fingerprint: Cow<'a, str>,
    made: Option<Cow<'a, str>>,
    made_ms: i64,
    clock: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EntityLine<'a> {
    id: u64,
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(rename = "type")]
    type_: Cow<'a, str>,
    recorded: Option<Cow<'a, str>>,
    recorded_ms: i64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FactLine<'a> {
    id: u64,
    #[serde(borrow)]
    text: Cow<'a, str>,
    does: Cow<'a, str>,
    inferred: bool,
    grounded: bool,
    own_lane: bool,
    source: Cow<'a, str>,
    /// A number, as deleted sessions have no name.
    session_number: Option<u64>,
    turn: Option<u64>,
    quote: Cow<'a, str>,
    /// Number of an entity.
    subject: Option<u64>,
    predicate: Cow<'a, str>,
    object: Cow<'a, str>,
    valid_at: Option<Cow<'a, str>>,
    valid_at_ms: i64,
    valid_to: Option<Cow<'a, str>>,
    valid_to_ms: Option<i64>,
    superseded_by: Option<u64>,
    invalidated_by: Option<u64>,
    recorded: Option<Cow<'a, str>>,
    recorded_ms: i64,
    clock: Cow<'a, str>,
    /// In hundredths.
    salience_hundredths: u16,
    confidence: f32,
    /// Missing where it isn't pinned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pinned: Option<Cow<'a, str>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct UsageLine<'a> {
    fact: u64,
    count: u64,
    #[serde(borrow)]
    last: Option<Cow<'a, str>>,
    last_ms: i64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkLine<'a> {
    #[serde(borrow)]
    from: Cow<'a, str>,
    link: Cow<'a, str>,
    to: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EndLine {
    counts: BundleCounts,
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
}

/// The line of a record of this session and turn.
fn line_of<'a>(record: &'a Record<'_>, session: &'a str, turn: u64) -> io::Result<Line<'a>> {
    let wrong = || io::Error::other("a record that has no line");
    Ok(match record {
        Record::Counters(Counters { next_session, activity, next_fact, next_entity }) => {
            Line::Counters(CountersLine {
                next_session: *next_session,
                activity: *activity,
                next_fact: *next_fact,
                next_entity: *next_entity,
            })
        }
        Record::Session(session) => Line::Session(session_line(session)),
        Record::Turn(turn) => Line::Turn(TurnLine {
            session: session.into(),
            turn: turn.seq,
            speaker: turn.speaker.as_deref().map(Cow::Borrowed),
            text: Cow::Borrowed(&turn.text),
            at: moment(turn.at.unix_ms),
            at_ms: turn.at.unix_ms,
            clock: clock_name(turn.at.clock).ok_or_else(wrong)?.into(),
        }),
        Record::Reply(reply) => Line::Reply(reply_line(reply, session, turn).ok_or_else(wrong)?),
        Record::Erasure(erasure) => Line::Erasure(*erasure),
        Record::Erased(Erased { erasure, summaries, states, traces }) => {
            let (erasure, summaries) = (*erasure, *summaries);
            Line::Erased(ErasedLine { erasure, summaries, states: *states, traces: *traces })
        }
        Record::Trace(trace) => {
            let (text, hex) = text_or_hex(&trace.bytes);
            Line::Trace(TraceLine { session: session.into(), turn, trace: text, trace_hex: hex })
        }
        Record::Summary(summary) => {
            Line::Summary(Box::new(summary_line(summary, session).ok_or_else(wrong)?))
        }
        Record::Forgotten(Forgotten { seq, erasure }) => Line::Forgotten(ForgottenLine {
            session: session.into(),
            turn: *seq,
            erasure: *erasure,
        }),
        Record::Imported(imported) => Line::Imported(ImportedLine {
            session: session.into(),
            turn: imported.seq,
            name: to_hex(&imported.name).into(),
        }),
        Record::Entity(entity) => Line::Entity(EntityLine {
            id: entity.id,
            name: Cow::Borrowed(&entity.name),
            type_: Cow::Borrowed(&entity.kind),
            recorded: moment(entity.recorded_ms),
            recorded_ms: entity.recorded_ms,
        }),
        Record::Fact(fact) => Line::Fact(Box::new(fact_line(fact).ok_or_else(wrong)?)),
        Record::Usage(Usage { fact, count, last_ms }) => Line::Usage(UsageLine {
            fact: *fact,
            count: *count,
            last: moment(*last_ms),
            last_ms: *last_ms,
        }),
        Record::Link(link) => Line::Link(LinkLine {
            from: node_name(link.from).ok_or_else(wrong)?.into(),
            link: link_kind_name(link.kind).ok_or_else(wrong)?.into(),
            to: node_name(link.to).ok_or_else(wrong)?.into(),
        }),
        Record::End(end) => {
            Line::End(EndLine { counts: end.counts, sha256: end.sha256.map(|hash| to_hex(&hash)) })
        }
    })
}

fn session_line<'a>(session: &'a Session<'_>) -> SessionLine<'a> {
    SessionLine {
        id: Cow::Borrowed(&session.id),
        number: session.number,
        title: Cow::Borrowed(&session.title),
        turns: session.turns,
        created: moment(session.created_ms),
        created_ms: session.created_ms,
        updated: moment(session.updated_ms),
        updated_ms: session.updated_ms,
        activity: session.activity,
    }
}

fn reply_line<'a>(reply: &'a Reply<'_>, session: &'a str, turn: u64) -> Option<ReplyLine<'a>> {
    let (tokens, _) = reply.tokens.as_chunks();
    let (receipt, receipt_hex) = text_or_hex(&reply.receipt);
    Some(ReplyLine {
        session: session.into(),
        turn,
        text: Cow::Borrowed(&reply.text),
        finish: StoredFinish::from_byte(reply.finish)?.as_str().into(),
        at: moment(reply.at.unix_ms),
        at_ms: reply.at.unix_ms,
        clock: clock_name(reply.at.clock)?.into(),
        model_fingerprint: to_hex(&reply.model_fingerprint).into(),
        tokens: tokens.iter().map(|token| i32::from_le_bytes(*token)).collect(),
        receipt,
        receipt_hex,
    })
}

type Text<'a> = Option<Cow<'a, str>>;

/// Bytes as text, or in hexadecimal where they aren't.
fn text_or_hex(bytes: &[u8]) -> (Text<'_>, Text<'_>) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (Some(text.into()), None),
        Err(_) => (None, Some(to_hex(bytes).into())),
    }
}

/// The bytes of what [`text_or_hex`] wrote.
fn bytes_of<'a>(text: Text<'a>, hex: Text<'a>) -> Result<Cow<'a, [u8]>, &'static str> {
    match (text, hex) {
        (Some(Cow::Borrowed(text)), None) => Ok(Cow::Borrowed(text.as_bytes())),
        (Some(Cow::Owned(text)), None) => Ok(Cow::Owned(text.into_bytes())),
        (None, Some(hex)) => Ok(Cow::Owned(from_hex(&hex)?)),
        _ => Err("it needs one receipt or trace"),
    }
}

fn summary_line<'a>(summary: &'a Summary<'_>, session: &'a str) -> Option<SummaryLine<'a>> {
    Some(SummaryLine {
        session: session.into(),
        id: summary.id,
        depth: summary.depth,
        from: summary.first,
        to: summary.last,
        sources: summary.sources.clone(),
        text: Cow::Borrowed(&summary.text),
        tokens: summary.tokens,
        source_tokens: summary.source_tokens,
        method: SummaryMethod::from_byte(summary.method)?.as_str().into(),
        model_fingerprint: to_hex(&summary.model_fingerprint).into(),
        made: moment(summary.made.unix_ms),
        made_ms: summary.made.unix_ms,
        clock: clock_name(summary.made.clock)?.into(),
    })
}

fn summary_of(summary: SummaryLine<'_>) -> Result<Summary<'_>, &'static str> {
    let methods = (0..=u8::MAX).map_while(SummaryMethod::from_byte);
    let method = methods.into_iter().find(|method| method.as_str() == summary.method);
    let fingerprint = from_hex(&summary.model_fingerprint)?;
    Ok(Summary {
        id: summary.id,
        depth: summary.depth,
        first: summary.from,
        last: summary.to,
        sources: summary.sources,
        text: summary.text,
        tokens: summary.tokens,
        source_tokens: summary.source_tokens,
        method: method.ok_or("how it was made isn't known")?.to_byte(),
        model_fingerprint: fingerprint.try_into().map_err(|_| "its fingerprint's length")?,
        made: Stamp { unix_ms: summary.made_ms, clock: clock(&summary.clock)? },
    })
}

fn fact_line<'a>(fact: &'a Fact<'_>) -> Option<FactLine<'a>> {
    let number = |number: u64| (number != 0).then_some(number);
    Some(FactLine {
        id: fact.id,
        text: Cow::Borrowed(&fact.text),
        does: FactKind::from_byte(fact.kind)?.as_str().into(),
        inferred: fact.flags & INFERRED != 0,
        grounded: fact.flags & GROUNDED != 0,
        own_lane: fact.flags & OWN_LANE != 0,
        source: source_of(fact.source, &fact.source_name)?.as_str().to_owned().into(),
        session_number: number(fact.session),
        turn: number(fact.turn),
        quote: Cow::Borrowed(&fact.quote),
        subject: number(fact.subject),
        predicate: Cow::Borrowed(&fact.predicate),
        object: Cow::Borrowed(&fact.object),
        valid_at: moment(fact.valid_at),
        valid_at_ms: fact.valid_at,
        valid_to: (fact.valid_to != OPEN).then(|| moment(fact.valid_to)).flatten(),
        valid_to_ms: (fact.valid_to != OPEN).then_some(fact.valid_to),
        superseded_by: number(fact.superseded_by),
        invalidated_by: number(fact.invalidated_by),
        recorded: moment(fact.recorded_ms),
        recorded_ms: fact.recorded_ms,
        clock: clock_name(fact.clock_confidence)?.into(),
        salience_hundredths: fact.salience,
        confidence: fact.confidence,
        pinned: pin_name(fact.flags),
    })
}

fn pin_name(flags: u8) -> Option<Cow<'static, str>> {
    let pin = [Pin::Auto, Pin::User].into_iter().find(|pin| flags & pin_flags(*pin) != 0)?;
    Some(pin.as_str().into())
}

/// The record of a line, or why it has none.
fn record_of(line: Line<'_>) -> Result<Record<'_>, &'static str> {
    Ok(match line {
        Line::Garret(_) => return Err("another head of an export"),
        Line::Counters(counters) => Record::Counters(Counters {
            next_session: counters.next_session,
            activity: counters.activity,
            next_fact: counters.next_fact,
            next_entity: counters.next_entity,
        }),
        Line::Session(session) => Record::Session(Session {
            number: session.number,
            id: session.id,
            title: session.title,
            created_ms: session.created_ms,
            updated_ms: session.updated_ms,
            turns: session.turns,
            activity: session.activity,
        }),
        Line::Turn(turn) => Record::Turn(Turn {
            seq: turn.turn,
            text: turn.text,
            speaker: turn.speaker,
            at: Stamp { unix_ms: turn.at_ms, clock: clock(&turn.clock)? },
        }),
        Line::Reply(reply) => Record::Reply(reply_of(reply)?),
        Line::Erasure(erasure) => Record::Erasure(erasure),
        Line::Erased(ErasedLine { erasure, summaries, states, traces }) => {
            Record::Erased(Erased { erasure, summaries, states, traces })
        }
        Line::Trace(TraceLine { trace, trace_hex, .. }) => {
            Record::Trace(Trace { bytes: bytes_of(trace, trace_hex)? })
        }
        Line::Summary(summary) => Record::Summary(Box::new(summary_of(*summary)?)),
        Line::Forgotten(ForgottenLine { turn, erasure, .. }) => {
            Record::Forgotten(Forgotten { seq: turn, erasure })
        }
        Line::Imported(imported) => Record::Imported(Imported {
            seq: imported.turn,
            name: from_hex(&imported.name)?.try_into().map_err(|_| "its name's length")?,
        }),
        Line::Entity(entity) => Record::Entity(Entity {
            id: entity.id,
            name: entity.name,
            kind: entity.type_,
            recorded_ms: entity.recorded_ms,
        }),
        Line::Fact(fact) => Record::Fact(Box::new(fact_of(*fact)?)),
        Line::Usage(UsageLine { fact, count, last_ms, .. }) => {
            Record::Usage(Usage { fact, count, last_ms })
        }
        Line::Link(link) => Record::Link(Link {
            from: node(&link.from)?,
            kind: link_kind(&link.link)?,
            to: node(&link.to)?,
        }),
        Line::End(end) => {
            let hash = end.sha256.as_deref().map(from_hex).transpose()?;
            let hash = hash.map(|hash| hash.try_into().map_err(|_| "its hash's length"));
            Record::End(End { counts: end.counts, sha256: hash.transpose()? })
        }
    })
}

fn reply_of(reply: ReplyLine<'_>) -> Result<Reply<'_>, &'static str> {
    let finishes = (0..=u8::MAX).map_while(StoredFinish::from_byte);
    let finish = finishes.into_iter().find(|finish| finish.as_str() == reply.finish);
    let receipt = bytes_of(reply.receipt, reply.receipt_hex)?;
    let fingerprint = from_hex(&reply.model_fingerprint)?;
    Ok(Reply {
        text: reply.text,
        tokens: reply.tokens.iter().flat_map(|token| token.to_le_bytes()).collect(),
        model_fingerprint: fingerprint.try_into().map_err(|_| "its fingerprint's length")?,
        finish: finish.ok_or("its finish isn't known")?.to_byte(),
        at: Stamp { unix_ms: reply.at_ms, clock: clock(&reply.clock)? },
        receipt,
    })
}

fn fact_of(fact: FactLine<'_>) -> Result<Fact<'_>, &'static str> {
    let kinds = (0..=u8::MAX).map_while(FactKind::from_byte);
    let kind = kinds.into_iter().find(|kind| kind.as_str() == fact.does);
    let source = FactSource::from_name(fact.source);
    let (source, source_name) = source_parts(&source);
    let pin = match fact.pinned.as_deref() {
        None => Pin::None,
        Some(name) => [Pin::Auto, Pin::User]
            .into_iter()
            .find(|pin| pin.as_str() == name)
            .ok_or("its pin isn't known")?,
    };
    let flags = [(INFERRED, fact.inferred), (GROUNDED, fact.grounded), (OWN_LANE, fact.own_lane)];
    let flags: u8 = flags.into_iter().filter(|(_, set)| *set).map(|(flag, _)| flag).sum();
    Ok(Fact {
        id: fact.id,
        valid_at: fact.valid_at_ms,
        valid_to: fact.valid_to_ms.unwrap_or(OPEN),
        recorded_ms: fact.recorded_ms,
        superseded_by: fact.superseded_by.unwrap_or(0),
        invalidated_by: fact.invalidated_by.unwrap_or(0),
        session: fact.session_number.unwrap_or(0),
        turn: fact.turn.unwrap_or(0),
        subject: fact.subject.unwrap_or(0),
        text: fact.text,
        quote: fact.quote,
        predicate: fact.predicate,
        object: fact.object,
        source_name: source_name.to_owned().into(),
        confidence: fact.confidence,
        salience: fact.salience_hundredths,
        kind: kind.ok_or("what it does isn't known")?.to_byte(),
        source,
        flags: flags | pin_flags(pin),
        clock_confidence: clock(&fact.clock)?,
    })
}
