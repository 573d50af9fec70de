//! One turn with all that is known of it.

use std::fmt::Write as _;

use garret_core::id::{SessionId, TurnSeq};
use garret_core::time::Confidence;
use garret_storage::{FactId, ReadError, ReplyView, Store, SummaryId, TurnView};
use serde::Serialize;

use super::head::moment;
use super::prompt::{Prompt, Segment, result};
use crate::receipt::{CompanionsReport, ReceiptReport, RoundReport, StoredReceipt};
use crate::trace::{Around, Exchange, Shape, System, Trace};

/// A turn on the wire.
#[derive(Serialize)]
pub(super) struct Turn {
    pub(super) turn: TurnSeq,
    pub(super) state: &'static str,
    pub(super) accepted: Option<String>,
    pub(super) clock: Option<&'static str>,
    pub(super) speaker: Option<String>,
    pub(super) user: Option<String>,
    pub(super) reply: Option<Reply>,
    pub(super) prompt: Option<Prompt>,
    pub(super) no_prompt: Option<&'static str>,
    pub(super) rounds: Vec<Round>,
    pub(super) wrote: Option<String>,
    pub(super) given_up: Option<String>,
    pub(super) receipt: Option<Receipt>,
    pub(super) companions: Option<Companions>,
    pub(super) facts: Vec<Fact>,
    pub(super) summaries: Vec<Summary>,
}

#[derive(Serialize)]
pub(super) struct Reply {
    pub(super) text: String,
    pub(super) finish: &'static str,
    pub(super) finished: Option<String>,
    pub(super) model: Model,
    pub(super) first_token_ms: Option<f64>,
    pub(super) total_ms: Option<f64>,
}

#[derive(Clone, Serialize)]
pub(super) struct Model {
    pub(super) sha256: String,
    pub(super) file: Option<String>,
}

#[derive(Serialize)]
pub(super) struct Round {
    pub(super) call: String,
    pub(super) wrote: String,
    pub(super) segments: Vec<Segment>,
    pub(super) tokens: Option<u32>,
    pub(super) shortened: Option<bool>,
    pub(super) reused_tokens: Option<u32>,
    pub(super) prefilled_tokens: Option<u32>,
}

#[derive(Serialize)]
pub(super) struct Receipt {
    #[serde(flatten)]
    pub(super) report: ReceiptReport,
    pub(super) companion_reserve: u32,
    pub(super) history_from: Option<TurnSeq>,
    pub(super) made_at: Option<TurnSeq>,
}

#[derive(Serialize)]
pub(super) struct Companions {
    pub(super) due: Vec<&'static str>,
    pub(super) noticed: Vec<String>,
    pub(super) asked: Vec<String>,
}

#[derive(Serialize)]
pub(super) struct Fact {
    pub(super) id: String,
    pub(super) text: String,
    pub(super) source: String,
    pub(super) quote: Option<String>,
    pub(super) inferred: bool,
    pub(super) recorded: Option<String>,
}

#[derive(Serialize)]
pub(super) struct Summary {
    pub(super) id: String,
    pub(super) depth: u8,
    pub(super) from: TurnSeq,
    pub(super) to: TurnSeq,
    pub(super) text: String,
    pub(super) tokens: u32,
    pub(super) method: &'static str,
    pub(super) model: Model,
    pub(super) made: Option<String>,
}

/// Reads a session turn by turn.
pub(super) struct Reader<'a> {
    store: &'a Store,
    session: &'a SessionId,
    models: &'a [([u8; 32], String)],
    /// The summaries, each with the last turn that it covers.
    summaries: Vec<(TurnSeq, SummaryId)>,
    /// The trace with a system message that was read last, and its turn.
    base: Option<(TurnSeq, Trace)>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(
        store: &'a Store,
        session: &'a SessionId,
        models: &'a [([u8; 32], String)],
    ) -> Result<Self, ReadError> {
        let summaries = store.summaries(session)?;
        let summaries = summaries.iter().map(|summary| (summary.to, summary.id)).collect();
        Ok(Self { store, session, models, summaries, base: None })
    }

    /// Reads all that is known of a turn.
    pub(super) fn turn(&mut self, turn: TurnSeq) -> Result<Turn, ReadError> {
        let trace = unless_damaged(self.store.trace(self.session, turn), turn)?.flatten();
        let mut trace = trace.and_then(|bytes| Trace::from_bytes(&bytes));
        let receipt = unless_damaged(self.store.receipt(self.session, turn), turn)?.flatten();
        let receipt = receipt.and_then(|bytes| StoredReceipt::from_bytes(&bytes));
        let system = match &mut trace {
            Some(trace) => self.system(trace, turn)?,
            None => None,
        };
        let from = trace.as_ref().and_then(|trace| trace.history_from).unwrap_or(turn);
        let read = self.store.with_turns_in(self.session, from.min(turn)..=turn, |views| {
            let view = views.last().filter(|view| view.seq == turn)?;
            let report = receipt.as_ref().map(|receipt| &receipt.report);
            let prompt = trace.as_ref();
            let prompt = prompt.map(|trace| Prompt::read(trace, report, system.as_deref(), views));
            Some(self.said(view, trace.as_ref(), prompt))
        })?;
        let Some(said) = read else { return self.missing(turn) };
        let facts = self.facts(turn)?;
        let summaries = self.summaries(turn)?;
        let rounds = receipt.as_ref().map(|receipt| receipt.rounds.as_slice());
        let rounds = trace.as_ref().map(|trace| lookups(trace, rounds.unwrap_or_default()));
        let shape = trace.and_then(|trace| trace.shape).unwrap_or_default();
        let Shape { wrote, given_up, .. } = shape;
        let companions = receipt.as_ref().map(companions);
        let receipt = receipt.map(|receipt| Receipt {
            companion_reserve: receipt.companion_reserve,
            history_from: receipt.history_from,
            made_at: Some(receipt.made_at).filter(|turn| *turn > 0),
            report: receipt.report,
        });
        let rounds = rounds.unwrap_or_default();
        Ok(Turn { rounds, wrote, given_up, receipt, companions, facts, summaries, ..said })
    }

    /// The text of a system message, whose trace is read once for all turns that have it. `trace`
    /// gets what it refers to there.
    fn system(&mut self, trace: &mut Trace, turn: TurnSeq) -> Result<Option<String>, ReadError> {
        let at = match &trace.system {
            System::Text(text) => {
                let text = text.clone();
                self.base = Some((turn, trace.clone()));
                return Ok(Some(text));
            }
            System::AsIn(at) => *at,
        };
        if self.base.as_ref().is_none_or(|(known, _)| *known != at) {
            let read = unless_damaged(Trace::read(self.store, self.session, at), at)?.flatten();
            self.base = read.map(|base| (at, base));
        }
        let Some((_, base)) = &self.base else { return Ok(None) };
        trace.complete(base);
        Ok(match &base.system {
            System::Text(text) => Some(text.clone()),
            System::AsIn(_) => None,
        })
    }

    fn said(&self, view: &TurnView<'_>, trace: Option<&Trace>, prompt: Option<Prompt>) -> Turn {
        let shape = trace.and_then(|trace| trace.shape.as_ref());
        let reply = view.reply.as_ref().map(|reply| self.reply(reply, shape));
        let state = match (&reply, view.reply_damaged) {
            (Some(_), _) => "answered",
            (None, true) => "damaged",
            (None, false) => "unanswered",
        };
        Turn {
            turn: view.seq,
            state,
            accepted: moment(view.accepted_ms),
            clock: Some(clock(view.clock)),
            speaker: view.speaker.map(str::to_owned),
            user: Some(view.user.to_owned()),
            no_prompt: no_prompt(view, trace, prompt.as_ref()),
            reply,
            prompt,
            ..Turn::empty(view.seq)
        }
    }

    fn reply(&self, reply: &ReplyView<'_>, shape: Option<&Shape>) -> Reply {
        Reply {
            text: reply.text.to_owned(),
            finish: reply.finish.as_str(),
            finished: moment(reply.finished_ms),
            model: self.model(reply.model_fingerprint),
            first_token_ms: shape.and_then(|shape| shape.first_us).map(milliseconds),
            total_ms: shape.map(|shape| milliseconds(shape.total_us)),
        }
    }

    fn model(&self, fingerprint: &[u8; 32]) -> Model {
        let file = self.models.iter().find(|(known, _)| known == fingerprint);
        let mut sha256 = String::with_capacity(64);
        for byte in fingerprint {
            // Writing to a string can't fail.
            let _ = write!(sha256, "{byte:02x}");
        }
        Model { sha256, file: file.map(|(_, file)| file.clone()) }
    }

    /// A turn that isn't there any more, or can't be read.
    fn missing(&self, turn: TurnSeq) -> Result<Turn, ReadError> {
        let damaged = self.store.damaged_turns_in(self.session, turn..=turn)?;
        let (state, why) = match damaged.is_empty() {
            true => ("forgotten", "the turn was forgotten"),
            false => ("damaged", "the turn is damaged"),
        };
        Ok(Turn { state, no_prompt: Some(why), ..Turn::empty(turn) })
    }

    fn facts(&self, turn: TurnSeq) -> Result<Vec<Fact>, ReadError> {
        let ids = self.store.facts_of_turn(self.session, turn)?;
        let mut facts = Vec::with_capacity(ids.len());
        for id in ids {
            let fact = unless_damaged(self.store.fact(id), turn)?.flatten();
            facts.extend(fact.map(|fact| Fact {
                id: FactId::to_string(&id),
                text: fact.text,
                source: fact.source.as_str().to_owned(),
                quote: fact.quote,
                inferred: fact.inferred,
                recorded: moment(fact.recorded_at),
            }));
        }
        Ok(facts)
    }

    fn summaries(&self, turn: TurnSeq) -> Result<Vec<Summary>, ReadError> {
        let mut found = Vec::new();
        for (_, id) in self.summaries.iter().filter(|(to, _)| *to == turn) {
            let summary = unless_damaged(self.store.summary(self.session, *id), turn)?.flatten();
            found.extend(summary.map(|summary| Summary {
                id: summary.id.to_string(),
                depth: summary.depth,
                from: summary.from,
                to: summary.to,
                tokens: summary.tokens,
                method: summary.method.as_str(),
                model: self.model(&summary.model_fingerprint),
                made: moment(summary.made_ms),
                text: summary.text,
            }));
        }
        Ok(found)
    }
}

impl Turn {
    fn empty(turn: TurnSeq) -> Self {
        Self {
            turn,
            state: "damaged",
            accepted: None,
            clock: None,
            speaker: None,
            user: None,
            reply: None,
            prompt: None,
            no_prompt: None,
            rounds: Vec::new(),
            wrote: None,
            given_up: None,
            receipt: None,
            companions: None,
            facts: Vec::new(),
            summaries: Vec::new(),
        }
    }
}

/// Says why there is no prompt, or why it isn't exact.
fn no_prompt(
    view: &TurnView<'_>,
    trace: Option<&Trace>,
    prompt: Option<&Prompt>,
) -> Option<&'static str> {
    match (trace, prompt) {
        (_, Some(prompt)) if prompt.exact => None,
        (Some(Trace { shape: None, .. }), _) => {
            Some("what the template wrote around the texts wasn't kept for this turn")
        }
        (Some(_), _) => Some("a text of the prompt can't be read any more as it was"),
        (None, _) if view.reply.is_none() && !view.reply_damaged => {
            Some("the turn wasn't answered")
        }
        (None, _) => Some(
            "nothing is kept of it: the turn was imported, or is older than such records, or \
             something was forgotten since",
        ),
    }
}

/// Returns the lookups of a turn.
fn lookups(trace: &Trace, reports: &[RoundReport]) -> Vec<Round> {
    let around = trace.shape.as_ref().map(|shape| shape.rounds.as_slice()).unwrap_or_default();
    let round = |(i, exchange): (usize, &Exchange)| {
        let report = reports.get(i);
        let Exchange { said, result: text } = exchange;
        Round {
            call: report.map(|report| report.call.clone()).unwrap_or_default(),
            wrote: said.clone(),
            segments: result(around.get(i).unwrap_or(&Around::default()), text),
            tokens: report.map(|report| report.tokens),
            shortened: report.map(|report| report.shortened),
            reused_tokens: report.map(|report| report.reused_tokens),
            prefilled_tokens: report.map(|report| report.prefilled_tokens),
        }
    };
    trace.rounds.iter().enumerate().map(round).collect()
}

fn companions(receipt: &StoredReceipt) -> Companions {
    let CompanionsReport { infer, compact, extract, reasons } = &receipt.companions;
    let due = [(*infer, "infer"), (*compact, "compact"), (*extract, "extract")];
    Companions {
        due: due.iter().filter(|(due, _)| *due).map(|(_, name)| *name).collect(),
        noticed: reasons.clone(),
        asked: receipt.asked.clone(),
    }
}

/// Makes nothing of what is damaged: the rest of the turn is written all the same.
fn unless_damaged<T>(read: Result<T, ReadError>, turn: TurnSeq) -> Result<Option<T>, ReadError> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error @ ReadError::Damaged { .. }) => {
            tracing::warn!(turn, %error, "a record can't be read; the export goes on");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

const fn clock(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::Good => "good",
        Confidence::Unsure => "unsure",
        _ => "wrong",
    }
}

/// Milliseconds, to the microsecond.
fn milliseconds(us: u64) -> f64 {
    us as f64 / 1_000.0
}
