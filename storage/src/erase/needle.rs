//! Looking for words in bytes and in texts.

use std::collections::BTreeSet;

use unicode_normalization::UnicodeNormalization as _;

use crate::facts::fold_case;

/// Words to look for, whatever their case.
pub(crate) struct Needle {
    /// Folded; `None` for bytes that are no text.
    folded: Option<String>,
    /// Spellings, in small letters where they are ASCII.
    spellings: Vec<Vec<u8>>,
}

impl Needle {
    /// `None` for nothing but white space.
    pub(crate) fn new(pattern: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(pattern).ok();
        if pattern.is_empty() || text.is_some_and(|text| text.trim().is_empty()) {
            return None;
        }
        let mut spellings = BTreeSet::from([pattern.to_ascii_lowercase()]);
        for text in text.into_iter().flat_map(spellings_of) {
            spellings.insert(text.into_bytes().to_ascii_lowercase());
        }
        Some(Self {
            folded: text.map(fold_case),
            spellings: spellings.into_iter().filter(|bytes| !bytes.is_empty()).collect(),
        })
    }

    /// Tells whether a text has the words in it, in any case and Unicode form of their letters.
    pub(crate) fn is_in(&self, text: &str) -> bool {
        match &self.folded {
            Some(folded) if text.is_ascii() && folded.is_ascii() => {
                find(text.as_bytes(), folded.as_bytes()).next().is_some()
            }
            Some(folded) => fold_case(text).contains(&**folded),
            None => false,
        }
    }

    /// Tells whether bytes have one of the spellings in them.
    pub(crate) fn is_in_bytes(&self, bytes: &[u8]) -> bool {
        self.spellings.iter().any(|spelling| find(bytes, spelling).next().is_some())
    }

    /// Returns where a spelling begins in `bytes`, in no order.
    pub(crate) fn places<'a>(&'a self, bytes: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
        self.spellings.iter().flat_map(|spelling| find(bytes, spelling))
    }

    /// Bytes of the longest spelling; at least 1.
    pub(crate) fn longest(&self) -> usize {
        self.spellings.iter().map(Vec::len).max().unwrap_or(1)
    }
}

/// Returns where `small`, in small ASCII letters, begins in `bytes`, ASCII case aside.
fn find<'a>(bytes: &'a [u8], small: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    let first = small.first().copied();
    let same = move |(at, _): &(usize, &u8)| {
        bytes.get(*at..*at + small.len()).is_some_and(|found| found.eq_ignore_ascii_case(small))
    };
    let starts = move |(_, byte): &(usize, &u8)| Some(byte.to_ascii_lowercase()) == first;
    bytes.iter().enumerate().filter(starts).filter(same).map(|(at, _)| at)
}

/// Says how people may have written a text: as it is, small, in capitals, with capitals at the start of
/// words, and folded; each with composed and with decomposed letters.
fn spellings_of(text: &str) -> Vec<String> {
    let written = [
        text.to_owned(),
        text.to_lowercase(),
        text.to_uppercase(),
        capitalised(text),
        fold_case(text),
    ];
    written
        .iter()
        .flat_map(|text| [text.clone(), text.nfc().collect(), text.nfd().collect()])
        .collect()
}

fn capitalised(text: &str) -> String {
    let mut starts = true;
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if starts {
            out.extend(c.to_uppercase());
        } else {
            out.extend(c.to_lowercase());
        }
        starts = !c.is_alphanumeric();
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn needle(text: &str) -> Needle {
        Needle::new(text.as_bytes()).unwrap()
    }

    #[test]
    fn words_are_found_in_any_case_and_form() {
        for (pattern, texts) in [
            ("Ada", &["ada", "ADA Lovelace", "my name is aDa."][..]),
            ("\u{c9}cole", &["\u{e9}COLE", "e\u{301}cole", "E\u{301}COLE"]),
            ("STRASSE", &["stra\u{df}e"]),
        ] {
            for text in texts {
                assert!(needle(pattern).is_in(text), "{pattern} in {text}");
            }
        }
        assert!(!needle("ada").is_in("a da") && !needle("\u{e9}").is_in("e"));
    }

    #[test]
    fn spellings_are_found_in_bytes() {
        for bytes in ["xx\u{e9}cole", "\u{c9}COLE", "E\u{301}cole", "e\u{301}COLE"] {
            assert!(needle("\u{e9}cole").is_in_bytes(bytes.as_bytes()), "{bytes}");
        }
        assert!(Needle::new(&[0xff, 1]).unwrap().is_in_bytes(&[0, 0xff, 1, 2]));
        assert!(Needle::new(b" \n").is_none() && Needle::new(b"").is_none());
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        #[test]
        fn what_is_there_is_found(before: String, pattern in "\\PC*[a-z]", after: String) {
            let text = format!("{before}{pattern}{after}");
            let needle = needle(&pattern);
            prop_assert!(needle.is_in_bytes(text.as_bytes()));
            let upper = text.to_ascii_uppercase();
            let place = before.len();
            prop_assert!(needle.places(upper.as_bytes()).any(|at| at == place));
        }
    }
}
