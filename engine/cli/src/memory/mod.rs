//! `garret memory`: what is remembered, without a chat model.

mod embed;
mod facts;
mod forget;
mod id;
mod import;
mod keep;
mod search;
mod stats;

use std::process::ExitCode;

use garret::config::Config;
use garret::open;
use garret_storage::{Pin, Store};

use super::CommandResult;
use super::args::memory::{Memory, MemoryAction};

pub(super) use search::find;

/// Runs the command.
pub(super) fn run(config: &Config, memory: &Memory) -> CommandResult {
    match &memory.action {
        MemoryAction::Search(search) => {
            let store = open::existing_store(config)?;
            search::run(config, &store, search)?;
            // For the next search; nobody waits for this one any more.
            if let Err(error) = store.tend_index(Store::INDEX_TAIL) {
                tracing::debug!(%error, "the text index stays as it is");
            }
        }
        MemoryAction::Add(add) => facts::add(config, add)?,
        MemoryAction::Import(import) => import::run(config, import)?,
        MemoryAction::Get(get) => facts::get(&open::existing_store(config)?, get)?,
        MemoryAction::List(list) => facts::list(&open::existing_store(config)?, list)?,
        MemoryAction::History(get) => facts::history(&open::existing_store(config)?, get)?,
        MemoryAction::Pin(pin) => facts::pin(&open::existing_store(config)?, pin, Pin::User)?,
        MemoryAction::Unpin(pin) => facts::pin(&open::existing_store(config)?, pin, Pin::None)?,
        MemoryAction::Supersede(new) => facts::supersede(config, new)?,
        MemoryAction::Embed { json } => embed::run(config, &open::existing_store(config)?, *json)?,
        MemoryAction::Stats { json } => stats::run(config, &open::existing_store(config)?, *json)?,
        MemoryAction::Forget(forget) => {
            return forget::run(config, &open::existing_store(config)?, forget);
        }
        MemoryAction::Ledger { json } => forget::ledger(&open::existing_store(config)?, *json)?,
        MemoryAction::Vacuum { json } => forget::vacuum(&open::existing_store(config)?, *json)?,
        MemoryAction::Verify { erased: Some(pattern), json } => {
            return forget::erased(config, &open::existing_store(config)?, pattern, *json);
        }
        MemoryAction::Verify { erased: None, json } => {
            return keep::verify(&open::existing_store(config)?, *json);
        }
        MemoryAction::Export { file, lines } => {
            keep::export(&open::existing_store(config)?, file, *lines)?;
        }
        MemoryAction::Backup { file, json } => {
            keep::backup(&open::existing_store(config)?, file, *json)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
