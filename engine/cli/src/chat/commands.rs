//! Commands of the conversation.

use std::collections::HashSet;
use std::error::Error;

use garret_core::id::SessionId;
use garret_core::time::{Clock, Entropy};
use garret_storage::Store;

use super::talk::Talk;
use super::why;
use crate::session_name::new_session;
use crate::{memory, output, session, tools};

/// The step after a line.
pub(super) enum NextStep {
    /// Ask for another line.
    Ask,
    /// Say this to the model.
    Say(String),
    /// Forget these lines: their conversation was deleted.
    Forget(HashSet<String>),
    /// End.
    Leave,
}

/// Runs `line` if it is a command; `//` at its beginning says that it isn't.
pub(super) fn run(
    line: &str,
    talk: &mut Talk,
    clock: &dyn Clock,
    entropy: &dyn Entropy,
) -> Result<NextStep, Box<dyn Error>> {
    let trimmed = line.trim();
    let Some(command) = trimmed.strip_prefix('/') else { return Ok(NextStep::Say(line.into())) };
    if command.starts_with('/') {
        let said = line.trim_start().strip_prefix('/').unwrap_or(line);
        return Ok(NextStep::Say(said.into()));
    }
    let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    let rest = rest.trim();
    match (name, rest) {
        ("help", "") => output::say(HELP)?,
        ("quit" | "exit", "") => return Ok(NextStep::Leave),
        ("why", "") => why::print(&talk.agent, &talk.session)?,
        ("find", "") => return Err("/find needs words to look for".into()),
        ("find", text) => memory::find(&talk.agent, text)?,
        ("grep" | "expand" | "describe" | "timeline" | "pinned" | "entity", payload) => {
            let store = talk.agent.store();
            let embedder = talk.agent.embedder();
            tools::command(store, embedder, &talk.session, name, payload)?;
        }
        ("session", "") => {
            session::list(talk.agent.store(), Some(&talk.session))?;
        }
        ("new", "") => enter(talk, new_session(clock, entropy)?),
        ("new", id) => begin(talk, id.parse()?)?,
        ("switch", "") => {
            return Err("/switch needs the name of a conversation: see /session".into());
        }
        ("switch", id) => switch(talk, &id.parse()?)?,
        ("rename", "") => return Err("/rename needs a new name for this conversation".into()),
        ("rename", id) => rename(talk, id.parse()?)?,
        ("delete", "") => {
            return Err("/delete needs the name of a conversation: see /session".into());
        }
        ("delete", id) => return delete(talk, &id.parse()?, new_session(clock, entropy)?),
        ("help" | "quit" | "exit" | "why" | "session", _) => {
            return Err(format!("/{name} takes nothing after it").into());
        }
        _ => return Err(unknown(name).into()),
    }
    Ok(NextStep::Ask)
}

fn enter(talk: &mut Talk, session: SessionId) {
    output::note(&format!("Conversation `{session}`."));
    talk.session = session;
}

fn begin(talk: &mut Talk, session: SessionId) -> Result<(), Box<dyn Error>> {
    if talk.agent.store().session(&session)?.is_some() {
        return Err(format!("conversation `{session}` exists: /switch {session}").into());
    }
    enter(talk, session);
    Ok(())
}

fn switch(talk: &mut Talk, session: &SessionId) -> Result<(), Box<dyn Error>> {
    if talk.agent.store().session(session)?.is_none() {
        return Err(format!("there is no conversation `{session}`: see /session").into());
    }
    enter(talk, session.clone());
    Ok(())
}

fn rename(talk: &mut Talk, new: SessionId) -> Result<(), Box<dyn Error>> {
    let store = talk.agent.store();
    if store.session(&talk.session)?.is_some() {
        let renamed = store.rename(&talk.session, &new);
        // A write that failed may be done all the same; both sides go by what is there.
        if renamed.is_err() && !is_moved(store, &talk.session, &new) {
            renamed?;
        }
    } else if store.session(&new)?.is_some() {
        return Err(format!("conversation `{new}` exists: choose another name").into());
    }
    if let Some(comparison) = &mut talk.comparison {
        comparison.renamed(&talk.session, &new);
    }
    enter(talk, new);
    Ok(())
}

/// Returns true when a conversation is there by its new name alone.
fn is_moved(store: &Store, from: &SessionId, to: &SessionId) -> bool {
    matches!((store.session(from), store.session(to)), (Ok(None), Ok(Some(_))))
}

fn delete(talk: &mut Talk, id: &SessionId, fresh: SessionId) -> Result<NextStep, Box<dyn Error>> {
    let said = session::delete(talk.agent.store(), id);
    let is_gone = said.is_ok() || matches!(talk.agent.store().session(id), Ok(None));
    if is_gone && let Some(comparison) = &mut talk.comparison {
        comparison.deleted(id);
    }
    let said = said?;
    output::note(&format!("Conversation `{id}` is deleted."));
    if talk.session == *id {
        enter(talk, fresh);
    }
    Ok(NextStep::Forget(said))
}

fn unknown(name: &str) -> String {
    let near = NAMES
        .iter()
        .max_by(|a, b| strsim::jaro_winkler(name, a).total_cmp(&strsim::jaro_winkler(name, b)));
    match near {
        Some(near) if strsim::jaro_winkler(name, near) > 0.7 => {
            format!("there is no command /{name}: did you mean /{near}? (// sends a line as it is)")
        }
        _ => format!("there is no command /{name}: /help lists them (// sends a line as it is)"),
    }
}

const NAMES: [&str; 15] = [
    "help", "why", "find", "grep", "expand", "describe", "timeline", "pinned", "entity", "session",
    "new", "switch", "rename", "delete", "quit",
];

const HELP: &str = "\
/why           what the last turn cost, block by block, and what was left out
/find TEXT     what was said about something, in any conversation
/grep WORDS    where words, or a /PATTERN/, stand in this conversation (in=all: in any)
/expand s3     the exact turns under a summary; /expand turn 12 the exact words of a turn
/describe s3   what a summary or a turn is, without its text
/timeline [N]  how the newest turns begin, the newest last
/pinned        facts that are always in the prompt
/entity NAME   what is known about somebody or something
/session       this conversation and the others
/new [ID]      begin a new conversation
/switch ID     go on with another conversation
/rename ID     give this conversation another name
/delete ID     remove a conversation and all its messages
/help          this list
/quit          leave (so do Ctrl-D, and Ctrl-C twice); everything said is kept
//TEXT         say a line that begins with /";
