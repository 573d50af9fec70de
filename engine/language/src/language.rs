//! Languages, as far as finding words again depends on them: detection, stems, stop words.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use rust_stemmers::{Algorithm, Stemmer};

use crate::{casefold, stop};

macro_rules! languages {
    ($($(#[$doc:meta])* $name:ident $whatlang:ident,)*) => {
        /// A language with a Snowball stemmer, or any other.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Language {
            $($(#[$doc])* $name,)*
            /// Words are taken as they are, but for case and accents.
            Other,
        }

        impl Language {
            /// Every language, in the order of their numbers, which a text index stores.
            pub const ALL: &[Self] = &[$(Self::$name,)* Self::Other];

            fn algorithm(self) -> Option<Algorithm> {
                match self {
                    $(Self::$name => Some(Algorithm::$name),)*
                    Self::Other => None,
                }
            }

            fn of_whatlang(found: whatlang::Lang) -> Self {
                match found {
                    $(whatlang::Lang::$whatlang => Self::$name,)*
                    _ => Self::Other,
                }
            }
        }
    };
}

languages! {
    /// Arabic.
    Arabic Ara,
    /// Danish.
    Danish Dan,
    /// Dutch.
    Dutch Nld,
    /// English, the default for Latin letters.
    English Eng,
    /// Finnish.
    Finnish Fin,
    /// French.
    French Fra,
    /// German.
    German Deu,
    /// Greek.
    Greek Ell,
    /// Hungarian.
    Hungarian Hun,
    /// Italian.
    Italian Ita,
    /// Norwegian.
    Norwegian Nob,
    /// Portuguese.
    Portuguese Por,
    /// Romanian.
    Romanian Ron,
    /// Russian, the default for Cyrillic letters.
    Russian Rus,
    /// Spanish.
    Spanish Spa,
    /// Swedish.
    Swedish Swe,
    /// Tamil.
    Tamil Tam,
    /// Turkish.
    Turkish Tur,
}

impl Language {
    /// Detects the language of the words in Latin letters of `text`; words in other letters are
    /// taken by their script, whatever this returns.
    ///
    /// Common words decide; where they don't, trigrams that are sure of themselves; else English.
    pub fn detect(text: &str) -> Self {
        let sample = &text[..text.floor_char_boundary(SAMPLE_BYTES)];
        let mut hits = [0_u16; LANGUAGES];
        let mut letters = 0;
        for word in sample.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty()) {
            letters += word.len();
            let mut mask = stop_mask(&casefold(word));
            while mask != 0 {
                hits[mask.trailing_zeros() as usize] += 1;
                mask &= mask - 1;
            }
            if let Some(language) = clear(&hits) {
                return language;
            }
        }
        let (best, count) = hits.iter().enumerate().max_by_key(|(_, hit)| **hit).unwrap_or((0, &0));
        let rivals = hits.iter().filter(|hit| *hit == count).count();
        let best = (rivals == 1).then(|| Self::ALL.get(best).copied()).flatten();
        match best {
            Some(best) if *count >= 2 => best,
            _ if letters >= TRIGRAM_BYTES => by_trigrams(sample).or(best).unwrap_or(Self::English),
            best => best.unwrap_or(Self::English),
        }
    }

    /// Returns the language that `word` is stemmed in when it stands in a text of this one.
    pub(super) fn of_word(self, word: &str) -> Self {
        match (by_script(word), self) {
            (Some(language), _) => language,
            (None, Self::Greek | Self::Russian | Self::Arabic | Self::Tamil) => Self::English,
            (None, latin) => latin,
        }
    }

    /// Returns true for a casefolded word that says nothing about what a text of this language is
    /// about.
    pub(super) fn is_stop_word(self, folded: &str) -> bool {
        stop_mask(folded) & 1 << (self as u32) != 0
    }

    /// Returns the stem of a word in lower case.
    pub(super) fn stem(self, word: &str) -> Cow<'_, str> {
        match self.algorithm() {
            Some(algorithm) if word.len() <= STEMMED_BYTES => {
                Cow::Owned(Stemmer::create(algorithm).stem(word).into_owned())
            }
            _ => Cow::Borrowed(word),
        }
    }
}

/// Returns the language of a word whose letters leave no choice; `None` for Latin letters and
/// numbers.
pub(super) fn by_script(word: &str) -> Option<Language> {
    match word.chars().find(|c| c.is_alphabetic()).map_or(0, u32::from) {
        0x370..=0x3ff | 0x1f00..=0x1fff => Some(Language::Greek),
        0x400..=0x52f => Some(Language::Russian),
        0x600..=0x6ff => Some(Language::Arabic),
        0xb80..=0xbff => Some(Language::Tamil),
        0..=0x24f | 0x1e00..=0x1eff | 0xff21..=0xff5a => None,
        _ => Some(Language::Other),
    }
}

/// Returns the language that leads by so much that the rest of the text won't matter.
fn clear(hits: &[u16; LANGUAGES]) -> Option<Language> {
    let (best, count) = hits.iter().enumerate().max_by_key(|(_, hit)| **hit)?;
    let clear = *count >= CLEAR_LEAD && {
        hits.iter().enumerate().all(|(other, hit)| other == best || *hit + CLEAR_LEAD <= *count)
    };
    clear.then(|| Language::ALL.get(best).copied()).flatten()
}

/// Common words by which a language must lead.
const CLEAR_LEAD: u16 = 3;

/// Bytes of a text that decide its language.
const SAMPLE_BYTES: usize = 1024;
/// Bytes of words from which on trigrams are asked.
const TRIGRAM_BYTES: usize = 24;
/// Bytes of the longest word that is stemmed; no natural word is longer.
const STEMMED_BYTES: usize = 96;
const LANGUAGES: usize = Language::ALL.len();
// Each has a bit in a mask.
const _: () = assert!(LANGUAGES <= 32);

fn by_trigrams(text: &str) -> Option<Language> {
    let found = whatlang::detect(text)?;
    let latin = found.script() == whatlang::Script::Latin;
    (latin && found.is_reliable()).then(|| Language::of_whatlang(found.lang()))
}

/// Returns a bit for each language that has `folded` as a stop word.
fn stop_mask(folded: &str) -> u32 {
    static MASKS: LazyLock<HashMap<&'static str, u32>> = LazyLock::new(|| {
        let mut masks = HashMap::new();
        for (language, words) in STOP {
            for word in words.split_ascii_whitespace() {
                *masks.entry(word).or_insert(0) |= 1 << (language as u32);
            }
        }
        masks
    });
    if folded.len() > LONGEST_STOP_WORD { 0 } else { MASKS.get(folded).copied().unwrap_or(0) }
}

const STOP: [(Language, &str); 9] = [
    (Language::English, stop::ENGLISH),
    (Language::German, stop::GERMAN),
    (Language::French, stop::FRENCH),
    (Language::Spanish, stop::SPANISH),
    (Language::Italian, stop::ITALIAN),
    (Language::Portuguese, stop::PORTUGUESE),
    (Language::Dutch, stop::DUTCH),
    (Language::Swedish, stop::SWEDISH),
    (Language::Russian, stop::RUSSIAN),
];

/// Bytes of the longest stop word.
const LONGEST_STOP_WORD: usize = 24;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_told_apart_by_a_sentence() {
        for (text, language) in [
            ("I went to the library and met my sister there.", Language::English),
            ("Ich habe gestern mit meiner Schwester die Bienen besucht.", Language::German),
            ("Nous avons visit\u{e9} les ruches avec ma soeur hier.", Language::French),
            ("Ayer fui con mi hermana a ver las colmenas.", Language::Spanish),
            ("Ieri sono andato con mia sorella a vedere gli alveari.", Language::Italian),
            ("Ontem fui com a minha irm\u{e3} ver as colmeias.", Language::Portuguese),
            ("Gisteren ben ik met mijn zus naar de bijen geweest.", Language::Dutch),
            (
                "Ig\u{e5}r var jag och min syster hos bina i tr\u{e4}dg\u{e5}rden.",
                Language::Swedish,
            ),
            (
                "Eilen k\u{e4}vin siskoni kanssa katsomassa mehil\u{e4}isi\u{e4} puutarhassa.",
                Language::Finnish,
            ),
            (
                "D\u{fc}n k\u{131}z karde\u{15f}imle ar\u{131}lar\u{131} ziyaret ettik.",
                Language::Turkish,
            ),
            ("ok", Language::English),
            ("", Language::English),
        ] {
            assert_eq!(Language::detect(text), language, "{text}");
        }
    }

    #[test]
    fn stop_words_are_written_folded() {
        for (language, words) in STOP {
            for word in words.split_ascii_whitespace() {
                assert_eq!(casefold(word), word, "{language:?}");
                assert!(word.len() <= LONGEST_STOP_WORD && language.is_stop_word(word));
            }
        }
    }
}
