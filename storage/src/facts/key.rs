//! What counts as the same name, the same predicate and the same value.
//!
//! Names are the same when they differ only in case, white space or the Unicode form of their
//! letters. Accents, widths and punctuation tell names apart: `Cafe` isn't `Caf\u{e9}`, `Yahoo!`
//! isn't `Yahoo`.

use sha2::{Digest as _, Sha256};
use unicode_normalization::UnicodeNormalization as _;

/// Predicates of which one subject can have several objects at a time.
const MULTI_VALUED: [&str; 49] = [
    "about",
    "afraid_of",
    "allergic_to",
    "attended",
    "bought",
    "can",
    "colleague_of",
    "contains",
    "dislikes",
    "did",
    "enjoys",
    "experienced_in",
    "friend_of",
    "good_at",
    "has",
    "has_child",
    "has_friend",
    "has_hobby",
    "has_pet",
    "has_sibling",
    "hates",
    "helps",
    "interested_in",
    "knows",
    "learning",
    "likes",
    "loves",
    "made",
    "member_of",
    "met",
    "needs",
    "owns",
    "parent_of",
    "plans",
    "plays",
    "prefers",
    "read",
    "related_to",
    "said",
    "sibling_of",
    "skilled_in",
    "speaks",
    "studied",
    "uses",
    "visited",
    "wants",
    "watched",
    "works_on",
    "works_with",
];

/// The predicate of a fact that has a subject and names none.
pub(crate) const ABOUT: &str = "about";

/// Tells whether a subject can have several objects of this predicate at a time; of every other
/// predicate it has one.
///
/// ```
/// use garret_storage::facts::is_multi_valued;
/// assert!(is_multi_valued("likes") && is_multi_valued("Member of"));
/// assert!(!is_multi_valued("lives_in"));
/// ```
pub fn is_multi_valued(predicate: &str) -> bool {
    MULTI_VALUED.contains(&&*predicate_key(predicate))
}

/// `text` with case folded as Unicode's full case folding does, in NFC. Folding what is folded
/// changes nothing.
pub(crate) fn fold_case(text: &str) -> String {
    // Per letter: small, capital, small again. So sharp s, ligatures and final sigma meet their
    // capitals' small letters, as in CaseFolding.txt; that leaves dotless i alone.
    let folded = text.nfc().flat_map(|c| {
        let dotless = c == '\u{131}';
        let folded = (!dotless)
            .then(|| c.to_lowercase().flat_map(char::to_uppercase).flat_map(char::to_lowercase));
        folded.into_iter().flatten().chain(dotless.then_some(c))
    });
    folded.nfc().collect()
}

/// Words with one space between them.
fn collapse(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns what two spellings of one name have in common; empty for a blank one.
pub(crate) fn name_key(name: &str) -> String {
    collapse(&fold_case(name))
}

/// A predicate as it is stored: folded, `_` between its words.
pub(crate) fn predicate_key(predicate: &str) -> String {
    name_key(predicate).replace([' ', '-'], "_")
}

/// Returns the part that two wordings of one value share: case, spaces and the punctuation around
/// it don't
/// count. Empty for a text without words, which is never the same as another.
pub(crate) fn value_key(text: &str) -> String {
    let key = name_key(text);
    let key = key.trim_start_matches(is_opening).trim_end_matches(is_closing);
    key.trim().to_owned()
}

/// Words as they were said, however they were spaced: what a quote and its source share.
pub(crate) fn quote_key(text: &str) -> String {
    collapse(&text.nfc().collect::<String>())
}

/// First bytes of a SHA-256 that stand for a text in keys of tables.
pub(crate) fn digest<const N: usize>(text: &str) -> [u8; N] {
    let digest = <[u8; 32]>::from(Sha256::digest(text));
    std::array::from_fn(|at| digest.get(at).copied().unwrap_or(0))
}

/// Quotation marks and brackets; not `+`, `#` or `-`, which are part of names and numbers.
fn is_quotation(c: char) -> bool {
    matches!(c,
        '"' | '\'' | '`' | '\u{ab}' | '\u{bb}' | '\u{2018}'..='\u{201f}' | '\u{2039}' | '\u{203a}'
        | '\u{300c}'..='\u{300f}' | ' ')
}

fn is_opening(c: char) -> bool {
    is_quotation(c) || matches!(c, '(' | '[' | '\u{a1}' | '\u{bf}')
}

fn is_closing(c: char) -> bool {
    is_quotation(c)
        || matches!(
            c,
            '.' | ','
                | ';'
                | ':'
                | '!'
                | '?'
                | ')'
                | ']'
                | '\u{2026}'
                | '\u{3001}'
                | '\u{3002}'
                | '\u{ff01}'
                | '\u{ff0c}'
                | '\u{ff1a}'
                | '\u{ff1b}'
                | '\u{ff1f}'
        )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn spellings_of_one_name_are_one() {
        for names in [
            &["Acme", "ACME", " acme\t"][..],
            &["Caf\u{e9}", "CAF\u{c9}", "cafe\u{301}", "CAFE\u{301}"],
            &[
                "\u{41c}\u{43e}\u{441}\u{43a}\u{432}\u{430}",
                "\u{41c}\u{41e}\u{421}\u{41a}\u{412}\u{410}",
            ],
            &["Stra\u{df}e", "STRASSE", "STRA\u{1e9e}E"],
            &["\u{39f}\u{394}\u{39f}\u{3a3}", "\u{3bf}\u{3b4}\u{3bf}\u{3c2}"],
            &["o\u{fb03}ce", "OFFICE"],
            &["New  York", "new york", "New\u{a0}York\n"],
        ] {
            let keys: Vec<_> = names.iter().map(|name| name_key(name)).collect();
            assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
        }
    }

    #[test]
    fn different_names_stay_different() {
        for (a, b) in [
            ("Yahoo!", "Yahoo"),
            ("Caf\u{e9}", "Cafe"),
            ("\u{ff21}cme", "Acme"),
            ("\u{131}", "i"),
            ("\u{65e5}\u{672c}", "\u{4e2d}\u{56fd}"),
            ("a b", "ab"),
        ] {
            assert_ne!(name_key(a), name_key(b));
        }
    }

    #[test]
    fn restatements_differ_in_case_space_and_edge_punctuation() {
        for (a, b) in [
            ("I live in Oslo.", "i live  in OSLO"),
            ("\"Oslo\"", "oslo!"),
            ("(Oslo)", " Oslo ..."),
            ("\u{bf}Qu\u{e9}?", "qu\u{e9}"),
        ] {
            assert_eq!(value_key(a), value_key(b));
        }
        for (a, b) in [("10,5", "105"), ("C++", "C"), ("C#", "C"), ("-5", "5"), (".NET", "NET")] {
            assert_ne!(value_key(a), value_key(b));
        }
        assert_eq!(value_key(" ?! "), "");
    }

    #[test]
    fn predicates_are_known_however_they_are_written() {
        assert_eq!(predicate_key(" Member  Of "), "member_of");
        assert_eq!(predicate_key("lives-in"), "lives_in");
        for predicate in "likes dislikes uses knows has owns speaks plays member_of interested_in \
                          skilled_in"
            .split_whitespace()
        {
            assert!(is_multi_valued(predicate), "{predicate}");
        }
        for predicate in ["lives_in", "works_at", "is_a", "located_in", "", "born_in", "age"] {
            assert!(!is_multi_valued(predicate), "{predicate}");
        }
    }

    proptest! {
        #[test]
        fn keys_of_keys_are_the_same(text in any::<String>()) {
            let name = name_key(&text);
            prop_assert_eq!(name_key(&name), &*name);
            let value = value_key(&text);
            prop_assert_eq!(value_key(&value), &*value);
            let predicate = predicate_key(&text);
            prop_assert_eq!(predicate_key(&predicate), &*predicate);
        }

        #[test]
        fn case_and_form_never_tell_names_apart(text in any::<String>()) {
            let key = name_key(&text);
            prop_assert_eq!(name_key(&text.nfd().collect::<String>()), &*key);
            if !text.contains(['\u{131}', '\u{130}']) {
                prop_assert_eq!(name_key(&text.to_uppercase()), &*key);
                prop_assert_eq!(name_key(&text.to_lowercase()), &*key);
            }
        }
    }

    /// Every character by itself, which no sample of strings reaches.
    #[test]
    fn folding_every_character_twice_changes_nothing() {
        for c in char::MIN..=char::MAX {
            let plain = c.to_string();
            let once = fold_case(&plain);
            if once != plain {
                assert_eq!(fold_case(&once), once, "U+{:04X}", u32::from(c));
            }
        }
    }
}
