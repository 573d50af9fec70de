//! The part of a text that answers.

use std::collections::HashSet;
use std::ops::Range;

use crate::text::{Language, terms, tokens};

/// Where `text` is closest to the query: at most `most` bytes and the rest of a word, around the place
/// that holds most different words of it; its beginning when it holds none.
pub(super) fn excerpt(text: &str, words: &[Vec<String>], most: usize) -> Range<usize> {
    if text.len() <= most {
        return 0..text.len();
    }
    let matches = matches(text, words);
    let mut best = (0, 0..0);
    for (number, (range, _)) in matches.iter().enumerate() {
        let limit = range.start.saturating_add(most).saturating_sub(LEAD_BYTES);
        let near = matches[number..].iter().take_while(|(other, _)| other.end <= limit);
        let distinct: HashSet<usize> = near.map(|(_, word)| *word).collect();
        if distinct.len() > best.0 {
            best = (distinct.len(), range.clone());
        }
    }
    let start = back_to_a_word(text, best.1.start.saturating_sub(LEAD_BYTES), best.1.start);
    let end = start.saturating_add(most).max(best.1.end).min(text.len());
    let end = text.ceil_char_boundary(end);
    let space = text[best.1.end..end].rfind(char::is_whitespace);
    match space {
        Some(space) if end < text.len() => start..best.1.end + space,
        _ => start..end,
    }
}

/// Bytes of an excerpt where nothing else is asked for.
pub(super) const EXCERPT_BYTES: usize = 240;
/// How much of that stands before what was found.
const LEAD_BYTES: usize = 60;
/// How many places are looked at.
const MATCHES: usize = 1000;

/// Where the text has a word of the query, and which.
fn matches(text: &str, words: &[Vec<String>]) -> Vec<(Range<usize>, usize)> {
    let language = Language::detect(text);
    let mut found = Vec::new();
    tokens(text, &mut |token| {
        if found.len() == MATCHES {
            return;
        }
        let mut word = None;
        terms(&token, language, &mut |term| {
            let known = |word: &Vec<String>| word.iter().any(|known| known == term);
            word = word.or_else(|| words.iter().position(known));
        });
        if let Some(word) = word {
            found.push((token.start..token.start + token.text.len(), word));
        }
    });
    found
}

/// The beginning of the first word from `from` on that begins before `to`; else a boundary of
/// characters near `from`.
fn back_to_a_word(text: &str, from: usize, to: usize) -> usize {
    if from == 0 {
        return 0;
    }
    let from = text.floor_char_boundary(from);
    let lead = text.get(from..to).unwrap_or("");
    let space = lead.find(char::is_whitespace).map(|at| from + at);
    space.map_or(from, |at| to - text[at..to].trim_start().len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::query::Query;
    use super::*;

    fn words(query: &[&str]) -> Vec<Vec<String>> {
        Query::new(&query.join(" "), Language::ALL, None).words
    }

    #[test]
    fn the_excerpt_is_where_most_of_the_query_is() {
        let filler = "lorem ipsum dolor ".repeat(40);
        let text = format!("A bee. {filler}The bee and the hive stood there. {filler}A hive.");
        let found = &text[excerpt(&text, &words(&["bee", "hive"]), EXCERPT_BYTES)];
        assert!(found.contains("The bee and the hive stood there."), "{found}");
        assert!(found.len() <= EXCERPT_BYTES);
        assert!(
            found.starts_with("lorem") || found.starts_with("ipsum") || found.starts_with("dolor")
        );
        assert!(found.ends_with("lorem") || found.ends_with("ipsum") || found.ends_with("dolor"));
        assert_eq!(excerpt("short", &words(&["bee"]), EXCERPT_BYTES), 0..5);
        assert_eq!(excerpt(&filler, &words(&["bee"]), EXCERPT_BYTES).start, 0);
    }

    proptest! {
        #[test]
        fn any_text_has_an_excerpt_with_the_word_in_it(
            before in "(\\PC| |\u{4e00}|\u{1f41d}){0,400}", after in "(\\PC| |\u{e9}){0,400}",
        ) {
            let text = format!("{before} zebra {after}");
            let range = excerpt(&text, &words(&["zebra"]), EXCERPT_BYTES);
            let found = text.get(range.clone());
            prop_assert!(found.is_some_and(|found| found.contains("zebra")), "{:?}", range);
            prop_assert!(range.len() <= EXCERPT_BYTES + 4, "{}", range.len());
        }
    }
}
