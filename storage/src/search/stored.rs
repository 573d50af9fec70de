//! An index as it is in its file: from segments, and into one.
//!
//! `FORMAT.md`, "Text index", has the bytes. What is read was checked as a whole; all the same what
//! makes no sense makes no index.

use std::collections::BTreeSet;

use garret_core::medium::MediumError;
use serde::{Deserialize, Serialize};

use crate::facts::FactKind;
use crate::index::{Basis, Root, Segment};
use crate::postings::{Postings, Sealed};
use crate::search::derived::Kept;
use crate::search::index::{Entry, FactEntry, Index, NO_SESSION};
use crate::search::sittings::NO_SITTING;

/// The segments that an index begins with.
#[derive(Debug)]
pub(crate) struct Base {
    pub(crate) root: Root,
    /// Contents of each beside its units.
    parts: Vec<Part>,
    /// Speakers in all of them.
    speakers: u16,
}

#[derive(Debug)]
struct Part {
    /// Number of its first document.
    first: u32,
    /// Number of its first speaker.
    first_speaker: u16,
    /// Sessions whose names are in it, and facts.
    sessions: Vec<u64>,
    facts: Vec<u64>,
}

/// Differences between the segments and what is there now.
#[derive(Debug, Default)]
pub(crate) struct Dirty {
    /// Sessions that have another name.
    pub(crate) sessions: BTreeSet<u64>,
    pub(crate) facts: BTreeSet<u64>,
}

/// The head of a segment.
#[derive(Serialize, Deserialize)]
struct Head<'a> {
    first: u32,
    documents: u32,
    /// Sessions that are new or have another name than in the segments before.
    #[serde(borrow)]
    sessions: Vec<(u64, &'a str)>,
    /// Number of the first speaker who is new, and the names of all of them.
    first_speaker: u16,
    speakers: Vec<String>,
    /// Facts that are new or otherwise than in the segments before.
    facts: Vec<FactRow>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
struct FactRow {
    document: u32,
    id: u64,
    session: Option<u64>,
    at_ms: i64,
    valid_to: Option<i64>,
    last_access: Option<i64>,
    kind: u8,
    latest: bool,
    importance: f32,
}

/// Units of a session that follow each other; of none (0) for facts.
#[derive(Serialize, Deserialize)]
struct Run {
    session: u64,
    count: u32,
}

#[derive(Serialize, Deserialize)]
struct Row {
    /// More than the unit before it has, in the same run.
    turn: i64,
    at_ms: i64,
    /// Terms.
    length: u32,
    speaker: u16,
    language: u8,
    /// Bit 0 a question, bit 1 tells a time.
    flags: u8,
}

impl Kept {
    /// Returns what the segments of `basis` make together; `None` where they aren't what was written.
    pub(crate) fn load(basis: &Basis) -> Result<Option<Self>, MediumError> {
        let mut kept = Self::default();
        let (mut blocks, mut lengths, mut parts) = (Vec::new(), Vec::new(), Vec::new());
        for extent in &basis.root.segments {
            let Some((units, postings)) = basis.read(extent)? else { return Ok(None) };
            let first = kept.index.len();
            let part = kept.put_back(&units, &mut lengths);
            let whole = kept.index.len() - first == extent.documents as usize;
            let (Some(part), true) = (part, whole) else { return Ok(None) };
            let Some(block) = Sealed::new(postings, part.first) else { return Ok(None) };
            blocks.push(block);
            parts.push(part);
        }
        kept.index.postings = Postings::of_sealed(blocks, lengths);
        let Ok(speakers) = u16::try_from(kept.index.names.len()) else { return Ok(None) };
        kept.base = Some(Base { root: basis.root.clone(), parts, speakers });
        Ok(Some(kept))
    }

    /// Takes in the units of a segment and what belongs to them.
    fn put_back(&mut self, bytes: &[u8], lengths: &mut Vec<u32>) -> Option<Part> {
        let (head, mut rest) = postcard::take_from_bytes::<Head<'_>>(bytes).ok()?;
        let index = &mut self.index;
        let begins = head.first as usize == index.len()
            && usize::from(head.first_speaker) == index.names.len();
        if !begins {
            return None;
        }
        head.speakers.iter().for_each(|name| index.names.put_back(name));
        let rows = (head.documents as usize).min(rest.len() / LEAST_ROW);
        index.units.reserve_exact(rows);
        lengths.reserve_exact(rows);
        let end = head.first.checked_add(head.documents)? as usize;
        while index.len() < end {
            let (run, after) = postcard::take_from_bytes::<Run>(rest).ok()?;
            rest = after;
            let (mut turn, mut at_ms) = (0_u64, 0_i64);
            for _ in 0..run.count {
                let (row, after) = postcard::take_from_bytes::<Row>(rest).ok()?;
                rest = after;
                turn = turn.wrapping_add_signed(row.turn);
                at_ms = at_ms.wrapping_add(row.at_ms);
                lengths.push(row.length);
                index.put_back_unit(run.session, (turn, at_ms), &row)?;
            }
        }
        for fact in &head.facts {
            index.put_back_fact(fact)?;
        }
        for (number, id) in &head.sessions {
            self.names.insert(*number, id.parse().ok()?);
        }
        Some(head.part())
    }

    /// Messages and facts that are in no segment, or in one otherwise than they are now.
    pub(crate) fn unsealed(&self) -> usize {
        self.base.as_ref().map_or(self.index.len(), |base| {
            self.index.len() - base.root.documents() + self.dirty.facts.len()
        })
    }

    /// Counts segments stay when what is in none becomes one. The last ones are taken into it,
    /// where it would else not be much smaller: so there are few, and each unit is seldom written
    /// again.
    pub(crate) fn segments_to_keep(&self) -> usize {
        let Some(base) = &self.base else { return 0 };
        let mut size = self.unsealed();
        let mut kept = base.root.segments.len();
        while let Some(last) = kept.checked_sub(1).and_then(|last| base.root.segments.get(last)) {
            let documents = last.documents as usize;
            let empty = self.index.len() == base.root.documents() && kept == base.parts.len();
            if documents >= size.saturating_mul(2) && !empty && kept < MOST_SEGMENTS {
                break;
            }
            size += documents;
            kept -= 1;
        }
        kept
    }

    /// The segment of all that is in none of the first `kept`; `None` where that is too much for one.
    pub(crate) fn segment(&self, kept: usize, seed: u64) -> Option<Segment> {
        let gone = self.base.as_ref().and_then(|base| base.parts.get(kept..)).unwrap_or_default();
        let first = gone.first().map_or_else(|| self.sealed_documents(kept), |part| part.first);
        let documents = u32::try_from(self.index.len()).ok()?.checked_sub(first)?;
        let head = self.head(gone, first, documents);
        let mut units = postcard::to_allocvec(&head).ok()?;
        self.index.write_units(first, &mut units)?;
        let postings = self.index.postings.seal(first, seed)?;
        Some(Segment { units, postings, documents })
    }

    /// The first `kept` segments are those of `root`, and behind them there is `segment`.
    pub(crate) fn sealed(&mut self, kept: usize, segment: Segment, root: Root) -> Option<()> {
        let (head, _) = postcard::take_from_bytes::<Head<'_>>(&segment.units).ok()?;
        self.index.postings.sealed(Sealed::new(segment.postings, head.first)?);
        let mut parts = self.base.take().map(|base| base.parts).unwrap_or_default();
        parts.truncate(kept);
        parts.push(head.part());
        let speakers = u16::try_from(self.index.names.len()).ok()?;
        self.base = Some(Base { root, parts, speakers });
        self.dirty = Dirty::default();
        Some(())
    }

    fn sealed_documents(&self, kept: usize) -> u32 {
        let segments = self.base.as_ref().and_then(|base| base.root.segments.get(..kept));
        segments.unwrap_or_default().iter().map(|extent| extent.documents).sum()
    }

    fn head(&self, gone: &[Part], first: u32, documents: u32) -> Head<'_> {
        let index = &self.index;
        let all = first == 0;
        let renamed = gone.iter().flat_map(|part| &part.sessions).chain(&self.dirty.sessions);
        let renamed: BTreeSet<u64> = renamed.copied().collect();
        let named = self.names.iter().filter(|(number, _)| all || renamed.contains(number));
        let mut sessions: Vec<_> = named.map(|(number, id)| (*number, id.as_str())).collect();
        sessions.sort_unstable();
        let changed = gone.iter().flat_map(|part| &part.facts).chain(&self.dirty.facts);
        let changed: BTreeSet<u64> = changed.copied().collect();
        let facts = index
            .facts
            .iter()
            .filter(|fact| all || fact.document >= first || changed.contains(&fact.id));
        let facts = facts.filter_map(|fact| index.row_of(fact)).collect();
        let known = self.base.as_ref().map_or(FIRST_NAMED, |base| base.speakers);
        let first_speaker = match gone.first() {
            _ if all => FIRST_NAMED,
            Some(part) => part.first_speaker,
            None => known,
        };
        let speakers = index.names.from(first_speaker).collect();
        Head { first, documents, sessions, first_speaker, speakers, facts }
    }
}

impl Head<'_> {
    fn part(&self) -> Part {
        Part {
            first: self.first,
            first_speaker: self.first_speaker,
            sessions: self.sessions.iter().map(|(number, _)| *number).collect(),
            facts: self.facts.iter().map(|fact| fact.id).collect(),
        }
    }
}

impl Index {
    /// Takes in a unit that was read before; what it is by its turn and time.
    fn put_back_unit(&mut self, session: u64, (turn, at_ms): (u64, i64), row: &Row) -> Option<()> {
        let document = u32::try_from(self.units.len()).ok()?;
        if usize::from(row.speaker) >= self.names.len() {
            return None;
        }
        *self.languages.get_mut(usize::from(row.language))? += 1;
        self.names.spoke(row.speaker);
        let fact = session == 0;
        let at = if fact { (NO_SESSION, 0) } else { self.place(session, turn, row.speaker)? };
        self.units.push(Entry {
            session: at.0,
            // That of a fact comes with its row.
            place: at.1,
            sitting: NO_SITTING,
            turn,
            at_ms,
            speaker: row.speaker,
            language: row.language,
            flags: row.flags,
        });
        if !fact {
            self.enter(document, at, row.length);
        }
        Some(())
    }

    /// Takes in what is known of a fact whose unit is there, or what changed of it.
    fn put_back_fact(&mut self, row: &FactRow) -> Option<()> {
        let place = match self.by_fact.get(&row.id) {
            Some(place) => *place,
            None => {
                let place = u32::try_from(self.facts.len()).ok()?;
                self.by_fact.insert(row.id, place);
                place
            }
        };
        let unit = self.units.get_mut(row.document as usize)?;
        if unit.session != NO_SESSION {
            return None;
        }
        (unit.place, unit.at_ms) = (place, row.at_ms);
        let entry = FactEntry {
            document: row.document,
            id: row.id,
            session: row.session,
            valid_to: row.valid_to,
            last_access: row.last_access,
            kind: FactKind::from_byte(row.kind)?,
            latest: row.latest,
            importance: row.importance,
        };
        match self.facts.get_mut(place as usize) {
            Some(known) => *known = entry,
            None => self.facts.push(entry),
        }
        Some(())
    }

    fn row_of(&self, fact: &FactEntry) -> Option<FactRow> {
        let unit = self.units.get(fact.document as usize)?;
        Some(FactRow {
            document: fact.document,
            id: fact.id,
            session: fact.session,
            at_ms: unit.at_ms,
            valid_to: fact.valid_to,
            last_access: fact.last_access,
            kind: fact.kind.to_byte(),
            latest: fact.latest,
            importance: fact.importance,
        })
    }

    /// Writes the units from `first` on, run by run.
    fn write_units(&self, first: u32, out: &mut Vec<u8>) -> Option<()> {
        let units = self.units.get(first as usize..)?;
        let mut number = first;
        for run in units.chunk_by(|a, b| a.session == b.session) {
            let session = run.first().and_then(|unit| self.session_of(unit)).unwrap_or(0);
            let count = u32::try_from(run.len()).ok()?;
            write(out, &Run { session, count })?;
            let (mut turn, mut at_ms) = (0_u64, 0_i64);
            for unit in run {
                let row = Row {
                    turn: unit.turn.wrapping_sub(turn).cast_signed(),
                    at_ms: unit.at_ms.wrapping_sub(at_ms),
                    length: self.postings.length(number),
                    speaker: unit.speaker,
                    language: unit.language,
                    flags: unit.flags,
                };
                write(out, &row)?;
                (turn, at_ms, number) = (unit.turn, unit.at_ms, number + 1);
            }
        }
        Some(())
    }
}

fn write(out: &mut Vec<u8>, value: &impl Serialize) -> Option<()> {
    *out = postcard::to_extend(value, std::mem::take(out)).ok()?;
    Some(())
}

/// Number of the first speaker who has a name.
const FIRST_NAMED: u16 = 2;
/// Bytes of a unit at least.
const LEAST_ROW: usize = 6;
/// Most segments there are.
const MOST_SEGMENTS: usize = 32;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::index::RULES;
    use crate::search::reading::Reading;
    use crate::search::{Ask, Speaker, Unit};

    const TEXTS: [&str; 7] = [
        "My bees swarmed on 5 May.",
        "Where did they go?",
        "Into the old oak, I think: C++ and naive caf\u{e9}s, 1,234 of them.",
        "\u{6771}\u{4eac}\u{306e}\u{8702}\u{871c}",
        "Ich habe gestern die Bienen gef\u{fc}ttert, und es hat geregnet.",
        "I was born in 1980 and we moved last winter.",
        "Rain.",
    ];

    fn kept(sessions: u64) -> Kept {
        let mut kept = Kept::default();
        for session in 1..=sessions {
            kept.names.insert(session, format!("s{session}").parse().unwrap());
            for (turn, text) in (1..).zip(TEXTS) {
                let speaker = match turn % 3 {
                    0 => Speaker::User,
                    1 => Speaker::Assistant,
                    _ => Speaker::Named("Ada Byron"),
                };
                let at_ms = (turn != 4).then_some(1_683_550_800_000 + turn as i64);
                kept.index.add(&Unit { session, turn, speaker, at_ms, text });
            }
        }
        kept
    }

    /// Returns what the two parts of a segment make.
    fn load(units: &[u8], postings: &[u8]) -> Option<Kept> {
        let (mut kept, mut lengths) = (Kept::default(), Vec::new());
        let part = kept.put_back(units, &mut lengths)?;
        let block = Sealed::new(postings.to_vec(), part.first)?;
        kept.index.postings = Postings::of_sealed(vec![block], lengths);
        Some(kept)
    }

    fn ask(kept: &Kept) -> Vec<crate::search::Ranked> {
        kept.index.search(&Ask::new("Where did Ada's bees go in May, to the oak or the rain?", 50))
    }

    #[test]
    fn a_segment_makes_the_index_that_it_was_made_of() {
        let kept = kept(3);
        let segment = kept.segment(0, 7).unwrap();
        let again = load(&segment.units, &segment.postings).unwrap();
        assert_eq!(ask(&again), ask(&kept));
        assert!(!ask(&kept).is_empty());
        assert_eq!(again.names, kept.names);
        let both = again.segment(0, 7).unwrap();
        assert!(both.units == segment.units && both.postings == segment.postings);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        /// Sums keep such bytes out. Without them nothing panics or hangs either.
        #[test]
        fn bytes_that_mean_nothing_are_no_danger(
            at in any::<prop::sample::Index>(),
            bytes in prop::collection::vec(any::<u8>(), 1..6),
            in_units in any::<bool>(),
        ) {
            let kept = kept(2);
            let Segment { mut units, mut postings, .. } = kept.segment(0, 7).unwrap();
            let part = if in_units { &mut units } else { &mut postings };
            let at = at.index(part.len());
            part.iter_mut().skip(at).zip(bytes).for_each(|(old, new)| *old = new);
            if let Some(mut other) = load(&units, &postings) {
                ask(&other);
                other.segment(0, 8);
                other.remove(1);
                ask(&other);
            }
        }
    }

    /// Whoever changes how texts are read, and so this sum, raises [`RULES`] and puts the new sum
    /// here.
    #[test]
    fn how_texts_are_read_belongs_to_the_rules() {
        let mut sum = 0;
        for (turn, text) in (1..).zip(TEXTS) {
            let unit = Unit { session: 1, turn, speaker: Speaker::User, at_ms: Some(5), text };
            let read = Reading::of(&unit);
            let mut counts: Vec<_> = read.counts.into_iter().collect();
            counts.sort_unstable();
            let flags = (read.length, read.language, read.question, read.tells_time);
            let line = format!("{counts:?} {flags:?}");
            sum = crate::vectors::checksum(line.as_bytes(), sum);
        }
        assert_eq!((RULES, sum), (1, 12_373_560_323_107_967_942));
    }
}
