//! Lists of terms in one block of bytes, searched where they lie.
//!
//! What is in a block was checked as a whole before. All the same nothing here trusts it: bytes that
//! mean nothing end a list or aren't found.

use crate::postings::{List, Posting, read, write};
use crate::vectors::checksum;

/// The postings of some documents that follow each other. `FORMAT.md`, "Text index", has the bytes.
#[derive(Debug)]
pub(crate) struct Sealed {
    bytes: Vec<u8>,
    seed: u64,
    /// Places of the table, a power of two.
    slots: usize,
    /// Number of its first document; the lists count from it.
    first: u32,
}

/// The place of one term.
#[derive(Clone, Copy)]
struct Run<'a> {
    documents: u32,
    bytes: &'a [u8],
}

/// Bytes before the table: seed, places, terms.
const HEAD: usize = 8 + 4 + 4;

impl Sealed {
    /// The block in `bytes`, of documents from `first` on.
    pub(crate) fn new(bytes: Vec<u8>, first: u32) -> Option<Self> {
        let (seed, rest) = bytes.split_first_chunk()?;
        let (slots, rest) = rest.split_first_chunk()?;
        let (seed, slots) = (u64::from_le_bytes(*seed), u32::from_le_bytes(*slots));
        let slots = usize::try_from(slots).ok().filter(|slots| slots.is_power_of_two())?;
        let whole = rest.len().checked_sub(4)? / 4 >= slots;
        whole.then_some(Self { bytes, seed, slots, first })
    }

    /// Number of its first document.
    pub(crate) fn first(&self) -> u32 {
        self.first
    }

    /// In how many of its documents a term is.
    pub(crate) fn documents(&self, term: &str) -> u32 {
        self.find(term).map_or(0, |run| run.documents)
    }

    /// Returns those of its documents that hold `term`.
    pub(crate) fn postings<'a>(&'a self, term: &str) -> impl Iterator<Item = Posting> + use<'a> {
        let run = self.find(term);
        run.into_iter().flat_map(|run| run.postings(self.first))
    }

    /// Every term with the documents that hold it, in the order of terms.
    pub(crate) fn terms(&self) -> impl Iterator<Item = (&str, impl Iterator<Item = Posting>)> {
        let mut rest = self.entries();
        std::iter::from_fn(move || {
            let (term, run, after) = entry(rest)?;
            rest = after;
            Some((std::str::from_utf8(term).ok()?, run.postings(self.first)))
        })
    }

    /// Bytes of memory taken.
    pub(crate) fn memory(&self) -> usize {
        self.bytes.capacity()
    }

    fn entries(&self) -> &[u8] {
        self.bytes.get(HEAD + self.slots * 4..).unwrap_or_default()
    }

    fn find(&self, term: &str) -> Option<Run<'_>> {
        let (table, _) = self.bytes.get(HEAD..HEAD + self.slots * 4)?.as_chunks::<4>();
        let home = home(self.seed, term, self.slots);
        let (before, after) = table.split_at_checked(home)?;
        for place in after.iter().chain(before) {
            let at = u32::from_le_bytes(*place).checked_sub(1)?;
            let (found, run, _) = entry(self.entries().get(at as usize..)?)?;
            if found == term.as_bytes() {
                return Some(run);
            }
        }
        None
    }
}

impl<'a> Run<'a> {
    fn postings(self, first: u32) -> impl Iterator<Item = Posting> + use<'a> {
        super::postings(self.bytes, first)
    }
}

/// Returns where a term is looked for first.
fn home(seed: u64, term: &str, slots: usize) -> usize {
    checksum(term.as_bytes(), seed) as usize & (slots - 1)
}

/// The term at the start of `bytes`, its list, and what follows.
fn entry(bytes: &[u8]) -> Option<(&[u8], Run<'_>, &[u8])> {
    let mut bytes = bytes.iter();
    let term = read(&mut bytes)?;
    let (term, rest) = bytes.as_slice().split_at_checked(term as usize)?;
    let mut rest = rest.iter();
    let (documents, list) = (read(&mut rest)?, read(&mut rest)?);
    let (bytes, rest) = rest.as_slice().split_at_checked(list as usize)?;
    Some((term, Run { documents, bytes }, rest))
}

/// Writes a block, term by term in their order.
pub(crate) struct Writer {
    seed: u64,
    entries: Vec<u8>,
    /// The place where each begins, plus one.
    places: Vec<u32>,
}

impl Writer {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, entries: Vec::new(), places: Vec::new() }
    }

    /// Adds a term, whose list counts from the first document of the block. False where there is
    /// no room for it.
    pub(crate) fn push(&mut self, term: &str, list: &List) -> bool {
        let lengths = (u32::try_from(term.len()), u32::try_from(list.bytes.len()));
        let place = u32::try_from(self.entries.len() + 1);
        let ((Ok(term_len), Ok(list_len)), Ok(place)) = (lengths, place) else { return false };
        self.places.push(place);
        write(&mut self.entries, term_len);
        self.entries.extend_from_slice(term.as_bytes());
        write(&mut self.entries, list.documents);
        write(&mut self.entries, list_len);
        self.entries.extend_from_slice(&list.bytes);
        true
    }

    /// The bytes of the block; `None` where it came to more than 4 GiB.
    pub(crate) fn finish(self) -> Option<Vec<u8>> {
        let slots = (self.places.len() * 3 / 2 + 1).next_power_of_two();
        let mut table = vec![0_u32; slots];
        for place in &self.places {
            let (term, ..) = entry(self.entries.get(*place as usize - 1..)?)?;
            let mut at = home(self.seed, std::str::from_utf8(term).ok()?, slots);
            while *table.get(at)? != 0 {
                at = (at + 1) & (slots - 1);
            }
            *table.get_mut(at)? = *place;
        }
        let mut bytes = Vec::with_capacity(HEAD + slots * 4 + self.entries.len());
        bytes.extend(self.seed.to_le_bytes());
        bytes.extend(u32::try_from(slots).ok()?.to_le_bytes());
        bytes.extend(u32::try_from(self.places.len()).ok()?.to_le_bytes());
        bytes.extend(table.iter().flat_map(|place| place.to_le_bytes()));
        bytes.extend(self.entries);
        u32::try_from(bytes.len()).ok().map(|_| bytes)
    }
}
