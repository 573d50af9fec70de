//! Summaries: shorter words for runs of turns, which stay where they are.
//!
//! A leaf sums up turns of a session, a condensed summary sums up others; so they form trees that lead
//! back to every turn. They are only added. [`Store::frontier`](crate::Store::frontier) says how far
//! the turns are covered without a gap, from the first one on.
//!
//! ```
//! use garret_core::time::{Confidence, WallTime};
//! use garret_hal::media::RamMedium;
//! use garret_storage::{NewSummary, Store, SummaryMethod};
//!
//! # let store = Store::on_medium("home", Box::new(RamMedium::new()))?;
//! let at = WallTime { unix_ms: 1_767_225_600_000, confidence: Confidence::Good };
//! let kitchen = "kitchen".parse()?;
//! for words in ["My name is Ada.", "I keep bees.", "Seven hives."] {
//!     store.accept(&kitchen, words, at)?;
//! }
//! let leaf = NewSummary {
//!     depth: 0,
//!     from: 1,
//!     to: 2,
//!     sources: &[],
//!     text: "Ada keeps bees.",
//!     tokens: 5,
//!     source_tokens: 11,
//!     method: SummaryMethod::Model,
//!     model_fingerprint: &[0; 32],
//! };
//! let ids = store.compact_session(&kitchen, &[leaf], Some(b"what the prompt begins with"), at)?;
//! assert_eq!((ids[0].to_string(), store.frontier(&kitchen)?), ("s1".to_owned(), 2));
//! // A turn is covered once.
//! assert!(store.compact_session(&kitchen, &[leaf], None, at).is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Beside them the store keeps what the engine wants to find again after a restart: small states of a
//! session ([`StateKind`]) and what the model saw in a turn ([`Store::trace`](crate::Store::trace)).
//! Its bytes mean nothing here.
//!
//! Limits: search doesn't find summaries; what they sum up is better evidence. Forgetting a turn
//! removes the summaries above it, and any forgetting all states and traces.

pub(crate) mod erase;
pub(crate) mod op;
pub(crate) mod read;
pub(crate) mod record;
pub(crate) mod table;
pub(crate) mod view;
pub(crate) mod write;

pub use crate::ground::summary_error::SummaryError;
pub use crate::ground::summary_id::{SummaryId, SummaryIdError};
pub(crate) use crate::summaries::op::{Compaction, Draft};
pub use crate::summaries::view::{NewSummary, StateKind, Summary, SummaryMethod};
pub(crate) use crate::summaries::write::{
    Said, Tables, Writer, apply, frontier, put_trace, remove_session, set_state,
};
