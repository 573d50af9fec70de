//! A comparison in a file, prompt by prompt.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Seek as _, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use garret::export::{code, fence};
use serde::Serialize;

use super::report::{Answer, Record, Side, Summary, Totals};

/// A new file: JSON lines, or Markdown where it is called so. What was written stays when the
/// program is stopped.
#[derive(Debug)]
pub struct Export<W = NewFile> {
    out: W,
    markdown: bool,
}

/// A file that comes into being with the first thing that is written to it, and never has a part of
/// one: what can't be written whole is taken away again.
#[derive(Debug)]
pub struct NewFile {
    path: PathBuf,
    file: Option<WholeFile<File>>,
}

impl Write for NewFile {
    /// Writes all of `bytes` or nothing.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(WholeFile { file: open(&self.path)?, length: 0 }),
        };
        let written = file.write(bytes);
        if written.is_err() && file.length == 0 {
            self.file = None;
            std::fs::remove_file(&self.path)?;
        }
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), |file| file.file.flush())
    }
}

/// A file that ends with something whole.
#[derive(Debug)]
struct WholeFile<F> {
    file: F,
    /// Its bytes.
    length: u64,
}

impl<F: Write + Shortenable> WholeFile<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.file.write_all(bytes) {
            Ok(()) => self.length += bytes.len() as u64,
            Err(error) => {
                self.file.cut(self.length)?;
                return Err(error);
            }
        }
        Ok(bytes.len())
    }
}

/// A file that can be made shorter.
trait Shortenable {
    /// Takes away what comes after so many bytes.
    fn cut(&mut self, length: u64) -> io::Result<()>;
}

impl Shortenable for File {
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)?;
        self.seek(io::SeekFrom::Start(length)).map(drop)
    }
}

/// Makes the file. Nothing is overwritten.
fn open(path: &Path) -> io::Result<File> {
    // Nobody else's business.
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    opened.map_err(|error| {
        let at = path.display();
        let said = match error.kind() {
            ErrorKind::AlreadyExists => format!("{at} is there already: choose a new file"),
            _ => format!("{at}: {error}"),
        };
        io::Error::new(error.kind(), said)
    })
}

impl Export {
    /// Makes sure that the file can be made; it is with the first prompt.
    ///
    /// # Errors
    /// Also when there is one: nothing is overwritten.
    pub fn create(path: &Path) -> io::Result<Self> {
        let markdown = path.extension().is_some_and(|name| name == "md" || name == "markdown");
        drop(open(path)?);
        std::fs::remove_file(path)?;
        Ok(Self { out: NewFile { path: path.to_owned(), file: None }, markdown })
    }
}

#[derive(Serialize)]
struct SummaryLine<'a> {
    summary: &'a Summary,
}

impl<W: Write> Export<W> {
    /// Writes to `out`, as Markdown or as lines of JSON.
    pub const fn new(out: W, markdown: bool) -> Self {
        Self { out, markdown }
    }

    /// Adds a prompt and its answers, in one write.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn add(&mut self, record: &Record) -> io::Result<()> {
        let mut text = Vec::new();
        match self.markdown {
            true => markdown(&mut text, record)?,
            false => writeln!(text, "{}", serde_json::to_string(record)?)?,
        }
        self.out.write_all(&text)?;
        self.out.flush()
    }

    /// Adds what all of them come to, in one write.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn end(&mut self, summary: &Summary) -> io::Result<()> {
        let mut text = Vec::new();
        match self.markdown {
            true => table(&mut text, summary)?,
            false => writeln!(text, "{}", serde_json::to_string(&SummaryLine { summary })?)?,
        }
        self.out.write_all(&text)?;
        self.out.flush()
    }
}

fn markdown(out: &mut Vec<u8>, record: &Record) -> io::Result<()> {
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

fn table(out: &mut Vec<u8>, summary: &Summary) -> io::Result<()> {
    let prompts = summary.prompts;
    writeln!(out, "## Summary of {prompts} prompt{}\n", if prompts == 1 { "" } else { "s" })?;
    let [garret, baseline] = [Side::Garret, Side::Baseline].map(Side::label);
    writeln!(out, "| | {garret} | {baseline} |\n|---|--:|--:|")?;
    for (name, garret, baseline) in summary.rows() {
        writeln!(out, "| {name} | {garret} | {baseline} |")?;
    }
    Ok(())
}

impl super::MeasuredReply {
    /// Returns the cost in a line.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A file on a device that fills up.
    #[derive(Debug, Default)]
    struct FullDevice {
        bytes: Vec<u8>,
        room: usize,
    }

    impl Write for FullDevice {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let taken = bytes.len().min(self.room - self.bytes.len());
            self.bytes.extend_from_slice(&bytes[..taken]);
            if taken == 0 { Err(ErrorKind::StorageFull.into()) } else { Ok(taken) }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Shortenable for FullDevice {
        fn cut(&mut self, length: u64) -> io::Result<()> {
            self.bytes.truncate(usize::try_from(length).unwrap());
            Ok(())
        }
    }

    #[test]
    fn a_device_that_fills_up_has_whole_records_alone() {
        for room in 0..30 {
            let small = FullDevice { room, ..FullDevice::default() };
            let mut file = WholeFile { file: small, length: 0 };
            let mut whole = Vec::new();
            for record in ["first line\n", "second\n", "third line\n"] {
                let fits = whole.len() + record.len() <= room;
                assert_eq!(file.write(record.as_bytes()).is_ok(), fits);
                whole.extend_from_slice(if fits { record.as_bytes() } else { b"" });
                assert_eq!(file.file.bytes, whole, "room for {room}");
            }
        }
    }

    #[test]
    fn a_comparison_that_never_began_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.md");
        let mut export = Export::create(&file).unwrap();
        assert!(!file.exists());
        let session = "s".parse().unwrap();
        export.add(&Record::new(1, &session, "Hello", 0)).unwrap();
        assert!(std::fs::read_to_string(&file).unwrap().starts_with("# With and without Garret"));
        assert!(Export::create(&file).is_err(), "nothing is overwritten");
    }
}
