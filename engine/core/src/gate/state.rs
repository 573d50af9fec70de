//! A gate as bytes, to be kept beside its session.

use super::{Gate, Learned, MOST, MOST_SPANS, share};

impl Gate {
    /// Bytes of a gate.
    pub const BYTES: usize = 17;

    /// The gate as bytes.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let [a, b, c, d] = self.infer.to_le_bytes();
        let [e, f, g, h] = self.compact.to_le_bytes();
        let [i, j, k, l] = self.learned.confidence.to_le_bytes();
        let flags =
            [self.compact_loud, self.learned.digging, self.learned.premise_conflict, self.chained];
        let flags = flags.into_iter().rev().fold(0, |byte: u8, flag| byte << 1 | u8::from(flag));
        [VERSION, a, b, c, d, e, f, g, h, i, j, k, l, self.infer_loud, self.spans, flags, 0]
    }

    /// The gate of these bytes; `None` when they are none, or of another version.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: [u8; Self::BYTES] = bytes.try_into().ok()?;
        let [version, a, b, c, d, e, f, g, h, i, j, k, l, infer_loud, spans, flags, 0] = bytes
        else {
            return None;
        };
        if version != VERSION {
            return None;
        }
        let flag = |at: u8| flags >> at & 1 == 1;
        let score = |bytes| {
            let score = f32::from_le_bytes(bytes);
            (0.0..=MOST).contains(&score).then_some(score)
        };
        let confidence = f32::from_le_bytes([i, j, k, l]);
        Some(Self {
            infer: score([a, b, c, d])?,
            compact: score([e, f, g, h])?,
            infer_loud,
            compact_loud: flag(0),
            spans: spans.min(MOST_SPANS),
            learned: Learned {
                digging: flag(1),
                premise_conflict: flag(2),
                confidence: share(confidence),
            },
            chained: flag(3),
        })
    }
}

/// Version of the bytes.
const VERSION: u8 = 1;
