//! Ctrl-C and its kin, which cancel the turn that runs.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_signal::{Signal, Signals};
use garret::Cancel;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use smol::stream::StreamExt;

/// Watches for SIGINT, SIGTERM and SIGHUP for as long as the program runs, unless it was started
/// with them ignored, as `nohup` does.
///
/// During a turn a signal stops the reply, which is then kept; SIGTERM, SIGHUP or a second SIGINT
/// also end the program after that. Between turns there is nothing to keep, and a signal ends the
/// program at once; only SIGINT is left to line editing where there is any, since one that comes
/// just after a reply was meant for the reply.
#[derive(Debug)]
pub(super) struct Interrupts {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    in_turn: AtomicBool,
    /// Ends the reply of this turn.
    cancel: Mutex<Cancel>,
    /// True once this turn had a signal.
    interrupted: AtomicBool,
    /// Exit status that a signal asked for during a turn; 0 when none did.
    status: AtomicU8,
}

impl Interrupts {
    /// Starts watching; `line_editing` says that lines are edited at a terminal between turns.
    pub(super) fn watch(line_editing: bool) -> io::Result<Self> {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = ignored(&status);
        let watched = [Signal::Int, Signal::Term, Signal::Hup];
        let signals = Signals::new(
            watched.into_iter().filter(|signal| ignored & (1 << (*signal as u32 - 1)) == 0),
        )?;
        let shared = Arc::new(Shared::default());
        let forward = SignalForwarder {
            shared: Arc::clone(&shared),
            terminal: tcgetattr(rustix::stdio::stdin()).ok(),
            line_editing,
        };
        smol::spawn(forward.run(signals)).detach();
        Ok(Self { shared })
    }

    /// Marks the beginning of a turn, which every signal cancels until the guard is dropped.
    fn turn(&self) -> (TurnGuard<'_>, Cancel) {
        let cancel = Cancel::new();
        *self.shared.cancel.lock().unwrap_or_else(PoisonError::into_inner) = cancel.clone();
        self.shared.interrupted.store(false, Ordering::SeqCst);
        self.shared.in_turn.store(true, Ordering::SeqCst);
        (TurnGuard(&self.shared), cancel)
    }

    /// Runs a turn that a signal can stop, as can a failure to print. Returns what `run` returned,
    /// and that failure.
    pub(super) fn stoppable<T>(
        &self,
        print: &mut dyn FnMut(&str) -> io::Result<()>,
        run: impl FnOnce(&Cancel, &mut dyn FnMut(&str)) -> T,
    ) -> (T, io::Result<()>) {
        let (guard, cancel) = self.turn();
        let mut printed = Ok(());
        let mut on_text = |piece: &str| {
            if printed.is_ok() {
                printed = print(piece);
                if printed.is_err() {
                    self.shared.cancel();
                }
            }
        };
        let done = run(&cancel, &mut on_text);
        drop(guard);
        (done, printed)
    }

    /// Returns the exit status with which the program was asked to end during a turn.
    pub(super) fn must_end(&self) -> Option<u8> {
        Some(self.shared.status.load(Ordering::SeqCst)).filter(|status| *status != 0)
    }
}

impl Shared {
    fn cancel(&self) {
        self.cancel.lock().unwrap_or_else(PoisonError::into_inner).cancel();
    }
}

/// Ends a turn when it is dropped.
#[derive(Debug)]
struct TurnGuard<'a>(&'a Shared);

impl Drop for TurnGuard<'_> {
    fn drop(&mut self) {
        self.0.in_turn.store(false, Ordering::SeqCst);
    }
}

struct SignalForwarder {
    shared: Arc<Shared>,
    /// The terminal's settings before line editing changed them.
    terminal: Option<Termios>,
    line_editing: bool,
}

impl SignalForwarder {
    async fn run(self, mut signals: Signals) {
        while let Some(signal) = signals.next().await {
            let Ok(signal) = signal else { continue };
            let status = 128 + signal as u8;
            if !self.shared.in_turn.load(Ordering::SeqCst) {
                if signal == Signal::Int && self.line_editing {
                    continue;
                }
                self.exit(status);
            }
            let second = self.shared.interrupted.swap(true, Ordering::SeqCst);
            self.shared.cancel();
            if second || signal != Signal::Int {
                self.shared.status.store(status, Ordering::SeqCst);
            }
        }
    }

    fn exit(&self, status: u8) -> ! {
        if let Some(terminal) = &self.terminal {
            // Best effort: the terminal may be gone, which is why we end.
            let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, terminal);
        }
        std::process::exit(status.into())
    }
}

/// The mask of ignored signals in a `/proc/PID/status`; bit N-1 is signal N.
fn ignored(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_of_ignored_signals_is_found() {
        let status = "Name:\tx\nSigBlk:\t00000000000000ff\nSigIgn:\t0000000000000001\n";
        assert_eq!(ignored(status), 1);
        assert_eq!(ignored("Name:\tx\n"), 0);
    }
}
