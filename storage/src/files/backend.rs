//! redb on a [`Medium`]: the adapter, and the stage that decides when the medium is touched.
//!
//! redb writes while it opens (a flag, or a repair), and pages that it has no room for between
//! commits. The stage holds those writes in memory, in their order and with their syncs, until they
//! are flushed: by a fold of the journal, or a write that doesn't go through it. So a file that is
//! refused stays as it was, a full disk can be opened and read, and reading costs no writes.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use garret_core::medium::{Medium, MediumError};
use redb::StorageBackend;

/// One session of redb with a medium. A database that failed is replaced together with its link,
/// so that nothing the old one still does reaches the medium.
pub(crate) struct Link {
    medium: Arc<dyn Medium>,
    state: Mutex<State>,
    failure: Mutex<Option<MediumError>>,
}

enum State {
    /// Writes stay here until they are flushed.
    Staged(Stage),
    /// Nothing goes anywhere any more.
    Cut,
}

impl Link {
    /// A staged link whose reader sees the medium as `stage` changes it.
    pub(crate) fn new(medium: Arc<dyn Medium>, stage: Stage) -> Arc<Self> {
        Arc::new(Self {
            medium,
            state: Mutex::new(State::Staged(stage)),
            failure: Mutex::new(None),
        })
    }

    /// Returns what it reads and writes.
    pub(crate) fn medium(&self) -> Arc<dyn Medium> {
        self.medium.clone()
    }

    /// Performs what was staged, in its order.
    ///
    /// After an error the database must be opened anew: what of it the medium holds isn't known.
    pub(crate) fn flush(&self) -> Result<(), MediumError> {
        match &mut *self.state() {
            State::Staged(stage) => stage.perform(&*self.medium),
            State::Cut => Ok(()),
        }
    }

    /// From now on writes are performed as soon as they have more than `most` bytes together, in
    /// their order: what a database does to a file. So a transaction can be larger than memory;
    /// what waits from before must be such that it may be performed. Without `most` they wait.
    pub(crate) fn spill(&self, most: Option<usize>) {
        if let State::Staged(stage) = &mut *self.state() {
            stage.most = most.unwrap_or(usize::MAX);
        }
    }

    /// Everything a still staged link holds, and nothing afterwards.
    pub(crate) fn take_image(&self) -> Option<Image> {
        match std::mem::replace(&mut *self.state(), State::Cut) {
            State::Staged(stage) => Some(Image { len: stage.len, blocks: stage.blocks }),
            State::Cut => None,
        }
    }

    /// Tells whether that database isn't the store's any more.
    pub(crate) fn is_cut(&self) -> bool {
        matches!(*self.state(), State::Cut)
    }

    /// Keeps whatever the database does from now on away from the medium.
    pub(crate) fn cut(&self) {
        *self.state() = State::Cut;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic while it was held can't leave the state torn: it is replaced as a whole, and a
        // stage drops an operation only after it was performed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first thing the medium refused since the last [`Link::forget_failure`]. redb doesn't
    /// always pass on what it was, only that something was.
    pub(crate) fn failure(&self) -> Option<MediumError> {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts to look for failures anew.
    pub(crate) fn forget_failure(&self) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn run<T>(
        &self,
        act: impl FnOnce(&mut Stage, &dyn Medium) -> Result<T, MediumError>,
    ) -> io::Result<T> {
        let mut state = self.state();
        let State::Staged(stage) = &mut *state else {
            return Err(io::Error::other("the store was reopened meanwhile"));
        };
        act(stage, &*self.medium).map_err(|error| {
            self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            io::Error::other(error)
        })
    }
}

/// A handle to the link, which redb owns.
pub(crate) struct Adapter(pub(crate) Arc<Link>);

impl fmt::Debug for Adapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Adapter")
    }
}

impl StorageBackend for Adapter {
    fn len(&self) -> io::Result<u64> {
        self.0.run(|stage, _| Ok(stage.len))
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.run(|stage, medium| stage.read(medium, offset, out))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.run(|stage, _| {
            stage.set_len(len);
            Ok(())
        })
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.run(|stage, _| {
            stage.sync();
            Ok(())
        })
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.run(|stage, medium| stage.write(medium, offset, data))
    }
}

/// Writes that wait, and the medium's content as it will be after them.
pub(crate) struct Stage {
    len: u64,
    /// The end of what still shows of the medium: bytes from here on are zeros unless written
    /// since.
    base: u64,
    blocks: BTreeMap<u64, Box<[u8; BLOCK]>>,
    waiting: VecDeque<Operation>,
    /// Bytes of the writes among them.
    bytes: usize,
    /// Beyond so many, they are performed at once.
    most: usize,
}

/// Content of a medium that was made in memory; blocks that aren't there are zeros.
pub(crate) struct Image {
    pub(crate) len: u64,
    pub(crate) blocks: BTreeMap<u64, Box<[u8; BLOCK]>>,
}

pub(crate) enum Operation {
    Write { offset: u64, bytes: Vec<u8> },
    SetLen(u64),
    Sync,
}

impl Stage {
    /// Nothing waits on a medium of `len` bytes.
    pub(crate) fn new(len: u64) -> Self {
        let (blocks, waiting) = (BTreeMap::new(), VecDeque::new());
        Self { len, base: len, blocks, waiting, bytes: 0, most: usize::MAX }
    }

    /// `image` shows, and `waiting` makes the medium so.
    pub(crate) fn of(image: Image, waiting: VecDeque<Operation>) -> Self {
        let (len, blocks) = (image.len, image.blocks);
        Self { len, base: 0, blocks, waiting, bytes: 0, most: usize::MAX }
    }

    fn write(&mut self, medium: &dyn Medium, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
        self.len = self.len.max(offset + length(bytes));
        let mut done = 0;
        while done < bytes.len() {
            let (index, within) = locate(offset + length(&bytes[..done]));
            let take = (BLOCK - within).min(bytes.len() - done);
            let block = self.block(medium, index)?;
            block[within..within + take].copy_from_slice(&bytes[done..done + take]);
            done += take;
        }
        self.waiting.push_back(Operation::Write { offset, bytes: bytes.to_vec() });
        self.bytes = self.bytes.saturating_add(bytes.len());
        if self.bytes > self.most { self.perform(medium) } else { Ok(()) }
    }

    fn set_len(&mut self, len: u64) {
        if len < self.len {
            self.base = self.base.min(len);
            let (last, within) = locate(len);
            self.blocks.split_off(&(last + 1));
            if let Some(block) = self.blocks.get_mut(&last) {
                block[within..].fill(0);
            }
        }
        self.len = len;
        self.waiting.push_back(Operation::SetLen(len));
    }

    fn sync(&mut self) {
        self.waiting.push_back(Operation::Sync);
    }

    fn read(&self, medium: &dyn Medium, offset: u64, out: &mut [u8]) -> Result<(), MediumError> {
        if offset + length(out) > self.len {
            return Err(MediumError::OutOfRange);
        }
        self.read_base(medium, offset, out)?;
        let end = offset + length(out);
        for (index, block) in self.blocks.range(locate(offset).0..=locate(end).0) {
            let start = index * BLOCK_U64;
            let (from, to) = (start.max(offset), (start + BLOCK_U64).min(end));
            if from < to {
                let source = &block[distance(start, from)..distance(start, to)];
                out[distance(offset, from)..distance(offset, to)].copy_from_slice(source);
            }
        }
        Ok(())
    }

    /// Returns what the medium itself has to say about a range, zeros where it was cut or never was.
    fn read_base(
        &self,
        medium: &dyn Medium,
        offset: u64,
        out: &mut [u8],
    ) -> Result<(), MediumError> {
        let shown = distance(offset, self.base.clamp(offset, offset + length(out)));
        let (shown, zeros) = out.split_at_mut(shown);
        zeros.fill(0);
        if shown.is_empty() { Ok(()) } else { medium.read_at(offset, shown) }
    }

    fn block(&mut self, medium: &dyn Medium, index: u64) -> Result<&mut [u8; BLOCK], MediumError> {
        if !self.blocks.contains_key(&index) {
            let mut block = Box::new([0; BLOCK]);
            self.read_base(medium, index * BLOCK_U64, &mut *block)?;
            self.blocks.insert(index, block);
        }
        Ok(self.blocks.entry(index).or_insert_with(|| Box::new([0; BLOCK])))
    }

    fn perform(&mut self, medium: &dyn Medium) -> Result<(), MediumError> {
        while let Some(operation) = self.waiting.front() {
            match operation {
                Operation::Write { offset, bytes } => medium.write_at(*offset, bytes)?,
                Operation::SetLen(len) => medium.set_len(*len)?,
                Operation::Sync => medium.sync()?,
            }
            self.waiting.pop_front();
        }
        self.blocks.clear();
        (self.base, self.bytes) = (self.len, 0);
        Ok(())
    }
}

/// Unit of what a stage remembers, in bytes; redb's page size.
pub(crate) const BLOCK: usize = 4_096;
pub(crate) const BLOCK_U64: u64 = 4_096;

/// Block that holds a position, and the position within it.
fn locate(position: u64) -> (u64, usize) {
    (position / BLOCK_U64, distance(position / BLOCK_U64 * BLOCK_U64, position))
}

/// Bytes from `from` to a later position that is within one buffer, so that it fits in memory.
fn distance(from: u64, to: u64) -> usize {
    usize::try_from(to - from).unwrap_or(usize::MAX)
}

/// Length in bytes.
pub(crate) fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use garret_hal::media::RamMedium;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Write(u64, Vec<u8>),
        SetLen(u64),
        Sync,
        Flush,
    }

    fn step() -> impl Strategy<Value = Step> {
        let position = prop_oneof![0..20_000_u64, 0..5_u64, (0..4_u64).prop_map(|n| n * BLOCK_U64)];
        prop_oneof![
            6 => (position.clone(), vec(1..=u8::MAX, 1..9_000))
                .prop_map(|(at, bytes)| Step::Write(at, bytes)),
            3 => position.prop_map(Step::SetLen),
            1 => Just(Step::Sync),
            1 => Just(Step::Flush),
        ]
    }

    fn read(adapter: &Adapter, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let mut out = vec![0xaa; len];
        adapter.read(offset, &mut out).map(|()| out)
    }

    proptest! {
           #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

           /// A reader always sees what a plain array would hold; the medium holds it once
           /// flushed.
           #[test]
           fn a_link_shows_what_was_written(
               before in vec(1..=u8::MAX, 0..20_000),
               steps in vec(step(), 1..12),
               probes in vec((0..40_000_u64, 0..9_000_usize), 1..6),
           ) {
               let medium = RamMedium::from_bytes(before.clone());
               let stage = Stage::new(medium.len()?);
               let link = Link::new(Arc::new(medium.clone()), stage);
               let adapter = Adapter(link.clone());
               let (mut model, mut flushed) = (before.clone(), before.clone());
               for step in steps {
                   match step {
                       Step::Write(at, bytes) => {
                           adapter.write(at, &bytes)?;
                           let at = at as usize;
                           model.resize(model.len().max(at + bytes.len()), 0);
                           model[at..at + bytes.len()].copy_from_slice(&bytes);
                       }
                       Step::SetLen(len) => {
                           adapter.set_len(len)?;
                           model.resize(len as usize, 0);
                       }
                       Step::Sync => adapter.sync_data()?,
                       Step::Flush => {
                           link.flush()?;
                           flushed.clone_from(&model);
                       }
                   }
                   prop_assert_eq!(adapter.len()?, model.len() as u64);
                   prop_assert_eq!(read(&adapter, 0, model.len())?, &*model);
                   for (at, len) in &probes {
                       let expected = model.get(*at as usize..*at as usize + len);
                       let found = read(&adapter, *at, *len).ok();
    prop_assert_eq!(found.as_deref(), expected);
                   }
                   prop_assert_eq!(&medium.snapshot(), &flushed);
               }
               link.flush()?;
               prop_assert_eq!(medium.snapshot(), &*model);
               // Without waiting for a flush, where not much is to wait.
               link.spill(Some(10_000));
               for n in 0..9_usize {
                   adapter.write(n as u64 * 1_000, &[n as u8; 1_500])?;
                   model.resize(model.len().max(n * 1_000 + 1_500), 0);
                   model[n * 1_000..][..1_500].fill(n as u8);
                   if n == 6 {
                       prop_assert_eq!(&medium.snapshot(), &model);
                   }
               }
               prop_assert_eq!(read(&adapter, 0, model.len())?, &*model);
               link.spill(None);
               link.flush()?;
               prop_assert_eq!(medium.snapshot(), &*model);
               link.cut();
               prop_assert!(adapter.write(0, b"late").is_err() && read(&adapter, 0, 0).is_err());
               prop_assert_eq!(medium.snapshot(), model);
           }
       }
}
