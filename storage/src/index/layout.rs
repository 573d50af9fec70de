//! The bytes of the index's file, as `FORMAT.md` draws them; what is in a segment is known elsewhere.

use crate::ground::codec::{seal, unseal};
use crate::ground::position::Position;
use crate::index::changes::Changes;
use crate::vectors::{checksum, mix};

/// Unit in which the parts of the file are aligned, in bytes.
pub(crate) const PAGE: u64 = 4_096;
/// The place where the first segment can be: behind both roots.
pub(crate) const FIRST: u64 = 2 * PAGE;
/// Bytes of a place for a root.
const ROOT: usize = 4_096;

const MAGIC: [u8; 8] = *b"GarretIx";
/// Version of the file.
const VERSION: u32 = 1;
/// Most segments a root has room for.
pub(crate) const MOST_SEGMENTS: usize = 80;

/// Contents of the file: the last root written counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Root {
    /// One more than the root before has.
    pub(crate) generation: u64,
    /// Of how texts were read.
    pub(crate) rules: u32,
    /// The last write that the segments know of.
    pub(crate) covered: Position,
    /// The place where changes since are noted.
    pub(crate) log_at: u64,
    /// In the order of their documents.
    pub(crate) segments: Vec<Extent>,
}

/// The place where a segment is: units and what belongs to them, and behind that their postings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) at: u64,
    /// Lengths and sums of both.
    pub(crate) units: (u32, u64),
    pub(crate) postings: (u32, u64),
    /// Units in it.
    pub(crate) documents: u32,
}

impl Extent {
    /// Returns the entry of a segment with these bytes.
    pub(crate) fn of(at: u64, units: &[u8], postings: &[u8], documents: u32) -> Option<Self> {
        let len = |bytes: &[u8]| u32::try_from(bytes.len()).ok();
        Some(Self {
            at,
            units: (len(units)?, checksum(units, 0)),
            postings: (len(postings)?, checksum(postings, 0)),
            documents,
        })
    }

    pub(crate) fn end(&self) -> u64 {
        self.at.saturating_add(self.len())
    }

    pub(crate) fn len(&self) -> u64 {
        u64::from(self.units.0) + u64::from(self.postings.0)
    }
}

impl Root {
    /// Returns where it goes: two take turns.
    pub(crate) fn place(&self) -> u64 {
        self.generation % 2 * PAGE
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend(VERSION.to_le_bytes());
        out.extend(self.rules.to_le_bytes());
        out.extend(self.generation.to_le_bytes());
        out.extend(self.covered.to_bytes());
        out.extend(self.log_at.to_le_bytes());
        out.extend((self.segments.len() as u64).to_le_bytes());
        for extent in &self.segments {
            out.extend(extent.at.to_le_bytes());
            out.extend(extent.units.0.to_le_bytes());
            out.extend(extent.postings.0.to_le_bytes());
            out.extend(extent.units.1.to_le_bytes());
            out.extend(extent.postings.1.to_le_bytes());
            out.extend(u64::from(extent.documents).to_le_bytes());
        }
        out.resize(ROOT - 8, 0);
        out.extend(seal(&out));
        out
    }

    /// Units in all segments.
    pub(crate) fn documents(&self) -> usize {
        self.segments.iter().map(|extent| extent.documents as usize).sum()
    }

    /// The root in one of the places, if it is one of this version.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = Reader(unseal(bytes).filter(|_| bytes.len() == ROOT)?);
        if rest.take()? != MAGIC || rest.u32()? != VERSION {
            return None;
        }
        let (rules, generation) = (rest.u32()?, rest.u64()?);
        let (covered, log_at) = (Position::from_bytes(rest.take()?), rest.u64()?);
        let count = usize::try_from(rest.u64()?).ok().filter(|count| *count <= MOST_SEGMENTS)?;
        let segments = (0..count).map(|_| rest.extent()).collect::<Option<_>>()?;
        Some(Self { generation, rules, covered, log_at, segments })
    }
}

/// Bytes that are taken one after the other.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn extent(&mut self) -> Option<Extent> {
        let (at, units, postings) = (self.u64()?, self.u32()?, self.u32()?);
        let sums = (self.u64()?, self.u64()?);
        let documents = u32::try_from(self.u64()?).ok()?;
        Some(Extent { at, units: (units, sums.0), postings: (postings, sums.1), documents })
    }
}

/// Bytes of an entry of the log before its payload: length, place before, place after.
const ENTRY_HEAD: usize = 4 + 16 + 16;

/// An entry of the log: what changed between two places in the order of writes. `None` where there
/// is no room for it.
pub(crate) fn entry(
    generation: u64,
    from: Position,
    to: Position,
    changes: &Changes,
) -> Option<Vec<u8>> {
    let payload = postcard::to_allocvec(changes).ok()?;
    let mut out = u32::try_from(payload.len()).ok()?.to_le_bytes().to_vec();
    out.extend(from.to_bytes());
    out.extend(to.to_bytes());
    out.extend(payload);
    out.extend(checksum(&out, mix(generation)).to_le_bytes());
    Some(out)
}

/// The entry at the start of `bytes`, if it goes on from `from`: up to where, what changed, and its
/// length.
pub(crate) fn read_entry(
    generation: u64,
    from: Position,
    bytes: &[u8],
) -> Option<(Position, Changes, usize)> {
    let mut head = Reader(bytes);
    let len = usize::try_from(head.u32()?).ok()?;
    let (start, to) = (Position::from_bytes(head.take()?), Position::from_bytes(head.take()?));
    let end = ENTRY_HEAD.checked_add(len)?;
    let payload = bytes.get(ENTRY_HEAD..end)?;
    let sum = bytes.get(end..)?.first_chunk()?;
    let whole = u64::from_le_bytes(*sum) == checksum(bytes.get(..end)?, mix(generation));
    if !whole || start != from {
        return None;
    }
    Some((to, postcard::from_bytes(payload).ok()?, end + 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> Root {
        let extent = |at| Extent { at, units: (7, 8), postings: (9, 10), documents: 11 };
        Root {
            generation: 3,
            rules: 1,
            covered: Position { seq: 5, check: [6; 8] },
            log_at: 4 * PAGE,
            segments: vec![extent(FIRST), extent(3 * PAGE)],
        }
    }

    #[test]
    fn a_root_comes_back_from_its_bytes_and_from_no_others() {
        let root = root();
        let bytes = root.encode();
        assert_eq!(bytes.len() as u64, PAGE);
        assert_eq!(Root::decode(&bytes), Some(root));
        for at in (0..bytes.len()).step_by(3) {
            let mut other = bytes.clone();
            other[at] ^= 1 << (at % 8);
            assert_eq!(Root::decode(&other), None, "{at}");
        }
        assert_eq!(Root::decode(&bytes[..bytes.len() - 1]), None);
    }

    #[test]
    fn the_largest_root_has_room() {
        let extent = root().segments[0];
        let full = Root { segments: vec![extent; MOST_SEGMENTS], ..root() };
        assert_eq!(full.encode().len() as u64, PAGE);
        assert_eq!(Root::decode(&full.encode()), Some(full));
    }

    #[test]
    fn an_entry_goes_on_from_its_place_alone() {
        let (from, to) = (Position::default(), Position { seq: 2, check: [1; 8] });
        let changes = Changes { facts: [1, 2, 300].into(), ..Changes::default() };
        let mut bytes = entry(4, from, to, &changes).unwrap();
        let len = bytes.len();
        bytes.extend([0; 9]);
        assert_eq!(read_entry(4, from, &bytes), Some((to, changes, len)));
        assert_eq!(read_entry(5, from, &bytes), None, "of another generation");
        assert_eq!(read_entry(4, to, &bytes), None, "after another write");
        for at in 0..len {
            let mut other = bytes.clone();
            other[at] ^= 1;
            assert_eq!(read_entry(4, from, &other), None, "{at}");
        }
    }
}
