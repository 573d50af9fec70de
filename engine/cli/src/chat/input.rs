//! Lines of standard input, for scripts.

use std::io::{self, BufRead, Read, StdinLock};

/// Reads lines of UTF-8.
#[derive(Debug)]
pub(super) struct Lines {
    stdin: StdinLock<'static>,
    number: u64,
    buffer: Vec<u8>,
}

impl Lines {
    pub(super) fn of_stdin() -> Self {
        Self { stdin: io::stdin().lock(), number: 0, buffer: Vec::new() }
    }

    /// The next line without its end; `None` at the end of input.
    pub(super) fn next(&mut self) -> Result<Option<String>, InputError> {
        self.buffer.clear();
        self.number += 1;
        let number = self.number;
        let read = self.stdin.by_ref().take(MAX_LINE + 1).read_until(b'\n', &mut self.buffer);
        match read.map_err(|reason| InputError::Unreadable { number, reason })? as u64 {
            0 => return Ok(None),
            bytes if bytes > MAX_LINE => return Err(InputError::TooLong { number }),
            _ => {}
        }
        let line = self.buffer.strip_suffix(b"\n").unwrap_or(&self.buffer);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match std::str::from_utf8(line) {
            Ok(line) => Ok(Some(line.into())),
            Err(error) => Err(InputError::NotUtf8 { number, byte: error.valid_up_to() + 1 }),
        }
    }
}

/// Most bytes of a line with its end: a message as large as the store takes.
const MAX_LINE: u64 = garret_storage::MAX_BYTES as u64 + 2;

/// The reason for which a line can't be answered.
#[derive(Debug, thiserror::Error)]
pub(super) enum InputError {
    #[error(
        "line {number} of the input isn't UTF-8 (byte {byte}): convert it, then go on from there"
    )]
    NotUtf8 { number: u64, byte: usize },
    #[error("line {number} of the input is longer than 16 MiB: split it, then go on from there")]
    TooLong { number: u64 },
    #[error("line {number} of the input can't be read: {reason}")]
    Unreadable { number: u64, reason: io::Error },
}
