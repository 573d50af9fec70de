//! Changes of seeds, drawn from a number: bits, bytes, lengths, pieces of other seeds, cuts.

/// Draws inputs; the same number draws the same ones.
pub(crate) struct Mutator(u64);

/// Lengths and counts that readers get wrong.
const NUMBERS: [u64; 14] = [
    0,
    1,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0xffff,
    0x1_0000,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    i64::MAX as u64,
    u64::MAX,
];

/// Most bytes of an input.
const LONGEST: usize = 1 << 20;

impl Mutator {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.max(1))
    }

    /// A number below `end`, which isn't 0.
    fn below(&mut self, end: usize) -> usize {
        // xorshift64*, by Marsaglia and Vigna.
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let drawn = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
        drawn as usize % end
    }

    /// A place in some bytes, at the front more often than elsewhere, since heads are there.
    fn place(&mut self, len: usize) -> usize {
        let near = if self.below(3) == 0 { len.min(64) } else { len };
        self.below(near + 1)
    }

    /// A piece of some bytes.
    fn piece<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let from = self.place(bytes.len());
        let most = if self.below(4) == 0 { bytes.len() } else { 32 };
        let to = (from + self.below(most + 1)).min(bytes.len());
        &bytes[from..to]
    }

    /// One of `seeds`, changed one to eight times.
    pub(crate) fn mutate(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = seeds[self.below(seeds.len())].clone();
        for _ in 0..=self.below(8) {
            self.change(&mut bytes, seeds);
        }
        bytes.truncate(LONGEST);
        bytes
    }

    fn change(&mut self, bytes: &mut Vec<u8>, seeds: &[Vec<u8>]) {
        let at = self.place(bytes.len());
        match self.below(9) {
            0 if at < bytes.len() => bytes[at] ^= 1 << self.below(8),
            1 if at < bytes.len() => bytes[at] = self.below(256) as u8,
            2 => bytes.insert(at, self.below(256) as u8),
            3 => bytes.truncate(at),
            4 => {
                let number = NUMBERS[self.below(NUMBERS.len())].to_le_bytes();
                let width = [1, 2, 4, 8][self.below(4)];
                let end = (at + width).min(bytes.len());
                bytes.splice(at..end, number.into_iter().take(width));
            }
            5 => {
                let removed = self.piece(&bytes[at..]).len();
                bytes.drain(at..at + removed);
            }
            6 => {
                let piece = self.piece(bytes).to_vec();
                bytes.splice(at..at, piece);
            }
            7 => {
                let other = self.below(seeds.len());
                let piece = self.piece(&seeds[other]);
                bytes.splice(at..at, piece.iter().copied());
            }
            _ => {
                let other = self.below(seeds.len());
                let piece = self.piece(&seeds[other]);
                let end = (at + piece.len()).min(bytes.len());
                bytes.splice(at..end, piece.iter().copied());
            }
        }
    }
}
