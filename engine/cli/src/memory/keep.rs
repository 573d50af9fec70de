//! Looking after what is remembered: checks and copies.

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

use garret_hal::media::FileMedium;
use garret_storage::{BundleCounts, Checked, Format, Report, Store};
use serde::Serialize;

use crate::{CommandResult, new_file, output};

/// `garret memory verify`: the exit status is 1 when something is wrong.
pub(super) fn verify(store: &Store, json: bool) -> CommandResult {
    let report = store.verify()?;
    if json {
        output::say_json(&VerifyReport::from(&report))?;
    } else {
        tell(&report)?;
    }
    Ok(if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn tell(report: &Report) -> std::io::Result<()> {
    for problem in &report.problems {
        output::say(&problem.to_string())?;
    }
    if report.unlisted > 0 {
        output::say(&format!("and {} more", report.unlisted))?;
    }
    let Checked { sessions, turns, replies, facts, entities, summaries, .. } = report.checked;
    output::say(&format!(
        "{} in {sessions} sessions, {turns} turns, {replies} replies, {facts} facts, {entities} \
         entities and {summaries} summaries",
        match report.problems.len() {
            0 => "Nothing is wrong".to_owned(),
            1 => "1 thing is wrong".to_owned(),
            many => format!("{many} things are wrong"),
        }
    ))
}

/// A report on the wire.
#[derive(Serialize)]
struct VerifyReport<'a> {
    clean: bool,
    problems: Vec<Problem<'a>>,
    unlisted: u64,
    sessions: u64,
    turns: u64,
    replies: u64,
    facts: u64,
    entities: u64,
    summaries: u64,
    references: u64,
    pending: u64,
}

#[derive(Serialize)]
struct Problem<'a> {
    what: &'a str,
    key: &'a str,
    advice: &'a str,
}

impl<'a> From<&'a Report> for VerifyReport<'a> {
    fn from(report: &'a Report) -> Self {
        let Checked {
            sessions,
            turns,
            replies,
            facts,
            entities,
            summaries,
            references,
            pending,
            ..
        } = report.checked;
        let problems = report.problems.iter().map(|problem| Problem {
            what: &problem.what,
            key: &problem.key,
            advice: problem.advice,
        });
        Self {
            clean: report.is_clean(),
            problems: problems.collect(),
            unlisted: report.unlisted,
            sessions,
            turns,
            replies,
            facts,
            entities,
            summaries,
            references,
            pending,
        }
    }
}

/// `garret memory export`.
pub(super) fn export(store: &Store, file: &Path, lines: bool) -> Result<(), Box<dyn Error>> {
    let lines = lines || file.extension().is_some_and(|extension| extension == "jsonl");
    let format = if lines { Format::Lines } else { Format::Bundle };
    if file == Path::new("-") {
        store.export(std::io::stdout().lock(), format)?;
        return Ok(());
    }
    let counts = new_file::write(file, |out| Ok(store.export(out, format)?))?;
    let at = file.display();
    let BundleCounts { sessions, turns, replies, facts, .. } = counts;
    Ok(output::say(&format!(
        "{at}: {sessions} sessions, {turns} turns, {replies} replies and {facts} facts"
    ))?)
}

/// `garret memory backup`.
pub(super) fn backup(store: &Store, file: &Path, json: bool) -> Result<(), Box<dyn Error>> {
    let new = new_file::create(file)?;
    let medium = FileMedium::from(new.file().try_clone()?);
    let at = file.display();
    let made = store.backup(Box::new(medium)).map_err(|error| format!("{at}: {error}"))?;
    new_file::finish(new, file)?;
    if json {
        let file = file.to_string_lossy();
        return output::say_json(&BackupReport { file: &file, bytes: made.bytes, rows: made.rows });
    }
    Ok(output::say(&format!("{at}: {} bytes, {} records", made.bytes, made.rows))?)
}

#[derive(Serialize)]
struct BackupReport<'a> {
    file: &'a str,
    bytes: u64,
    rows: u64,
}
