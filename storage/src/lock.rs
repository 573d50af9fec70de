//! One owner per namespace: an advisory lock that the system releases when its holder dies.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

/// A held lock; released on drop, and by the system when the process ends in any way.
#[derive(Debug)]
pub(crate) struct Lock(File);

/// Why there is no lock.
#[derive(Debug)]
pub(crate) enum LockError {
    /// Somebody holds it.
    Held { pid: Option<u32> },
    /// The file can't be opened or locked.
    Io(io::Error),
}

impl Lock {
    /// Takes the lock at `path` or says who has it; never waits.
    pub(crate) fn take(path: &Path) -> Result<Self, LockError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path).map_err(LockError::Io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(LockError::Held { pid: pid_in(&mut file) });
            }
            Err(TryLockError::Error(error)) => return Err(LockError::Io(error)),
        }
        let mut lock = Self(file);
        if let Err(error) = lock.sign() {
            // The lock holds without it; on a full disk nobody could open a store otherwise.
            tracing::warn!(%error, path = %path.display(), "can't write the process id there");
        }
        Ok(lock)
    }

    fn sign(&mut self) -> io::Result<()> {
        self.0.set_len(0)?;
        self.0.seek(SeekFrom::Start(0))?;
        writeln!(self.0, "{}", std::process::id())
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // So that nobody reads an id that is gone. Failing does no harm: the lock counts.
        if let Err(error) = self.0.set_len(0).and_then(|()| self.0.unlock()) {
            tracing::debug!(%error, "can't clear the lock file");
        }
    }
}

fn pid_in(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(32).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
