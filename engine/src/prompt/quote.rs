//! Stored text in a prompt: marked so that it can't look like anything else, dated, and with the
//! beginnings of tags spelled so that repeating them asks for nothing.

use crate::tools::harmless;
use garret_language::local_time;

/// Begins every line of a stored text.
pub(crate) const MARK: &str = "> ";

/// Returns the lines of a text, each marked and ended; leaves empty ones out.
pub(crate) fn marked(text: &str) -> impl Iterator<Item = String> + '_ {
    let lines = text.split(is_break).filter(|line| !line.trim().is_empty());
    lines.map(|line| [MARK, &harmless(line), "\n"].concat())
}

/// Returns a text on one line.
pub(crate) fn one_line(text: &str) -> String {
    let words: Vec<_> = text.split(is_break).map(str::trim).filter(|s| !s.is_empty()).collect();
    harmless(&words.join(" "))
}

/// Returns a name as it stands in a head in brackets, which it can't end.
pub(crate) fn plain(name: &str) -> String {
    let plain = |c| match c {
        '[' => '(',
        ']' => ')',
        c if is_break(c) => ' ',
        c => c,
    };
    name.chars().map(plain).collect()
}

/// Returns the day of a moment where the user is, such as `8 May 2023`; `undated` for none.
pub(crate) fn day(at_ms: Option<i64>) -> String {
    days(at_ms, at_ms)
}

/// Returns the days from one moment to a later one, such as `8 May to 10 May 2023`; `undated` for none.
pub(crate) fn days(from_ms: Option<i64>, to_ms: Option<i64>) -> String {
    local_time::days(from_ms, to_ms).unwrap_or_else(|| "undated".into())
}

/// Returns whether some reader may take a character for the end of a line.
pub(crate) const fn is_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}
