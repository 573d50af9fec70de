//! `garret config show`.

use std::collections::BTreeMap;
use std::process::ExitCode;

use garret::config::Config;
use serde::Serialize;

use super::args::{ConfigAction, ConfigCommand};
use super::{CommandResult, output};

/// Runs the command.
pub(super) fn run(config: &Config, command: &ConfigCommand) -> CommandResult {
    let ConfigAction::Show { json } = command.action;
    let entries = config.entries();
    if json {
        let entries: BTreeMap<_, _> = entries
            .into_iter()
            .map(|(key, value, origin)| (key, ShownSetting { value, origin: origin.to_string() }))
            .collect();
        output::say_json(&entries)?;
        return Ok(ExitCode::SUCCESS);
    }
    let entries: Vec<_> =
        entries.into_iter().map(|(key, value, origin)| (key, on_one_line(value), origin)).collect();
    let width = entries.iter().map(|(key, value, _)| key.len() + value.len()).max().unwrap_or(0);
    for (key, value, origin) in entries {
        let pad = width.min(60).saturating_sub(key.len() + value.len());
        output::say(&format!("{key} = {value}{:pad$}  # {origin}", ""))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A value with line breaks and the like is shown as it would be written in a file.
fn on_one_line(value: String) -> String {
    if value.chars().any(char::is_control) { format!("{value:?}") } else { value }
}

#[derive(Serialize)]
struct ShownSetting {
    value: String,
    origin: String,
}
