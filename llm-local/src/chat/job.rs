//! Requests between the handles and the owner thread, and the flags that both see.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};

use garret_core::model::Event;
use llama_cpp_2::token::LlamaToken;
use smol::channel::Sender;

use super::cache::Seq;
use super::sampler::Sampler;
use super::{MAX_EVENTS, MAX_REQUESTS};
use crate::error::ChatError;

/// A request as the owner thread has it.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) seq: Seq,
    /// The prompt and what was generated so far.
    pub(super) tokens: Vec<LlamaToken>,
    /// Length of `tokens` at which the reply ends.
    pub(super) limit: usize,
    pub(super) output: Output,
    pub(super) control: Arc<Control>,
    /// Tokens found in the cache and not decoded for this request; `None` before the first step.
    pub(super) reused: Option<usize>,
    /// Number of `tokens` that were in the cache after the latest step.
    pub(super) held: usize,
    /// True once `Prefilled` was sent.
    pub(super) announced: bool,
    pub(super) _permit: Permit,
}

impl Job {
    pub(super) fn is(&self, control: &Arc<Control>) -> bool {
        Arc::ptr_eq(&self.control, control)
    }

    /// Takes note that the cache has the first `start` of its tokens.
    pub(super) fn found(&mut self, start: usize) {
        let again = self.held.saturating_sub(start);
        if again > 0 {
            tracing::debug!(tokens = again, "decoding again what other requests pushed out");
        }
        // More than it left there came from the main sequence; what was lost isn't reused after all.
        let more = start.saturating_sub(self.held);
        self.reused = Some((self.reused.unwrap_or(0) + more).min(start));
    }

    /// Tells the reader, once, how much of the prompt was there and how much was decoded, be it the
    /// whole or what was done until the job was cancelled.
    pub(super) fn announce(&mut self) {
        if std::mem::replace(&mut self.announced, true) {
            return;
        }
        let reused = self.reused.unwrap_or(0);
        let prefilled = self.held.saturating_sub(reused);
        self.send(Ok(Event::Prefilled { reused: count(reused), prefilled: count(prefilled) }));
    }

    /// Hands an event to the reader. There is room: a job takes no step while it waits for its
    /// reader, and the channel has places to spare for the end.
    pub(super) fn send(&self, event: ReplyEvent) {
        match (&self.output, event) {
            (Output::Reply { events, .. }, event) => {
                let _ = events.try_send(event);
            }
            (Output::Logits(sender), Err(error)) => {
                let _ = sender.try_send(Err(error));
            }
            (Output::Save { sender, .. }, Err(error)) => {
                let _ = sender.try_send(Err(error));
            }
            (Output::Restore { sender, .. }, Err(error)) => {
                let _ = sender.try_send(Err(error));
            }
            (_, Ok(_)) => {}
        }
    }

    pub(super) fn unwanted(&self) -> bool {
        let closed = match &self.output {
            Output::Reply { events, .. } => events.is_closed(),
            Output::Logits(sender) => sender.is_closed(),
            Output::Save { sender, .. } => sender.is_closed(),
            Output::Restore { sender, .. } => sender.is_closed(),
        };
        closed || self.control.cancelled()
    }

    pub(super) fn waits(&self) -> bool {
        match &self.output {
            Output::Reply { events, .. } => self.control.waits_for(events),
            Output::Logits(_) | Output::Save { .. } | Output::Restore { .. } => false,
        }
    }
}

/// A job's kind, with the way that its results go.
#[derive(Debug)]
pub(super) enum Output {
    /// Asks for a reply.
    Reply { events: Sender<ReplyEvent>, sampler: Box<Sampler> },
    /// Asks for the logits of the token after the job's tokens.
    Logits(Sender<Result<Vec<f32>, ChatError>>),
    /// Asks for the state of what the cache holds of the job's tokens.
    Save { most: u64, sender: Sender<Result<Option<Vec<u8>>, ChatError>> },
    /// Makes the cache hold the job's tokens, by a state that was saved of them.
    Restore { state: Vec<u8>, sender: Sender<Result<u32, ChatError>> },
}

/// Flags of one job, for its handle and the owner thread to tell each other.
#[derive(Debug, Default)]
pub(super) struct Control {
    pub(super) id: u64,
    pub(super) main: bool,
    pub(super) cancelled: AtomicBool,
    /// True while the reader must wake the owner thread once there is room again.
    pub(super) stalled: AtomicBool,
}

impl Control {
    pub(super) fn cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Returns true while the job must wait for its reader: once the channel is full, until half of
    /// its room is back.
    pub(super) fn waits_for(&self, events: &Sender<ReplyEvent>) -> bool {
        let stalled = self.stalled.load(Ordering::Relaxed);
        if !stalled && events.len() < MAX_EVENTS {
            return false;
        }
        self.stalled.store(true, Ordering::Relaxed);
        // Pairs with the fence in `LlamaReply::poll_event`.
        fence(Ordering::SeqCst);
        let waits = events.len() > RESUME_AT;
        self.stalled.store(waits, Ordering::Relaxed);
        waits
    }
}

/// Events left in a stalled reply's channel at which its job goes on.
pub(super) const RESUME_AT: usize = MAX_EVENTS / 2;

/// Flags shared by all handles and the owner thread.
#[derive(Debug, Default)]
pub(super) struct Signals {
    /// Ends a decode; llama.cpp reads it between two operations.
    pub(super) interrupt: Arc<AtomicBool>,
    pub(super) shutdown: AtomicBool,
    /// The running job: its id, shifted by one to hold whether it is a companion. 0 for none.
    running: AtomicU64,
    pub(super) ids: AtomicU64,
    jobs: Arc<AtomicUsize>,
}

/// The job the owner thread is working on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Running {
    pub(super) id: u64,
    pub(super) companion: bool,
}

impl Signals {
    pub(super) fn shutdown(&self) -> bool {
        self.shutdown.load(Ordering::Relaxed)
    }

    /// Notes that the owner thread is about to take a step for `job`. Whatever handles ask for from
    /// now on interrupts the step; the owner thread looks afterwards for what they asked before.
    pub(super) fn begin(&self, job: &Job) {
        let companion = u64::from(!job.seq.is_main());
        self.running.store((job.control.id << 1) | companion, Ordering::Relaxed);
        self.interrupt.store(false, Ordering::Relaxed);
        // Pairs with the fence in `interrupt_if`: either that sees this job running, or its cause
        // is seen by the owner after this.
        fence(Ordering::SeqCst);
    }

    pub(super) fn end(&self) {
        self.running.store(0, Ordering::Relaxed);
    }

    /// Interrupts the running job if `which` says so. The cause must be stored before.
    pub(super) fn interrupt_if(&self, which: impl FnOnce(Running) -> bool) {
        fence(Ordering::SeqCst);
        let running = self.running.load(Ordering::Relaxed);
        let job = Running { id: running >> 1, companion: running & 1 == 1 };
        if running != 0 && which(job) {
            self.interrupt.store(true, Ordering::Relaxed);
        }
    }

    pub(super) fn permit(&self) -> Option<Permit> {
        let more = |jobs: usize| (jobs < MAX_REQUESTS).then_some(jobs + 1);
        self.jobs.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(Permit(Arc::clone(&self.jobs)))
    }
}

/// A place among [`MAX_REQUESTS`], given back when dropped.
#[derive(Debug)]
pub(super) struct Permit(Arc<AtomicUsize>);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// An event of a reply on its way from the owner thread.
pub(super) type ReplyEvent = Result<Event<Vec<u8>>, ChatError>;

/// Returns a count of tokens as a `u32`, which that of a window is.
pub(super) fn count(tokens: usize) -> u32 {
    u32::try_from(tokens).unwrap_or(u32::MAX)
}
