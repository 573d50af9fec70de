//! Compactions as values, which can be kept in the journal and applied again.

use serde::{Deserialize, Serialize};

use crate::ground::stamp::Stamp;
use crate::summaries::view::NewSummary;

/// Summaries of one session, and the state that goes with them.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Compaction<'a> {
    pub(crate) session: &'a str,
    #[serde(borrow)]
    pub(crate) summaries: Vec<Draft<'a>>,
    pub(crate) context: Option<&'a [u8]>,
    pub(crate) at: Stamp,
}

/// A summary to be stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Draft<'a> {
    pub(crate) depth: u8,
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) sources: Vec<u64>,
    pub(crate) text: &'a str,
    pub(crate) tokens: u32,
    pub(crate) source_tokens: u32,
    pub(crate) method: u8,
    pub(crate) model_fingerprint: [u8; 32],
}

impl<'a> From<&NewSummary<'a>> for Draft<'a> {
    fn from(new: &NewSummary<'a>) -> Self {
        Self {
            depth: new.depth,
            first: new.from,
            last: new.to,
            sources: new.sources.iter().map(|source| source.0).collect(),
            text: new.text.trim(),
            tokens: new.tokens,
            source_tokens: new.source_tokens,
            method: new.method.to_byte(),
            model_fingerprint: *new.model_fingerprint,
        }
    }
}
