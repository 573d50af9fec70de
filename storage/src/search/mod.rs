//! Finding what was said, in any language, without a model.
//!
//! What is found is a message: the user's words of a turn or the reply, each by itself, since one
//! of the two usually holds the answer and the other would dilute it. Their neighbours count
//! beside them, so a reply is found by the question it answers. Messages are ranked by a weighted
//! sum ([`NAMES`] says of what). Each shares a word with the query, or comes right after a question
//! that does.
//!
//! The index is in memory and derived from the store: the first search reads everything, every
//! write after that keeps it. [`Index`] can be used without a store.
//!
//! Measured on seven of LoCoMo's ten conversations, 1,523 questions (`garret-bench`'s `locomo`,
//! weights fitted on the other conversations): recall of the answering messages among the first
//! ten .827, among the first five .752, mean reciprocal rank .629.
//!
//! Limits: a message is found by its words, not its meaning; dates are days in UTC, their names
//! are known in eight languages; questions for a time and words that tell one are best known in
//! English; the index isn't stored, so each process builds it once.

mod dates;
mod derived;
mod excerpt;
mod find;
mod index;
mod query;
mod rank;
mod top;

pub(crate) use derived::Derived;
pub use find::{Found, Hit, Source};
pub use index::{Index, Ranked, Speaker, Unit};
pub use rank::{FEATURES, Features, NAMES, WEIGHTS, blend};
