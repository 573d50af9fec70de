//! Says what a word, a sentence, a stem, a stop word, a name and a date is, in all languages.
//!
//! Search, facts and prompts read texts by these rules alone, so that what one of them takes for a
//! word or a date is one for the others, too.
//!
//! ```
//! use garret_language::tokens::{terms, tokens};
//! use garret_language::{Language, casefold, dates, without_names};
//!
//! let text = "Ada's caf\u{e9} opens on 24 December 2026.";
//! let language = Language::detect(text);
//! let mut found = Vec::new();
//! tokens(text, &mut |token| terms(&token, language, &mut |term| found.push(term.to_owned())));
//! assert_eq!(found, ["ada", "cafe", "open", "24", "decemb", "2026"]);
//!
//! assert_eq!(dates::find(text)[0].year, Some(2026));
//! assert_eq!(without_names(text, &["Ada"]), "caf\u{e9} opens on 24 December 2026.");
//! assert_eq!(casefold("CAF\u{c9}"), "cafe");
//! ```
//!
//! # The rooms
//!
//! | room | for |
//! |---|---|
//! | [`casefold()`] | one spelling for what people take as the same word |
//! | [`Language`] | which language a text is in; its stems and stop words |
//! | [`scripts`] | which characters are of scripts without spaces |
//! | [`tokens`] | words, signs and numbers of a text, and the terms they are found by |
//! | [`sentences`] | sentences of a message, without what it quotes; lists of phrases |
//! | [`grounding`] | quotes that stand in a text; words that say what a text is about |
//! | [`without_names`] | a text without the names of those who speak |
//! | [`calendar`], [`local_time`] | days in UTC and where the user is; names of months |
//! | [`dates`], [`time_query`] | dates that a message names; times that a question asks for |
//! | [`spans`] | addresses and identifiers |
//!
//! A text goes in and values come out: nothing here knows facts, prompts, indexes or stores, and
//! nothing but [`local_time`] asks the system for anything (its time zone).
//!
//! # Limits
//!
//! Stems for 18 languages; compound words aren't taken apart, and scripts without spaces become pairs
//! of characters. Names of months in eight languages, expressions such as "last week" in English.
//! Years -9999 to 9999. A text index stores what [`tokens`], [`Language`] and [`time_query`] make of
//! a text: who changes that raises the number of the index's rules.
//!
//! # Dependencies
//!
//! - `jiff`: the one calendar, and the system's time zone.
//! - `rust-stemmers`: Snowball's stemmers.
//! - `unicode-normalization`: the decomposition that case folding starts from.
//! - `unicode-segmentation`: words and characters by Unicode's rules.
//! - `whatlang`: trigrams, where common words don't decide a language.

#![forbid(unsafe_code)]

pub mod calendar;
mod casefold;
pub mod dates;
pub mod grounding;
mod language;
pub mod local_time;
mod names;
pub mod scripts;
pub mod sentences;
pub mod spans;
mod stop;
pub mod time_query;
pub mod tokens;

pub use casefold::casefold;
pub use language::Language;
pub use names::without_names;
