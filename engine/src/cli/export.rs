//! `garret session export`.

use std::error::Error;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use garret_core::time::Clock as _;
use garret_hal::clock::SystemClock;
use garret_storage::Store;

use super::args::{ExportFormat, SessionExport};
use super::output;
use crate::config::Config;
use crate::export::{ExportError, Format, Options, export};
use crate::fingerprint;

/// Runs the command.
pub(super) fn run(
    config: &Config,
    store: &Store,
    args: &SessionExport,
) -> Result<(), Box<dyn Error>> {
    let session = args.id.parse()?;
    let options = Options {
        format: format(args),
        turn: args.turn,
        models: fingerprint::known(&config.data.value),
        now_ms: Some(SystemClock::new().wall().unix_ms),
    };
    let Some(file) = &args.output else {
        let mut out = BufWriter::new(io::stdout().lock());
        let written = export(store, &session, &options, &mut out);
        return written.map(drop).map_err(|error| match error {
            // Whoever read it may have read enough.
            ExportError::Write(error) => error.into(),
            other => other.into(),
        });
    };
    let turns = replace(file, &mut |out| export(store, &session, &options, out))?;
    let turns = if turns == 1 { "1 turn".to_owned() } else { format!("{turns} turns") };
    output::note(&format!("{}: {turns}", file.display()));
    Ok(())
}

fn format(args: &SessionExport) -> Format {
    let extension = args.output.as_ref().and_then(|file| file.extension());
    match args.format {
        Some(ExportFormat::Json) => Format::Json,
        Some(ExportFormat::Markdown) => Format::Markdown,
        None if extension.is_some_and(|extension| extension == "json") => Format::Json,
        None => Format::Markdown,
    }
}

/// Writes a file by `write` that takes the place of the one at `file` once it is whole and durable;
/// that one stays as it is when anything fails.
fn replace<T>(
    file: &Path,
    write: &mut dyn FnMut(&mut dyn Write) -> Result<T, ExportError>,
) -> Result<T, Box<dyn Error>> {
    let failed = |error: io::Error| format!("{}: {error}", file.display());
    // A link goes on pointing to where it does.
    let file = &std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    // A pipe or a device isn't replaced.
    if file.metadata().is_ok_and(|it| !it.is_file() && !it.is_dir()) {
        let opened = OpenOptions::new().write(true).open(file).map_err(failed)?;
        return into(BufWriter::new(opened), write)
            .map(|(done, _)| done)
            .map_err(|e| named(file, e));
    }
    let fresh = beside(file).ok_or_else(|| format!("{}: no name of a file", file.display()))?;
    // Nobody else's business.
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh);
    let opened = opened.map_err(failed)?;
    let written = into(BufWriter::new(opened), write).and_then(|(done, opened)| {
        opened.sync_all()?;
        std::fs::rename(&fresh, file)?;
        Ok(done)
    });
    written.map_err(|error| {
        // What was begun is worth nothing.
        let _ = std::fs::remove_file(&fresh);
        named(file, error)
    })
}

fn into<T>(
    mut out: BufWriter<File>,
    write: &mut dyn FnMut(&mut dyn Write) -> Result<T, ExportError>,
) -> Result<(T, File), ExportError> {
    let done = write(&mut out)?;
    let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    Ok((done, file))
}

/// The error, with the file that it is about.
fn named(file: &Path, error: ExportError) -> Box<dyn Error> {
    match error {
        ExportError::Write(error) => {
            format!("{}: the export can't be written: {error}", file.display()).into()
        }
        other => other.into(),
    }
}

/// A name in the same folder that no other process uses.
fn beside(file: &Path) -> Option<PathBuf> {
    let mut name = file.file_name()?.to_owned();
    name.push(format!(".{}.new", std::process::id()));
    Some(file.with_file_name(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_whole_file_takes_the_place_of_an_older_one() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.md");
        std::fs::write(&file, "older").unwrap();
        let done = replace(&file, &mut |out| Ok(out.write_all(b"newer")?));
        assert!(done.is_ok());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "newer");
        assert_eq!(files(folder.path()), ["a.md"]);
    }

    #[test]
    fn a_disk_that_fills_leaves_the_older_file_and_no_half_one() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.md");
        std::fs::write(&file, "older").unwrap();
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let done = replace(&file, &mut |out| {
            out.write_all(&[b'x'; 100_000])?;
            Err::<(), _>(full().into())
        });
        let complaint = done.unwrap_err().to_string();
        assert!(complaint.contains("a.md: the export can't be written"), "{complaint}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "older");
        assert_eq!(files(folder.path()), ["a.md"]);
    }
}
