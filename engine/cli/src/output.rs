//! Output: results on stdout, notes and errors on stderr.

use std::error::Error;
use std::io::{self, IsTerminal, Write};

use tracing_subscriber::EnvFilter;

pub(super) use garret::escape_control::escape_control;

/// Prints a line for people on stdout at once.
pub(super) fn say(line: &str) -> io::Result<()> {
    say_exactly(&escape_control(line))
}

/// Prints a line for programs on stdout at once, byte for byte.
pub(super) fn say_exactly(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

/// Prints part of a line for people on stdout at once.
pub(super) fn say_part(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    write!(out, "{}", escape_control(text))?;
    out.flush()
}

/// Prints a value as one line of JSON on stdout.
pub(super) fn say_json(value: &impl serde::Serialize) -> Result<(), Box<dyn Error>> {
    Ok(say_exactly(&serde_json::to_string(value)?)?)
}

/// Prints an error on stderr. That stderr is closed is no reason to fail.
pub(super) fn complain(error: &(impl Error + ?Sized)) {
    let _ = writeln!(io::stderr(), "garret: {}", escape_control(&error.to_string()));
}

/// Prints a line for the user on stderr.
pub(super) fn note(line: &str) {
    let _ = writeln!(io::stderr(), "{}", escape_control(line));
}

/// Returns true when `error` only says that nobody reads our output any more.
pub(super) fn is_closed_pipe(error: &(dyn Error + 'static)) -> bool {
    let io = error.downcast_ref::<io::Error>();
    io.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Sends log lines to stderr.
pub(super) fn log_to_stderr(filter: &str) -> Result<(), BadFilter> {
    let filter = EnvFilter::try_new(filter)
        .map_err(|error| BadFilter { filter: filter.into(), reason: error.to_string() })?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .with_target(false)
        .compact()
        .init();
    Ok(())
}

/// The `log` key isn't a filter.
#[derive(Debug, thiserror::Error)]
#[error("`log` can't be `{filter}`: {reason}; use error, warn, info, debug or target=level")]
pub(super) struct BadFilter {
    filter: String,
    reason: String,
}
