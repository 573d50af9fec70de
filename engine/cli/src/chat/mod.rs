//! `garret chat`: one message, a line at a time, or a conversation.

mod ask;
mod columns;
mod commands;
mod compare;
mod input;
mod interrupt;
mod talk;
mod why;

use std::error::Error;
use std::io::IsTerminal;
use std::sync::Arc;

use garret::config::Config;
use garret::open;
use garret_core::id::SessionId;
use garret_hal::clock::SystemClock;
use garret_hal::entropy::SystemEntropy;
use garret_storage::Store;

use self::compare::{Comparison, LocalBaseline};
use self::interrupt::Interrupts;
use self::talk::{Snapshots, Talk};
use crate::CommandResult;
use crate::ab::Export;
use crate::args::Chat;
use crate::session_name::new_session;

/// Runs the command.
pub(super) fn run(config: &Config, chat: &Chat) -> CommandResult {
    if chat.once.as_ref().is_some_and(|text| text.trim().is_empty()) {
        return Err("the message is empty: give --once a text".into());
    }
    let wanted = chat.session.as_deref().map(str::parse::<SessionId>).transpose()?;
    let clock = Arc::new(SystemClock::new());
    let entropy = Arc::new(SystemEntropy);
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
