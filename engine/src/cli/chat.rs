//! `garret chat`: one message, a line at a time, or a conversation.

use std::error::Error;
use std::io::IsTerminal;
use std::process::ExitCode;

use garret_core::id::SessionId;
use garret_core::model::Finish;
use garret_llm::encoder::Encoder;
use garret_llm::{LlamaChat, Model};
use serde::Serialize;

use super::args::Chat;
use super::interrupt::Interrupts;
use super::{Ended, ask, input, output};
use crate::agent::{Agent, Outcome};
use crate::config::Config;
use crate::names::new_session;
use crate::open::{self, Opened};
use crate::receipt::ReceiptReport;

/// The agent of the command line.
pub(super) type LocalAgent = Agent<LlamaChat, Encoder<Model>>;

/// Runs the command.
pub(super) fn run(config: &Config, chat: &Chat) -> Ended {
    if chat.once.as_ref().is_some_and(|text| text.trim().is_empty()) {
        return Err("the message is empty: give --once a text".into());
    }
    let wanted = chat.session.as_deref().map(str::parse::<SessionId>).transpose()?;
    let Opened { agent, clock, entropy } = open::agent(config)?;
    let session = match wanted {
        Some(session) => session,
        None if chat.resume => latest(&agent)?,
        None => new_session(&*clock, &*entropy)?,
    };
    let line_editing = chat.once.is_none() && !chat.stdin && std::io::stdin().is_terminal();
    let interrupts = Interrupts::watch(line_editing)?;
    let mut talk = Talk { agent, session, interrupts, json: chat.json };
    if let Some(text) = &chat.once {
        return talk.once(text);
    }
    if chat.stdin {
        return talk.lines();
    }
    ask::run(talk, config, &*clock, &*entropy)
}

fn latest(agent: &LocalAgent) -> Result<SessionId, Box<dyn Error>> {
    let latest = agent.store().latest_session()?;
    let latest = latest.ok_or("there is no conversation to go on with: leave --continue out")?;
    Ok(latest.id)
}

/// A conversation in progress.
pub(super) struct Talk {
    pub(super) agent: LocalAgent,
    pub(super) session: SessionId,
    pub(super) interrupts: Interrupts,
    json: bool,
}

impl Talk {
    fn once(&mut self, text: &str) -> Ended {
        let outcome = self.answer(text)?;
        Ok(status(outcome.finish))
    }

    /// Answers every line of standard input until it ends or a signal says so.
    fn lines(&mut self) -> Ended {
        let mut lines = input::Lines::of_stdin();
        while let Some(line) = lines.next()? {
            if line.trim().is_empty() {
                continue;
            }
            let outcome = self.answer(&line)?;
            if outcome.finish == Finish::Cancelled {
                return Ok(status(outcome.finish));
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    /// One turn, printed as it was asked for.
    fn answer(&mut self, text: &str) -> Result<Outcome, Box<dyn Error>> {
        let json = self.json;
        let mut printer = Printer::default();
        let outcome = self.turn(text, &mut |piece| {
            if !json {
                printer.print(piece);
            }
        })?;
        if json {
            output::say_json(&Answer::new(&self.session, &outcome))?;
        } else {
            printer.end()?;
        }
        Ok(outcome)
    }

    /// One turn that a signal can stop.
    pub(super) fn turn(
        &mut self,
        text: &str,
        on_text: &mut dyn FnMut(&str),
    ) -> Result<Outcome, Box<dyn Error>> {
        let (guard, stop) = self.interrupts.turn();
        let outcome = smol::block_on(self.agent.turn(&self.session, text, stop, on_text))?;
        drop(guard);
        Ok(outcome)
    }
}

/// Prints pieces of a reply on stdout and remembers the first failure.
#[derive(Default)]
pub(super) struct Printer(Option<std::io::Error>);

impl Printer {
    pub(super) fn print(&mut self, piece: &str) {
        if self.0.is_none() {
            self.0 = output::say_part(&output::tame(piece)).err();
        }
    }

    pub(super) fn end(self) -> std::io::Result<()> {
        match self.0 {
            Some(error) => Err(error),
            None => output::say(""),
        }
    }
}

fn status(finish: Finish) -> ExitCode {
    match finish {
        Finish::Cancelled => ExitCode::from(130),
        _ => ExitCode::SUCCESS,
    }
}

/// An answer on the wire.
#[derive(Serialize)]
struct Answer<'a> {
    session: &'a str,
    turn: u64,
    reply: &'a str,
    finish: &'static str,
    receipt: ReceiptReport,
}

impl<'a> Answer<'a> {
    fn new(session: &'a SessionId, outcome: &'a Outcome) -> Self {
        Self {
            session: session.as_str(),
            turn: outcome.turn,
            reply: &outcome.reply,
            finish: outcome.finish.as_str(),
            receipt: (&outcome.receipt).into(),
        }
    }
}
