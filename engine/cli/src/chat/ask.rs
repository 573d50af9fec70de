//! The conversation at a terminal: a prompt, line editing, commands that begin with `/`.

use std::collections::HashSet;
use std::error::Error;
use std::io::{ErrorKind, IsTerminal};
use std::process::ExitCode;

use garret::config::Config;
use garret_core::model::Finish;
use garret_core::time::{Clock, Entropy};
use rustyline::Editor;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;

use super::commands::{self, NextStep};
use super::compare::View;
use super::talk::Talk;
use crate::{CommandResult, lines, output};

/// Talks until the user leaves.
pub(super) fn run(
    talk: &mut Talk,
    config: &Config,
    clock: &dyn Clock,
    entropy: &dyn Entropy,
) -> CommandResult {
    let mut prompt = Prompt::new(config)?;
    greet(talk)?;
    let mut leaving = false;
    let mut status = ExitCode::SUCCESS;
    loop {
        match talk.idle_while(|| prompt.read()) {
            Ok(line) if line.trim().is_empty() => {}
            Ok(line) => {
                leaving = false;
                match commands::run(&line, talk, clock, entropy) {
                    Ok(NextStep::Ask) => {}
                    Ok(NextStep::Leave) => break,
                    Ok(NextStep::Say(text)) => leaving = say(talk, &text)?,
                    Ok(NextStep::Forget(said)) => prompt.forget(&said)?,
                    Err(error) => output::complain(error.as_ref()),
                }
                if let Some(asked) = talk.interrupts.must_end() {
                    status = ExitCode::from(asked);
                    break;
                }
            }
            Err(ReadlineError::Interrupted) if leaving => break,
            Err(ReadlineError::Interrupted) => {
                leaving = true;
                output::note("(Ctrl-C again, Ctrl-D or /quit leaves; everything said is kept)");
            }
            Err(ReadlineError::Eof) => break,
            Err(ReadlineError::Io(error)) if error.kind() == ErrorKind::InvalidData => {
                return Err("a line of the input isn't UTF-8: convert it, then go on".into());
            }
            Err(error) => return Err(error.into()),
        }
    }
    prompt.save();
    Ok(status)
}

fn greet(talk: &Talk) -> Result<(), Box<dyn Error>> {
    let turns = talk.agent.store().session(&talk.session)?.map_or(0, |session| session.turns);
    let session = &talk.session;
    output::note(&match turns {
        0 => format!("New conversation `{session}`. /help lists commands, Ctrl-C stops a reply."),
        _ => format!("Conversation `{session}` with {turns} earlier turns. /help lists commands."),
    });
    if talk.comparison.is_some() {
        output::note(
            "Every message is answered twice, with and without Garret; /why is about the one with.",
        );
    }
    Ok(())
}

/// Holds one turn at the terminal and returns true when it was interrupted. A failed turn is
/// reported, and the conversation goes on.
fn say(talk: &mut Talk, text: &str) -> Result<bool, Box<dyn Error>> {
    if let Some(compared) = talk.compare(text, View::of_stdout())? {
        return Ok(compared.finish == Finish::Cancelled);
    }
    let outcome = talk.turn(text, &mut output::say_part);
    output::say("")?;
    match outcome {
        Ok(outcome) => {
            match outcome.finish {
                Finish::Cancelled => output::note("(interrupted; what was said is kept)"),
                Finish::Length => output::note("(stopped at the length limit; see /why)"),
                _ => {}
            }
            Ok(outcome.finish == Finish::Cancelled)
        }
        Err(error) => {
            output::complain(error.as_ref());
            Ok(false)
        }
    }
}

/// The prompt that lines are typed at, with the lines of before.
struct Prompt {
    editor: Editor<(), FileHistory>,
    history: std::path::PathBuf,
    terminal: bool,
}

impl Prompt {
    fn new(config: &Config) -> Result<Self, Box<dyn Error>> {
        let settings = lines::settings()?;
        let past = FileHistory::with_config(&settings);
        let mut editor = Editor::with_history(settings, past)?;
        let history = lines::file(config)?;
        if history.exists()
            && let Err(error) = editor.load_history(&history)
        {
            output::note(&format!("(line history not loaded: {error})"));
        }
        Ok(Self { editor, history, terminal: std::io::stdin().is_terminal() })
    }

    fn read(&mut self) -> Result<String, ReadlineError> {
        let line = self.editor.readline(if self.terminal { "> " } else { "" })?;
        if self.terminal {
            self.editor.add_history_entry(&line)?;
        }
        Ok(line)
    }

    /// Forgets lines that belonged to a conversation that is no more.
    fn forget(&mut self, said: &HashSet<String>) -> rustyline::Result<()> {
        lines::forget(self.editor.history_mut(), said)?;
        self.save();
        Ok(())
    }

    fn save(&mut self) {
        if self.terminal
            && let Err(error) = self.editor.save_history(&self.history)
        {
            output::note(&format!("(line history not saved: {error})"));
        }
    }
}
