//! Records of a bundle, put into the tables of one transaction.

use std::collections::{HashMap, HashSet};

use garret_core::id::SessionId;
use redb::{ReadableTable as _, Table, WriteTransaction};

use crate::bundle::import::{ImportReport, Taken};
use crate::bundle::record::{
    Counters, Entity, Erased, Fact, Forgotten, Imported, Record, Reply, Session, Summary, Trace,
    Turn, Usage,
};
use crate::conversations::erased::FORGOTTEN;
use crate::conversations::op;
use crate::conversations::record::{ReplyRecord, SessionRecord, TurnRecord};
use crate::conversations::view::StoredFinish;
use crate::erase::ledger::{ERASURES, ErasureRecord};
use crate::facts::record::{EntityRecord, FactRecord};
use crate::facts::restore::{Restorer, Unrestored};
use crate::ground::codec::{encode, seal};
use crate::ground::error::{Abort, Fault};
use crate::ground::limits::{MAX_BYTES, MAX_NAME_BYTES};
use crate::ground::summary_error::SummaryError;
use crate::ground::table::{
    IMPORTED, META, RECEIPTS, REPLIES, SESSIONS, SPEAKERS, TURNS, TurnKey, counter, import_key,
    key, turn_key,
};
use crate::summaries::table::TRACES;
use crate::summaries::{Draft, Said, SummaryMethod, Tables, Writer};

/// A record that isn't taken.
pub(crate) enum Refusal {
    /// It can't be, for this reason.
    Wrong(String),
    /// A session of its name is there.
    Exists(SessionId),
}

type ByTurn<'t> = Table<'t, &'static TurnKey, &'static [u8]>;

pub(crate) struct Taker<'t> {
    transaction: &'t WriteTransaction,
    taken: Taken,
    sessions: Table<'t, &'static [u8], &'static [u8]>,
    turns: ByTurn<'t>,
    replies: ByTurn<'t>,
    receipts: ByTurn<'t>,
    speakers: ByTurn<'t>,
    imported: Table<'t, &'static [u8; 24], &'static [u8; 8]>,
    forgotten: Table<'t, &'static TurnKey, &'static [u8; 8]>,
    traces: ByTurn<'t>,
    summaries: Tables<'t>,
    erasures: Erasures<'t>,
    /// Once the counters are there.
    facts: Option<Restorer<'t>>,
    counters: Counters,
    /// Offsets that are added to numbers of sessions and to their ranks.
    base: (u64, u64),
    phase: u8,
    session: Open,
    ranks: HashSet<u64>,
    report: ImportReport,
}

/// The session that is being read.
#[derive(Default)]
struct Open {
    /// Its number here.
    number: u64,
    turns: u64,
    /// Turns that came so far.
    seen: u64,
    /// True if the last of them can be answered.
    awaits_reply: bool,
    /// True if the last record was a reply.
    awaits_trace: bool,
    /// True if some of the turns were forgotten.
    has_gaps: bool,
}

/// Highest number that a bundle can have: many of them fit.
const MOST: u64 = 1 << 48;

impl<'t> Taker<'t> {
    pub(crate) fn new(transaction: &'t WriteTransaction, taken: Taken) -> Result<Self, Fault> {
        let meta = transaction.open_table(META)?;
        let next = counter(meta.get(key::NEXT_SESSION)?, key::NEXT_SESSION)?;
        let activity = counter(meta.get(key::ACTIVITY)?, key::ACTIVITY)?;
        Ok(Self {
            transaction,
            taken,
            sessions: transaction.open_table(SESSIONS)?,
            turns: transaction.open_table(TURNS)?,
            replies: transaction.open_table(REPLIES)?,
            receipts: transaction.open_table(RECEIPTS)?,
            speakers: transaction.open_table(SPEAKERS)?,
            imported: transaction.open_table(IMPORTED)?,
            forgotten: transaction.open_table(FORGOTTEN)?,
            traces: transaction.open_table(TRACES)?,
            summaries: Tables::open(transaction)?,
            erasures: Erasures::open(transaction)?,
            facts: None,
            counters: Counters { next_session: 1, activity: 0, next_fact: 1, next_entity: 1 },
            base: (next.saturating_sub(1), activity),
            phase: 0,
            session: Open::default(),
            ranks: HashSet::new(),
            report: ImportReport::default(),
        })
    }

    /// Takes a record; `before` is the hash of everything before it.
    pub(crate) fn take(
        &mut self,
        record: Record<'_>,
        before: [u8; 32],
    ) -> Result<(), Abort<Refusal>> {
        self.order(&record)?;
        if let Record::End(end) = &record {
            if end.counts != self.report.counts {
                return Err(wrong("it counts other records than were there"));
            }
            return match end.sha256 {
                Some(hash) if hash != before => Err(wrong("its hash isn't that of what it ends")),
                _ => Ok(()),
            };
        }
        self.report.counts.count(&record);
        match record {
            Record::Counters(counters) => self.counters(counters),
            Record::Erasure(erasure) => {
                let erased = Erased { erasure, summaries: 0, states: 0, traces: 0 };
                self.erasures.take(&erased)
            }
            Record::Erased(erased) => self.erasures.take(&erased),
            Record::Session(session) => self.session(session),
            Record::Turn(turn) => self.turn(turn),
            Record::Reply(reply) => self.reply(reply),
            Record::Forgotten(forgotten) => self.forgotten(forgotten),
            Record::Imported(imported) => self.imported(imported),
            Record::Trace(trace) => self.trace(&trace),
            Record::Summary(summary) => self.summary(&summary),
            Record::Entity(entity) => self.entity(entity),
            Record::Fact(fact) => self.fact(*fact),
            Record::Usage(Usage { fact, count, last_ms }) => {
                let used = crate::facts::Usage { count, last_ms: Some(last_ms) };
                Ok(self.facts()?.usage(fact, used)?)
            }
            Record::Link(link) => Ok(self.facts()?.link(link.from, link.kind, link.to)?),
            Record::End(_) => Ok(()),
        }
    }

    /// Records come in the order of their kinds, and a session with all that is in it.
    fn order(&mut self, record: &Record<'_>) -> Result<(), Abort<Refusal>> {
        let phase = match record {
            Record::Counters(_) => 1,
            Record::Erasure(_) | Record::Erased(_) => 2,
            Record::Session(_)
            | Record::Turn(_)
            | Record::Reply(_)
            | Record::Forgotten(_)
            | Record::Imported(_)
            | Record::Trace(_)
            | Record::Summary(_) => 3,
            Record::Entity(_) => 4,
            Record::Fact(_) => 5,
            Record::Usage(_) => 6,
            Record::Link(_) => 7,
            Record::End(_) => 8,
        };
        let first = self.phase == 0;
        if phase < self.phase || first != (phase == 1) {
            return Err(wrong("it comes too late, too early or twice"));
        }
        self.phase = phase;
        let is_outside = phase != 3 || matches!(record, Record::Session(_));
        if is_outside && self.session.seen != self.session.turns {
            return Err(wrong("turns of the session before are missing"));
        }
        if is_outside && std::mem::take(&mut self.session.has_gaps) {
            self.summed_up(|writer| writer.finish().map_err(unsummed))?;
        }
        self.session.awaits_trace &= matches!(record, Record::Trace(_));
        Ok(())
    }

    fn counters(&mut self, counters: Counters) -> Result<(), Abort<Refusal>> {
        let Counters { next_session, activity, next_fact, next_entity } = counters;
        let numbers = [next_session, next_fact, next_entity];
        if activity > MOST || numbers.iter().any(|next| !(1..=MOST).contains(next)) {
            return Err(wrong("a counter is out of range"));
        }
        if self.base.0.max(self.base.1) > u64::MAX - 2 * MOST {
            return Err(wrong("this namespace has no numbers left"));
        }
        self.facts = Some(Restorer::open(self.transaction, next_fact, next_entity)?);
        self.counters = counters;
        Ok(())
    }

    fn session(&mut self, session: Session<'_>) -> Result<(), Abort<Refusal>> {
        let (base, rank) = self.base;
        let number = base + session.number;
        if session.number >= self.counters.next_session || number <= self.session.number.max(base) {
            return Err(wrong("its number isn't above the one before"));
        }
        let ranked = (1..=self.counters.activity).contains(&session.activity);
        if !ranked || !self.ranks.insert(session.activity) {
            return Err(wrong("its rank can't be"));
        }
        within("its title", session.title.len(), MAX_BYTES)?;
        let id: SessionId = session.id.parse().map_err(|error| wrong(&format!("{error}")))?;
        let id = self.free_name(id)?;
        let record = SessionRecord {
            id: id.as_str().to_owned(),
            title: session.title.into_owned(),
            number,
            created_ms: session.created_ms,
            updated_ms: session.updated_ms,
            turns: session.turns,
            activity: rank + session.activity,
        };
        self.sessions.insert(id.as_str().as_bytes(), encode(&record)?.as_slice())?;
        self.session = Open { number, turns: session.turns, ..Open::default() };
        Ok(())
    }

    /// The name that a session gets.
    fn free_name(&mut self, id: SessionId) -> Result<SessionId, Abort<Refusal>> {
        if self.sessions.get(id.as_str().as_bytes())?.is_none() {
            return Ok(id);
        }
        if self.taken == Taken::Refuse {
            return Err(Abort::Refused(Refusal::Exists(id)));
        }
        let free = (2..).find_map(|number: u64| {
            let name = numbered(&id, number)?;
            match self.sessions.get(name.as_str().as_bytes()) {
                Ok(None) => Some(Ok(name)),
                Ok(Some(_)) => None,
                Err(error) => Some(Err(Abort::from(error))),
            }
        });
        let free = free.unwrap_or_else(|| Err(wrong("there is no free name for it")))?;
        self.report.renamed.push((id, free.clone()));
        Ok(free)
    }

    /// The key of a turn that comes next.
    fn next_turn(&mut self, seq: u64, awaits_reply: bool) -> Result<TurnKey, Abort<Refusal>> {
        let Open { number, turns, seen, .. } = self.session;
        if seq != seen.saturating_add(1) || seq > turns {
            return Err(wrong("it isn't the next turn of its session"));
        }
        (self.session.seen, self.session.awaits_reply) = (seq, awaits_reply);
        Ok(turn_key(number, seq))
    }

    fn forgotten(&mut self, forgotten: Forgotten) -> Result<(), Abort<Refusal>> {
        let key = self.next_turn(forgotten.seq, false)?;
        let erasure = self.erasures.of(forgotten.erasure)?;
        self.forgotten.insert(&key, &erasure.to_be_bytes())?;
        self.session.has_gaps = true;
        Ok(())
    }

    fn trace(&mut self, trace: &Trace<'_>) -> Result<(), Abort<Refusal>> {
        if !std::mem::take(&mut self.session.awaits_trace) || trace.bytes.is_empty() {
            return Err(wrong("there is no reply that it belongs to, or it is empty"));
        }
        within("it", trace.bytes.len(), MAX_BYTES)?;
        let key = turn_key(self.session.number, self.session.seen);
        let value = [&*trace.bytes, &seal(&trace.bytes)].concat();
        self.traces.insert(&key, value.as_slice())?;
        Ok(())
    }

    fn summary(&mut self, summary: &Summary<'_>) -> Result<(), Abort<Refusal>> {
        if self.session.seen != self.session.turns {
            return Err(wrong("turns of its session are missing before it"));
        }
        self.session.awaits_reply = false;
        within("its text", summary.text.len(), MAX_BYTES)?;
        if SummaryMethod::from_byte(summary.method).is_none() {
            return Err(wrong("how it was made isn't known"));
        }
        let draft = Draft {
            depth: summary.depth,
            first: summary.first,
            last: summary.last,
            sources: summary.sources.clone(),
            text: &summary.text,
            tokens: summary.tokens,
            source_tokens: summary.source_tokens,
            method: summary.method,
            model_fingerprint: summary.model_fingerprint,
        };
        self.summed_up(|mut writer| {
            if !writer.number(summary.id) {
                return Err(wrong("its number isn't above the one before"));
            }
            writer.take(&draft, summary.made).map_err(unsummed)?;
            writer.finish().map_err(unsummed)
        })
    }

    /// Returns what happens to the summaries of the session.
    fn summed_up(
        &mut self,
        act: impl FnOnce(Writer<'_, 't>) -> Result<(), Abort<Refusal>>,
    ) -> Result<(), Abort<Refusal>> {
        let (turns, replies, forgotten) = (&self.turns, &self.replies, &self.forgotten);
        let said = Said { turns, replies, forgotten };
        let Open { number, turns, .. } = self.session;
        let writer = Writer::open(&mut self.summaries, said, number, turns);
        act(writer.map_err(unsummed)?)
    }

    fn turn(&mut self, turn: Turn<'_>) -> Result<(), Abort<Refusal>> {
        let key = self.next_turn(turn.seq, true)?;
        let number = self.session.number;
        within("its text", turn.text.len(), MAX_BYTES)?;
        let record = TurnRecord::encode(number, turn.seq, &turn.text, turn.at.time()?)?;
        self.turns.insert(&key, record.as_slice())?;
        if let Some(name) = turn.speaker {
            within("its speaker's name", name.len(), MAX_NAME_BYTES)?;
            if name.is_empty() || name == "user" {
                return Err(wrong("its speaker has no name of a speaker"));
            }
            let value = [name.as_bytes(), &seal(name.as_bytes())].concat();
            self.speakers.insert(&key, value.as_slice())?;
        }
        Ok(())
    }

    fn reply(&mut self, reply: Reply<'_>) -> Result<(), Abort<Refusal>> {
        if !std::mem::take(&mut self.session.awaits_reply) {
            return Err(wrong("there is no turn that it answers"));
        }
        within("its text", reply.text.len(), MAX_BYTES)?;
        within("its tokens", reply.tokens.len(), MAX_BYTES)?;
        within("its receipt", reply.receipt.len(), MAX_BYTES)?;
        reply.at.time()?;
        let tokens_are_whole = reply.tokens.len().is_multiple_of(4);
        if StoredFinish::from_byte(reply.finish).is_none() || !tokens_are_whole {
            return Err(wrong("its finish or its tokens can't be"));
        }
        let (number, seq) = (self.session.number, self.session.seen);
        let op = op::Reply {
            session: "",
            seq,
            text: &reply.text,
            tokens: &reply.tokens,
            model_fingerprint: reply.model_fingerprint,
            finish: reply.finish,
            at: reply.at,
            receipt: &reply.receipt,
        };
        let key = turn_key(number, seq);
        self.replies.insert(&key, encode(&ReplyRecord::new(number, &op))?.as_slice())?;
        let receipt = [&*reply.receipt, &seal(&reply.receipt)].concat();
        self.receipts.insert(&key, receipt.as_slice())?;
        self.session.awaits_trace = true;
        Ok(())
    }

    fn imported(&mut self, imported: Imported) -> Result<(), Abort<Refusal>> {
        if !(1..=self.session.seen).contains(&imported.seq) {
            return Err(wrong("its session has no such turn"));
        }
        self.session.awaits_reply = false;
        let key = import_key(self.session.number, imported.name);
        self.imported.insert(&key, &imported.seq.to_be_bytes())?;
        Ok(())
    }

    fn entity(&mut self, entity: Entity<'_>) -> Result<(), Abort<Refusal>> {
        let Entity { id, name, kind, recorded_ms } = entity;
        let (name, kind, key) = (name.into_owned(), kind.into_owned(), String::new());
        Ok(self.facts()?.entity(EntityRecord { id, recorded_ms, name, kind, key })?)
    }

    fn fact(&mut self, fact: Fact<'_>) -> Result<(), Abort<Refusal>> {
        if fact.session >= self.counters.next_session {
            return Err(wrong("it names a session that never was"));
        }
        let session = if fact.session == 0 { 0 } else { self.base.0 + fact.session };
        let written = self.facts()?.fact(FactRecord {
            id: fact.id,
            valid_at: fact.valid_at,
            valid_to: fact.valid_to,
            recorded_ms: fact.recorded_ms,
            superseded_by: fact.superseded_by,
            invalidated_by: fact.invalidated_by,
            session,
            turn: fact.turn,
            subject: fact.subject,
            text: fact.text.into_owned(),
            quote: fact.quote.into_owned(),
            predicate: fact.predicate.into_owned(),
            object: fact.object.into_owned(),
            source_name: fact.source_name.into_owned(),
            confidence: fact.confidence,
            salience: fact.salience,
            kind: fact.kind,
            source: fact.source,
            flags: fact.flags,
            clock_confidence: fact.clock_confidence,
        })?;
        self.report.known_facts += u64::from(!written);
        Ok(())
    }

    fn facts(&mut self) -> Result<&mut Restorer<'t>, Abort<Refusal>> {
        self.facts.as_mut().ok_or_else(|| wrong("the counters are missing"))
    }

    /// Sees to it that what was taken agrees with itself and with what is here.
    pub(crate) fn finish(self) -> Result<ImportReport, Abort<Refusal>> {
        let Some(facts) = self.facts else { return Err(wrong("it holds nothing")) };
        facts.finish()?;
        let (number, rank) = self.base;
        let mut meta = self.transaction.open_table(META)?;
        for (key, value) in [
            (key::NEXT_SESSION, number + self.counters.next_session),
            (key::ACTIVITY, rank + self.counters.activity),
        ] {
            meta.insert(key, value.to_le_bytes().as_slice())?;
        }
        Ok(self.report)
    }
}

/// The ledger. What is in it already isn't entered again.
struct Erasures<'t> {
    table: Table<'t, &'static [u8; 8], &'static [u8]>,
    /// The last number.
    last: u64,
    /// Numbers elsewhere, and here.
    numbers: HashMap<u64, u64>,
}

impl<'t> Erasures<'t> {
    fn open(transaction: &'t WriteTransaction) -> Result<Self, Fault> {
        let table = transaction.open_table(ERASURES)?;
        let last = table.last()?.map_or(0, |(number, _)| u64::from_be_bytes(*number.value()));
        Ok(Self { table, last, numbers: HashMap::new() })
    }

    fn take(&mut self, erased: &Erased) -> Result<(), Abort<Refusal>> {
        let known = self.known(erased)?;
        let number = known.unwrap_or(self.last.saturating_add(1));
        if self.numbers.insert(erased.erasure.number, number).is_some() {
            return Err(wrong("its number is another's"));
        }
        if known.is_none() {
            let bytes = encode(&record_of(number, erased))?;
            ErasureRecord::read(number, &bytes).map_err(|_| wrong("its clock can't be"))?;
            self.table.insert(&number.to_be_bytes(), bytes.as_slice())?;
            self.last = number;
        }
        Ok(())
    }

    /// The number of an entry that says the same, and was here before.
    fn known(&self, erased: &Erased) -> Result<Option<u64>, Abort<Refusal>> {
        for entry in self.table.iter()? {
            let (key, bytes) = entry?;
            let number = u64::from_be_bytes(*key.value());
            let is_taken = self.numbers.values().any(|taken| *taken == number);
            // Whatever the form that it was written in.
            let same = ErasureRecord::read(number, &encode(&record_of(number, erased))?);
            let here = ErasureRecord::read(number, bytes.value());
            if !is_taken && here.is_ok_and(|here| same.is_ok_and(|same| here == same)) {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    fn of(&self, number: u64) -> Result<u64, Abort<Refusal>> {
        self.numbers.get(&number).copied().ok_or_else(|| wrong("its erasure isn't there"))
    }
}

fn record_of(number: u64, erased: &Erased) -> ErasureRecord {
    let Erased { erasure, summaries, states, traces } = *erased;
    ErasureRecord {
        number,
        at_ms: erasure.at_ms,
        sessions: erasure.sessions,
        turns: erasure.turns,
        replies: erasure.replies,
        receipts: erasure.receipts,
        titles: erasure.titles,
        facts: erasure.facts,
        entities: erasure.entities,
        links: erasure.links,
        bytes: erasure.bytes,
        clock_confidence: erasure.clock_confidence,
        summaries,
        states,
        traces,
    }
}

/// `name-2`, with as much of the name as there is room for.
fn numbered(id: &SessionId, number: u64) -> Option<SessionId> {
    let ending = format!("-{number}");
    let room = SessionId::MAX_BYTES.checked_sub(ending.len())?;
    let name = id.as_str();
    let end = (0..=room.min(name.len())).rev().find(|end| name.is_char_boundary(*end))?;
    format!("{}{ending}", name.get(..end)?).parse().ok()
}

fn within(what: &str, bytes: usize, most: usize) -> Result<(), Abort<Refusal>> {
    if bytes > most {
        return Err(wrong(&format!("{what} has {bytes} bytes, at most {most} can be")));
    }
    Ok(())
}

fn wrong(why: &str) -> Abort<Refusal> {
    Abort::Refused(Refusal::Wrong(why.to_owned()))
}

/// Widens the end of a session's summaries to that of the record.
fn unsummed(abort: Abort<SummaryError>) -> Abort<Refusal> {
    abort.map(|error| Refusal::Wrong(error.to_string()))
}

impl From<Unrestored> for Abort<Refusal> {
    fn from(unrestored: Unrestored) -> Self {
        match unrestored {
            Unrestored::Fault(fault) => Self::Fault(fault),
            Unrestored::Wrong(why) => wrong(&why),
        }
    }
}
