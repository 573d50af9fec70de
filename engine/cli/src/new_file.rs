//! Results that go to a file of the user's choosing.
//!
//! Nothing that is there is written over, and what has the name is whole: an export or a backup
//! that is interrupted leaves nothing that could be taken for one. A pipe or a device is written to
//! as it is.

use std::error::Error;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::Path;

use garret_hal::output::NewFile;

/// Writes the file `path` by `write`.
///
/// # Errors
/// The file's name and what is wrong: something is there already, the disk is full, `write` failed.
pub(super) fn write<T>(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<T, Box<dyn Error>>,
) -> Result<T, Box<dyn Error>> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    if path.metadata().is_ok_and(|it| !it.is_file() && !it.is_dir()) {
        let opened = OpenOptions::new().write(true).open(path).map_err(|error| failed(&error))?;
        return into(&opened, write).map_err(|error| failed(&error).into());
    }
    let new = create(path)?;
    let done = into(new.file(), write).map_err(|error| failed(&error))?;
    finish(new, path)?;
    Ok(done)
}

/// Begins the file `path`, which has no name until [`finish`].
///
/// # Errors
/// The file's name and what is wrong with it.
pub(super) fn create(path: &Path) -> Result<NewFile, Box<dyn Error>> {
    NewFile::create(path).map_err(|error| explained(path, &error).into())
}

/// Gives a file that is whole its name.
///
/// # Errors
/// The file's name and why it has none.
pub(super) fn finish(new: NewFile, path: &Path) -> Result<(), Box<dyn Error>> {
    new.finish().map_err(|error| explained(path, &error).into())
}

fn into<T>(
    file: &File,
    write: impl FnOnce(&mut dyn Write) -> Result<T, Box<dyn Error>>,
) -> Result<T, Box<dyn Error>> {
    let mut out = BufWriter::new(file);
    let done = write(&mut out)?;
    out.flush().map_err(|error| format!("it can't be written: {error}"))?;
    Ok(done)
}

fn explained(path: &Path, error: &io::Error) -> String {
    let at = path.display();
    match error.kind() {
        ErrorKind::AlreadyExists => format!("{at} is there already: choose a new file"),
        _ => format!("{at}: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_file_that_is_there_is_not_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.md");
        std::fs::write(&path, "older").unwrap();
        let refused = write(&path, |_| -> Result<(), _> { panic!("it isn't asked for") });
        let refused = refused.unwrap_err().to_string();
        assert!(refused.ends_with("a.md is there already: choose a new file"), "{refused}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "older");
    }

    /// Whoever is killed can't tidy up: what is being written has no name yet.
    #[test]
    fn nothing_is_left_of_a_file_that_is_not_finished() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.md");
        let full = || io::Error::from(ErrorKind::StorageFull);
        let failed = write(&path, |out| {
            out.write_all(&[b'x'; 100_000])?;
            assert!(names(folder.path()).is_empty(), "while it is written");
            Err::<(), _>(full().into())
        });
        let failed = failed.unwrap_err().to_string();
        assert!(failed.contains("a.md: "), "{failed}");
        assert!(names(folder.path()).is_empty());
        write(&path, |out| Ok(out.write_all(b"whole")?)).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "whole");
    }
}
