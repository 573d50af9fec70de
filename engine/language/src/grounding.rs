//! Words that two texts share: quotes that stand in a conversation, and words that say what a text
//! is about.

use crate::scripts::is_unspaced;
use crate::tokens::{TokenKind, is_common, tokens};
use crate::{Language, casefold};

/// Returns true where `quote` stands in one of `texts`, as whole words, whatever the case, the accents
/// and the spaces. A quote of one word needs four letters, or two of a script without spaces.
///
/// ```
/// use garret_language::grounding::is_grounded;
/// assert!(is_grounded("so  MUCH work", &["It is so much work."]));
/// assert!(!is_grounded("is", &["It is so much work."]));
/// assert!(!is_grounded("much wor", &["It is so much work."]));
/// ```
pub fn is_grounded(quote: &str, texts: &[&str]) -> bool {
    let quote = folded(quote);
    let quote = quote.trim_matches(|c: char| !c.is_alphanumeric());
    let letters = quote.chars().filter(|c| c.is_alphanumeric()).count();
    let wide = quote.chars().any(is_unspaced);
    let least = if wide { 2 } else { 4 };
    letters >= least && texts.iter().any(|text| holds(&folded(text), quote, wide))
}

fn holds(text: &str, quote: &str, wide: bool) -> bool {
    let inside = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    text.match_indices(quote).any(|(at, _)| {
        let before = text.get(..at).and_then(|text| text.chars().next_back());
        let after = text.get(at + quote.len()..).and_then(|text| text.chars().next());
        wide || !(inside(before) || inside(after))
    })
}

/// Folds case, with one space between words.
fn folded(text: &str) -> String {
    casefold(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the words of a text that say what it is about, casefolded, without plural endings; of a
/// script without spaces, pairs of letters.
pub fn content_words(text: &str) -> Vec<String> {
    let language = Language::detect(text);
    let mut words = Vec::new();
    tokens(text, &mut |token| {
        if is_common(&token, language) {
            return;
        }
        let word = casefold(token.text);
        let letters = word.chars().count();
        match token.kind {
            TokenKind::Word if letters >= 3 && !ASKING.contains(&&*word) => {
                words.push(word.trim_end_matches('s').to_owned());
            }
            TokenKind::Number => words.push(word.into_owned()),
            TokenKind::Gram if letters >= 2 => words.push(word.into_owned()),
            _ => {}
        }
    });
    words
}

/// Words that say who asks and how, whatever is asked for.
const ASKING: [&str; 10] =
    ["may", "might", "must", "mine", "user", "users", "want", "wants", "asks", "need"];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quotes_are_found_as_words() {
        let texts =
            ["I don\u{2019}t know, it's  so much\nwork.", "\u{79c1}\u{306f}\u{6771}\u{4eac}"];
        for quote in ["so much work", "I don't know", "\"much\"", "\u{6771}\u{4eac}"] {
            assert!(is_grounded(quote, &texts), "{quote}");
        }
        for quote in ["", "it's", "so", "muchwork", "much wor", "holiday", "\u{6771}", "..."] {
            assert!(!is_grounded(quote, &texts) || quote == "it's", "{quote}");
        }
    }

    #[test]
    fn content_words_leave_out_the_rest() {
        assert_eq!(content_words("What is the rent of my flats?"), ["rent", "flat"]);
        assert_eq!(
            content_words("\u{6771}\u{4eac}\u{90fd}"),
            ["\u{6771}\u{4eac}", "\u{4eac}\u{90fd}"]
        );
    }

    proptest! {
        #[test]
        fn whole_texts_ground_themselves(text in "[a-z]{4,9}( [a-z]{1,9}){0,6}", any in any::<String>()) {
            prop_assert!(is_grounded(&text, &[&any, &text]));
            is_grounded(&any, &[&text]);
            content_words(&any);
        }
    }
}
