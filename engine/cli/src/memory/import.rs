//! Conversations held elsewhere, from a file with one JSON object a line.

use std::collections::HashMap;
use std::error::Error;
use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal, Read};
use std::path::Path;
use std::time::Duration;

use garret::config::Config;
use garret::open;
use garret_core::id::SessionId;
use garret_core::time::{Clock as _, Confidence, WallTime};
use garret_hal::clock::SystemClock;
use garret_storage::search::Speaker;
use garret_storage::{BundleCounts, ImportedTurn, MAX_BYTES, Store, Taken};
use indicatif::{ProgressBar, ProgressStyle};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::embed;
use crate::args::memory::Import;
use crate::{dates, output};

/// `garret memory import`.
pub(super) fn run(config: &Config, import: &Import) -> Result<(), Box<dyn Error>> {
    let session: Option<SessionId> = import.session.as_deref().map(str::parse).transpose()?;
    let mut source = Source::open(&import.file)?;
    let is_export = source.is_export()?;
    let store = open::store(config)?;
    if is_export {
        whole(&store, source, import)?;
        embed::after_import(config, &store);
        return Ok(());
    }
    let bar = source.bar();
    let mut importer = Importer {
        store: &store,
        session,
        batch: Batch::default(),
        seen: HashMap::new(),
        report: Report::default(),
    };
    let read = importer.all(source, &bar);
    bar.finish_and_clear();
    let report = importer.report;
    if import.json {
        output::say_json(&report)?;
    } else {
        let Report { added, skipped, .. } = report;
        output::say(&format!("{added} messages imported, {skipped} were there already"))?;
    }
    read.map_err(|error| {
        format!("{error}; the lines before it are imported: mend it, then run this again")
    })?;
    embed::after_import(config, &store);
    Ok(())
}

/// Takes in what `garret memory export` wrote, all of it or nothing.
fn whole(store: &Store, source: Source, import: &Import) -> Result<(), Box<dyn Error>> {
    let taken = if import.rename { Taken::Rename } else { Taken::Refuse };
    let report = store.import(source.reader, taken)?;
    let renamed = report.renamed.iter().map(|(old, new)| [old.to_string(), new.to_string()]);
    let BundleCounts { sessions, turns, replies, facts, .. } = report.counts;
    let namespace = &report.namespace;
    let known_facts = report.known_facts;
    let whole = ExportReport {
        namespace,
        sessions,
        turns,
        replies,
        facts,
        known_facts,
        renamed: renamed.collect(),
    };
    if import.json {
        return output::say_json(&whole);
    }
    for [old, new] in &whole.renamed {
        output::note(&format!("(`{old}` is `{new}` here)"));
    }
    Ok(output::say(&format!(
        "{sessions} sessions, {turns} turns, {replies} replies and {facts} facts of `{namespace}` \
         imported"
    ))?)
}

/// The contents of an export, on the wire.
#[derive(Serialize)]
struct ExportReport<'a> {
    namespace: &'a str,
    sessions: u64,
    turns: u64,
    replies: u64,
    facts: u64,
    known_facts: u64,
    renamed: Vec<[String; 2]>,
}

/// The account of an import of lines, on the wire.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Report {
    /// Lines that were read.
    lines: u64,
    /// Messages that are new.
    added: usize,
    /// Messages that an earlier run had brought in.
    skipped: usize,
}

/// A line as files have it: Garret's own names, and those of LoCoMo.
#[derive(Debug, Deserialize)]
struct Line {
    /// The conversation; a number of a session within `conv`.
    session: Option<Name>,
    conv: Option<String>,
    #[serde(alias = "role", alias = "source")]
    speaker: Option<String>,
    text: String,
    /// Description of a picture that was sent with the message.
    caption: Option<String>,
    #[serde(alias = "timestamp")]
    at: Option<Moment>,
    #[serde(alias = "dia_id")]
    id: Option<Name>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Name {
    Text(String),
    Number(u64),
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Moment {
    Text(String),
    Number(f64),
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Number(number) => number.fmt(f),
        }
    }
}

/// A message ready to be stored.
struct Message {
    session: SessionId,
    speaker: String,
    text: String,
    at: WallTime,
    id: String,
}

impl Message {
    fn read(line: Line, fallback: Option<&SessionId>, now: WallTime) -> Result<Self, String> {
        let session = match (line.conv, line.session) {
            (Some(conv), Some(session)) => format!("{conv}/{session}"),
            (Some(conv), None) => conv,
            (None, Some(session)) => session.to_string(),
            (None, None) => fallback.map(ToString::to_string).ok_or(
                "it names no session: give each line a `session`, or all of them --session ID",
            )?,
        };
        let session = session.parse().map_err(|error| format!("`{session}`: {error}"))?;
        let caption = line.caption.filter(|caption| !caption.trim().is_empty());
        let caption = caption.map(|caption| format!(" [image: {caption}]")).unwrap_or_default();
        let text = line.text + &caption;
        if text.trim().is_empty() {
            return Err("its text is empty: give it one, or leave the line out".into());
        }
        let good = |unix_ms| WallTime { unix_ms, confidence: Confidence::Good };
        let at = match line.at {
            Some(Moment::Text(text)) => good(dates::parse(&text)?),
            Some(Moment::Number(number)) => good(moment(number)?),
            None => WallTime { confidence: Confidence::Wrong, ..now },
        };
        let speaker = line.speaker.unwrap_or_else(|| "user".into());
        let id = line.id.map(|id| id.to_string()).unwrap_or_default();
        Ok(Self { session, speaker, text, at, id })
    }

    fn turn(&self) -> ImportedTurn<'_> {
        let speaker = match &*self.speaker {
            "user" | "human" => Speaker::User,
            "assistant" | "model" | "gpt" => Speaker::Assistant,
            name => Speaker::Named(name),
        };
        let session = &self.session;
        let text = &*self.text;
        let id = Some(&*self.id);
        ImportedTurn { session, speaker, text, at: self.at, id }
    }
}

/// Milliseconds since 1970 of a number of those or of seconds.
fn moment(number: f64) -> Result<i64, String> {
    let ms = if number.abs() < MOST_SECONDS { number * 1e3 } else { number };
    if ms.abs() < 2.5e14 {
        // A whole number far below 2^53.
        Ok(ms.round() as i64)
    } else {
        Err(format!("{number} is no time: give seconds or milliseconds since 1970"))
    }
}

/// Numbers below are seconds (up to the year 5138), others milliseconds (from 1973 on).
const MOST_SECONDS: f64 = 1e11;

struct Importer<'a> {
    store: &'a Store,
    session: Option<SessionId>,
    batch: Batch,
    /// The number of times that each line without an id was there.
    seen: HashMap<[u8; 32], u32>,
    report: Report,
}

#[derive(Default)]
struct Batch {
    messages: Vec<Message>,
    bytes: usize,
}

impl Importer<'_> {
    /// Imports everything before the end, or before the first line that can't be.
    fn all(&mut self, mut source: Source, bar: &ProgressBar) -> Result<(), Box<dyn Error>> {
        let now = SystemClock::new().wall();
        let read = loop {
            match self.next(&mut source, now) {
                Ok(true) if self.batch.is_full() => {
                    self.flush()?;
                    bar.set_position(source.read);
                }
                Ok(true) => {}
                Ok(false) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        self.flush()?;
        read
    }

    /// Takes in one line and returns true when there was one.
    fn next(&mut self, source: &mut Source, now: WallTime) -> Result<bool, Box<dyn Error>> {
        let number = source.number + 1;
        let Some(line) = source.next()? else { return Ok(false) };
        self.report.lines += 1;
        if line.trim_ascii().is_empty() {
            return Ok(true);
        }
        let wrong = |what: String| format!("line {number}: {what}");
        let parsed = serde_json::from_slice(line).map_err(|error| wrong(explain(&error)))?;
        let mut message = Message::read(parsed, self.session.as_ref(), now).map_err(wrong)?;
        if message.id.is_empty() {
            message.id = self.name(line);
        }
        self.batch.bytes += message.text.len();
        self.batch.messages.push(message);
        Ok(true)
    }

    /// A name for a line that has none: what it is, and the how manieth of its kind.
    fn name(&mut self, line: &[u8]) -> String {
        let hash: [u8; 32] = Sha256::digest(line.trim_ascii()).into();
        let count = self.seen.entry(hash).or_default();
        *count += 1;
        let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("sha256:{hex}:{count}")
    }

    fn flush(&mut self) -> Result<(), Box<dyn Error>> {
        let turns: Vec<_> = self.batch.messages.iter().map(Message::turn).collect();
        let imported = self.store.import_turns(&turns)?;
        self.report.added += imported.added;
        self.report.skipped += imported.skipped;
        self.batch = Batch::default();
        Ok(())
    }
}

impl Batch {
    fn is_full(&self) -> bool {
        self.messages.len() >= BATCH_LINES || self.bytes >= BATCH_BYTES
    }
}

/// Says what is wrong with the JSON of a line, without the number of the line within itself.
fn explain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let what = text.split(" at line ").next().unwrap_or(&text);
    format!("{what} (column {})", error.column())
}

/// Lines of a file or of standard input.
struct Source {
    reader: Box<dyn BufRead>,
    /// Bytes in all, where that is known.
    bytes: Option<u64>,
    /// Bytes that were read.
    read: u64,
    /// Number of the line that was read last.
    number: u64,
    line: Vec<u8>,
}

impl Source {
    fn open(file: &Path) -> Result<Self, String> {
        let (reader, bytes): (Box<dyn BufRead>, _) = if file == Path::new("-") {
            (Box::new(std::io::stdin().lock()), None)
        } else {
            let unreadable = |error| format!("{}: can't be read: {error}", file.display());
            let open = File::open(file).map_err(unreadable)?;
            let about = open.metadata().map_err(unreadable)?;
            if about.is_dir() {
                return Err(format!("{}: is a folder: give a file of lines", file.display()));
            }
            (Box::new(BufReader::new(open)), Some(about.len()).filter(|bytes| *bytes > 0))
        };
        Ok(Self { reader, bytes, read: 0, number: 0, line: Vec::new() })
    }

    /// Returns true for what `garret memory export` writes, in either of its forms.
    fn is_export(&mut self) -> Result<bool, String> {
        #[derive(Deserialize)]
        struct Head {
            kind: String,
        }
        let start = self.reader.fill_buf().map_err(|error| format!("it can't be read: {error}"))?;
        let line = start.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let head = serde_json::from_slice(line);
        Ok(start.starts_with(b"Garret bundle") || head.is_ok_and(|Head { kind }| kind == "garret"))
    }

    /// The next line with its end, if there is one.
    fn next(&mut self) -> Result<Option<&[u8]>, String> {
        self.line.clear();
        self.number += 1;
        let mut limited = self.reader.by_ref().take(MAX_LINE + 1);
        let read = limited.read_until(b'\n', &mut self.line);
        let number = self.number;
        let read = read.map_err(|error| format!("line {number} can't be read: {error}"))?;
        let bytes = u64::try_from(read).unwrap_or(u64::MAX);
        if bytes > MAX_LINE {
            return Err(format!("line {number} is longer than {} MiB: split it", MAX_LINE >> 20));
        }
        self.read += bytes;
        Ok((read > 0).then_some(&self.line))
    }

    /// A bar on a terminal, nothing elsewhere.
    fn bar(&self) -> ProgressBar {
        if !std::io::stderr().is_terminal() {
            return ProgressBar::hidden();
        }
        let (bar, style) = match self.bytes {
            Some(bytes) => {
                (ProgressBar::new(bytes), "{bar:40} {bytes} of {total_bytes}, {eta} left")
            }
            None => (ProgressBar::new_spinner(), "{spinner} {bytes}"),
        };
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(100));
        bar
    }
}

/// Messages of one batch.
const BATCH_LINES: usize = 4_096;
/// Bytes of text after which a batch is stored.
const BATCH_BYTES: usize = 8 << 20;
/// Most bytes of a line: a text of the largest size, every byte of it escaped, and what else there
/// is.
const MAX_LINE: u64 = 6 * MAX_BYTES as u64 + (1 << 20);
