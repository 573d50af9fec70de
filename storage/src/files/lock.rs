//! One owner per namespace: an advisory lock that the system releases when its holder dies.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

/// A held lock; released on drop, and by the system when the process ends in any way.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
    /// True if the process id can be written into it.
    signs: bool,
}

/// Why there is no lock.
#[derive(Debug)]
pub(crate) enum LockError {
    /// Somebody holds it.
    Held { pid: Option<u32> },
    /// The file can't be opened or locked.
    Io(io::Error),
}

impl Lock {
    /// Takes the lock at `path` or says who has it. Waits only for a holder that is being ended,
    /// which takes the system a moment when it has much memory to give back, and at most
    /// [`PATIENCE`]. A file that may only be read is locked as it is, without a process id.
    pub(crate) fn take(path: &Path) -> Result<Self, LockError> {
        let (mut file, signs) = open(path).map_err(LockError::Io)?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(LockError::Io(error)),
            }
            let pid = pid_in(&mut file);
            if Instant::now() >= deadline || !pid.is_some_and(is_ending) {
                return Err(LockError::Held { pid });
            }
            std::thread::sleep(PAUSE);
        }
        let mut lock = Self { file, signs };
        if let Err(error) = lock.sign() {
            // The lock holds without it; on a full disk nobody could open a store otherwise.
            tracing::warn!(%error, path = %path.display(), "can't write the process id there");
        }
        Ok(lock)
    }

    fn sign(&mut self) -> io::Result<()> {
        if !self.signs {
            return Ok(());
        }
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        writeln!(self.file, "{}", std::process::id())
    }
}

/// The file, made where it isn't there, and whether it may be written to.
fn open(path: &Path) -> io::Result<(File, bool)> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Ok(file) => Ok((file, true)),
        Err(error) => match error.kind() {
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                File::open(path).map(|file| (file, false)).map_err(|_| error)
            }
            _ => Err(error),
        },
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // So that nobody reads an id that is gone. Failing does no harm: the lock counts.
        let cleared = if self.signs { self.file.set_len(0) } else { Ok(()) };
        if let Err(error) = cleared.and_then(|()| self.file.unlock()) {
            tracing::debug!(%error, "can't clear the lock file");
        }
    }
}

fn pid_in(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.seek(SeekFrom::Start(0)).ok()?;
    file.take(32).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

/// Tells whether the process is gone, or was killed and isn't quite gone yet, as Linux tells it in
/// `/proc/PID/stat` (state and flags) and `/proc/PID/status` (signals that wait to be taken).
/// Elsewhere nobody is known to be ending.
fn is_ending(pid: u32) -> bool {
    if !cfg!(target_os = "linux") || !Path::new("/proc/self/stat").exists() {
        return false;
    }
    let stat = match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat,
        Err(error) => return is_gone(&error),
    };
    let mut fields = stat.rsplit(')').next().unwrap_or("").split_whitespace();
    let state = fields.next().unwrap_or("");
    let flags: u32 = fields.nth(5).and_then(|flags| flags.parse().ok()).unwrap_or(0);
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    ["Z", "X"].contains(&state) || flags & EXITING != 0 || kill_waits(&status)
}

/// Whether a refusal of `/proc/PID/stat` means that there is no such process: no such file, or one
/// that lost its process after it was opened.
fn is_gone(error: &io::Error) -> bool {
    error.kind() == ErrorKind::NotFound || error.raw_os_error() == Some(ESRCH)
}

/// Tells whether SIGKILL is among the pending signals of a `/proc/PID/status`.
fn kill_waits(status: &str) -> bool {
    let pending = status.lines().filter_map(|line| {
        let mask = line.strip_prefix("ShdPnd:").or_else(|| line.strip_prefix("SigPnd:"))?;
        u64::from_str_radix(mask.trim(), 16).ok()
    });
    pending.fold(0, |all, mask| all | mask) & SIGKILL != 0
}

/// Longest wait for a holder that is ending.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two looks at it.
const PAUSE: Duration = Duration::from_millis(10);
/// "No such process" of Linux.
const ESRCH: i32 = 3;
/// `PF_EXITING` of a task's flags.
const EXITING: u32 = 4;
/// The bit of signal 9.
const SIGKILL: u64 = 1 << 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_those_that_are_gone_or_killed_are_ending() {
        assert!(!is_ending(std::process::id()));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        child.wait().unwrap();
        assert!(is_ending(pid));
    }

    /// Under `hidepid`, or out of file descriptors, nothing is known of the owner.
    #[test]
    fn an_owner_that_cannot_be_looked_at_is_not_gone() {
        let [eperm, enoent, eacces, emfile] = [1, 2, 13, 24].map(io::Error::from_raw_os_error);
        assert!(is_gone(&enoent) && is_gone(&io::Error::from_raw_os_error(ESRCH)));
        assert!(!is_gone(&eperm) && !is_gone(&eacces) && !is_gone(&emfile));
    }

    #[test]
    fn a_pending_kill_is_seen() {
        let status = "Name:\tx\nSigPnd:\t0000000000000000\nShdPnd:\t0000000000000100\n";
        assert!(kill_waits(status));
        assert!(!kill_waits(&status.replace("100", "002")));
    }
}
