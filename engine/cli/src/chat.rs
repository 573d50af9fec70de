//! `garret chat`: one message, a line at a time, or a conversation.

use std::error::Error;
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;

use garret::Cancel;
use garret::agent::{Outcome, When};
use garret::config::{Config, SnapshotPolicy};
use garret::names::new_session;
use garret::open::{self, LocalAgent};
use garret::receipt::{ReceiptReport, RoundReport};
use garret_core::id::SessionId;
use garret_core::model::Finish;
use garret_core::scan::Companion;
use garret_hal::clock::SystemClock;
use garret_hal::entropy::SystemEntropy;
use garret_storage::{Store, WriteError};
use serde::Serialize;
use smol::channel::bounded;
use smol::future::or;

use super::args::Chat;
use super::compare::{self, Comparison, LocalBaseline, View};
use super::interrupt::Interrupts;
use super::{Ended, ask, input, output};
use crate::ab::Export;

/// Runs the command.
pub(super) fn run(config: &Config, chat: &Chat) -> Ended {
    if chat.once.as_ref().is_some_and(|text| text.trim().is_empty()) {
        return Err("the message is empty: give --once a text".into());
    }
    let wanted = chat.session.as_deref().map(str::parse::<SessionId>).transpose()?;
    let (clock, entropy) = (Arc::new(SystemClock::new()), Arc::new(SystemEntropy));
    let prepared = if chat.ab { open::prepare_two(config) } else { open::prepare(config) }?;
    let session = match wanted {
        Some(session) => session,
        None if chat.resume => latest(&prepared.store)?,
        None => new_session(&*clock, &*entropy)?,
    };
    let export = chat.ab_export.as_deref().map(Export::create).transpose()?;
    let (agent, comparison) = if chat.ab {
        let (agent, second) = prepared.load_two(config, clock.clone(), entropy.clone())?;
        let baseline = LocalBaseline::new(
            second.model,
            second.encoder,
            clock.clone(),
            entropy.clone(),
            &second.options,
        )?;
        (agent, Some(Comparison::new(baseline, export)))
    } else {
        (prepared.load(config, clock.clone(), entropy.clone())?, None)
    };
    let line_editing = chat.once.is_none() && !chat.stdin && std::io::stdin().is_terminal();
    let interrupts = Interrupts::watch(line_editing)?;
    let snapshots = Snapshots::new(config);
    let json = chat.json;
    let mut talk = Talk { agent, session, interrupts, snapshots, json, comparison };
    talk.resume();
    let ended = match &chat.once {
        Some(text) => talk.once(text),
        None if chat.stdin => talk.lines(),
        None => ask::run(&mut talk, config, &*clock, &*entropy),
    };
    let compared = talk.comparison.as_mut().map_or(Ok(()), |it| it.end(json));
    let ended = ended?;
    compared?;
    talk.keep();
    Ok(ended)
}

fn latest(store: &Store) -> Result<SessionId, Box<dyn Error>> {
    let latest = store.latest_session()?;
    let latest = latest.ok_or("there is no conversation to go on with: leave --continue out")?;
    Ok(latest.id)
}

/// A conversation in progress.
pub(super) struct Talk {
    pub(super) agent: LocalAgent,
    pub(super) session: SessionId,
    pub(super) interrupts: Interrupts,
    snapshots: Snapshots,
    json: bool,
    /// What answers beside the agent, if anything does.
    pub(super) comparison: Option<Comparison>,
}

/// When and how much of the KV cache is kept.
#[derive(Clone, Copy, Debug)]
struct Snapshots {
    policy: SnapshotPolicy,
    /// In bytes.
    most: u64,
}

impl Snapshots {
    fn new(config: &Config) -> Self {
        let most = u64::from(config.snapshot_mib.value) << 20;
        Self { policy: config.snapshot.value, most }
    }
}

impl Talk {
    fn once(&mut self, text: &str) -> Ended {
        let finish = self.answer(text)?;
        self.summarise();
        Ok(self.status(finish))
    }

    /// Answers every line of standard input until it ends or a signal says so.
    fn lines(&mut self) -> Ended {
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

    /// Sums older turns up if the prompt is too full for another one: nobody may ever be idle.
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

    /// Has the model go on where the last run left it.
    fn resume(&mut self) {
        if self.snapshots.policy != SnapshotPolicy::Off {
            let tokens = self.agent.resume(&self.session);
            tracing::debug!(tokens, "brought back from a snapshot");
        }
    }

    /// Keeps the model's state for the next run. A failure costs no more than time at the next start.
    fn keep(&mut self) {
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

    /// One turn, printed as it was asked for; why its reply ended.
    fn answer(&mut self, text: &str) -> Result<Finish, Box<dyn Error>> {
        if self.comparison.is_some() {
            let view = if self.json { View::Json } else { View::Lines };
            let compared = compare::run(self, text, view)?;
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

    /// One turn that a signal can stop; so does a failure to print it, which is returned once what
    /// was said is kept.
    pub(super) fn turn(
        &mut self,
        text: &str,
        print: &mut dyn FnMut(&str) -> io::Result<()>,
    ) -> Result<Outcome, Box<dyn Error>> {
        let Self { agent, session, interrupts, .. } = self;
        let (outcome, printed) = stoppable(interrupts, print, |cancel, on_text| {
            smol::block_on(agent.turn(session, text, cancel, on_text))
        });
        let outcome = outcome?;
        printed?;
        Ok(outcome)
    }
}

/// What `run` comes to, which a signal can stop, as can a failure to print; and that failure.
pub(super) fn stoppable<T>(
    interrupts: &Interrupts,
    print: &mut dyn FnMut(&str) -> io::Result<()>,
    run: impl FnOnce(&Cancel, &mut dyn FnMut(&str)) -> T,
) -> (T, io::Result<()>) {
    let (guard, cancel) = interrupts.turn();
    let mut printed = Ok(());
    let mut on_text = |piece: &str| {
        if printed.is_ok() {
            printed = print(piece);
            if printed.is_err() {
                interrupts.stop();
            }
        }
    };
    let done = run(&cancel, &mut on_text);
    drop(guard);
    (done, printed)
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
    /// What was looked up on the way; left out where nothing was.
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
