//! Ctrl-C and its kin, as messages on a channel while a turn runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_signal::{Signal, Signals};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use smol::channel::{Receiver, Sender, bounded};
use smol::stream::StreamExt;

/// Watches for SIGINT, SIGTERM and SIGHUP for as long as the program runs.
///
/// During a turn a signal stops the reply, which is then kept; SIGTERM, SIGHUP or a second SIGINT
/// also end the program after that. Between turns there is nothing to keep, and a signal ends the
/// program at once; only SIGINT is left to line editing where there is any, since one that comes
/// just after a reply was meant for the reply.
#[derive(Debug)]
pub(super) struct Interrupts {
    received: Receiver<()>,
    ending: Receiver<()>,
    in_turn: Arc<AtomicBool>,
    /// Whether this turn had a signal already.
    interrupted: Arc<AtomicBool>,
}

impl Interrupts {
    /// Starts watching; `line_editing` says that lines are edited at a terminal between turns.
    pub(super) fn watch(line_editing: bool) -> std::io::Result<Self> {
        let signals = Signals::new([Signal::Int, Signal::Term, Signal::Hup])?;
        let (sender, received) = bounded(1);
        let (closer, ending) = bounded(1);
        let in_turn = Arc::new(AtomicBool::new(false));
        let terminal = tcgetattr(rustix::stdio::stdin()).ok();
        let interrupted = Arc::new(AtomicBool::new(false));
        let forward = Forward {
            sender,
            closer,
            in_turn: Arc::clone(&in_turn),
            interrupted: Arc::clone(&interrupted),
            terminal,
            line_editing,
        };
        smol::spawn(forward.run(signals)).detach();
        Ok(Self { received, ending, in_turn, interrupted })
    }

    /// Marks the beginning of a turn; the channel has a message for each signal until the guard is
    /// dropped.
    pub(super) fn turn(&self) -> (TurnGuard<'_>, &Receiver<()>) {
        while self.received.try_recv().is_ok() {}
        self.interrupted.store(false, Ordering::SeqCst);
        self.in_turn.store(true, Ordering::SeqCst);
        (TurnGuard(&self.in_turn), &self.received)
    }

    /// Whether the program was asked to end during a turn.
    pub(super) fn must_end(&self) -> bool {
        self.ending.is_closed()
    }
}

/// Ends a turn when it is dropped.
#[derive(Debug)]
pub(super) struct TurnGuard<'a>(&'a AtomicBool);

impl Drop for TurnGuard<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

struct Forward {
    sender: Sender<()>,
    closer: Sender<()>,
    in_turn: Arc<AtomicBool>,
    interrupted: Arc<AtomicBool>,
    /// How the terminal was before line editing changed it.
    terminal: Option<Termios>,
    line_editing: bool,
}

impl Forward {
    async fn run(self, mut signals: Signals) {
        while let Some(signal) = signals.next().await {
            if !self.in_turn.load(Ordering::SeqCst) {
                match signal {
                    Ok(Signal::Int) if self.line_editing => continue,
                    Ok(signal) => self.exit(128 + signal as i32),
                    Err(_) => self.exit(1),
                }
            }
            let second = self.interrupted.swap(true, Ordering::SeqCst);
            // A message that is still unread says the same.
            let _ = self.sender.try_send(());
            if second || !matches!(signal, Ok(Signal::Int)) {
                self.closer.close();
            }
        }
    }

    fn exit(&self, code: i32) -> ! {
        if let Some(terminal) = &self.terminal {
            // Best effort: the terminal may be gone, which is why we end.
            let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, terminal);
        }
        std::process::exit(code)
    }
}
