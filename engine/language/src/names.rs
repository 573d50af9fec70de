//! Names of people in texts.

use crate::casefold;

/// Removes the names of those who speak from a text for an embedder: a name in a question draws in
/// whatever addresses that person, whatever it is about. (Measured on LoCoMo: recall among the
/// first ten by vectors alone .568 with names in the question, .626 without.)
///
/// A name goes where it stands as it would be written, with a capital where its script has them,
/// as a whole or, when it has several words, by one of them; so does a genitive's `'s`. Names of
/// one character stay.
///
/// ```
/// use garret_language::without_names;
///
/// let names = ["Ada Byron", "Will"];
/// assert_eq!(without_names("When did Ada's bees swarm?", &names), "When did bees swarm?");
/// assert_eq!(without_names("Will, will it rain?", &names), ", will it rain?");
/// assert_eq!(without_names("Canada", &names), "Canada");
/// ```
pub fn without_names(text: &str, names: &[impl AsRef<str>]) -> String {
    let names: Vec<String> = names
        .iter()
        .flat_map(|name| name.as_ref().split_whitespace())
        .map(|word| casefold(word).into_owned())
        .filter(|word| word.chars().nth(1).is_some())
        .collect();
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let in_word = |c: char| c.is_alphanumeric() == first.is_alphanumeric();
        let end = rest.find(|c| !in_word(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        let written = first.is_alphanumeric() && !first.is_lowercase();
        if written && names.contains(&casefold(word).into_owned()) {
            rest = after_genitive(after);
            let spaced = kept.is_empty() || kept.ends_with(char::is_whitespace);
            rest = if spaced { rest.trim_start() } else { rest };
        } else {
            kept.push_str(word);
            rest = after;
        }
    }
    kept.truncate(kept.trim_end().len());
    kept
}

/// Returns what follows the `'s` of a genitive; all of a `text` that begins with none.
fn after_genitive(text: &str) -> &str {
    let rest = text.strip_prefix(['\'', '\u{2019}']).and_then(|rest| rest.strip_prefix('s'));
    rest.filter(|rest| !rest.starts_with(char::is_alphanumeric)).unwrap_or(text)
}
