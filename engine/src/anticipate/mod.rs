//! Anticipating: what the user is after, worked out while nobody waits and shown at the next turn.
//!
//! - [`reading`]: what the inferrer is asked, and its answer. A guess must quote the user; one whose
//!   quote isn't in the conversation counts for little. That the message means just what it says is
//!   always one of the guesses.
//! - [`pending`]: the part of an answer that waits for the next turn, which consumes it, and the block
//!   in which that turn shows it, if it has to do with the message.
//!
//! The room must not know the agent or a prompt. What is inferred is never stored or shown as something
//! that the user said.

pub mod pending;
pub mod reading;
