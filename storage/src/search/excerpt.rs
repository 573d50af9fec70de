//! The part of a text that answers.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;

use garret_language::Language;
use garret_language::tokens::{Token, TokenKind, terms, tokens};

/// The words of a query, each as its terms, and which of them the words of texts were found to be: many
/// texts have the same words, and stemming one takes far longer than looking it up.
pub(crate) struct Asked<'q> {
    words: &'q [Vec<String>],
    /// ASCII characters that they begin with, a bit for each.
    begin: u128,
    met: RefCell<HashMap<Language, HashMap<String, Option<usize>>>>,
}

impl<'q> Asked<'q> {
    pub(crate) fn new(words: &'q [Vec<String>]) -> Self {
        let firsts = words.iter().flatten().filter_map(|word| word.bytes().next());
        let begin = firsts.filter(u8::is_ascii).fold(0, |all, first| all | 1 << first);
        Self { words, begin, met: RefCell::default() }
    }

    /// Whether a word may be one of these: a stem begins as its word does, in ASCII, but in Turkish,
    /// which hardens the last letter of a stem, even if that is the only one.
    fn may_be(&self, word: &str, language: Language) -> bool {
        let first = word.bytes().next().unwrap_or_default().to_ascii_lowercase();
        language == Language::Turkish || !word.is_ascii() || self.begin & 1 << first != 0
    }

    /// Says which of the words a token of a text in `language` is.
    fn position(&self, token: &Token<'_>, language: Language) -> Option<usize> {
        if token.kind != TokenKind::Word {
            return self.look(token, language);
        }
        if !self.may_be(token.text, language) {
            return None;
        }
        let mut met = self.met.borrow_mut();
        let met = met.entry(language).or_default();
        match met.get(token.text) {
            Some(position) => *position,
            None => {
                let position = self.look(token, language);
                met.insert(token.text.to_owned(), position);
                position
            }
        }
    }

    fn look(&self, token: &Token<'_>, language: Language) -> Option<usize> {
        let mut position = None;
        terms(token, language, &mut |term| {
            let known = |word: &Vec<String>| word.iter().any(|known| known == term);
            position = position.or_else(|| self.words.iter().position(known));
        });
        position
    }
}

/// Where `text` is closest to the query: at most `most` bytes and the rest of a word, around the place
/// that holds most different words of it; its beginning when it holds none.
pub(crate) fn excerpt(text: &str, asked: &Asked<'_>, most: usize) -> Range<usize> {
    if text.len() <= most {
        return 0..text.len();
    }
    let best = densest(&matches(text, asked), asked.words.len(), most);
    let best = best.unwrap_or(0..0);
    let start = back_to_a_word(text, best.start.saturating_sub(LEAD_BYTES), best.start);
    let end = start.saturating_add(most).max(best.end).min(text.len());
    let end = text.ceil_char_boundary(end);
    let space = text[best.end..end].rfind(char::is_whitespace);
    match space {
        Some(space) if end < text.len() => start..best.end + space,
        _ => start..end,
    }
}

/// The first match of the excerpt that holds most different ones of so many words.
fn densest(matches: &[(Range<usize>, usize)], words: usize, most: usize) -> Option<Range<usize>> {
    // How often each word is in the matches from the one in hand up to `end`.
    let mut counts = vec![0_u32; words];
    let (mut distinct, mut end, mut best) = (0, 0, (0, None));
    for (number, (first, word)) in matches.iter().enumerate() {
        let limit = first.start.saturating_add(most).saturating_sub(LEAD_BYTES);
        while let Some((_, word)) = matches.get(end).filter(|(last, _)| last.end <= limit) {
            distinct += usize::from(counts[*word] == 0);
            counts[*word] += 1;
            end += 1;
        }
        if distinct > best.0 {
            best = (distinct, Some(first.clone()));
        }
        if number < end {
            counts[*word] -= 1;
            distinct -= usize::from(counts[*word] == 0);
        } else {
            // It is longer than an excerpt.
            end = number + 1;
        }
    }
    best.1
}

/// Bytes of an excerpt where nothing else is asked for.
pub(crate) const EXCERPT_BYTES: usize = 240;
/// Bytes of that before what was found.
const LEAD_BYTES: usize = 60;
/// The number of places are looked at.
const MATCHES: usize = 1000;

/// Returns where the text has a word of the query, and which.
fn matches(text: &str, asked: &Asked<'_>) -> Vec<(Range<usize>, usize)> {
    let language = Language::detect(text);
    let mut found = Vec::new();
    tokens(text, &mut |token| {
        if found.len() == MATCHES {
            return;
        }
        if let Some(word) = asked.position(&token, language) {
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
        let found = &text[excerpt(&text, &Asked::new(&words(&["bee", "hive"])), EXCERPT_BYTES)];
        assert!(found.contains("The bee and the hive stood there."), "{found}");
        assert!(found.len() <= EXCERPT_BYTES);
        assert!(
            found.starts_with("lorem") || found.starts_with("ipsum") || found.starts_with("dolor")
        );
        assert!(found.ends_with("lorem") || found.ends_with("ipsum") || found.ends_with("dolor"));
        assert_eq!(excerpt("short", &Asked::new(&words(&["bee"])), EXCERPT_BYTES), 0..5);
        assert_eq!(excerpt(&filler, &Asked::new(&words(&["bee"])), EXCERPT_BYTES).start, 0);
    }

    /// A word that was met in one text is the same in others, in each language by its own stems.
    #[test]
    fn what_was_met_before_makes_no_difference() {
        let words = words(&["running", "laufen", "hats"]);
        let asked = Asked::new(&words);
        for text in [
            "She runs and he is running with three hats, and so she runs on for a while.",
            "Er runs und er lief, und wir laufen mit drei hats, und sie laufen noch lange.",
            "She runs and he is running with three hats, and so she runs on for a while.",
        ] {
            assert_eq!(matches(text, &asked), matches(text, &Asked::new(&words)), "{text}");
        }
    }

    /// Turkish hardens the d of "din", of which all but that is taken for endings.
    #[test]
    fn a_stem_that_begins_otherwise_is_found() {
        for word in ["dinim", "bimiz", "Cinim"] {
            let Query { words, .. } = Query::new(word, &[Language::Turkish], None);
            tokens(word, &mut |token| {
                let found = Asked::new(&words).position(&token, Language::Turkish);
                assert_eq!(found, Some(0), "{words:?}");
            });
        }
    }

    proptest! {
        /// Words with the endings of many languages: all of what is left of some is a letter.
        #[test]
        fn no_word_that_is_asked_for_is_passed_over(
            word in "[a-zA-Z0-9]{1,4}(im|in|dir|lar|iniz|s|ed|ing|ly|en|ung|isch|heid|ement|mente|amos|ilor|ssa|lla|ksi|ban|het|erne){0,2}"
        ) {
            for language in Language::ALL {
                let Query { words, .. } = Query::new(&word, &[*language], None);
                let asked = Asked::new(&words);
                tokens(&word, &mut |token| {
                    let found = asked.position(&token, *language);
                    assert_eq!(found, asked.look(&token, *language), "{language:?}");
                });
            }
        }

        #[test]
        fn the_densest_place_is_that_with_most_different_words(
            gaps in prop::collection::vec((0..40_usize, 1..120_usize, 0..5_usize), 0..30),
        ) {
            let mut start = 0;
            let matches: Vec<_> = gaps
                .iter()
                .map(|(gap, len, word)| {
                    let range = start..start + len;
                    start += gap + len;
                    (range, *word)
                })
                .collect();
            let distinct = |number: usize| {
                let limit = matches[number].0.start + 140 - LEAD_BYTES;
                let near = matches[number..].iter().take_while(|(other, _)| other.end <= limit);
                near.map(|(_, word)| *word).collect::<std::collections::HashSet<_>>().len()
            };
            let all = 0..matches.len();
            let most = all.clone().map(distinct).max().filter(|most| *most > 0);
            let first = most.and_then(|most| all.clone().find(|number| distinct(*number) == most));
            let expected = first.map(|number| matches[number].0.clone());
            prop_assert_eq!(densest(&matches, 5, 140), expected);
        }

        #[test]
        fn any_text_has_an_excerpt_with_the_word_in_it(
            before in "(\\PC| |\u{4e00}|\u{1f41d}){0,400}", after in "(\\PC| |\u{e9}){0,400}",
        ) {
            let text = format!("{before} zebra {after}");
            let range = excerpt(&text, &Asked::new(&words(&["zebra"])), EXCERPT_BYTES);
            let found = text.get(range.clone());
            prop_assert!(found.is_some_and(|found| found.contains("zebra")), "{:?}", range);
            prop_assert!(range.len() <= EXCERPT_BYTES + 4, "{}", range.len());
        }
    }
}
