//! Whether a tag only repeats what the user wrote.

use bstr::ByteSlice;

use super::call::{CLOSER, OPENER};
use super::grammar::split_opener;

/// Whether the tag spelled `raw` stands in `user_text`, in which case it is a quotation of the
/// user's words (or of what the user pasted) and must not be executed.
///
/// What the scanner repairs makes no difference, nor do white space and case: letters are compared
/// in lower case; white space, `-`, `_`, `:`, quotes, how many `<` or `>` stand in a row and a
/// missing closer are ignored. Of a call in JSON its object counts alone. An empty `raw` stands
/// nowhere.
///
/// ```
/// use garret_core::scan::is_quoted;
///
/// let raw = b"<<garret-tool: forget bees>>";
/// assert!(is_quoted(raw, "What does <garret_tool:  FORGET \"bees\"> do?"));
/// assert!(!is_quoted(raw, "Forget the bees."));
/// ```
pub fn is_quoted(raw: &[u8], user_text: &str) -> bool {
    if let Some(call) = raw.strip_prefix(OPENER) {
        let json = call.trim_ascii_end().strip_suffix(CLOSER).unwrap_or(call);
        return contains(user_text, json.chars());
    }
    let raw = raw.trim_end_with(|c| c == '>' || c.is_whitespace());
    let Some((name, body)) = split_opener(raw) else {
        return contains(user_text, raw.chars());
    };
    ["", "s"].iter().any(|plural| {
        let opener = ["<garret", name, plural].into_iter().flat_map(str::chars);
        contains(user_text, opener.chain(body.chars()))
    })
}

/// Whether the folded `user_text` contains the folded `wanted`, which isn't empty.
fn contains(user_text: &str, wanted: impl Iterator<Item = char> + Clone) -> bool {
    let wanted = fold(wanted);
    let found_at = |start: &str| {
        let mut here = fold(start.chars());
        wanted.clone().all(|c| here.next() == Some(c))
    };
    wanted.clone().next().is_some()
        && user_text.char_indices().any(|(at, _)| user_text.get(at..).is_some_and(found_at))
}

/// The characters that count, in lower case.
fn fold(chars: impl Iterator<Item = char> + Clone) -> impl Iterator<Item = char> + Clone {
    let ignored = |c: &char| c.is_whitespace() || matches!(c, '-' | '_' | ':' | '"' | '\'');
    let mut before = None;
    chars.filter(move |c| !ignored(c)).flat_map(char::to_lowercase).filter(move |&c| {
        let repeated = before.replace(c) == Some(c);
        !(repeated && matches!(c, '<' | '>'))
    })
}
