//! The text of each part of a prompt, and putting the parts together.
//!
//! A prompt is the session's fixed prefix ([`prefix`], with what is tracked of the conversation), the
//! newest turns ([`history`]), the volatile block of this turn alone ([`volatile`], with what is
//! remembered from elsewhere), and the user's words. [`build`] puts them together.
//!
//! The room knows the store, an encoder and the budget; it must not know the agent, a model that
//! generates, or a companion. All counts are tokens of the model that the prompt is for.

pub(crate) mod build;
pub(crate) mod error;
pub(crate) mod history;
pub(crate) mod memory;
pub(crate) mod prefix;
pub(crate) mod quote;
pub(crate) mod tracked;
pub(crate) mod volatile;
