//! Helpers of several modules of tests.

pub(crate) mod gguf;
pub(crate) mod runtime;
pub(crate) mod template;
