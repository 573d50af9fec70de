//! What is printed where.

use std::error::Error;
use std::io::{self, IsTerminal, Write};

use tracing_subscriber::EnvFilter;

/// Prints a line for people on stdout at once.
pub(super) fn say(line: &str) -> io::Result<()> {
    say_exactly(&tame(line))
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
    write!(out, "{}", tame(text))?;
    out.flush()
}

/// Prints a value as one line of JSON on stdout.
pub(super) fn say_json(value: &impl serde::Serialize) -> Result<(), Box<dyn Error>> {
    Ok(say_exactly(&serde_json::to_string(value)?)?)
}

/// Prints an error on stderr. That stderr is closed is no reason to fail.
pub(super) fn complain(error: &(impl Error + ?Sized)) {
    let _ = writeln!(io::stderr(), "garret: {}", tame(&error.to_string()));
}

/// Prints a line for the user on stderr.
pub(super) fn note(line: &str) {
    let _ = writeln!(io::stderr(), "{}", tame(line));
}

/// Whether `error` only says that nobody reads our output any more.
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

/// Text that can't drive the terminal it is printed on: control characters but line breaks and
/// tabs, which a model may emit to imitate the program, are shown as pictures of themselves.
pub(super) fn tame(text: &str) -> std::borrow::Cow<'_, str> {
    if !text.chars().any(is_wild) {
        return text.into();
    }
    text.chars().map(|c| if is_wild(c) { picture(c) } else { c }).collect::<String>().into()
}

fn is_wild(c: char) -> bool {
    c.is_control() && c != '\n' && c != '\t'
}

fn picture(c: char) -> char {
    match u32::from(c) {
        code @ 0..0x20 => char::from_u32(0x2400 + code).unwrap_or('\u{fffd}'),
        0x7f => '\u{2421}',
        _ => '\u{fffd}',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_are_shown_not_obeyed() {
        assert_eq!(tame("a\u{1b}[2Jb\n\tc"), "a\u{241b}[2Jb\n\tc");
        assert_eq!(tame("plain"), "plain");
        assert_eq!(tame("\u{9b}1m\u{7f}"), "\u{fffd}1m\u{2421}");
    }
}
