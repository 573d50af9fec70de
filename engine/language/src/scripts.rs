//! Scripts, as far as they decide where a word ends.

/// Returns true for a character of a script that writes words without spaces (Chinese, Japanese, Thai,
/// Lao, Khmer, Myanmar), or that glues particles to them (Hangul).
pub fn is_unspaced(c: char) -> bool {
    matches!(u32::from(c),
        0xe00..=0xeff            // Thai, Lao
        | 0x1000..=0x109f        // Myanmar
        | 0x1100..=0x11ff        // Hangul letters
        | 0x1780..=0x17ff        // Khmer
        | 0x3005..=0x3007 | 0x3041..=0x30ff | 0x3130..=0x318f | 0x31f0..=0x31ff
        | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xa960..=0xa97f | 0xac00..=0xd7ff
        | 0xf900..=0xfaff | 0xff66..=0xffdc | 0x20000..=0x3ffff)
}
