//! What a compaction asks a companion for, what of the answer it takes, and what stands in when there
//! is none.
//!
//! A summary is asked for in steps: as told, then shorter, then without a model, by taking out the
//! sentences that say most. So there is always one, it is shorter than what it sums up, and it is
//! never an error, a thought or nothing. Its words are data: they are stored as text, and shown with
//! the mark that all quoted text has.
//!
//! Limits: how good a summary is depends on the model; what it sums up stays in the store, and every
//! summary can be expanded to it.

mod accept;
mod breaker;
mod extract;
mod instruct;
mod source;

pub(crate) use accept::accept;
pub(crate) use breaker::{Breaker, Work};
pub(crate) use extract::extract;
pub(crate) use instruct::{Shown, Step, instruction};
pub(crate) use source::{Job, Line, transcript};
