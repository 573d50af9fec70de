//! A conversation in progress: its turns, the work between them, what is kept for the next run.

use std::error::Error;
use std::io;
use std::process::ExitCode;
use std::thread;

use garret::agent::{Outcome, When};
use garret::config::{Config, SnapshotPolicy};
use garret::open::LocalAgent;
use garret::receipt::{ReceiptReport, RoundReport};
use garret_core::id::SessionId;
use garret_core::model::Finish;
use garret_core::scan::Companion;
use garret_storage::WriteError;
use serde::Serialize;
use smol::channel::bounded;
use smol::future::or;

use super::compare::{ComparedTurn, Comparison, View};
use super::input;
use super::interrupt::Interrupts;
use crate::{CommandResult, output};

/// A conversation in progress.
pub(super) struct Talk {
    pub(super) agent: LocalAgent,
    pub(super) session: SessionId,
    pub(super) interrupts: Interrupts,
    pub(super) snapshots: Snapshots,
    pub(super) json: bool,
    /// The side that answers beside the agent, if there is one.
    pub(super) comparison: Option<Comparison>,
}

/// The moments at which the KV cache is kept, and the most of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Snapshots {
    policy: SnapshotPolicy,
    /// Most bytes of a snapshot.
    most: u64,
}

impl Snapshots {
    pub(super) fn new(config: &Config) -> Self {
        let most = u64::from(config.snapshot_mib.value) << 20;
        Self { policy: config.snapshot.value, most }
    }
}

impl Talk {
    pub(super) fn once(&mut self, text: &str) -> CommandResult {
        let finish = self.answer(text)?;
        self.summarise();
        Ok(self.status(finish))
    }

    /// Answers every line of standard input until it ends or a signal says so.
    pub(super) fn lines(&mut self) -> CommandResult {
        let mut lines = input::Lines::of_stdin();
        while let Some(line) = self.idle_while(|| lines.next())? {
            if line.trim().is_empty() {
                continue;
            }
            let finish = self.answer(&line)?;
            if finish == Finish::Cancelled || self.interrupts.must_end().is_some() {
                return Ok(self.status(finish));
            }
            self.summarise();
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Summarises older turns if the prompt is too full for another one: nobody may ever be idle.
    fn summarise(&mut self) {
        smol::block_on(self.agent.summarise(&self.session, When::Pressed));
    }

    fn status(&self, finish: Finish) -> ExitCode {
        match (self.interrupts.must_end(), finish) {
            (Some(asked), _) => ExitCode::from(asked),
            (None, Finish::Cancelled) => ExitCode::from(128 + 2),
            _ => ExitCode::SUCCESS,
        }
    }

    /// Runs `wait`, which waits for somebody, and meanwhile does what can be done for later turns.
    pub(super) fn idle_while<T>(&mut self, wait: impl FnOnce() -> T) -> T {
        let (waiting, over) = bounded::<()>(1);
        let Self { agent, session, snapshots, .. } = self;
        let idle = async {
            agent.idle(session).await;
            if snapshots.policy == SnapshotPolicy::Idle
                && let Some(snapshot) = agent.snapshot(session, IDLE_TOKENS, snapshots.most)
            {
                // Whoever comes meanwhile doesn't wait for the device.
                smol::unblock(move || written(snapshot.write())).await;
            }
        };
        let end = async {
            // Nothing is ever sent: this ends when the channel is closed.
            let _ = over.recv().await;
        };
        thread::scope(|scope| {
            let worker = thread::Builder::new().name("garret-idle".into());
            let worker = worker.spawn_scoped(scope, move || smol::block_on(or(end, idle)));
            if let Err(error) = worker {
                tracing::warn!(%error, "no thread for the work between two turns");
            }
            let waited = wait();
            drop(waiting);
            waited
        })
    }

    /// Brings the model to where the last run left it.
    pub(super) fn resume(&mut self) {
        if self.snapshots.policy != SnapshotPolicy::Off {
            let tokens = self.agent.resume(&self.session);
            tracing::debug!(tokens, "brought back from a snapshot");
        }
    }

    /// Keeps the model's state for the next run. A failure costs no more than time at the next
    /// start.
    pub(super) fn keep(&mut self) {
        let Snapshots { policy, most } = self.snapshots;
        if policy == SnapshotPolicy::Off {
            return;
        }
        if let Some(snapshot) = self.agent.snapshot(&self.session, 0, most) {
            written(snapshot.write());
        }
        if let Some(snapshot) = self.agent.prefix_snapshot(most) {
            written(snapshot.write());
        }
    }

    /// Answers a message, printed as it was asked for, and returns why the reply ended.
    fn answer(&mut self, text: &str) -> Result<Finish, Box<dyn Error>> {
        let view = if self.json { View::Json } else { View::Lines };
        if let Some(compared) = self.compare(text, view)? {
            return compared.error.map_or(Ok(compared.finish), |error| Err(error.into()));
        }
        if self.json {
            let outcome = self.turn(text, &mut |_| Ok(()))?;
            output::say_json(&Answer::new(&self.session, &outcome))?;
            return Ok(outcome.finish);
        }
        let outcome = self.turn(text, &mut output::say_part)?;
        output::say("")?;
        Ok(outcome.finish)
    }

    /// Answers a message with and without Garret and shows both answers; `None` where there is
    /// nothing to compare with.
    pub(super) fn compare(
        &mut self,
        text: &str,
        view: View,
    ) -> Result<Option<ComparedTurn>, Box<dyn Error>> {
        let Self { agent, session, interrupts, comparison, .. } = self;
        let Some(comparison) = comparison else { return Ok(None) };
        comparison.run(agent, session, interrupts, text, view).map(Some)
    }

    /// Answers a message in one turn that a signal can stop; so does a failure to print it, which
    /// is returned once what was said is kept.
    pub(super) fn turn(
        &mut self,
        text: &str,
        print: &mut dyn FnMut(&str) -> io::Result<()>,
    ) -> Result<Outcome, Box<dyn Error>> {
        let Self { agent, session, interrupts, .. } = self;
        let (outcome, printed) = interrupts.stoppable(print, |cancel, on_text| {
            smol::block_on(agent.turn(session, text, cancel, on_text))
        });
        let outcome = outcome?;
        printed?;
        Ok(outcome)
    }
}

fn written(snapshot: Result<bool, WriteError>) {
    if let Err(error) = snapshot {
        tracing::warn!(%error, "no snapshot is kept: the next start reads the conversation again");
    }
}

/// Tokens that must be new before a snapshot is written while nobody waits: each is a whole file.
const IDLE_TOKENS: usize = 1_024;

/// An answer on the wire.
#[derive(Serialize)]
struct Answer<'a> {
    session: &'a str,
    turn: u64,
    reply: &'a str,
    finish: &'static str,
    receipt: ReceiptReport,
    /// Lookups on the way; left out where there are none.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tools: &'a [RoundReport],
    /// Companions that the model asked for; left out where there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    companions: Vec<&'static str>,
}

impl<'a> Answer<'a> {
    fn new(session: &'a SessionId, outcome: &'a Outcome) -> Self {
        Self {
            session: session.as_str(),
            turn: outcome.turn,
            reply: &outcome.reply,
            finish: outcome.finish.as_str(),
            receipt: ReceiptReport::new(&outcome.receipt, &outcome.memory),
            tools: &outcome.rounds,
            companions: outcome.companions.iter().map(Companion::as_str).collect(),
        }
    }
}
