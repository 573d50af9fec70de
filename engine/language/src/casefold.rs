//! Case folding: one spelling for what people take as the same word.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization as _;

/// Folds case, accents, width and ligatures: returns `text` in lower case, without diacritics of
/// alphabets, in Unicode's form NFC. Folding what is folded changes nothing.
///
/// ```
/// use garret_language::casefold;
///
/// assert_eq!(casefold("STRASSE"), casefold("Stra\u{df}e"));
/// ```
///
/// Signs that make another letter in their script (vowels of Devanagari or Thai, the voicing marks
/// of kana) stay; points of Hebrew and Arabic, which are mostly left out in writing, go.
pub fn casefold(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            Cow::Owned(text.to_ascii_lowercase())
        } else {
            Cow::Borrowed(text)
        };
    }
    let bare = text.nfkd().flat_map(char::to_lowercase).filter(|c| !is_diacritic(*c));
    let plain = bare.flat_map(|c| {
        let (first, second) = plain(c);
        [Some(first), second].into_iter().flatten()
    });
    Cow::Owned(plain.nfc().collect())
}

/// Returns true for a mark that people leave out or that only tells the pronunciation.
fn is_diacritic(c: char) -> bool {
    matches!(u32::from(c),
        0x300..=0x36f            // of Latin, Greek and Cyrillic
        | 0x483..=0x487
        | 0x591..=0x5bd | 0x5bf | 0x5c1..=0x5c2 | 0x5c4..=0x5c5 | 0x5c7
        | 0x610..=0x61a | 0x640 | 0x64b..=0x65f | 0x670 | 0x6d6..=0x6dc | 0x6df..=0x6e8
        | 0x1ab0..=0x1aff | 0x1dc0..=0x1dff | 0x20d0..=0x20ff | 0xfe20..=0xfe2f
        | 0xad | 0x200b..=0x200f | 0x2060 | 0xfe00..=0xfe0f)
}

/// Takes apart letters that Unicode doesn't.
fn plain(c: char) -> (char, Option<char>) {
    match c {
        '\u{df}' => ('s', Some('s')),
        '\u{e6}' => ('a', Some('e')),
        '\u{153}' => ('o', Some('e')),
        '\u{fe}' => ('t', Some('h')),
        '\u{f0}' | '\u{111}' => ('d', None),
        '\u{f8}' => ('o', None),
        '\u{127}' => ('h', None),
        '\u{131}' => ('i', None),
        '\u{142}' => ('l', None),
        '\u{3c2}' => ('\u{3c3}', None),
        // Arabic alef maksura, Persian yeh and kaf, teh marbuta.
        '\u{649}' | '\u{6cc}' => ('\u{64a}', None),
        '\u{6a9}' => ('\u{643}', None),
        '\u{629}' => ('\u{647}', None),
        '\u{2018}' | '\u{2019}' | '\u{2bc}' => ('\'', None),
        other => (other, None),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_looks_alike_is_one_spelling() {
        for (from, to) in [
            ("Caf\u{e9}", "cafe"),
            ("CAFE\u{301}", "cafe"),
            ("Stra\u{df}e", "strasse"),
            ("STRASSE", "strasse"),
            ("\u{130}stanbul", "istanbul"),
            ("\u{141}\u{f3}d\u{17a}", "lodz"),
            ("\u{ff32}\u{ff55}\u{ff53}\u{ff54}", "rust"),
            ("\u{39f}\u{394}\u{39f}\u{3a3}", "\u{3bf}\u{3b4}\u{3bf}\u{3c3}"),
            ("\u{3bf}\u{3b4}\u{3cc}\u{3c2}", "\u{3bf}\u{3b4}\u{3bf}\u{3c3}"),
            ("\u{401}\u{43b}\u{43a}\u{430}", "\u{435}\u{43b}\u{43a}\u{430}"),
            ("\u{5e9}\u{5c1}\u{5b8}\u{5dc}\u{5d5}\u{5b9}\u{5dd}", "\u{5e9}\u{5dc}\u{5d5}\u{5dd}"),
            ("\u{645}\u{64e}\u{631}\u{62d}", "\u{645}\u{631}\u{62d}"),
            // Half-width kana and a voicing mark of its own.
            ("\u{ff76}\u{ff9e}", "\u{30ac}"),
            ("\u{304b}\u{3099}", "\u{304c}"),
            // Vowel signs make words.
            (
                "\u{939}\u{93f}\u{928}\u{94d}\u{926}\u{940}",
                "\u{939}\u{93f}\u{928}\u{94d}\u{926}\u{940}",
            ),
        ] {
            assert_eq!(casefold(from), to, "{from}");
        }
    }

    proptest! {
        #[test]
        fn folding_twice_changes_nothing(text in any::<String>()) {
            let once = casefold(&text);
            prop_assert_eq!(casefold(&once), &*once);
        }
    }

    /// Every character by itself, which no sample of strings reaches.
    #[test]
    fn folding_every_character_twice_changes_nothing() {
        for c in char::MIN..=char::MAX {
            let text = c.to_string();
            let once = casefold(&text);
            assert_eq!(casefold(&once), once, "U+{:04X}", u32::from(c));
        }
    }
}
