//! Work for the time in which nobody waits, on a thread of its own that the next message stops.
//!
//! - The conversation as the next prompt will show it is brought into the model's cache. A turn that
//!   was answered with a block of memory left its words there, and the next prompt has the turn
//!   without them.
//! - What was said and has no vector yet gets one.
//!
//! Whatever was done when it is stopped is kept, and the rest is done later.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use garret_core::assemble::{self, Scratch};
use garret_core::id::{SessionId, TurnSeq};
use garret_core::model::{ChatModel, Event, ModelRole, Reply, Request, Sampling};
use garret_core::prompt::{Message, PromptEncoder, Role};
use garret_storage::Store;
use smol::channel::{Receiver, Sender, bounded};
use smol::future::{or, poll_fn};

use super::Agent;
use crate::embed::{Embed, embed_all};

/// What is to be done, and what is being done.
#[derive(Debug, Default)]
pub(super) struct Idle {
    /// The conversation that the next prompt may go on with.
    pub(super) unsettled: Option<Unsettled>,
    work: Option<Work>,
}

/// A conversation of which the cache holds something that no later prompt has.
#[derive(Clone, Debug)]
pub(super) struct Unsettled {
    pub(super) session: SessionId,
    /// Its oldest turn in the prompt.
    pub(super) from: TurnSeq,
    /// Its newest turn.
    pub(super) turn: TurnSeq,
}

/// What was done while nobody waited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rested {
    /// Tokens that were brought into the model's cache.
    pub prefilled: u32,
    /// Messages and facts that were given vectors.
    pub embedded: usize,
}

impl Idle {
    /// Has the work stop, without waiting until it has.
    pub(super) fn stop(&mut self) {
        self.unsettled = None;
        self.stop_work();
    }

    fn stop_work(&self) {
        if let Some(work) = &self.work {
            work.stop();
        }
    }

    fn join(&mut self) -> Rested {
        let Some(Work { stop, thread, .. }) = self.work.take() else { return Rested::default() };
        let done = thread.join();
        // Until here: dropped, it would end the work.
        drop(stop);
        match done {
            Ok(rested) => rested,
            Err(_) => {
                tracing::error!(
                    "the work between two turns panicked; it is begun anew after the next"
                );
                Rested::default()
            }
        }
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        self.stop();
        self.join();
    }
}

#[derive(Debug)]
struct Work {
    stopped: Arc<AtomicBool>,
    /// Closed when it is to stop.
    stop: Sender<()>,
    thread: JoinHandle<Rested>,
}

impl Work {
    fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.stop.close();
    }
}

impl<M: ChatModel, E: PromptEncoder> Agent<M, E>
where
    M::Reply: Send + 'static,
    E::Error: 'static,
{
    /// Begins what can be done for later turns while nobody waits, and returns. The next turn stops
    /// it.
    pub fn rest(&mut self) {
        self.idle.stop_work();
        self.idle.join();
        let reply = self.idle.unsettled.take().and_then(|unsettled| self.settle(&unsettled));
        let embedder = self.parts.embedder.clone();
        if reply.is_none() && embedder.is_none() {
            return;
        }
        let (stop, stopping) = bounded(1);
        let stopped = Arc::new(AtomicBool::new(false));
        let job = Job { reply, embedder, store: Arc::clone(&self.parts.store) };
        let flag = Arc::clone(&stopped);
        let spawned = thread::Builder::new()
            .name("garret-idle".into())
            .spawn(move || job.run(&stopping, &flag));
        match spawned {
            Ok(thread) => self.idle.work = Some(Work { stopped, stop, thread }),
            Err(error) => tracing::warn!(%error, "no thread for the work between two turns"),
        }
    }

    /// Waits until what [`Agent::rest`] began is done.
    pub fn rested(&mut self) -> Rested {
        self.idle.join()
    }

    /// Has the model bring the conversation into its cache.
    fn settle(&mut self, unsettled: &Unsettled) -> Option<M::Reply> {
        let length = self.settled_prompt(unsettled)?;
        let request = Request {
            role: ModelRole::Main,
            prompt: self.tokens.get(..length)?,
            max_tokens: 0,
            sampling: Sampling { temperature: 0.0, ..Sampling::default() },
            grammar: None,
        };
        let started = self.parts.model.start(request);
        started
            .inspect_err(|error| tracing::debug!(%error, "the next turn prefills this one again"))
            .ok()
    }

    /// Encodes a conversation as the next prompt begins, into `self.tokens`; its length. `None` when
    /// the next prompt won't begin that way or can't be known.
    fn settled_prompt(&mut self, unsettled: &Unsettled) -> Option<usize> {
        let Unsettled { session, from, turn } = unsettled;
        let system = self.system(session).ok()?;
        self.counts.turn_to(session);
        let limits = self.limits();
        let (encoder, counts) = (&mut self.parts.encoder, &mut self.counts);
        let tokens = &mut self.tokens;
        let read = self.parts.store.with_turns(session, *from, |views| {
            let whole = views.partition_point(|view| view.seq <= *turn);
            let past = counts.shown(encoder, &views[..whole], limits).ok()?;
            if past.len() != whole {
                return None;
            }
            let history: Vec<_> = past.iter().map(|past| past.turn()).collect();
            let mut messages = vec![Message::new(Role::User, ""); 2 * history.len() + 1];
            let mut ends = vec![0; messages.len()];
            let scratch = Scratch { messages: &mut messages, ends: &mut ends, tokens };
            assemble::settled(encoder, &system, &history, scratch).ok().map(<[_]>::len)
        });
        read.ok().flatten()
    }
}

/// The work of one rest.
struct Job<R> {
    /// Dropping it stops it.
    reply: Option<R>,
    embedder: Option<Arc<dyn Embed>>,
    store: Arc<Store>,
}

impl<R: Reply> Job<R> {
    /// First the cache, which the next turn needs, then the vectors.
    fn run(self, stopping: &Receiver<()>, stopped: &AtomicBool) -> Rested {
        let prefilled = self.reply.map_or(0, |reply| smol::block_on(prefill(reply, stopping)));
        let embedded = self.embedder.map_or(0, |embedder| {
            let mut go_on = |_| !stopped.load(Ordering::Relaxed);
            embed_all(&self.store, &*embedder, &mut go_on).unwrap_or_else(|error| {
                tracing::warn!(%error, "what was said gets its vectors later");
                0
            })
        });
        Rested { prefilled, embedded }
    }
}

/// Follows a request that only prefills to its end; the number of tokens.
async fn prefill(mut reply: impl Reply, stopping: &Receiver<()>) -> u32 {
    let mut prefilled = 0;
    let follow = async {
        while let Some(Ok(event)) = poll_fn(|cx| reply.poll_event(cx)).await {
            if let Event::Prefilled { prefilled: tokens, .. } = event {
                prefilled = tokens;
            }
        }
    };
    let stop = async {
        // Nothing is ever sent: this ends when the channel is closed.
        let _ = stopping.recv().await;
    };
    or(follow, stop).await;
    prefilled
}
