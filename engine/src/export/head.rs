//! The beginning of an export, and moments as exports have them.

use std::io::{self, Write};

use garret_language::local_time;
use garret_storage::SessionInfo;
use serde::Serialize;

/// The conversation, on the wire: what stands before its turns.
#[derive(Serialize)]
pub(super) struct Head<'a> {
    format: &'static str,
    version: u32,
    pub(super) session: &'a str,
    pub(super) title: &'a str,
    pub(super) created: Option<String>,
    pub(super) exported: Option<String>,
}

impl<'a> Head<'a> {
    pub(super) fn new(info: &'a SessionInfo, now_ms: Option<i64>) -> Self {
        Self {
            format: "garret-session",
            version: 1,
            session: info.id.as_str(),
            title: &info.title,
            created: moment(info.created_ms),
            exported: now_ms.and_then(moment),
        }
    }

    /// Writes the object up to the beginning of its turns.
    pub(super) fn begin_json(&self, out: &mut dyn Write) -> io::Result<()> {
        let head = serde_json::to_string(self)?;
        let open = head.strip_suffix('}').unwrap_or(&head);
        write!(out, "{open},\"turns\":[")
    }
}

/// Writes a moment, in milliseconds since 1970, as RFC 3339 has it.
pub(super) fn moment(unix_ms: i64) -> Option<String> {
    local_time::format(unix_ms, "%Y-%m-%dT%H:%M:%S%.3f%:z")
}
