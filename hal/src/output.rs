//! Files that appear under their name only when they are whole.
//!
//! An export or a backup that is killed, or that fills the disk, must not leave something that
//! looks like one. So it is written to a file without a name, made durable, and named last:
//!
//! ```
//! use std::io::Write;
//! use garret_hal::output::NewFile;
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("notes.json");
//! let new = NewFile::create(&path)?;
//! new.file().write_all(b"[]")?;
//! assert!(!path.exists());
//! new.finish()?;
//! assert_eq!(std::fs::read(&path)?, b"[]");
//! // What is there already is never written over.
//! assert!(NewFile::create(&path).is_err());
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Limits: regular files on Linux. A file system without nameless files (`O_TMPFILE`: FAT, some
//! network shares) gets one named `NAME.PID.new`, which stays behind when the process is killed.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags, linkat, open, renameat_with};
use rustix::io::Errno;

/// A file that is being written and has no name of its own yet.
///
/// Dropping it before [`finish`](Self::finish) leaves nothing behind.
#[derive(Debug)]
pub struct NewFile {
    file: File,
    /// The name it has meanwhile, where the file system knows no nameless files.
    aside: Option<PathBuf>,
    path: PathBuf,
}

impl NewFile {
    /// Begins a file that will be `path`, for its owner alone (mode 0600).
    ///
    /// # Errors
    /// `AlreadyExists` where something has that name, a link that leads nowhere included; else why
    /// no file can be made in that folder.
    pub fn create(path: &Path) -> io::Result<Self> {
        if path.symlink_metadata().is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let (file, aside) = open_aside(path)?;
        Ok(Self { file, aside, path: path.to_owned() })
    }

    /// The file to write to.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Makes the file durable and gives it its name, durably too.
    ///
    /// # Errors
    /// `AlreadyExists` where another process took the name meanwhile; else why it couldn't be
    /// synced or named. Nothing is left behind then.
    pub fn finish(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        match &self.aside {
            Some(aside) => rename_new(aside, &self.path)?,
            None => {
                let unnamed = format!("/proc/self/fd/{}", self.file.as_raw_fd());
                linkat(CWD, &*unnamed, CWD, &self.path, AtFlags::SYMLINK_FOLLOW)?;
            }
        }
        self.aside = None;
        sync_folder(&self.path)
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(aside) = &self.aside {
            // What was begun is worth nothing.
            let _ = std::fs::remove_file(aside);
        }
    }
}

/// A new file in the folder of `path`, without a name where that can be.
fn open_aside(path: &Path) -> io::Result<(File, Option<PathBuf>)> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    match open(folder(path), flags, Mode::RUSR | Mode::WUSR) {
        Ok(file) => Ok((file.into(), None)),
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {
            let aside = beside(path)?;
            let mut options = OpenOptions::new();
            options.read(true).write(true).create_new(true).mode(0o600);
            Ok((options.open(&aside)?, Some(aside)))
        }
        Err(error) => Err(error.into()),
    }
}

/// Renames without taking the place of another file, as far as the file system can.
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // FAT through an old kernel, say: the look before the rename must do.
        Err(Errno::INVAL | Errno::NOSYS) if to.symlink_metadata().is_err() => {
            std::fs::rename(from, to)
        }
        Err(Errno::INVAL | Errno::NOSYS) => Err(io::ErrorKind::AlreadyExists.into()),
        renamed => Ok(renamed?),
    }
}

/// A name in the same folder that no other process uses.
fn beside(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or_else(|| io::Error::other("not the name of a file"))?;
    let mut aside = OsString::from(name);
    aside.push(format!(".{}.new", std::process::id()));
    Ok(path.with_file_name(aside))
}

fn folder(path: &Path) -> &Path {
    let parent = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

/// Makes the name of a file durable.
fn sync_folder(path: &Path) -> io::Result<()> {
    match File::open(folder(path)).and_then(|folder| folder.sync_all()) {
        // A file system without such a call, or a folder that may be written and not read.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::InvalidInput | io::ErrorKind::PermissionDenied
            ) =>
        {
            Ok(())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_file_that_is_given_up_leaves_no_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let new = NewFile::create(&path).unwrap();
        new.file().write_all(&[1; 100_000]).unwrap();
        assert!(names(folder.path()).is_empty(), "while it is written");
        drop(new);
        assert!(names(folder.path()).is_empty());
    }

    #[test]
    fn a_name_that_was_taken_meanwhile_stays_the_other_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let new = NewFile::create(&path).unwrap();
        std::fs::write(&path, b"theirs").unwrap();
        let refused = new.finish().unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&path).unwrap(), b"theirs");
    }

    /// Where nameless files aren't known, the name meanwhile is another one, and goes.
    #[test]
    fn a_file_with_a_name_aside_takes_its_own_or_leaves_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let begin = || {
            let aside = beside(&path).unwrap();
            NewFile {
                file: File::create_new(&aside).unwrap(),
                aside: Some(aside),
                path: path.clone(),
            }
        };
        drop(begin());
        assert!(names(folder.path()).is_empty());
        begin().finish().unwrap();
        assert_eq!(names(folder.path()), ["a"]);
        assert_eq!(begin().finish().unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(names(folder.path()), ["a"]);
    }

    #[test]
    fn a_link_that_leads_nowhere_is_not_written_through() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path().join("secret"), &link).unwrap();
        let refused = NewFile::create(&link).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
    }
}
