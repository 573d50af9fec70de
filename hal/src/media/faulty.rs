//! Media that fail on purpose, and what a power cut may leave of them.

use super::{RamMedium, bytes, end_of};
use crate::mix::SplitMix64;
use garret_core::medium::{Medium, MediumError};
use std::slice::SliceIndex;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes that a device writes whole or not at all.
pub const SECTOR: usize = 512;

/// Faults of a [`FaultyMedium`]. The default is none.
///
/// Limits count from the creation of the medium, over all media of its device. Power goes as soon
/// as the first of them is reached: what reached it took effect, everything later returns
/// [`MediumError::PowerCut`]. So a limit of 0 is a medium that was never on, and trying every limit
/// up to a workload's total visits every moment at which the power can go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Lose power when this many bytes were written. A write that would go beyond is torn: it
    /// leaves the bytes up to the limit and returns [`MediumError::PowerCut`].
    pub cut_after_bytes: Option<u64>,
    /// Lose power after this many operations (writes of at least one byte, length changes, syncs).
    pub cut_after_ops: Option<u64>,
    /// Lose power after this many syncs.
    pub cut_after_syncs: Option<u64>,
    /// The most bytes that all media of the device hold together. A write that would grow it
    /// further leaves what fits, as a file system does, and returns [`MediumError::Full`].
    pub capacity: Option<u64>,
}

/// A recorded operation, as it took effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// `bytes` were written at `offset`; only the part that was written, where it was torn or cut
    /// by a full medium.
    Write {
        /// Offset in bytes.
        offset: u64,
        /// Bytes that were written, at least one.
        bytes: Vec<u8>,
    },
    /// The length became this many bytes.
    SetLen(u64),
    /// All before it is durable.
    Sync,
}

/// Memory that records every operation, loses power or fills up when told to, and tells what a
/// device may hold afterwards.
///
/// A clone is another handle on the same medium, so a test keeps one while a store owns another.
/// [`FaultyMedium::beside`] makes another medium on the same device, as a second file is: they lose
/// power together, share the limits, and their operations have one order.
///
/// # What a power cut leaves
/// Everything before a medium's last completed sync survives; a sync covers its own medium alone.
/// What came after it is decided by a seed, independently for each medium and part:
/// - each piece of a write, split at multiples of [`SECTOR`];
/// - the growth of the medium by a write, which may survive as zeros without the write's bytes;
/// - each [`Medium::set_len`].
///
/// The survivors are applied in the order in which they were issued. Seed 0 keeps nothing and seed
/// 1 everything; any other keeps a share that is itself drawn from the seed, between 1/16 and
/// 15/16. This is harsher than most file systems, which write a sector in the state of some moment,
/// so that of two writes into one sector the later never survives alone.
///
/// # Crash proofs
/// Run the workload once per limit and reopen from [`FaultyMedium::image_after_cut`], or run it
/// once and visit every moment of its [`Recording`], which is much faster.
///
/// ```
/// use garret_core::medium::{Medium, MediumError};
/// use garret_hal::media::{Faults, FaultyMedium};
///
/// let medium = FaultyMedium::new(Faults { cut_after_bytes: Some(10), ..Faults::default() });
/// let device = medium.clone(); // what a store would own
/// device.write_at(0, b"kept")?;
/// device.sync()?;
/// assert_eq!(device.write_at(4, b"torn away"), Err(MediumError::PowerCut));
/// assert_eq!(device.sync(), Err(MediumError::PowerCut));
///
/// assert_eq!(medium.durable_image(), b"kept");
/// assert_eq!(medium.image_after_cut(1), b"kepttorn a");
/// let after_reboot = FaultyMedium::with_image(medium.image_after_cut(7), Faults::default());
/// assert!(after_reboot.len()? >= 4);
/// # Ok::<(), MediumError>(())
/// ```
#[derive(Clone, Debug)]
pub struct FaultyMedium {
    state: Arc<Mutex<State>>,
    /// Number of the medium on its device.
    index: usize,
}

impl FaultyMedium {
    /// An empty medium with `faults`.
    pub fn new(faults: Faults) -> Self {
        Self::with_image(Vec::new(), faults)
    }

    /// A medium that durably holds `image`, as a device does after a reboot, with `faults`.
    pub fn with_image(image: Vec<u8>, faults: Faults) -> Self {
        let state = State {
            faults,
            media: Vec::new(),
            recording: Recording { bases: Vec::new(), ops: Vec::new(), owners: Vec::new() },
            syncs: 0,
            bytes_written: 0,
        };
        Self { state: Arc::new(Mutex::new(state)), index: 0 }.beside(image)
    }

    /// Another medium on the same device, that durably holds `image`.
    pub fn beside(&self, image: Vec<u8>) -> Self {
        let mut state = self.state();
        state.recording.bases.push(image.clone());
        let durable_ops = state.recording.ops.len();
        state.media.push(Contents { data: image.clone(), durable: image, durable_ops });
        Self { state: self.state.clone(), index: state.media.len() - 1 }
    }

    /// Replaces the faults, for example to make room on a full medium or to cut the power now
    /// (`cut_after_ops: Some(0)`). Limits still count from the creation of the medium.
    pub fn set_faults(&self, faults: Faults) {
        self.state().faults = faults;
    }

    /// Returns whether the power is on.
    pub fn has_power(&self) -> bool {
        self.state().powered().is_ok()
    }

    /// Operations of the device that took effect so far.
    pub fn ops(&self) -> u64 {
        count(self.state().recording.ops.len())
    }

    /// Syncs of the device that took effect so far.
    pub fn syncs(&self) -> u64 {
        self.state().syncs
    }

    /// Bytes written to the device so far; bytes written twice count twice.
    pub fn bytes_written(&self) -> u64 {
        self.state().bytes_written
    }

    /// Returns what the running program sees, unsynced writes included; readable even without
    /// power.
    pub fn image(&self) -> Vec<u8> {
        self.state().contents(self.index).data.clone()
    }

    /// Returns what the last sync made durable: what a power cut leaves at least of what was
    /// acknowledged.
    pub fn durable_image(&self) -> Vec<u8> {
        self.state().contents(self.index).durable.clone()
    }

    /// Returns what the device may hold after the power cut, or after one at this moment while the
    /// power is on. The same seed gives the same image.
    pub fn image_after_cut(&self, seed: u64) -> Vec<u8> {
        let state = self.state();
        let contents = state.contents(self.index);
        let mut image = contents.durable.clone();
        let unsynced = state.recording.of(self.index, contents.durable_ops..);
        leave_some(&mut image, unsynced, None, &mut Fate::of(self.index, seed));
        image
    }

    /// A copy of all that happened to the device so far.
    pub fn recording(&self) -> Recording {
        self.state().recording.clone()
    }

    // No code panics while it holds the lock, so a poisoned one still guards whole data.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Medium for FaultyMedium {
    fn len(&self) -> Result<u64, MediumError> {
        let state = self.state();
        state.powered()?;
        Ok(count(state.contents(self.index).data.len()))
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<(), MediumError> {
        let state = self.state();
        state.powered()?;
        bytes::read(&state.contents(self.index).data, offset, out)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
        self.state().write(self.index, offset, bytes)
    }

    fn block(&self) -> usize {
        SECTOR
    }

    fn set_len(&self, len: u64) -> Result<(), MediumError> {
        self.state().set_len(self.index, len)
    }

    fn sync(&self) -> Result<(), MediumError> {
        self.state().sync(self.index)
    }
}

/// All that happened to a [`FaultyMedium`] and those beside it: enough to tell what a power cut at
/// any moment leaves, without running the workload again.
///
/// ```
/// use garret_core::medium::Medium;
/// use garret_hal::media::{Faults, FaultyMedium};
///
/// let medium = FaultyMedium::new(Faults::default());
/// medium.write_at(0, b"first")?;
/// medium.sync()?;
/// medium.write_at(0, b"other")?;
///
/// let recording = medium.recording();
/// for cut in recording.cuts(1) {
///     let image = recording.image_after_cut(cut, 1);
///     assert!(cut.ops < 2 || image.len() == 5, "what was synced can't be cut short");
/// }
/// # Ok::<(), garret_core::medium::MediumError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    /// Bytes that each medium held at first.
    bases: Vec<Vec<u8>>,
    ops: Vec<Op>,
    /// Number of the medium of each operation.
    owners: Vec<usize>,
}

/// A moment in a [`Recording`] at which the power goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cut {
    /// Operations that took effect before it.
    pub ops: usize,
    /// Bytes that the write after them had written; 0 where the next operation isn't a write.
    pub torn: usize,
}

impl Recording {
    /// The operations in order, whichever medium they are of.
    pub fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// Returns the number of the medium that an operation is of: 0 for the first of the device, 1
    /// for the one made next.
    pub fn owner(&self, op: usize) -> Option<usize> {
        self.owners.get(op).copied()
    }

    /// The moments at which the power can go, in order: before and after every operation, and
    /// within every write after each `stride` bytes (1 is every byte; 0 counts as 1).
    pub fn cuts(&self, stride: usize) -> impl Iterator<Item = Cut> + '_ {
        let last = Cut { ops: self.ops.len(), torn: 0 };
        let within = move |(ops, op): (usize, &Op)| {
            let len = if let Op::Write { bytes, .. } = op { bytes.len() } else { 1 };
            (0..len).step_by(stride.max(1)).map(move |torn| Cut { ops, torn })
        };
        self.ops.iter().enumerate().flat_map(within).chain([last])
    }

    /// Returns what the first medium may hold after a power cut at `cut`, as [`FaultyMedium`]
    /// describes. A moment past the end of the recording or of a write is that end.
    pub fn image_after_cut(&self, cut: Cut, seed: u64) -> Vec<u8> {
        self.image_of(0, cut, seed)
    }

    /// Returns what each medium may hold after a power cut at `cut`, in the order in which they
    /// were made.
    pub fn images_after_cut(&self, cut: Cut, seed: u64) -> Vec<Vec<u8>> {
        (0..self.bases.len()).map(|index| self.image_of(index, cut, seed)).collect()
    }

    fn image_of(&self, index: usize, cut: Cut, seed: u64) -> Vec<u8> {
        let cut_at = cut.ops.min(self.ops.len());
        let synced = self.synced(index, cut_at);
        let mut image = self.bases.get(index).cloned().unwrap_or_default();
        leave_some(&mut image, self.of(index, 0..synced), None, &mut Fate::All);
        let torn = match self.ops.get(cut_at) {
            Some(Op::Write { offset, bytes })
                if cut.torn > 0 && self.owner(cut_at) == Some(index) =>
            {
                Some((*offset, bytes.get(..cut.torn).unwrap_or(bytes)))
            }
            _ => None,
        };
        let unsynced = self.of(index, synced..cut_at);
        leave_some(&mut image, unsynced, torn, &mut Fate::of(index, seed));
        image
    }

    /// A medium that holds what was there when the recording began.
    pub fn base(&self) -> RamMedium {
        RamMedium::from_bytes(self.bases.first().cloned().unwrap_or_default())
    }

    /// The operations of one medium within `range`.
    fn of(
        &self,
        index: usize,
        range: impl SliceIndex<[Op], Output = [Op]> + SliceIndex<[usize], Output = [usize]> + Clone,
    ) -> impl Iterator<Item = &Op> {
        let ops = self.ops.get(range.clone()).unwrap_or_default();
        let owners = self.owners.get(range).unwrap_or_default();
        ops.iter().zip(owners).filter(move |(_, owner)| **owner == index).map(|(op, _)| op)
    }

    /// Returns how many of the first operations the last sync of one medium among them covers.
    fn synced(&self, index: usize, ops: usize) -> usize {
        let is_sync = |at: &usize| self.ops[*at] == Op::Sync && self.owners[*at] == index;
        (0..ops).rev().find(is_sync).map_or(0, |last| last + 1)
    }
}

#[derive(Debug)]
struct State {
    faults: Faults,
    media: Vec<Contents>,
    recording: Recording,
    syncs: u64,
    bytes_written: u64,
}

#[derive(Debug)]
struct Contents {
    /// Bytes that the program sees.
    data: Vec<u8>,
    /// `data` at the last sync.
    durable: Vec<u8>,
    /// Operations of the recording up to that sync.
    durable_ops: usize,
}

impl State {
    // A handle's index is that of a medium that was made, and none is ever taken away.
    fn contents(&self, index: usize) -> &Contents {
        &self.media[index]
    }

    fn record(&mut self, index: usize, op: Op) {
        self.recording.ops.push(op);
        self.recording.owners.push(index);
    }

    fn powered(&self) -> Result<(), MediumError> {
        let reached = |limit: Option<u64>, now: u64| limit.is_some_and(|limit| now >= limit);
        let cut = reached(self.faults.cut_after_bytes, self.bytes_written)
            || reached(self.faults.cut_after_ops, count(self.recording.ops.len()))
            || reached(self.faults.cut_after_syncs, self.syncs);
        if cut { Err(MediumError::PowerCut) } else { Ok(()) }
    }

    fn write(&mut self, index: usize, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
        self.powered()?;
        if bytes.is_empty() {
            return Ok(());
        }
        end_of(offset, bytes.len()).ok_or(MediumError::Full)?;
        let fits = self.longest(index).saturating_sub(offset);
        // Powered, so fewer bytes were written than the limit.
        let before_cut = self.faults.cut_after_bytes.map(|cut| cut - self.bytes_written);
        let part = bytes.get(..to_usize(fits.min(before_cut.unwrap_or(u64::MAX)))).unwrap_or(bytes);
        if !part.is_empty() {
            bytes::write(&mut self.media[index].data, offset, part)?;
            self.bytes_written += count(part.len());
            self.record(index, Op::Write { offset, bytes: part.to_vec() });
        }
        if part.len() == bytes.len() {
            return Ok(());
        }
        self.powered().and(Err(MediumError::Full))
    }

    /// Returns how long a medium can become before the device is full.
    fn longest(&self, index: usize) -> u64 {
        let used: u64 = self.media.iter().map(|contents| count(contents.data.len())).sum();
        let own = count(self.contents(index).data.len());
        let room = self.faults.capacity.unwrap_or(u64::MAX).saturating_sub(used);
        own.saturating_add(room)
    }

    fn set_len(&mut self, index: usize, len: u64) -> Result<(), MediumError> {
        self.powered()?;
        let grows = len > count(self.contents(index).data.len());
        if grows && len > self.longest(index) {
            return Err(MediumError::Full);
        }
        bytes::set_len(&mut self.media[index].data, len)?;
        self.record(index, Op::SetLen(len));
        Ok(())
    }

    fn sync(&mut self, index: usize) -> Result<(), MediumError> {
        self.powered()?;
        self.record(index, Op::Sync);
        self.syncs += 1;
        let contents = &mut self.media[index];
        let unsynced = self.recording.of(index, contents.durable_ops..);
        leave_some(&mut contents.durable, unsynced, None, &mut Fate::All);
        contents.durable_ops = self.recording.ops.len();
        Ok(())
    }
}

/// Lot that decides which parts of what was never synced survive.
enum Fate {
    None,
    All,
    /// Each part with a chance of `keep` in 16.
    Some {
        mix: SplitMix64,
        keep: u64,
    },
}

impl Fate {
    fn new(seed: u64) -> Self {
        match seed {
            0 => Self::None,
            1 => Self::All,
            _ => {
                let mut mix = SplitMix64::new(seed);
                let keep = 1 + mix.next() % 15;
                Self::Some { mix, keep }
            }
        }
    }

    /// Returns the lot of a medium of the device: the first has the seed's own, the others have
    /// lots drawn from it.
    fn of(index: usize, seed: u64) -> Self {
        match (index, seed) {
            (0, _) | (_, 0 | 1) => Self::new(seed),
            _ => Self::new(SplitMix64::new(seed ^ count(index) << 32).next()),
        }
    }

    fn survives(&mut self) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Some { mix, keep } => mix.next() % 16 < *keep,
        }
    }
}

/// Applies to `image` what survives of `ops` and of a last, `torn` write.
fn leave_some<'a>(
    image: &mut Vec<u8>,
    ops: impl Iterator<Item = &'a Op>,
    torn: Option<(u64, &[u8])>,
    fate: &mut Fate,
) {
    for op in ops {
        match op {
            Op::Write { offset, bytes } => leave_pieces(image, *offset, bytes, fate),
            Op::SetLen(len) if fate.survives() => image.resize(to_usize(*len), 0),
            Op::SetLen(_) | Op::Sync => {}
        }
    }
    if let Some((offset, bytes)) = torn {
        leave_pieces(image, offset, bytes, fate);
    }
}

fn leave_pieces(image: &mut Vec<u8>, offset: u64, mut bytes: &[u8], fate: &mut Fate) {
    let mut at = to_usize(offset);
    let grown = at + bytes.len();
    if grown > image.len() && fate.survives() {
        image.resize(grown, 0);
    }
    while !bytes.is_empty() {
        let (piece, rest) = bytes.split_at(bytes.len().min(SECTOR - at % SECTOR));
        if fate.survives() {
            image.resize(image.len().max(at + piece.len()), 0);
            image[at..at + piece.len()].copy_from_slice(piece);
        }
        at += piece.len();
        bytes = rest;
    }
}

// On every platform that Rust supports a usize fits a u64; the offsets that come back were lengths
// of vectors.
fn count(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

fn to_usize(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

#[cfg(test)]
#[path = "faulty_tests.rs"]
mod tests;
