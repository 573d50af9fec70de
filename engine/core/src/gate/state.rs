//! A gate as bytes, to be kept beside its session.

use super::{Gate, MOST, MOST_SPANS, share};

impl Gate {
    /// Number of bytes of a gate.
    pub const BYTES: usize = 17;

    /// Returns the gate as bytes.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let [a, b, c, d] = self.infer.to_le_bytes();
        let [e, f, g, h] = self.compact.to_le_bytes();
        let [i, j, k, l] = self.confidence.to_le_bytes();
        // Bits 1 and 2 were findings of companions that none made; older files may have them set.
        let flags = u8::from(self.compact_loud) | u8::from(self.chained) << 3;
        [VERSION, a, b, c, d, e, f, g, h, i, j, k, l, self.infer_loud, self.spans, flags, 0]
    }

    /// Reads the gate of these bytes; `None` when they are none, or of another version.
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
            confidence: share(confidence),
            chained: flag(3),
        })
    }
}

/// Version of the bytes.
const VERSION: u8 = 1;
