//! `garret chat --ab`: each message answered with and without Garret.

use std::error::Error;
use std::io::{self, IsTerminal, Write};

use garret::agent::{Outcome, TurnError};
use garret::open::LocalAgent;
use garret_core::id::SessionId;
use garret_core::model::Finish;
use garret_core::time::Clock as _;
use garret_hal::clock::SystemClock;
use garret_llm::encoder::Encoder;
use garret_llm::{LlamaChat, Model};
use rustix::termios::tcgetwinsize;
use serde::Serialize;

use super::columns;
use super::interrupt::Interrupts;
use crate::ab::{Answer, Baseline, BaselineError, Export, Record, Side, Summary};
use crate::output;

/// A baseline on llama.cpp.
pub(super) type LocalBaseline = Baseline<LlamaChat, Encoder<Model>>;

/// The side that answers beside the agent, and the outcome of all messages so far.
pub(super) struct Comparison {
    baseline: LocalBaseline,
    export: Option<Export>,
    summary: Summary,
}

/// A way in which answers are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum View {
    /// An object for each message.
    Json,
    /// One after the other, in a file or a pipe.
    Lines,
    /// One after the other, at a terminal that is too narrow for columns.
    Narrow,
    /// Side by side, in a terminal of so many cells.
    Wide(usize),
}

/// The end of a message that was answered twice.
pub(super) struct ComparedTurn {
    /// End of Garret's reply, unless the other was interrupted.
    pub(super) finish: Finish,
    /// The reason for which Garret didn't answer.
    pub(super) error: Option<String>,
}

impl Comparison {
    pub(super) fn new(baseline: LocalBaseline, export: Option<Export>) -> Self {
        Self { baseline, export, summary: Summary::default() }
    }

    /// A conversation has another name now.
    pub(super) fn renamed(&mut self, from: &SessionId, to: &SessionId) {
        begun_anew(self.baseline.rename(from, to));
    }

    /// A conversation is no more.
    pub(super) fn deleted(&mut self, session: &SessionId) {
        begun_anew(self.baseline.forget(session));
    }

    /// Prints what all messages come to, and ends the export with it.
    pub(super) fn end(&mut self, json: bool) -> Result<(), Box<dyn Error>> {
        if self.summary.prompts == 0 {
            return Ok(());
        }
        if let Some(export) = &mut self.export {
            let prompts = self.summary.prompts;
            export.end(&self.summary).map_err(|error| unwritten(&error, prompts))?;
        }
        if json {
            return output::say_json(&SummaryLine { summary: &self.summary });
        }
        Ok(output::say(table(&self.summary).trim_end())?)
    }

    /// Answers a message with both sides and shows it.
    pub(super) fn run(
        &mut self,
        agent: &mut LocalAgent,
        session: &SessionId,
        interrupts: &Interrupts,
        text: &str,
        view: View,
    ) -> Result<ComparedTurn, Box<dyn Error>> {
        self.baseline.follow(agent.store(), session)?;
        let prompt = self.summary.prompts + 1;
        let now = SystemClock::new().wall().unix_ms;
        let mut record = Record::new(prompt, session, text, now);
        let mut compared = ComparedTurn { finish: Finish::Stop, error: None };
        let mut printed = Ok(());
        for side in Side::order(prompt) {
            let stopped = compared.finish == Finish::Cancelled && view.is_script();
            if printed.is_err() || stopped || interrupts.must_end().is_some() {
                break;
            }
            let mut shown = String::new();
            let mut print = |piece: &str| {
                shown.push_str(piece);
                view.piece(side, piece, &shown)
            };
            let begun = view.begin(side);
            let baseline = &mut self.baseline;
            let (outcome, ended) = interrupts.stoppable(&mut print, |cancel, on_text| match side {
                Side::Garret => smol::block_on(agent.turn(session, text, cancel, on_text)),
                Side::Baseline => smol::block_on(baseline.turn(session, text, cancel, on_text)),
            });
            compared.note(side, &outcome);
            record.set(side, outcome.as_ref().map_err(ToString::to_string));
            printed = begun.and(ended).and_then(|()| view.end(record.answer(side)));
        }
        let kept = self.keep(&record);
        printed?;
        view.both(&record)?;
        match kept {
            // The conversation is what matters to whoever types.
            Err(error) if !view.is_script() => output::note(&error.to_string()),
            kept => kept?,
        }
        Ok(compared)
    }

    fn keep(&mut self, record: &Record) -> Result<(), String> {
        let before = self.summary.prompts;
        self.summary.add(record);
        let Some(export) = &mut self.export else { return Ok(()) };
        let added = export.add(record);
        if added.is_err() {
            // A file with a hole would be taken for a whole one.
            self.export = None;
        }
        added.map_err(|error| unwritten(&error, before))
    }
}

impl ComparedTurn {
    /// Notes how `side` ended its turn.
    fn note(&mut self, side: Side, outcome: &Result<Outcome, TurnError>) {
        match (outcome, side) {
            (Ok(outcome), Side::Garret) if self.finish != Finish::Cancelled => {
                self.finish = outcome.finish;
            }
            (Err(error), Side::Garret) => self.error = Some(error.to_string()),
            (Ok(outcome), _) if outcome.finish == Finish::Cancelled => {
                self.finish = Finish::Cancelled;
            }
            _ => {}
        }
    }
}

#[derive(Serialize)]
struct SummaryLine<'a> {
    summary: &'a Summary,
}

impl View {
    /// Returns the view that suits standard output.
    pub(super) fn of_stdout() -> Self {
        if !io::stdout().is_terminal() {
            return Self::Lines;
        }
        match tcgetwinsize(rustix::stdio::stdout()) {
            Ok(size) if size.ws_col >= WIDE => Self::Wide(size.ws_col.into()),
            _ => Self::Narrow,
        }
    }

    /// Returns true where an interrupted reply is the end.
    const fn is_script(self) -> bool {
        matches!(self, Self::Json | Self::Lines)
    }

    fn begin(self, side: Side) -> io::Result<()> {
        match self {
            Self::Json => Ok(()),
            Self::Lines | Self::Narrow => output::say(&format!("--- {}", side.label())),
            Self::Wide(cells) => ticker(side, "", cells),
        }
    }

    /// Shows a piece of a reply, of which `text` is all so far.
    fn piece(self, side: Side, piece: &str, text: &str) -> io::Result<()> {
        match self {
            Self::Json => Ok(()),
            Self::Lines | Self::Narrow => output::say_part(piece),
            Self::Wide(cells) => ticker(side, text, cells),
        }
    }

    fn end(self, answer: &Answer) -> io::Result<()> {
        match self {
            Self::Json => Ok(()),
            Self::Lines | Self::Narrow => {
                output::say("")?;
                output::say(&format!("    [{}]", cost(answer)))
            }
            Self::Wide(_) => {
                let mut out = io::stdout().lock();
                write!(out, "{CLEAR}")?;
                out.flush()
            }
        }
    }

    /// Shows both answers, unless that was done.
    fn both(self, record: &Record) -> Result<(), Box<dyn Error>> {
        match self {
            Self::Json => output::say_json(record),
            Self::Lines | Self::Narrow => Ok(()),
            Self::Wide(cells) => Ok(output::say(block(record, cells).trim_end())?),
        }
    }
}

/// The end of a reply that is being written, on one line.
fn ticker(side: Side, text: &str, cells: usize) -> io::Result<()> {
    let label = format!("({}) ", side.label());
    // The last cell stays empty: some terminals go on to the next line there.
    let room = cells.saturating_sub(label.len() + 1);
    let mut out = io::stdout().lock();
    write!(out, "{CLEAR}{label}{}", columns::tail(text, room))?;
    out.flush()
}

/// Lays both answers out side by side.
fn block(record: &Record, cells: usize) -> String {
    let width = columns::width(cells);
    let [left, right] = [Side::Garret, Side::Baseline];
    let head = |side: Side| match record.first == side {
        true => format!("{} (answered first)", side.label()),
        false => side.label().to_owned(),
    };
    let reply = |side| {
        let reply = record.answer(side).measured().map(|measured| measured.reply.as_str());
        output::escape_control(reply.unwrap_or_default()).into_owned()
    };
    let foot = |side| cost(record.answer(side));
    columns::side_by_side(&head(left), &head(right), width)
        + &columns::rule(width)
        + &columns::side_by_side(&reply(left), &reply(right), width)
        + &columns::rule(width)
        + &columns::side_by_side(&foot(left), &foot(right), width)
}

/// The cost of an answer in words, or why there is none.
fn cost(answer: &Answer) -> String {
    match answer {
        Answer::Measured(measured) => measured.in_words(),
        Answer::Failed { error } => format!("failed: {error}"),
        Answer::Skipped { .. } => "not asked".to_owned(),
    }
}

/// The summary for people.
fn table(summary: &Summary) -> String {
    let prompts = if summary.prompts == 1 { "message" } else { "messages" };
    let title = format!("{} {prompts} compared", summary.prompts);
    let [garret, baseline] = [Side::Garret, Side::Baseline].map(Side::label);
    let mut text = format!("{title:<26} {garret:>16} {baseline:>16}\n");
    for (name, garret, baseline) in summary.rows() {
        text += &format!("  {name:<24} {garret:>16} {baseline:>16}\n");
    }
    text
}

/// Says that nothing comes after the first `prompts`.
fn unwritten(error: &io::Error, prompts: u64) -> String {
    let there = match prompts {
        0 => "there is no such file".to_owned(),
        1 => "it has the first message alone, whole".to_owned(),
        more => format!("it has the first {more} messages, whole, and no summary"),
    };
    format!("the comparison can't be written to its file any more ({there}): {error}")
}

/// Tells that the side without Garret couldn't do as Garret did.
fn begun_anew(done: Result<(), BaselineError>) {
    if let Err(error) = done {
        output::note(&format!(
            "Without Garret this conversation is begun anew, as it is with Garret: {error}"
        ));
    }
}

/// Terminals narrower than this show one answer after the other.
const WIDE: u16 = 100;
/// Goes back to the beginning of the line and empties it.
const CLEAR: &str = "\r\x1b[K";
