//! A medium on a regular file.

use super::{MAX_LEN, end_of};
use garret_core::medium::{Medium, MediumError};
use rustix::fs::{Advice, fadvise};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::OnceLock;

/// A regular file, read and written at offsets (`pread`, `pwrite`) and made durable by `fdatasync`.
///
/// Several threads may use one handle. It takes no lock against other processes.
///
/// After a failed [`Medium::sync`] Linux may have dropped what was unsynced and forgotten the
/// error, so a later sync could succeed without the data. This handle therefore repeats the first
/// failure to every later write, length change and sync: open the file again and recover.
///
/// ```
/// use garret_core::medium::Medium;
/// use garret_hal::media::FileMedium;
///
/// let dir = tempfile::tempdir()?;
/// let medium = FileMedium::open(&dir.path().join("notes"))?;
/// medium.write_at(0, b"durable")?;
/// medium.sync()?;
/// assert_eq!(medium.len()?, 7);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct FileMedium {
    file: File,
    read_only: bool,
    sync_failure: OnceLock<MediumError>,
}

impl FileMedium {
    /// Opens `path` for reading and writing; creates it, for its owner alone (mode 0600), where it
    /// doesn't exist.
    ///
    /// A created file's name is durable when this returns: its directory is synced as well. A file
    /// that may only be read, or lies on a read-only file system, is opened for that: then writes
    /// and length changes are [`MediumError::Denied`].
    ///
    /// # Errors
    /// [`MediumError::Denied`] where the file or its directory isn't this user's to use,
    /// [`MediumError::Full`] where there is no room for another file, [`MediumError::Device`] for
    /// anything else, such as a missing directory (`ENOENT`).
    pub fn open(path: &Path) -> Result<Self, MediumError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(0o600);
        match options.open(path) {
            Ok(file) => return Ok(file.into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                let refusal = refused(&error);
                let file = match refusal {
                    MediumError::Denied => File::open(path).map_err(|_| refusal)?,
                    _ => return Err(refusal),
                };
                return Ok(Self { read_only: true, ..file.into() });
            }
        }
        let file = options.create(true).open(path).map_err(|error| refused(&error))?;
        sync_directory_of(path).map_err(|error| refused(&error))?;
        Ok(file.into())
    }

    /// Whether it may be changed.
    fn healthy(&self) -> Result<(), MediumError> {
        if self.read_only {
            return Err(MediumError::Denied);
        }
        self.sync_failure.get().map_or(Ok(()), |failure| Err(*failure))
    }
}

/// A file that the caller opened for reading and writing, and perhaps locked.
impl From<File> for FileMedium {
    fn from(file: File) -> Self {
        Self { file, read_only: false, sync_failure: OnceLock::new() }
    }
}

impl Medium for FileMedium {
    fn len(&self) -> Result<u64, MediumError> {
        self.file.metadata().map(|meta| meta.len()).map_err(|error| refused(&error))
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<(), MediumError> {
        if out.is_empty() {
            return Ok(());
        }
        end_of(offset, out.len()).ok_or(MediumError::OutOfRange)?;
        self.file.read_exact_at(out, offset).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => MediumError::OutOfRange,
            _ => refused(&error),
        })
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
        self.healthy()?;
        if bytes.is_empty() {
            return Ok(());
        }
        end_of(offset, bytes.len()).ok_or(MediumError::Full)?;
        self.file.write_all_at(bytes, offset).map_err(|error| refused(&error))
    }

    fn set_len(&self, len: u64) -> Result<(), MediumError> {
        self.healthy()?;
        if len > MAX_LEN {
            return Err(MediumError::Full);
        }
        self.file.set_len(len).map_err(|error| refused(&error))
    }

    fn sync(&self) -> Result<(), MediumError> {
        if self.read_only {
            return Ok(());
        }
        self.healthy()?;
        let Err(error) = self.file.sync_data() else { return Ok(()) };
        // What couldn't be written may stay in the page cache as if it had been; whoever opens the
        // file again must see what the device has. Best effort: the kernel may keep pages.
        let _ = fadvise(&self.file, 0, None, Advice::DontNeed);
        Err(*self.sync_failure.get_or_init(|| refused(&error)))
    }
}

/// Makes a new name in a directory survive a power cut.
fn sync_directory_of(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let synced = File::open(parent.unwrap_or(Path::new(".")))?.sync_all();
    match synced {
        // Some network and user-space file systems have no such call.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        other => other,
    }
}

/// What an operating system's refusal means for a medium.
fn refused(error: &io::Error) -> MediumError {
    match Errno::from_io_error(error) {
        Some(Errno::NOSPC | Errno::DQUOT | Errno::FBIG) => MediumError::Full,
        Some(Errno::ACCESS | Errno::PERM | Errno::ROFS) => MediumError::Denied,
        _ => MediumError::Device { errno: error.raw_os_error().unwrap_or(0) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_created_file_is_for_its_owner_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("medium");
        FileMedium::open(&path).unwrap();
        // A umask can only take bits away, and no sensible one takes these.
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn opening_again_keeps_content_and_mode() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("medium");
        std::fs::write(&path, b"kept").unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
        assert_eq!(FileMedium::open(&path).unwrap().len(), Ok(4));
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[test]
    fn a_file_that_may_only_be_read_refuses_changes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("medium");
        std::fs::write(&path, b"kept").unwrap();
        let file = File::open(&path).unwrap();
        let medium = FileMedium { read_only: true, ..file.into() };
        assert_eq!(medium.write_at(0, b"x"), Err(MediumError::Denied));
        assert_eq!(medium.set_len(0), Err(MediumError::Denied));
        assert_eq!(medium.sync(), Ok(()));
        assert_eq!(super::super::read_all(&medium), Ok(b"kept".to_vec()));
    }

    #[test]
    fn a_missing_directory_is_told_by_number() {
        let dir = tempfile::tempdir().unwrap();
        let error = FileMedium::open(&dir.path().join("no/such/place")).unwrap_err();
        assert_eq!(error, MediumError::Device { errno: Errno::NOENT.raw_os_error() });
    }

    #[test]
    fn a_directory_is_no_medium() {
        let dir = tempfile::tempdir().unwrap();
        let error = FileMedium::open(dir.path()).unwrap_err();
        assert_eq!(error, MediumError::Device { errno: Errno::ISDIR.raw_os_error() });
    }

    /// `/dev/full` has no room for any byte and can't be synced: both refusals, from the kernel.
    #[test]
    fn a_failed_sync_is_never_forgotten() {
        let medium = FileMedium::open(Path::new("/dev/full")).unwrap();
        assert_eq!(medium.write_at(0, b"x"), Err(MediumError::Full));
        let failure = Err(MediumError::Device { errno: Errno::INVAL.raw_os_error() });
        assert_eq!(medium.sync(), failure);
        assert_eq!(medium.sync(), failure);
        assert_eq!(medium.write_at(0, b"x"), failure);
        assert_eq!(medium.set_len(0), failure);
    }

    #[test]
    fn refusals_are_sorted_by_what_the_user_can_do() {
        let of = |errno: Errno| refused(&io::Error::from_raw_os_error(errno.raw_os_error()));
        for errno in [Errno::NOSPC, Errno::DQUOT, Errno::FBIG] {
            assert_eq!(of(errno), MediumError::Full);
        }
        for errno in [Errno::ACCESS, Errno::PERM, Errno::ROFS] {
            assert_eq!(of(errno), MediumError::Denied);
        }
        assert_eq!(of(Errno::IO), MediumError::Device { errno: Errno::IO.raw_os_error() });
        let numberless = io::Error::from(io::ErrorKind::WriteZero);
        assert_eq!(refused(&numberless), MediumError::Device { errno: 0 });
    }

    #[test]
    fn a_bare_file_name_has_a_directory_too() {
        sync_directory_of(Path::new("bare")).unwrap();
    }
}
