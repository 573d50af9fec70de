//! Lines that were typed, to be called back with the up key: one file for each namespace.

use std::collections::HashSet;
use std::path::PathBuf;

use garret::config::Config;
use garret_storage::{NamespaceError, file_name};
use rustyline::Config as LineConfig;
use rustyline::history::{FileHistory, History};

/// Returns the file that keeps the lines of the configured namespace.
pub(super) fn file(config: &Config) -> Result<PathBuf, NamespaceError> {
    let store = file_name(&config.namespace.value)?;
    Ok(config.data.value.join(store.with_extension("history")))
}

/// Returns the settings by which lines are kept and edited.
pub(super) fn settings() -> rustyline::Result<LineConfig> {
    let settings = LineConfig::builder().max_history_size(MOST)?.history_ignore_space(true);
    Ok(settings.build())
}

/// Removes every line that is one of `said`.
pub(super) fn forget(history: &mut FileHistory, said: &HashSet<String>) -> rustyline::Result<()> {
    keep(history, |line| !said.contains(line))
}

fn keep(history: &mut FileHistory, wanted: impl Fn(&str) -> bool) -> rustyline::Result<()> {
    let kept: Vec<String> = history.iter().filter(|line| wanted(line)).cloned().collect();
    history.clear()?;
    kept.into_iter().try_for_each(|line| history.add_owned(line).map(drop))
}

/// Returns true when `text` has `pattern` in it, in any case of its letters.
pub(super) fn holds(text: &str, pattern: &str) -> bool {
    text.to_lowercase().contains(&pattern.to_lowercase())
}

/// Removes `said`, and lines with `pattern` in them, from the file of the configured namespace, if
/// there is one.
pub(super) fn forget_in_file(
    config: &Config,
    said: &HashSet<String>,
    pattern: Option<&str>,
) -> Result<(), Box<dyn std::error::Error>> {
    let file = file(config)?;
    if file.exists() {
        let mut history = FileHistory::with_config(&settings()?);
        history.load(&file)?;
        keep(&mut history, |line| {
            !said.contains(line) && pattern.is_none_or(|pattern| !holds(line, pattern))
        })?;
        history.save(&file)?;
    }
    Ok(())
}

/// Lines that are kept.
const MOST: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_is_forgotten_and_the_rest_stays() {
        let mut history = FileHistory::new();
        for line in ["one", "secret", "two"] {
            history.add(line).unwrap();
        }
        forget(&mut history, &HashSet::from(["secret".to_owned()])).unwrap();
        assert_eq!(history.iter().collect::<Vec<_>>(), ["one", "two"]);
    }
}
