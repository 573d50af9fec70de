//! `garret session`: conversations without a model.

use std::collections::HashSet;
use std::error::Error;
use std::process::ExitCode;

use garret::config::Config;
use garret::open;
use garret_core::id::SessionId;
use garret_storage::{SessionInfo, Store};
use serde::Serialize;

use super::args::{Session, SessionAction};
use super::dates::when;
use super::{CommandResult, catch_up, export, lines, output, tools};

/// Runs the command.
pub(super) fn run(config: &Config, session: &Session) -> CommandResult {
    if let SessionAction::CatchUp { ids } = &session.action {
        return catch_up::run(config, ids);
    }
    let store = open::existing_store(config)?;
    match &session.action {
        SessionAction::List { json: false } => list(&store, None)?,
        SessionAction::List { json: true } => {
            for info in store.sessions()? {
                output::say_json(&ListedSession::from(&info))?;
            }
        }
        SessionAction::Show { id, json } => show(&store, &id.parse()?, *json)?,
        SessionAction::Rename { id, new } => store.rename(&id.parse()?, &new.parse()?)?,
        SessionAction::Delete { id } => {
            let said = delete(&store, &id.parse()?)?;
            lines::forget_in_file(config, &said, None)?;
        }
        SessionAction::Export(args) => export::run(config, &store, args)?,
        SessionAction::Grep(args) => tools::run(&store, "grep", args)?,
        SessionAction::Describe(args) => tools::run(&store, "describe", args)?,
        SessionAction::Expand(args) => tools::run(&store, "expand", args)?,
        SessionAction::Timeline(args) => tools::run(&store, "timeline", args)?,
        SessionAction::CatchUp { .. } => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints all conversations, the last used first, `current` with a mark.
pub(super) fn list(store: &Store, current: Option<&SessionId>) -> Result<(), Box<dyn Error>> {
    let sessions = store.sessions()?;
    if let Some(current) = current.filter(|id| !sessions.iter().any(|info| info.id == **id)) {
        output::say(&format!("* {current}  (nothing said yet)"))?;
    }
    if sessions.is_empty() && current.is_none() {
        output::note("There are no conversations yet: `garret chat` begins one.");
    }
    for id in store.damaged_sessions()? {
        output::note(&format!("Conversation `{id}` is damaged: it can only be deleted."));
    }
    for info in sessions {
        let mark = if current == Some(&info.id) { "* " } else { "  " };
        let turns = if info.turns == 1 { "turn" } else { "turns" };
        let when = when(info.updated_ms);
        output::say(&format!("{mark}{}  {} {turns}, last used {when}", info.id, info.turns))?;
    }
    Ok(())
}

/// Deletes a conversation and returns what the user said in it.
pub(super) fn delete(store: &Store, id: &SessionId) -> Result<HashSet<String>, Box<dyn Error>> {
    let said = match store.session(id) {
        Ok(Some(_)) => store
            .with_turns(id, 1, |turns| turns.iter().map(|turn| turn.user.to_owned()).collect())?,
        _ => HashSet::new(),
    };
    store.delete(id)?;
    Ok(said)
}

fn show(store: &Store, id: &SessionId, json: bool) -> Result<(), Box<dyn Error>> {
    if store.session(id)?.is_none() {
        return Err(format!("there is no conversation `{id}`: see `garret session list`").into());
    }
    let lines: Result<Vec<String>, serde_json::Error> = store.with_turns(id, 1, |turns| {
        let lines = turns.iter().map(|turn| {
            let said = TurnLine {
                turn: turn.seq,
                accepted: when(turn.accepted_ms),
                user: turn.user,
                reply: turn.reply.as_ref().map(|reply| reply.text),
                finish: match &turn.reply {
                    Some(reply) => Some(reply.finish.as_str()),
                    None if turn.reply_damaged => Some("damaged"),
                    None => None,
                },
            };
            if json { serde_json::to_string(&said) } else { Ok(said.for_people()) }
        });
        lines.collect()
    })?;
    for line in lines? {
        if json { output::say_exactly(&line)? } else { output::say(&line)? }
    }
    for damaged in store.damaged_turns(id)?.iter().filter(|damaged| !damaged.only_reply) {
        let lost = DamagedTurnLine { turn: damaged.seq, damaged: damaged.what };
        if json { output::say_json(&lost)? } else { output::say(&lost.for_people())? }
    }
    Ok(())
}

#[derive(Serialize)]
struct ListedSession<'a> {
    session: &'a str,
    turns: u64,
    created: String,
    updated: String,
}

impl<'a> From<&'a SessionInfo> for ListedSession<'a> {
    fn from(info: &'a SessionInfo) -> Self {
        Self {
            session: info.id.as_str(),
            turns: info.turns,
            created: when(info.created_ms),
            updated: when(info.updated_ms),
        }
    }
}

/// A turn that can't be read.
#[derive(Serialize)]
struct DamagedTurnLine {
    turn: u64,
    damaged: &'static str,
}

impl DamagedTurnLine {
    fn for_people(&self) -> String {
        format!("--- turn {} is damaged and can't be shown: {}", self.turn, self.damaged)
    }
}

#[derive(Serialize)]
struct TurnLine<'a> {
    turn: u64,
    accepted: String,
    user: &'a str,
    reply: Option<&'a str>,
    finish: Option<&'static str>,
}

impl TurnLine<'_> {
    fn for_people(&self) -> String {
        let reply = match (self.reply, self.finish) {
            (Some(reply), Some("stop")) => output::escape_control(reply).into_owned(),
            (Some(reply), finish) => {
                format!("{} [{}]", output::escape_control(reply), finish.unwrap_or("unknown end"))
            }
            (None, Some(why)) => format!("[{why}]"),
            (None, None) => "[not answered]".into(),
        };
        let user = output::escape_control(self.user);
        format!("--- turn {}, {}\nUser: {user}\nAssistant: {reply}", self.turn, self.accepted)
    }
}
