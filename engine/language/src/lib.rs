//! Words, sentences, stems, stop words, names and dates of texts in any language.

#![forbid(unsafe_code)]

mod casefold;
pub mod dates;
pub mod grounding;
mod language;
pub mod local_time;
mod names;
pub mod sentences;
pub mod spans;
mod stop;
pub mod time_query;
pub mod tokens;

pub use casefold::casefold;
pub use language::Language;
pub use names::without_names;
