//! What every other room stands on: errors, numbers of things, tables, and records as bytes.
//!
//! Nothing here knows a conversation, a fact or a file.

pub(crate) mod codec;
pub(crate) mod database;
pub(crate) mod error;
pub(crate) mod fact_error;
pub(crate) mod fact_id;
pub(crate) mod limits;
pub(crate) mod position;
pub(crate) mod stamp;
pub(crate) mod summary_error;
pub(crate) mod summary_id;
pub(crate) mod table;
