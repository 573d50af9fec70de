//! Summarising: what the compactor is asked for, what of its answer is taken, and what stands in when
//! there is none.
//!
//! A summary is asked for in steps: as told, then shorter, then without a model, by taking out the
//! sentences that say most. So there is always one, it is shorter than what it sums up, and it is
//! never an error, a thought or nothing. Its words are data: they are stored as text, and shown with
//! the mark that all quoted text has.
//!
//! The room must not know the agent. Limits: how good a summary is depends on the model; what it sums
//! up stays in the store, and every summary can be expanded to it.

mod accept;
mod extract;
mod job;
mod request;
mod state;
mod survey;

pub(crate) use accept::{AcceptError, accept};
pub(crate) use extract::extract;
pub(crate) use job::Job;
pub(crate) use request::{SourcePlace, Step, instruction};
pub(crate) use state::SummariserState;
pub(crate) use survey::{MAX_TURNS, Survey};
