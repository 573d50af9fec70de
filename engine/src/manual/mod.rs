//! The manual: the guide for users, the map of the code, and the reasons behind both.
//!
//! Each page is a Markdown file beside this module, so that it reads the same in the repository, in
//! `cargo doc` and in an editor.

#[doc = include_str!("decisions.md")]
pub mod decisions {}
