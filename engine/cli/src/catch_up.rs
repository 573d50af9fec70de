//! `garret session catch-up`: the idle work that scripts leave no time for.
//!
//! Limits: what a user may be after is worked out only while a conversation is open; this doesn't.

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;

use garret::agent::CaughtUp;
use garret::config::Config;
use garret::open;
use garret_core::id::SessionId;
use garret_hal::clock::SystemClock;
use garret_hal::entropy::SystemEntropy;
use garret_storage::Store;

use super::{CommandResult, output};

/// Reads the conversations `ids`, or all of them, for facts and sums up what is due. Says what
/// failed, and fails then.
pub(super) fn run(config: &Config, ids: &[String]) -> CommandResult {
    let store = open::existing_store(config)?;
    let sessions = chosen(&store, ids)?;
    let damaged = if ids.is_empty() { store.damaged_sessions()? } else { Vec::new() };
    drop(store);
    let prepared = open::prepare(config)?;
    let clock = Arc::new(SystemClock::new());
    let entropy = Arc::new(SystemEntropy);
    let mut agent = prepared.load(config, clock, entropy)?;
    let mut failed = !damaged.is_empty();
    for session in &sessions {
        let done = smol::block_on(agent.catch_up(session));
        failed |= !done.failed.is_empty();
        output::say(&format!("{session}: {}", describe(&done)))?;
    }
    for session in damaged {
        let told = format!("{session}: its record is damaged: see `garret memory verify`");
        output::say(&told)?;
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn chosen(store: &Store, ids: &[String]) -> Result<Vec<SessionId>, Box<dyn Error>> {
    if ids.is_empty() {
        return Ok(store.sessions()?.into_iter().map(|info| info.id).collect());
    }
    let known = |id: &String| -> Result<SessionId, Box<dyn Error>> {
        let session: SessionId = id.parse()?;
        match store.session(&session)? {
            Some(_) => Ok(session),
            None => {
                Err(format!("there is no conversation `{session}`: see `garret session list`")
                    .into())
            }
        }
    };
    ids.iter().map(known).collect()
}

fn describe(done: &CaughtUp) -> String {
    let compaction = &done.summaries;
    let counts = [
        (done.embedded, "vector"),
        (done.extracted, "new fact"),
        ((compaction.leaves + compaction.condensed) as usize, "summary"),
    ];
    let made: Vec<_> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| match (count, what.strip_suffix('y')) {
            (1, _) => format!("1 {what}"),
            (_, Some(stem)) => format!("{count} {stem}ies"),
            (_, None) => format!("{count} {what}s"),
        })
        .collect();
    let made = match (&*made, &*done.failed) {
        ([], []) => Some("nothing was due".to_owned()),
        ([], _) => None,
        _ => Some(made.join(", ")),
    };
    let unreadable = (compaction.unreadable > 0)
        .then(|| format!("turns that can't be read: {}", compaction.unreadable));
    let failures = done.failed.iter().map(ToString::to_string);
    let parts: Vec<_> = made.into_iter().chain(unreadable).chain(failures).collect();
    parts.join("; ")
}
