//! Writes to conversations, as the journal keeps them.

use serde::{Deserialize, Serialize};

use crate::ground::stamp::Stamp;

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Reply<'a> {
    pub(crate) session: &'a str,
    pub(crate) seq: u64,
    pub(crate) text: &'a str,
    /// i32, little-endian.
    pub(crate) tokens: &'a [u8],
    pub(crate) model_fingerprint: [u8; 32],
    pub(crate) finish: u8,
    pub(crate) at: Stamp,
    pub(crate) receipt: &'a [u8],
}

/// Something that was said elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Said<'a> {
    pub(crate) session: &'a str,
    /// The one who said it; `None` for the user.
    pub(crate) speaker: Option<&'a str>,
    pub(crate) text: &'a str,
    pub(crate) at: Stamp,
    /// Of its name where it comes from: the first bytes of the SHA-256.
    pub(crate) id: Option<[u8; 16]>,
}
