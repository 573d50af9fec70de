//! Forgetting for good, and proving it.

use std::collections::HashSet;
use std::error::Error;
use std::fs;
use std::process::ExitCode;

use garret::config::Config;
use garret_core::id::{SessionId, TurnSeq};
use garret_core::time::Clock as _;
use garret_hal::clock::SystemClock;
use garret_storage::{ErasedKind, Erasure, ErasureReport, FactId, Selection, Store, Trace};
use serde::Serialize;

use super::id::Id;
use crate::args::memory::Forget;
use crate::dates::when;
use crate::{CommandResult, lines, output};

/// `garret memory forget`: says what would go, and with `--yes` has it go.
pub(super) fn run(config: &Config, store: &Store, forget: &Forget) -> CommandResult {
    let chosen = ChosenItems::new(forget)?;
    let selection = Selection {
        facts: &chosen.facts,
        turns: &chosen.turns,
        sessions: &chosen.sessions,
        pattern: forget.matching.as_deref(),
    };
    let at = SystemClock::new().wall();
    let typed = if forget.yes { chosen.typed(store)? } else { HashSet::new() };
    let forgotten = store.erase(&selection, at, !forget.yes)?;
    if forget.yes {
        lines::forget_in_file(config, &typed, forget.matching.as_deref())?;
    }
    let report = Report::new(&forgotten, !forget.yes);
    if forget.json {
        output::say_json(&report)?;
    } else {
        report.tell()?;
    }
    Ok(if forgotten.unfinished.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The items that the user named.
struct ChosenItems {
    facts: Vec<FactId>,
    turns: Vec<(SessionId, TurnSeq)>,
    sessions: Vec<SessionId>,
}

impl ChosenItems {
    fn new(forget: &Forget) -> Result<Self, Box<dyn Error>> {
        let mut facts = Vec::new();
        let mut turns = Vec::new();
        for id in &forget.ids {
            match id.parse()? {
                Id::Fact(id) => facts.push(id),
                Id::Message { session, turn, .. } => turns.push((session, turn)),
            }
        }
        let sessions = forget.session.iter().map(|id| id.parse());
        Ok(Self { facts, turns, sessions: sessions.collect::<Result<_, _>>()? })
    }

    /// Returns the texts that the user typed in the turns that go.
    fn typed(&self, store: &Store) -> Result<HashSet<String>, Box<dyn Error>> {
        let mut typed = HashSet::new();
        for (session, turn) in &self.turns {
            store.with_turns(session, *turn, |views| {
                let view = views.first().filter(|view| view.seq == *turn);
                typed.extend(view.map(|view| view.user.to_owned()));
            })?;
        }
        for session in &self.sessions {
            store.with_turns(session, 1, |views| {
                typed.extend(views.iter().map(|view| view.user.to_owned()));
            })?;
        }
        Ok(typed)
    }
}

/// The items that went, or would go, on the wire.
#[derive(Serialize)]
struct Report<'a> {
    dry_run: bool,
    items: Vec<Item<'a>>,
    /// Sessions with the pattern in their names, which they keep.
    named: &'a [String],
    /// Number in the ledger.
    erasure: Option<u64>,
    bytes_before: Option<u64>,
    bytes_after: Option<u64>,
    unfinished: Option<String>,
}

#[derive(Serialize)]
struct Item<'a> {
    kind: &'static str,
    id: &'a str,
    bytes: u64,
}

impl<'a> Report<'a> {
    fn new(forgotten: &'a ErasureReport, dry_run: bool) -> Self {
        let items = forgotten.items.iter();
        let items =
            items.map(|item| Item { kind: item.kind.as_str(), id: &item.id, bytes: item.bytes });
        Self {
            dry_run,
            items: items.collect(),
            named: &forgotten.named,
            erasure: forgotten.erasure,
            bytes_before: forgotten.files.map(|files| files.before),
            bytes_after: forgotten.files.map(|files| files.after),
            unfinished: forgotten.unfinished.as_ref().map(ToString::to_string),
        }
    }

    fn tell(&self) -> std::io::Result<()> {
        // All there are, one for each turn: nobody wants to read their names.
        let (traces, items): (Vec<_>, Vec<_>) =
            self.items.iter().partition(|item| item.kind == ErasedKind::Trace.as_str());
        for item in items {
            output::say(&format!("{:<8} {} ({} bytes)", item.kind, item.id, item.bytes))?;
        }
        if !traces.is_empty() {
            let bytes: u64 = traces.iter().map(|trace| trace.bytes).sum();
            output::say(&format!("traces   {} of all turns ({bytes} bytes)", traces.len()))?;
        }
        for session in self.named {
            output::note(&format!(
                "(it is in the name of `{session}`, which stays: `garret session rename`)"
            ));
        }
        let things = if self.items.len() == 1 { "thing" } else { "things" };
        let count = format!("{} {things}", self.items.len());
        output::note(&match (self.dry_run, self.erasure) {
            _ if self.items.is_empty() => "There is nothing to forget.".to_owned(),
            (true, _) => format!("Nothing was changed. --yes forgets {count} for good."),
            (false, Some(number)) => format!("Forgotten for good: {count}, erasure {number}."),
            (false, None) => format!("Forgotten: {count}."),
        });
        if let Some(why) = &self.unfinished {
            output::note(&format!(
                "Nobody can read it any more, but its bytes are still in the files: {why}. The \
                 next write erases them."
            ));
        }
        Ok(())
    }
}

/// `garret memory ledger`: when how much was forgotten.
pub(super) fn ledger(store: &Store, json: bool) -> Result<(), Box<dyn Error>> {
    let erasures = store.erasures()?;
    if erasures.is_empty() && !json {
        output::note("Nothing was ever forgotten.");
    }
    for erasure in &erasures {
        let entry = LedgerEntry::from(erasure);
        if json {
            output::say_json(&entry)?;
        } else {
            let LedgerEntry {
                number,
                at,
                sessions,
                turns,
                replies,
                facts,
                entities,
                summaries,
                bytes,
                ..
            } = entry;
            output::say(&format!(
                "{number}. {at}: {sessions} sessions, {turns} turns, {replies} replies, {facts} \
                 facts, {entities} entities, {summaries} summaries; {bytes} bytes"
            ))?;
        }
    }
    Ok(())
}

#[derive(Serialize)]
struct LedgerEntry {
    number: u64,
    at: String,
    sessions: u64,
    turns: u64,
    replies: u64,
    receipts: u64,
    titles: u64,
    facts: u64,
    entities: u64,
    links: u64,
    summaries: u64,
    states: u64,
    traces: u64,
    bytes: u64,
}

impl From<&Erasure> for LedgerEntry {
    fn from(erasure: &Erasure) -> Self {
        Self {
            number: erasure.number,
            at: when(erasure.at_ms),
            sessions: erasure.sessions,
            turns: erasure.turns,
            replies: erasure.replies,
            receipts: erasure.receipts,
            titles: erasure.titles,
            facts: erasure.facts,
            entities: erasure.entities,
            links: erasure.links,
            summaries: erasure.summaries,
            states: erasure.states,
            traces: erasure.traces,
            bytes: erasure.bytes,
        }
    }
}

/// `garret memory verify --erased`: the exit status is 1 when a trace is left.
pub(super) fn erased(config: &Config, store: &Store, pattern: &str, json: bool) -> CommandResult {
    let mut traces: Vec<_> =
        store.verify_erased(pattern.as_bytes())?.iter().map(LeftTrace::from).collect();
    let typed = lines::file(config)?;
    let text = fs::read(&typed).unwrap_or_default();
    if lines::holds(&String::from_utf8_lossy(&text), pattern) {
        traces.push(LeftTrace {
            file: Some(typed.display().to_string()),
            offset: None,
            record: None,
        });
    }
    let clean = traces.is_empty();
    if json {
        output::say_json(&TraceSearch { erased: clean, traces })?;
    } else {
        for trace in &traces {
            output::say(&trace.for_people())?;
        }
        if clean {
            output::say("No trace of it in any file of the namespace.")?;
        }
    }
    Ok(if clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[derive(Serialize)]
struct TraceSearch {
    erased: bool,
    traces: Vec<LeftTrace>,
}

/// A place where the words still are: in a file, or in a record that can be read.
#[derive(Serialize)]
struct LeftTrace {
    file: Option<String>,
    offset: Option<u64>,
    record: Option<String>,
}

impl From<&Trace> for LeftTrace {
    fn from(trace: &Trace) -> Self {
        match trace {
            Trace::Bytes { extension, path, offset } => {
                let file = path.as_ref().map(|path| path.display().to_string());
                let file = Some(file.unwrap_or_else(|| (*extension).to_owned()));
                Self { file, offset: Some(*offset), record: None }
            }
            Trace::Record { id } => Self { file: None, offset: None, record: Some(id.clone()) },
            _ => Self { file: None, offset: None, record: None },
        }
    }
}

impl LeftTrace {
    fn for_people(&self) -> String {
        match (&self.record, &self.file, self.offset) {
            (Some(record), ..) => format!("{record}: not forgotten"),
            (_, Some(file), Some(offset)) => format!("{file}: at byte {offset}"),
            (_, Some(file), None) => format!("{file}: a line that was typed"),
            _ => "in a place that has no name".to_owned(),
        }
    }
}

/// `garret memory vacuum`.
pub(super) fn vacuum(store: &Store, json: bool) -> Result<(), Box<dyn Error>> {
    let files = store.vacuum()?;
    let bytes_before = files.before;
    let bytes_after = files.after;
    if json {
        return output::say_json(&FileSizes { bytes_before, bytes_after });
    }
    Ok(output::say(&format!("{bytes_before} bytes before, {bytes_after} after"))?)
}

#[derive(Serialize)]
struct FileSizes {
    bytes_before: u64,
    bytes_after: u64,
}
