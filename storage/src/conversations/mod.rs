//! The log of conversations: sessions, turns and replies, as they were said.
//!
//! A record is written once and only an erasure or the delete of its session removes it. Nothing here
//! knows what is made of the words: facts, summaries, vectors, the text index.

pub(crate) mod erased;
pub(crate) mod import;
pub(crate) mod importer;
pub(crate) mod op;
pub(crate) mod record;
pub(crate) mod view;
pub(crate) mod write;
