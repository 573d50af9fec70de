//! A comparison in a file, prompt by prompt.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde::Serialize;

use super::report::{Answer, Record, Side, Summary, Totals};
use crate::export::{code, fence};

/// A new file: JSON lines, or Markdown where it is called so. What was written stays when the program
/// is stopped.
#[derive(Debug)]
pub struct Export<W = File> {
    out: W,
    markdown: bool,
}

#[derive(Serialize)]
struct Last<'a> {
    summary: &'a Summary,
}

impl Export {
    /// Makes the file.
    ///
    /// # Errors
    /// Also when there is one: nothing is overwritten.
    pub fn create(file: &Path) -> io::Result<Self> {
        let at = file.display();
        let markdown = file.extension().is_some_and(|name| name == "md" || name == "markdown");
        // Nobody else's business.
        let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
        let out = opened.map_err(|error| {
            let said = match error.kind() {
                ErrorKind::AlreadyExists => format!("{at} is there already: choose a new file"),
                _ => format!("{at}: {error}"),
            };
            io::Error::new(error.kind(), said)
        })?;
        Ok(Self { out, markdown })
    }
}

impl<W: Write> Export<W> {
    /// Writes to `out`, as Markdown or as lines of JSON.
    pub const fn new(out: W, markdown: bool) -> Self {
        Self { out, markdown }
    }

    /// Adds a prompt and its answers.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn add(&mut self, record: &Record) -> io::Result<()> {
        match self.markdown {
            true => self.markdown(record)?,
            false => writeln!(self.out, "{}", serde_json::to_string(record)?)?,
        }
        self.out.flush()
    }

    /// Adds what all of them come to.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn end(&mut self, summary: &Summary) -> io::Result<()> {
        match self.markdown {
            true => self.table(summary)?,
            false => writeln!(self.out, "{}", serde_json::to_string(&Last { summary })?)?,
        }
        self.out.flush()
    }

    fn markdown(&mut self, record: &Record) -> io::Result<()> {
        let out = &mut self.out;
        if record.prompt == 1 {
            writeln!(out, "# With and without Garret\n")?;
        }
        let at = record.at.as_deref().unwrap_or("at an unknown time");
        writeln!(out, "## Prompt {}, {}, {at}\n", record.prompt, code(&record.session))?;
        fence(out, &record.user)?;
        for side in Side::order(record.prompt) {
            writeln!(out, "\n### {}\n", side.label())?;
            match record.answer(side) {
                Answer::Measured(measured) => {
                    fence(out, &measured.reply)?;
                    writeln!(out, "\n{}", measured.in_words())?;
                }
                Answer::Failed { error } => writeln!(out, "Failed: {}", code(error))?,
                Answer::Skipped { .. } => writeln!(out, "Not asked.")?,
            }
        }
        writeln!(out)
    }

    fn table(&mut self, summary: &Summary) -> io::Result<()> {
        let out = &mut self.out;
        let prompts = summary.prompts;
        writeln!(out, "## Summary of {prompts} prompt{}\n", if prompts == 1 { "" } else { "s" })?;
        let [garret, baseline] = [Side::Garret, Side::Baseline].map(Side::label);
        writeln!(out, "| | {garret} | {baseline} |\n|---|--:|--:|")?;
        for (name, garret, baseline) in summary.rows() {
            writeln!(out, "| {name} | {garret} | {baseline} |")?;
        }
        Ok(())
    }
}

impl super::Measured {
    /// What it cost, in a line.
    pub fn in_words(&self) -> String {
        let Self { prompt_tokens, prefilled_tokens, reply_tokens, finish, .. } = self;
        let first = self.first_token_ms.map_or("-".into(), seconds);
        let looked_up = match self.tools.len() {
            0 => String::new(),
            1 => ", looked up once".to_owned(),
            more => format!(", looked up {more} times"),
        };
        let end = if *finish == "stop" { String::new() } else { format!(", ended: {finish}") };
        format!(
            "prompt {prompt_tokens} tokens, {prefilled_tokens} prefilled; reply {reply_tokens} \
             tokens; first token {first}, total {}{looked_up}{end}",
            seconds(self.total_ms)
        )
    }
}

impl Summary {
    /// A table of it: name, Garret's figure, the baseline's.
    pub fn rows(&self) -> Vec<(&'static str, String, String)> {
        let row = |name, figure: fn(&Totals) -> String| {
            (name, figure(&self.garret), figure(&self.baseline))
        };
        vec![
            row("answered", |of| of.answered.to_string()),
            row("prompt tokens", |of| of.prompt_tokens.to_string()),
            row("prefilled while waiting", |of| of.prefilled_tokens.to_string()),
            row("generated tokens", |of| of.reply_tokens.to_string()),
            row("first token, median", |of| of.first_token_ms.map_or("-".into(), seconds)),
            row("total time", |of| seconds(of.total_ms)),
        ]
    }
}

fn seconds(ms: f64) -> String {
    format!("{:.2} s", ms / 1_000.0)
}
