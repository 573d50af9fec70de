//! Remembering what users say of themselves: facts, made while nobody waits.
//!
//! - [`cues`]: what rules notice in a message, before any model is asked.
//! - [`extract`]: facts from statements that the rules found. Where a value's end isn't plain the model
//!   copies it out, and can write nothing but words of the message.
//! - [`persona`]: one record of what is known of the user, made of facts.
//! - [`pins`]: which facts are always shown, and which give way when they are too many.
//! - [`fading`]: what was of no use for long isn't recalled any more.
//!
//! The room knows words and the store; it must not know a prompt, a model or the agent. What is
//! inferred is never stored or shown as something that the user said.

pub mod cues;
pub mod extract;
pub mod fading;
pub mod persona;
pub mod pins;
