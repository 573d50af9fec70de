//! A medium on a regular file.

use super::direct::Direct;
use super::{MAX_LEN, end_of};
use garret_core::medium::{Medium, MediumError};
use memmap2::Mmap;
use rustix::fs::{Advice, fadvise};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{OnceLock, PoisonError, RwLock};

/// A regular file, read and written at offsets (`pread`, `pwrite`) and made durable by `fdatasync`.
///
/// A durable write of whole blocks goes past the page cache where the device's are smaller than a
/// page (512 bytes on an SD card), so that no more than they reach it.
///
/// Several threads may use one handle. It takes no lock against other processes.
///
/// [`Medium::with_bytes`] maps the file, and maps it again after it has grown by a thirty-second
/// part; what was added since is left to [`Medium::read_at`]. While bytes are shown, this handle
/// neither changes nor cuts them. Whoever uses it must see to it that nobody else does, by a lock
/// on the namespace: the process is ended (`SIGBUS`) when it looks at bytes that were cut off, or
/// that the device fails to deliver.
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
    /// Mapping that [`Medium::with_bytes`] shows. Locked for reading while it does, and while bytes
    /// behind its end are written; for writing while it or what it shows changes.
    map: RwLock<Option<Mmap>>,
    /// The way past the page cache; opened when it is first asked for.
    direct: OnceLock<Option<Direct>>,
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

    /// Returns an error once the file may not be changed any more.
    fn healthy(&self) -> Result<(), MediumError> {
        if self.read_only {
            return Err(MediumError::Denied);
        }
        self.sync_failure.get().map_or(Ok(()), |failure| Err(*failure))
    }

    /// Makes a change at `offset` and behind it while nobody is shown those bytes.
    fn unseen<T>(&self, offset: u64, change: impl FnOnce() -> T) -> T {
        let map = self.map.read().unwrap_or_else(PoisonError::into_inner);
        if !shows(map.as_ref(), offset) {
            return change();
        }
        drop(map);
        let _unseen = self.map.write().unwrap_or_else(PoisonError::into_inner);
        change()
    }

    /// Remembers that something couldn't be made durable.
    fn unsynced(&self, error: &io::Error) -> MediumError {
        // What couldn't be written may stay in the page cache as if it had been; whoever opens the
        // file again must see what the device has. Best effort: the kernel may keep pages.
        let _ = fadvise(&self.file, 0, None, Advice::DontNeed);
        *self.sync_failure.get_or_init(|| refused(error))
    }

    fn direct(&self) -> Option<&Direct> {
        self.direct.get_or_init(|| Direct::of(&self.file)).as_ref()
    }

    /// Maps all of the file, where that is worth it for the bytes up to `end`.
    #[allow(unsafe_code)]
    fn map_again(&self, end: usize) {
        let mut map = self.map.write().unwrap_or_else(PoisonError::into_inner);
        let mapped = map.as_ref().map_or(0, |map| map.len());
        let Some(len) = self.len().ok().and_then(|len| usize::try_from(len).ok()) else { return };
        if len < end || len - mapped.min(len) < mapped / REMAP_SHARE {
            return;
        }
        // SAFETY: the bytes of a mapping must not change while they are borrowed, nor the file be
        // cut. They are borrowed only under a read lock of `map`. This handle writes below the
        // mapping's end, and cuts, only under the write lock; that nobody else does is asked of the
        // user of this type.
        *map = unsafe { Mmap::map(&self.file) }.ok();
    }
}

/// A file is mapped again when it has grown by one part in so many.
const REMAP_SHARE: usize = 32;
/// Fewest bytes that the page cache takes to a device.
const PAGE: usize = 4_096;

/// A file that the caller opened for reading and writing, and perhaps locked.
impl From<File> for FileMedium {
    fn from(file: File) -> Self {
        Self {
            file,
            read_only: false,
            sync_failure: OnceLock::new(),
            map: RwLock::new(None),
            direct: OnceLock::new(),
        }
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
        self.unseen(offset, || self.file.write_all_at(bytes, offset))
            .map_err(|error| refused(&error))
    }

    fn set_len(&self, len: u64) -> Result<(), MediumError> {
        self.healthy()?;
        if len > MAX_LEN {
            return Err(MediumError::Full);
        }
        let mut map = self.map.write().unwrap_or_else(PoisonError::into_inner);
        if shows(map.as_ref(), len) {
            *map = None;
        }
        self.file.set_len(len).map_err(|error| refused(&error))
    }

    fn sync(&self) -> Result<(), MediumError> {
        if self.read_only {
            return Ok(());
        }
        self.healthy()?;
        self.file.sync_data().map_err(|error| self.unsynced(&error))
    }

    fn write_durably(&self, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
        self.healthy()?;
        end_of(offset, bytes.len()).ok_or(MediumError::Full)?;
        let direct = |direct: &Direct| self.unseen(offset, || direct.write(offset, bytes));
        if let Some(written) = self.direct().and_then(direct) {
            return written.map_err(|error| self.unsynced(&error));
        }
        self.write_at(offset, bytes)?;
        self.sync()
    }

    fn block(&self) -> usize {
        self.direct().and_then(Direct::block).unwrap_or(PAGE)
    }

    fn with_bytes(&self, offset: u64, len: usize, read: &mut dyn FnMut(&[u8])) -> bool {
        let Ok(start) = usize::try_from(offset) else { return false };
        let Some(end) = start.checked_add(len) else { return false };
        let mut show = || {
            let map = self.map.read().unwrap_or_else(PoisonError::into_inner);
            let part = map.as_ref().and_then(|map| map.get(start..end));
            part.map(&mut *read).is_some()
        };
        if show() {
            return true;
        }
        self.map_again(end);
        show()
    }
}

/// Returns whether a change at `offset` and behind it changes what `map` shows.
fn shows(map: Option<&Mmap>, offset: u64) -> bool {
    map.is_some_and(|map| usize::try_from(offset).is_ok_and(|offset| offset < map.len()))
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

/// Returns what an operating system's refusal means for a medium.
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

    /// On a device of small blocks past the page cache, else through it; whoever reads sees no
    /// difference, nor does a mapping.
    #[test]
    fn durable_writes_are_seen_like_others() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("medium");
        let medium = FileMedium::open(&path).unwrap();
        medium.write_at(0, &[1; 24_576]).unwrap();
        assert_eq!(shown(&medium, 0, 1).unwrap(), [1]);
        let mut expected = vec![1; 24_576];
        let block = medium.block();
        assert!(block.is_power_of_two() && (512..=4_096).contains(&block), "{block}");
        for (offset, len) in
            [(block, block), (3 * block, 2 * block), (0, 24_576), (5, 9), (100, block)]
        {
            let bytes = vec![(offset % 251) as u8; len];
            medium.write_durably(offset as u64, &bytes).unwrap();
            expected[offset..offset + len].copy_from_slice(&bytes);
            assert_eq!(shown(&medium, 0, 24_576).unwrap(), expected);
            assert_eq!(std::fs::read(&path).unwrap(), expected);
        }
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

    fn shown(medium: &dyn Medium, offset: u64, len: usize) -> Option<Vec<u8>> {
        let mut found = None;
        medium.with_bytes(offset, len, &mut |bytes| found = Some(bytes.to_vec()));
        found
    }

    #[test]
    fn a_mapping_follows_writes_growth_and_cuts() {
        let dir = tempfile::tempdir().unwrap();
        let medium = FileMedium::open(&dir.path().join("medium")).unwrap();
        assert_eq!(shown(&medium, 0, 1), None);
        medium.write_at(0, &[7; 40_000]).unwrap();
        assert_eq!(shown(&medium, 39_999, 1).unwrap(), [7]);
        assert_eq!(shown(&medium, 39_999, 2), None);
        medium.write_at(1, &[8]).unwrap();
        assert_eq!(shown(&medium, 0, 3).unwrap(), [7, 8, 7]);
        // A little more isn't worth a new mapping; a good deal is.
        medium.write_at(40_000, &[9; 100]).unwrap();
        assert_eq!(shown(&medium, 40_000, 100), None);
        medium.write_at(40_100, &[9; 5_000]).unwrap();
        assert_eq!(shown(&medium, 39_999, 2).unwrap(), [7, 9]);
        medium.set_len(100).unwrap();
        assert_eq!(shown(&medium, 99, 2), None);
        assert_eq!(shown(&medium, 99, 1).unwrap(), [7]);
        medium.set_len(60_000).unwrap();
        assert_eq!(shown(&medium, 99, 2).unwrap(), [7, 0]);
        assert_eq!(shown(&medium, u64::MAX, 1), None);
        assert_eq!(shown(&medium, 1, usize::MAX), None);
    }

    /// Bytes that are shown don't change under the reader: a write to them waits.
    #[test]
    fn what_is_shown_stays_while_it_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let medium = FileMedium::open(&dir.path().join("medium")).unwrap();
        medium.write_at(0, &[1; 8_192]).unwrap();
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut value = 1_u8;
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    value = value.wrapping_add(1);
                    medium.write_at(0, &[value; 8_192]).unwrap();
                }
            });
            for _ in 0..200 {
                let bytes = shown(&medium, 0, 8_192).unwrap();
                assert!(bytes.iter().all(|byte| *byte == bytes[0]));
            }
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            writer.join().unwrap();
        });
    }

    #[test]
    fn a_bare_file_name_has_a_directory_too() {
        sync_directory_of(Path::new("bare")).unwrap();
    }
}
