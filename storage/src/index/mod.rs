//! The file of the text index: what was indexed by some write, and what changed since.
//!
//! It is derived, like the files of vectors: whoever loses it reads the records again. It has
//! **segments**, each the index of units that were added one after the other, and a **log**. Each
//! time when writes go into the records' file, a few bytes that say which records they changed go
//! into the log, and no text is read. A search that comes first has the segments, what the log
//! names, and what the journal holds; only the latter two have to be read as texts.
//!
//! The file counts only where the write up to which it goes is one that the records on the medium,
//! or the journal behind them, hold. As the check of a write follows from it and all writes before,
//! that is the same history. Whatever else is found (an older file, one beside a restored backup, a
//! torn one, one of a program that reads texts otherwise) counts as nothing.
//!
//! A segment is written, and synced, where nothing is that counts; then one of two places at the
//! start of the file gets a new **root** that names it. So a power cut leaves the file as it was or
//! as it is to be. Log entries aren't synced: a power cut can cost the index, never a wrong hit.

use std::sync::Arc;

use garret_core::medium::{Medium, MediumError};

use crate::files::part::{Media, Part};
use crate::ground::position::Position;
use crate::index::layout::{FIRST, MOST_SEGMENTS, PAGE};
use crate::journal::apply::Outcome;
use crate::journal::op::Op;
use crate::vectors::checksum;

pub(crate) mod changes;
pub(crate) mod layout;

pub(crate) use crate::index::changes::Changes;
#[cfg(test)]
pub(crate) use crate::index::changes::Run;
pub(crate) use crate::index::layout::{Extent, Root};

/// Raised whenever a text is read in another way than before: cut into other terms, taken for
/// another language, another number of terms counted. An index with other rules is made anew.
pub(crate) const RULES: u32 = 1;

/// Knowledge of the file while a store is open, and of what the writes since the last checkpoint
/// changed.
pub(crate) struct Tracker {
    media: Arc<Media>,
    file: State,
    /// The last write that the records on the medium hold.
    folded: Position,
    /// Every one since, and what it changed.
    recent: Vec<(Position, Changes)>,
    /// True if they changed more than can be told.
    lost: bool,
    /// Changes that the search hasn't been told.
    fresh: Fresh,
    /// True if something was written while the store is open, and messages and facts among it.
    wrote: bool,
    written: u64,
}

enum State {
    /// It has to be looked at.
    Unread,
    /// Nothing that counts, now or later.
    Nothing,
    Read(Box<Tracked>),
}

/// A file that holds something.
struct Tracked {
    medium: Arc<dyn Medium>,
    root: Root,
    /// The place where the log ends.
    end: u64,
    /// Up to which write it goes.
    covered: Position,
    /// Changes since those of the root.
    changes: Changes,
}

/// Changes that a search hasn't been told.
#[derive(Debug, Default)]
pub(crate) struct Fresh {
    pub(crate) changes: Changes,
    /// There is more than can be told.
    pub(crate) lost: bool,
}

/// The basis on which an index can be made without reading all texts.
pub(crate) struct Basis {
    pub(crate) medium: Arc<dyn Medium>,
    pub(crate) root: Root,
    /// Documents that are to be read again.
    pub(crate) changes: Changes,
}

/// The result of writing a segment.
pub(crate) enum Replaced {
    /// There is another root.
    By(Root),
    /// The write isn't one that is known any more, or there is no room in a root.
    NotNow,
    /// There is another file than the one whose root was given.
    Other,
}

/// A segment to be written.
pub(crate) struct Segment {
    pub(crate) units: Vec<u8>,
    pub(crate) postings: Vec<u8>,
    pub(crate) documents: u32,
}

impl Tracker {
    /// For a store whose records on the medium end with the write `folded`.
    pub(crate) fn new(media: Arc<Media>, folded: Position) -> Self {
        Self {
            media,
            file: State::Unread,
            folded,
            recent: Vec::new(),
            lost: false,
            fresh: Fresh::default(),
            wrote: false,
            written: 0,
        }
    }

    /// Takes in a write that was found in the journal.
    pub(crate) fn found(&mut self, at: Position, op: &Op<'_>, outcome: &Outcome) {
        let mut changes = Changes::default();
        self.lost |= !changes.add(op, outcome);
        self.recent.push((at, changes));
    }

    /// Takes in a write.
    pub(crate) fn wrote(&mut self, at: Position, op: &Op<'_>, outcome: &Outcome) {
        let mut changes = Changes::default();
        let known = changes.add(op, outcome);
        self.lost |= !known;
        self.fresh.lost |= !known;
        self.fresh.changes.extend(&changes);
        // What forgets has all records written anew.
        let units = if known { changes.units() } else { u64::MAX };
        self.written = self.written.saturating_add(units);
        self.wrote = true;
        self.recent.push((at, changes));
    }

    /// Notes a write whose contents can't be told, only how many messages and facts it brings: the
    /// index
    /// has to be made anew.
    pub(crate) fn lose(&mut self, units: u64) {
        (self.lost, self.fresh.lost) = (true, true);
        (self.wrote, self.written) = (true, self.written.saturating_add(units));
    }

    /// Hands over what the search hasn't been told.
    pub(crate) fn fresh(&mut self) -> Fresh {
        std::mem::take(&mut self.fresh)
    }

    /// Messages and facts that were written while the store is open; `None` where nothing was.
    pub(crate) fn written(&self) -> Option<u64> {
        self.wrote.then_some(self.written)
    }

    /// The records on the medium are about to hold everything up to `place`: the log says so first.
    /// Where that fails the file counts as nothing from then on.
    pub(crate) fn folds(&mut self, place: Position) {
        if self.lost {
            self.file = State::Nothing;
            return;
        }
        let Some((tracked, recent)) = self.valid() else { return };
        if let Err(error) = tracked.note(place, &recent) {
            tracing::debug!(%error, "the text index has to be made anew");
            self.file = State::Nothing;
        }
    }

    /// Notes that the records hold every write up to `place`.
    pub(crate) fn folded(&mut self, place: Position) {
        self.folded = place;
        self.recent = Vec::new();
        self.lost = false;
    }

    /// Returns what an index can be made from, if there is something.
    pub(crate) fn basis(&mut self) -> Option<Basis> {
        let (tracked, recent) = self.valid()?;
        let mut changes = tracked.changes.clone();
        changes.extend(&recent);
        Some(Basis { medium: tracked.medium.clone(), root: tracked.root.clone(), changes })
    }

    /// Counts messages and facts would have to be read as texts, and whether there is something
    /// in the file that was deleted; `None` for all of them.
    pub(crate) fn unread(&mut self) -> Option<(u64, bool)> {
        let (tracked, recent) = self.valid()?;
        let both = [&tracked.changes, &recent];
        let units = both.map(Changes::units).into_iter().fold(0, u64::saturating_add);
        Some((units, both.into_iter().any(|changes| !changes.removed.is_empty())))
    }

    /// Writes `segment` behind the first `kept` segments of `base`, in the place of those that
    /// follow them; without `base` it is all there is. The index then goes up to the write
    /// `covered`.
    ///
    /// After an error the file is looked at again before it counts.
    pub(crate) fn replace(
        &mut self,
        covered: Position,
        base: Option<(&Root, usize)>,
        segment: &Segment,
    ) -> Result<Replaced, MediumError> {
        if self.lost || since(&self.recent, self.folded, covered).is_none() {
            return Ok(Replaced::NotNow);
        }
        self.look();
        let current = match std::mem::replace(&mut self.file, State::Unread) {
            State::Read(tracked) => Some(*tracked),
            _ => None,
        };
        let written = match (base, current) {
            (Some((base, kept)), Some(current)) if current.root == *base => {
                current.add(covered, kept, segment)?
            }
            (Some(_), _) => return Ok(Replaced::Other),
            (None, _) => Tracked::begin(self.media.open(Part::Index)?, covered, segment)?,
        };
        let Some(written) = written else { return Ok(Replaced::NotNow) };
        let root = written.root.clone();
        self.file = State::Read(Box::new(written));
        Ok(Replaced::By(root))
    }

    /// The file, if it goes up to a write that is known, and what changed since that.
    fn valid(&mut self) -> Option<(&mut Tracked, Changes)> {
        self.look();
        match &mut self.file {
            State::Read(tracked) if !self.lost => {
                let later = since(&self.recent, self.folded, tracked.covered)?;
                let mut changes = Changes::default();
                later.iter().for_each(|(_, write)| changes.extend(write));
                Some((tracked, changes))
            }
            _ => None,
        }
    }

    /// Empties a file that doesn't count: what was deleted since may be in it.
    pub(crate) fn clear_scrap(&mut self) -> Result<(), MediumError> {
        if self.valid().is_none()
            && let Some(medium) = self.media.open_existing(Part::Index)?
            && !medium.is_empty()?
        {
            self.file = State::Nothing;
            medium.set_len(0)?;
            medium.sync()?;
        }
        Ok(())
    }

    /// Looks at the file, if that wasn't done.
    fn look(&mut self) {
        if !matches!(self.file, State::Unread) {
            return;
        }
        self.file = match Tracked::read(&self.media) {
            Ok(Some(tracked)) => State::Read(Box::new(tracked)),
            Ok(None) => State::Nothing,
            Err(error) => {
                tracing::warn!(%error, "the text index can't be read; it is made anew");
                State::Nothing
            }
        };
    }
}

/// The writes of `recent`, which follow `folded`, that come after `covered`, if that is one of them.
fn since(
    recent: &[(Position, Changes)],
    folded: Position,
    covered: Position,
) -> Option<&[(Position, Changes)]> {
    if covered == folded {
        return Some(recent);
    }
    let at = recent.iter().position(|(place, _)| *place == covered)?;
    recent.get(at + 1..)
}

impl Tracked {
    /// Returns what the file holds.
    fn read(media: &Media) -> Result<Option<Self>, MediumError> {
        let Some(medium) = media.open_existing(Part::Index)? else { return Ok(None) };
        let len = medium.len()?;
        if len < FIRST {
            return Ok(None);
        }
        let mut page = vec![0; FIRST as usize];
        medium.read_at(0, &mut page)?;
        let roots = page.chunks_exact(PAGE as usize).filter_map(Root::decode);
        let Some(root) = roots.max_by_key(|root| root.generation) else { return Ok(None) };
        let whole = root.segments.iter().all(|extent| extent.end() <= len) && root.log_at <= len;
        if root.rules != RULES || !whole {
            return Ok(None);
        }
        let log = usize::try_from(len - root.log_at).unwrap_or(MOST_LOG).min(MOST_LOG);
        let mut log = vec![0; log];
        medium.read_at(root.log_at, &mut log)?;
        let (covered, end) = (root.covered, root.log_at);
        let mut tracked = Self { medium, root, end, covered, changes: Changes::default() };
        let mut rest = &*log;
        while let Some((to, changes, len)) =
            layout::read_entry(tracked.root.generation, tracked.covered, rest)
        {
            tracked.changes.extend(&changes);
            tracked.covered = to;
            tracked.end += len as u64;
            rest = rest.get(len..).unwrap_or_default();
        }
        Ok(Some(tracked))
    }

    /// Notes what changed up to the write `to`.
    fn note(&mut self, to: Position, changes: &Changes) -> Result<(), MediumError> {
        if self.covered == to {
            return Ok(());
        }
        let entry = layout::entry(self.root.generation, self.covered, to, changes);
        let entry = entry.ok_or(MediumError::Full)?;
        self.medium.write_at(self.end, &entry)?;
        self.changes.extend(changes);
        (self.covered, self.end) = (to, self.end + entry.len() as u64);
        Ok(())
    }

    /// A file with one segment and nothing else; none of the bytes that were in it stay.
    fn begin(
        medium: Arc<dyn Medium>,
        covered: Position,
        segment: &Segment,
    ) -> Result<Option<Self>, MediumError> {
        medium.set_len(0)?;
        medium.sync()?;
        let (root, changes) = (
            Root { generation: 0, rules: RULES, covered, log_at: FIRST, segments: Vec::new() },
            Changes::default(),
        );
        Self { medium, root, end: FIRST, covered, changes }.add(covered, 0, segment)
    }

    fn add(
        self,
        covered: Position,
        kept: usize,
        segment: &Segment,
    ) -> Result<Option<Self>, MediumError> {
        let (Segment { units, postings, documents }, medium) = (segment, self.medium.clone());
        let at = self.vacant((units.len() + postings.len()) as u64);
        let mut segments = self.root.segments.get(..kept).unwrap_or_default().to_vec();
        let Some(extent) = Extent::of(at, units, postings, *documents) else { return Ok(None) };
        segments.push(extent);
        if segments.len() > MOST_SEGMENTS {
            return Ok(None);
        }
        let log_at = segments.iter().map(|extent| extent.end().next_multiple_of(PAGE)).max();
        let root = Root {
            generation: self.root.generation + 1,
            rules: RULES,
            covered,
            log_at: log_at.unwrap_or(FIRST),
            segments,
        };
        let before = medium.len()?;
        let written = medium
            .write_at(at, units)
            .and_then(|()| medium.write_at(at + u64::from(extent.units.0), postings))
            // The log begins there, though nothing was written.
            .and_then(|()| match medium.len()? < root.log_at {
                true => medium.set_len(root.log_at),
                false => Ok(()),
            })
            .and_then(|()| medium.sync());
        if let Err(error) = written {
            // Others may need the room; whether or not this works, nothing refers to it.
            let _ = medium.set_len(before);
            return Err(error);
        }
        // Only now, so that the root is never there without what it names.
        medium.write_at(root.place(), &root.encode())?;
        medium.sync()?;
        let end = root.log_at;
        if medium.len()? > end {
            medium.set_len(end)?;
        }
        Ok(Some(Self { medium, root, end, covered, changes: Changes::default() }))
    }

    /// Returns where so many bytes have room without touching anything that counts.
    fn vacant(&self, len: u64) -> u64 {
        let segments = self.root.segments.iter().map(|extent| (extent.at, extent.end()));
        let mut taken: Vec<_> = segments.chain([(self.root.log_at, self.end)]).collect();
        taken.sort_unstable();
        let mut at = FIRST;
        for (start, end) in taken {
            if at.saturating_add(len) <= start {
                break;
            }
            at = at.max(end.next_multiple_of(PAGE));
        }
        at
    }
}

/// The bytes of a segment's units and of its postings.
pub(crate) type Parts = (Vec<u8>, Vec<u8>);

impl Basis {
    /// The bytes of a segment's units and of its postings, if they are what was written.
    pub(crate) fn read(&self, extent: &Extent) -> Result<Option<Parts>, MediumError> {
        let part = |at, (len, sum): (u32, u64)| {
            let mut bytes = vec![0; len as usize];
            self.medium.read_at(at, &mut bytes)?;
            Ok::<_, MediumError>((checksum(&bytes, 0) == sum).then_some(bytes))
        };
        let units = part(extent.at, extent.units)?;
        let postings = part(extent.at + u64::from(extent.units.0), extent.postings)?;
        Ok(units.zip(postings))
    }
}

/// Most bytes of a log that are read.
const MOST_LOG: usize = 16 << 20;
