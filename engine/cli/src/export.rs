//! `garret session export`.

use std::error::Error;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use garret::config::Config;
use garret::export::{ExportError, Format, Options, export};
use garret::fingerprint;
use garret_core::time::Clock as _;
use garret_hal::clock::SystemClock;
use garret_storage::Store;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open};
use rustix::io::Errno;

use super::args::{ExportFormat, SessionExport};
use super::output;

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
    let (opened, fresh) = open_beside(file).map_err(failed)?;
    let written = into(BufWriter::new(opened), write).and_then(|(done, opened)| {
        opened.sync_all()?;
        take_place(&opened, fresh.as_deref(), file)?;
        Ok(done)
    });
    written.map_err(|error| {
        // What was begun is worth nothing.
        let _ = fresh.map(std::fs::remove_file);
        named(file, error)
    })
}

/// A new file in the folder of `file`, for nobody else to read: without a name where the file system
/// can do that, so that nothing of it stays when the program is killed.
fn open_beside(file: &Path) -> io::Result<(File, Option<PathBuf>)> {
    let name = beside(file).ok_or_else(|| io::Error::other("no name of a file"))?;
    let folder = name.parent().filter(|folder| !folder.as_os_str().is_empty());
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    match open(folder.unwrap_or(Path::new(".")), flags, Mode::RUSR | Mode::WUSR) {
        Ok(opened) => Ok((opened.into(), None)),
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {
            let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&name)?;
            Ok((opened, Some(name)))
        }
        Err(error) => Err(error.into()),
    }
}

/// Puts a file that is whole, and has the name `fresh` or none, in the place of another.
fn take_place(opened: &File, fresh: Option<&Path>, file: &Path) -> io::Result<()> {
    if let Some(fresh) = fresh {
        return std::fs::rename(fresh, file);
    }
    let it = format!("/proc/self/fd/{}", opened.as_raw_fd());
    let link = |to: &Path| linkat(CWD, &*it, CWD, to, AtFlags::SYMLINK_FOLLOW);
    match link(file) {
        // Only a name can take the place of another.
        Err(Errno::EXIST) => {
            let name = beside(file).ok_or_else(|| io::Error::other("no name of a file"))?;
            link(&name)?;
            std::fs::rename(&name, file).inspect_err(|_| drop(std::fs::remove_file(&name)))
        }
        linked => Ok(linked?),
    }
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

    /// Whoever is killed can't tidy up: what is being written has no name yet.
    #[test]
    fn nothing_is_left_of_an_export_that_is_killed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.md");
        for before in [&[][..], &["a.md"]] {
            let done = replace(&file, &mut |out| {
                out.write_all(&[b'x'; 100_000])?;
                assert_eq!(files(folder.path()), before, "while it is written");
                Ok(())
            });
            assert!(done.is_ok(), "{done:?}");
            assert_eq!(files(folder.path()), ["a.md"]);
        }
        assert_eq!(std::fs::read(&file).unwrap().len(), 100_000);
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
