//! What a user is after, and what they said of themselves: worked out while nobody waits.
//!
//! - [`reading`]: what the inferrer is asked, and its answer. A guess must quote the user; one whose
//!   quote isn't in the conversation counts for little. That the message means just what it says is
//!   always one of the guesses.
//! - [`carry`]: what is left of an answer for the next turn, which consumes it, and the block in which
//!   that turn shows it, if it has to do with the message.
//! - [`extract`]: facts from statements that rules found. Where a value's end isn't plain the model
//!   copies it out, and can write nothing but words of the message.
//! - [`persona`]: one record of what is known of the user, made of facts.
//! - [`presence`]: what was of no use for long isn't recalled any more.
//! - [`pins`]: which facts are always shown, and which give way when they are too many.
//!
//! What is inferred is never stored or shown as something that the user said.

pub mod carry;
pub mod extract;
pub mod ground;
pub mod persona;
pub mod pins;
pub mod presence;
pub mod reading;
