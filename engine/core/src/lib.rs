//! Vocabulary, ports and decisions of Garret, with no allocation, no I/O and no clock of its own.
//!
//! Everything that decides lives here: how a window is divided ([`budget`]), which turns go into a
//! prompt ([`assemble`]), what a turn cost and what was left out ([`receipt`]), which bytes of a
//! model's output are control and which are text ([`scan`], [`utf8`]). Everything that touches the
//! world is a port (a trait) that another crate implements: [`model`], [`embed`], [`rerank`],
//! [`prompt`], [`medium`], [`time`], [`vector`].
//!
//! ```
//! use garret_core::budget::Budget;
//!
//! let budget = Budget::for_window(8_192)?;
//! assert!(budget.reply_reserve + budget.companion_reserve < budget.n_ctx);
//! # Ok::<(), garret_core::budget::BudgetError>(())
//! ```
//!
//! Limits: windows from 2,048 tokens; ids of at most 64 bytes; callers bring every buffer, and a
//! full buffer is an error, never a panic.

#![no_std]
#![forbid(unsafe_code)]
#![deny(
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]
#![cfg_attr(
    test,
    allow(clippy::as_conversions, clippy::indexing_slicing, clippy::arithmetic_side_effects)
)]

#[cfg(test)]
extern crate std;

pub mod assemble;
pub mod budget;
pub mod compact;
pub mod decay;
pub mod embed;
pub mod gate;
pub mod id;
pub mod medium;
pub mod model;
pub mod prompt;
pub mod receipt;
pub mod rerank;
pub mod scan;
pub mod shorten;
#[doc(hidden)]
pub mod testing;
pub mod time;
pub mod token;
pub mod utf8;
pub mod vector;
