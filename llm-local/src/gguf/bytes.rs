//! Bytes that a vocabulary has tokens for.

/// The bytes that were seen among the tokens.
#[derive(Clone, Debug)]
pub(super) struct ByteTokens {
    seen: [bool; 256],
}

impl Default for ByteTokens {
    fn default() -> Self {
        Self { seen: [false; 256] }
    }
}

impl ByteTokens {
    /// Notes `token` if it stands for a byte: spelled like `<0x0A>`, with capital letters as
    /// llama.cpp looks for it, or the byte itself.
    pub(super) fn note(&mut self, token: &[u8]) {
        let byte = match *token {
            [byte] => Some(byte),
            [b'<', b'0', b'x', high, low, b'>'] => {
                digit(high).zip(digit(low)).map(|(high, low)| high << 4 | low)
            }
            _ => None,
        };
        if let Some(seen) = byte.and_then(|byte| self.seen.get_mut(usize::from(byte))) {
            *seen = true;
        }
    }

    pub(super) fn first_missing(&self) -> Option<u8> {
        self.seen.iter().position(|seen| !seen).and_then(|at| u8::try_from(at).ok())
    }
}

fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

/// Bytes of the longest token that stands for a byte.
pub(super) const LONGEST: u64 = 6;
