//! Parsers from text to values. The error of a parser says what would be right.

use std::path::PathBuf;
use std::str::FromStr;

use garret_core::budget::Budget;
use garret_core::gate::{Mode, UnknownMode};
use garret_core::model::{KvType, UnknownKvType};

use super::choices::{EmbedderChoice, SnapshotPolicy, Switch};
use crate::agent::ToolProtocol;
use crate::companion::form::Size;

pub(super) fn text(text: &str) -> Result<String, String> {
    Ok(text.into())
}

pub(super) fn path(text: &str) -> Result<PathBuf, String> {
    if text.is_empty() { Err("it must name a path".into()) } else { Ok(text.into()) }
}

pub(super) fn reranker(text: &str) -> Result<Option<PathBuf>, String> {
    match text {
        "" => Err("it must be a file or off".into()),
        "off" => Ok(None),
        file => Ok(Some(file.into())),
    }
}

pub(super) fn embedder(text: &str) -> Result<EmbedderChoice, String> {
    match text {
        "" => Err("it must name a file, or be `auto` or `off`".into()),
        "auto" => Ok(EmbedderChoice::Auto),
        "off" => Ok(EmbedderChoice::Off),
        file => Ok(EmbedderChoice::File(file.into())),
    }
}

pub(super) fn switch(text: &str) -> Result<Switch, String> {
    match text {
        "auto" => Ok(Switch::Auto),
        "on" | "true" => Ok(Switch::On),
        "off" | "false" => Ok(Switch::Off),
        _ => Err("it must be `on`, `off` or `auto`".into()),
    }
}

pub(super) fn tool_protocol(text: &str) -> Result<ToolProtocol, String> {
    let all = [ToolProtocol::Auto, ToolProtocol::Tags, ToolProtocol::Native];
    let found = all.into_iter().find(|protocol| protocol.to_string() == text);
    found.ok_or_else(|| "it must be `auto`, `tags` or `native`".into())
}

pub(super) fn number(text: &str) -> Result<u32, String> {
    u32::from_str(text.trim()).map_err(|_| format!("it must be a whole number up to {}", u32::MAX))
}

pub(super) fn boolean(text: &str) -> Result<bool, String> {
    text.trim().parse().map_err(|_| "it must be true or false".into())
}

pub(super) fn positive(text: &str) -> Result<u32, String> {
    match number(text) {
        Ok(0) | Err(_) => Err("it must be a whole number of at least 1".into()),
        Ok(number) => Ok(number),
    }
}

pub(super) fn window(text: &str) -> Result<u32, String> {
    match number(text) {
        Ok(tokens) if tokens >= Budget::MIN_WINDOW => Ok(tokens),
        _ => Err(format!("it must be a number of tokens, at least {}", Budget::MIN_WINDOW)),
    }
}

pub(super) fn percent(text: &str) -> Result<u32, String> {
    in_range(text, 0, 100, "percent")
}

pub(super) fn threads(text: &str) -> Result<u32, String> {
    in_range(text, 1, 512, "threads")
}

pub(super) fn memory(text: &str) -> Result<u32, String> {
    in_range(text, 0, 65_536, "tokens")
}

pub(super) fn batch(text: &str) -> Result<u32, String> {
    in_range(text, 16, 4_096, "tokens")
}

fn in_range(text: &str, least: u32, most: u32, unit: &str) -> Result<u32, String> {
    match number(text) {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(format!("it must be {least} to {most} {unit}")),
    }
}

pub(super) fn between<const LEAST: u8, const MOST: u8>(text: &str) -> Result<f32, String> {
    let least = f32::from(LEAST);
    let most = f32::from(MOST);
    match f32::from_str(text.trim()) {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(format!("it must be a number from {least} to {most}")),
    }
}

pub(super) fn snapshot(text: &str) -> Result<SnapshotPolicy, String> {
    let all = [SnapshotPolicy::Off, SnapshotPolicy::Shutdown, SnapshotPolicy::Idle];
    let found = all.into_iter().find(|policy| policy.to_string() == text);
    found.ok_or_else(|| "it must be off, shutdown or idle".into())
}

pub(super) fn kv_type(text: &str) -> Result<KvType, String> {
    text.parse().map_err(|error: UnknownKvType| error.to_string())
}

pub(super) fn companions(text: &str) -> Result<Mode, String> {
    text.parse().map_err(|error: UnknownMode| error.to_string())
}

pub(super) fn companion_schema(text: &str) -> Result<Option<Size>, String> {
    match text {
        "auto" => Ok(None),
        "core" => Ok(Some(Size::Core)),
        "extended" => Ok(Some(Size::Extended)),
        _ => Err("it must be auto, core (few lines) or extended (all lines)".into()),
    }
}
