//! Finding what was said, in any language, by its words and, where there is an embedder, by its
//! meaning.
//!
//! What is found is a message: the user's words of a turn or the reply, each by itself, since one
//! of the two usually holds the answer and the other would dilute it. Their neighbours count
//! beside them, so a reply is found by the question it answers. Messages are ranked by a weighted
//! sum ([`NAMES`] says of what), in which vectors take part by their cosines. Without vectors, each
//! hit shares a word with the query, or comes right after a question that does.
//!
//! The index is in memory and derived from the store: the first search reads everything, every
//! write after that keeps it. [`Index`] can be used without a store.
//!
//! Measured on seven of LoCoMo's ten conversations, 1,523 questions (`garret-bench`'s `locomo`,
//! weights fitted on the other conversations); recall of the answering messages among the first
//! ten and five, mean reciprocal rank:
//!
//! | | R@10 | R@5 | MRR |
//! |---|---|---|---|
//! | words alone | .834 | .759 | .643 |
//! | all-MiniLM-L6-v2 (f16), one vector a message | .867 | .800 | .681 |
//!
//! Limits: dates are days in UTC, their names are known in eight languages; questions for a time
//! and words that tell one are best known in English; at most 1,000 messages are looked at closely
//! for their words and 200 for their meaning; the index isn't stored, so each process builds it
//! once.

mod candidates;
pub(crate) mod dates;
mod derived;
mod excerpt;
mod filter;
mod find;
mod index;
mod meaning;
mod names;
mod query;
mod rank;
mod reading;
mod score;
mod top;
mod unit;

pub(crate) use derived::{Change, Derived};
pub use find::{Found, Hit, Kind, Search, Source};
pub use index::Index;
pub use names::without_names;
pub use rank::{
    FEATURES, Features, LEXICAL, NAMES, UNLIKELY, UNLIKELY_WITH_VECTORS, WEIGHTS,
    WEIGHTS_WITH_VECTORS, blend,
};
pub use unit::{Ask, Ranked, Speaker, Unit};
