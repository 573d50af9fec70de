//! Whether words are in a conversation.

/// Whether `quote` stands in one of `texts`, as whole words, whatever the case and the spaces. A
/// quote of one word needs four letters, or two of a script without spaces.
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
    let wide = quote.chars().any(is_wide);
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

/// In lower case, with one space between words and straight apostrophes.
fn folded(text: &str) -> String {
    let lower = text.to_lowercase().replace('\u{2019}', "'");
    lower.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The words of a text that say what it is about, in lower case, without plural endings; of a script
/// without spaces, pairs of letters.
pub fn content_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for word in text.to_lowercase().split(|c: char| !c.is_alphanumeric()) {
        let letters: Vec<char> = word.chars().collect();
        if letters.iter().any(|c| is_wide(*c)) {
            words.extend(letters.windows(2).map(|pair| pair.iter().collect::<String>()));
        } else if letters.len() >= 3 && !STOP.split(' ').any(|stop| stop == word) {
            words.push(word.trim_end_matches('s').to_owned());
        }
    }
    words
}

const fn is_wide(c: char) -> bool {
    matches!(c, '\u{1100}'..='\u{11ff}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7a3}')
}

const STOP: &str = "the and for with that this from have has had are was were been being will would \
     could should can may might must not but you your yours they them their what which who whom when \
     where why how does did doing about into than then there here just very too also some any more \
     most other such only own same out over again she her him his its our ours mine user users want \
     wants asks know like need really get got der die das und ich nicht ist les des est une que por \
     los las una con para";

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
