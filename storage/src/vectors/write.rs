//! Adding, removing, and making the coarse vectors anew.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use garret_core::medium::{Medium, MediumError};
use garret_core::vector::Kernels;
use zerocopy::IntoBytes as _;

use crate::vectors::layout::{BLOCK_ROWS, CoarseHead, ENTRY, FULL_VERSION, FullHead, PAGE, entry};
use crate::vectors::load::{Coarse, Loaded, show};
use crate::vectors::rotation::{Rotation, halve, widen};
use crate::vectors::scan::{length_factor, read_whole, scaled};
use crate::vectors::slots::{MAX_SLOTS, Slot, Slots};
use crate::vectors::{
    Content, MAX_COARSE, Side, Spec, UnitKey, VectorError, VectorStore, next_version,
};

/// Vectors that a rotation is learned from: at least, and at most.
pub const LEARN_FROM: std::ops::RangeInclusive<usize> = 2_000..=4_096;

/// Dimensions that a learned rotation keeps.
pub const LEARNED_COARSE: usize = 128;

/// Rows whose entries may wait for a [flush](VectorStore::flush).
const MAX_PENDING: usize = 1 << 16;

/// Rows of the coarse file that are written at once while it is made anew.
const REBUILD_ROWS: usize = 4_096;

/// Vectors that are turned together.
const TURNED: usize = 16;

/// A unit on its way into a row: its vector, and what that is multiplied with to have length 1.
struct New<'a> {
    key: UnitKey,
    vector: &'a [f32],
    factor: f64,
}

impl VectorStore {
    /// Adds vectors of units that have none, and says how many it added; of one that has a vector,
    /// that stays. They are found at once and durable after the next [`flush`](Self::flush).
    ///
    /// # Errors
    /// [`VectorError`]. A vector that can't be taken refuses all; after [`VectorError::Medium`] ask
    /// what is [`missing`](Self::missing).
    pub fn insert<V: AsRef<[f32]>>(
        &mut self,
        units: &[(UnitKey, V)],
    ) -> Result<usize, VectorError> {
        let dims = self.spec.as_ref().ok_or(VectorError::NoEmbedder)?.dims;
        let all = units.iter().map(|(key, vector)| {
            let (key, vector) = (*key, vector.as_ref());
            Ok(New { key, vector, factor: length_factor(vector, dims)? })
        });
        let mut new = all.collect::<Result<Vec<_>, VectorError>>()?;
        if new.is_empty() {
            return Ok(0);
        }
        self.make_writable()?;
        let mut seen = HashSet::with_capacity(new.len());
        new.retain(|new| !self.contains(new.key) && seen.insert(new.key));
        let Content::Ours(loaded) = &mut self.content else { return Ok(0) };
        if new.len() > MAX_SLOTS - loaded.slots.live() {
            return Err(VectorError::Full);
        }
        let slots: Vec<Slot> = loaded.slots.vacant(new.len()).collect();
        let mut rest = &new[..];
        for run in slots.chunk_by(|a, b| b.checked_sub(*a) == Some(1) && b % BLOCK_ROWS != 0) {
            let (now, later) = rest.split_at(run.len());
            rest = later;
            match loaded.write_run(&*self.kernels, run[0], now) {
                Ok(entries) => {
                    self.pending.get_mut().unwrap_or_else(|e| e.into_inner()).extend(entries)
                }
                Err(error) => return self.noting(Err(error)),
            }
        }
        if self.pending().len() >= MAX_PENDING {
            self.flush()?;
        }
        Ok(new.len())
    }

    /// Makes everything added so far durable. Searches may go on meanwhile.
    ///
    /// # Errors
    /// [`VectorError::Medium`]; what was added since the last flush may then be missing.
    pub fn flush(&self) -> Result<(), VectorError> {
        let mut pending = self.pending();
        let Content::Ours(loaded) = &self.content else { return Ok(()) };
        if pending.is_empty() {
            return Ok(());
        }
        self.noting(loaded.seal_rows(&mut pending))?;
        pending.clear();
        Ok(())
    }

    /// Overwrites the vectors of units with zeros, durably, and says how many there were. It does
    /// so for vectors of any embedder; files that it can't read are emptied.
    ///
    /// # Errors
    /// [`VectorError::Medium`]; then some may still be there: remove them again.
    pub fn remove(&mut self, keys: &[UnitKey]) -> Result<usize, VectorError> {
        self.reload()?;
        if keys.is_empty() {
            return Ok(0);
        }
        self.scrub()?;
        let loaded = match &self.content {
            Content::Absent => return Ok(0),
            Content::Foreign => return self.empty().map(|()| 0),
            Content::Ours(loaded) => loaded,
        };
        let mut gone: Vec<Slot> = keys.iter().filter_map(|key| loaded.slots.find(*key)).collect();
        gone.sort_unstable();
        gone.dedup();
        if gone.is_empty() {
            return Ok(0);
        }
        self.noting(loaded.erase(&gone))?;
        self.version = next_version();
        let Content::Ours(loaded) = &mut self.content else { return Ok(0) };
        for slot in &gone {
            if let Some(key) = loaded.slots.key(*slot) {
                loaded.slots.remove(key);
            }
        }
        self.pending().retain(|(slot, _)| gone.binary_search(slot).is_err());
        Ok(gone.len())
    }

    /// Removes every unit that doesn't pass `keep`, and whatever was left of others by a power cut.
    ///
    /// # Errors
    /// As [`remove`](Self::remove).
    pub fn retain(&mut self, keep: &dyn Fn(UnitKey) -> bool) -> Result<usize, VectorError> {
        self.reload()?;
        self.scrub()?;
        match &self.content {
            Content::Absent => Ok(0),
            Content::Foreign => self.empty().map(|()| 0),
            Content::Ours(loaded) => {
                let all = loaded.slots.iter().map(|(_, key)| key);
                let gone: Vec<_> = all.filter(|key| !keep(*key)).collect();
                self.remove(&gone)
            }
        }
    }

    /// Idle work: drops rows that were found damaged, and makes the coarse vectors anew where they
    /// are lost, where the embedder's rotation is another one, or where it isn't known and there
    /// are enough vectors to learn it from ([`LEARN_FROM`]). Says whether it changed anything.
    ///
    /// Making them anew takes about 10 us a row; learning, some seconds for 1,024 dimensions.
    ///
    /// # Errors
    /// [`VectorError::Medium`].
    pub fn maintain(&mut self) -> Result<bool, VectorError> {
        let dropped = self.drop_damaged()?;
        match self.better_rotation() {
            Some(rotation) => self.adopt(rotation).map(|changed| changed || dropped),
            None => Ok(dropped),
        }
    }

    /// The first part of [`maintain`](Self::maintain).
    pub(crate) fn drop_damaged(&mut self) -> Result<bool, VectorError> {
        self.reload()?;
        let suspect = std::mem::take(&mut *self.suspect());
        let Some(loaded) = self.current() else { return Ok(false) };
        let keys: Vec<_> = suspect.iter().filter_map(|slot| loaded.slots.key(*slot)).collect();
        Ok(self.remove(&keys)? > 0)
    }

    /// The rotation that the coarse vectors should have, when they don't. The second part of
    /// [`maintain`](Self::maintain), and the longest; it changes nothing.
    pub(crate) fn better_rotation(&self) -> Option<Rotation> {
        let (loaded, spec) = (self.current()?, self.spec.as_ref()?);
        let now = loaded.coarse.as_ref().map(|coarse| &coarse.rotation);
        let wanted = match (&spec.rotation, now) {
            (Some(known), _) => known.clone(),
            (None, Some(now)) if now.is_learned() => return None,
            (None, _) => loaded.learn().unwrap_or_else(|| spec.first_rotation()),
        };
        (now != Some(&wanted)).then_some(wanted)
    }

    /// The last part of [`maintain`](Self::maintain): makes the coarse vectors anew, if there are
    /// whole ones that the rotation is for.
    pub(crate) fn adopt(&mut self, rotation: Rotation) -> Result<bool, VectorError> {
        self.reload()?;
        if self.current().is_none_or(|loaded| loaded.head.dims as usize != rotation.dims()) {
            return Ok(false);
        }
        self.scrub()?;
        self.make_coarse(rotation).map(|()| true)
    }

    /// Sees to it that rows can be added: after a failure, in new files, with new coarse vectors.
    fn make_writable(&mut self) -> Result<(), VectorError> {
        self.reload()?;
        if self.current().is_none() {
            self.begin()?;
        }
        self.scrub()?;
        if self.current().is_some_and(|loaded| loaded.coarse.is_none()) {
            let spec = self.spec.as_ref().ok_or(VectorError::NoEmbedder)?;
            self.make_coarse(spec.first_rotation())?;
        }
        Ok(())
    }

    /// Before the first change: no trace stays of rows whose entries a power cut kept from being
    /// written, nor of coarse vectors that lost their head. Whoever forgets those units couldn't
    /// name them.
    fn scrub(&mut self) -> Result<(), VectorError> {
        let Content::Ours(loaded) = &self.content else { return Ok(()) };
        if loaded.scrubbed {
            return Ok(());
        }
        if loaded.coarse.is_none() {
            self.noting(self.empty_file(Side::Coarse))?;
        }
        self.noting(loaded.scrub())?;
        if let Content::Ours(loaded) = &mut self.content {
            loaded.scrubbed = true;
        }
        Ok(())
    }

    /// After a failed write: what is in the files counts, not what is in memory.
    fn reload(&mut self) -> Result<(), VectorError> {
        if self.failed.load(Ordering::Relaxed) {
            self.content = self.load()?;
            self.pending().clear();
            self.suspect().clear();
            self.failed.store(false, Ordering::Relaxed);
            self.version = next_version();
        }
        Ok(())
    }

    /// Begins the files anew, for this embedder.
    fn begin(&mut self) -> Result<(), VectorError> {
        let spec = self.spec.as_ref().ok_or(VectorError::NoEmbedder)?;
        let last = match &self.content {
            Content::Ours(loaded) => loaded.head.epoch,
            Content::Absent | Content::Foreign => 0,
        };
        let head = FullHead {
            version: FULL_VERSION,
            epoch: last.wrapping_add(1),
            fingerprint: spec.fingerprint,
            dims: spec.dims as u32,
        };
        self.empty()?;
        let made = self.create(Side::Whole).and_then(|medium| {
            medium.write_at(0, &head.encode())?;
            medium.set_len(PAGE)?;
            medium.sync()?;
            Ok(Loaded { medium, head, slots: Slots::default(), coarse: None, scrubbed: true })
        });
        self.content = Content::Ours(Box::new(self.noting(made)?));
        Ok(())
    }

    /// Empties what there is of both files, the coarse one first: it must never stay without the
    /// whole vectors that it was made from.
    fn empty(&mut self) -> Result<(), VectorError> {
        self.noting(self.empty_file(Side::Coarse))?;
        self.noting(self.empty_file(Side::Whole))?;
        self.content = Content::Absent;
        self.version = next_version();
        self.pending().clear();
        Ok(())
    }

    fn empty_file(&self, side: Side) -> Result<(), MediumError> {
        match (self.files)(side, false)? {
            Some(medium) if medium.len()? > 0 => {
                medium.set_len(0)?;
                medium.sync()
            }
            _ => Ok(()),
        }
    }

    /// Makes the coarse vectors anew from the whole ones. Until their head is there, which is
    /// written last, they count as lost.
    fn make_coarse(&mut self, rotation: Rotation) -> Result<(), VectorError> {
        let medium = self.create(Side::Coarse);
        let medium = self.noting(medium)?;
        let Content::Ours(loaded) = &mut self.content else { return Ok(()) };
        loaded.coarse = None;
        match loaded.write_coarse(&*self.kernels, medium, rotation) {
            Ok(coarse) => loaded.coarse = Some(coarse),
            Err(error) => return self.noting(Err(error)),
        }
        Ok(())
    }

    fn create(&self, side: Side) -> Result<Arc<dyn Medium>, MediumError> {
        (self.files)(side, true)?.ok_or(MediumError::Denied)
    }
}

impl Spec {
    /// The rotation before any can be learned.
    fn first_rotation(&self) -> Rotation {
        let all = || Rotation::prefix(self.dims, self.dims.min(MAX_COARSE));
        self.rotation.clone().unwrap_or_else(all)
    }
}

/// Adds numbers as they are stored: little-endian.
fn put_halves(halves: &[u16], out: &mut Vec<u8>) {
    match cfg!(target_endian = "little") {
        true => out.extend_from_slice(halves.as_bytes()),
        false => out.extend(halves.iter().flat_map(|half| half.to_le_bytes())),
    }
}

impl Loaded {
    /// Writes vectors into rows that follow each other within a block, and gives their entries.
    fn write_run(
        &mut self,
        kernels: &dyn Kernels,
        first: Slot,
        units: &[New<'_>],
    ) -> Result<Vec<(Slot, [u8; ENTRY])>, MediumError> {
        let Some(coarse) = &self.coarse else { return Ok(Vec::new()) };
        let dims = self.head.dims as usize;
        let (mut whole, mut rows) = (Vec::with_capacity(units.len() * dims * 2), Vec::new());
        let (mut halves, mut wide, mut turned) = (Vec::new(), Vec::new(), Vec::new());
        let (mut entries, mut together) = (Vec::with_capacity(units.len()), Vec::new());
        for (slot, new) in (first..).zip(units) {
            scaled(new.vector, new.factor, &mut wide);
            halve(&wide, &mut halves);
            widen(&halves, &mut wide);
            together.extend_from_slice(&wide);
            if together.len() >= TURNED * dims {
                coarse.rotation.rows(kernels, &together, &mut turned, &mut rows);
                together.clear();
            }
            let start = whole.len();
            put_halves(&halves, &mut whole);
            let check = self.head.vector_check(&whole[start..]);
            entries.push((slot, new.key, check));
        }
        coarse.rotation.rows(kernels, &together, &mut turned, &mut rows);
        self.medium.write_at(self.head.vector_at(first), &whole)?;
        coarse.medium.write_at(coarse.row_at(first), &rows)?;
        let epoch = self.head.epoch;
        let put = |(slot, key, check)| {
            self.slots.put(slot, key, check);
            (slot, entry(key, check, slot, epoch))
        };
        Ok(entries.into_iter().map(put).collect())
    }

    /// Makes rows durable, and after them their entries.
    fn seal_rows(&self, pending: &mut [(Slot, [u8; ENTRY])]) -> Result<(), MediumError> {
        self.sync_rows()?;
        pending.sort_unstable_by_key(|(slot, _)| *slot);
        for run in pending.chunk_by(|(a, _), (b, _)| b - a == 1 && b % BLOCK_ROWS != 0) {
            let entries: Vec<_> = run.iter().map(|(_, entry)| *entry).collect();
            self.medium.write_at(self.head.entry_at(run[0].0), entries.as_flattened())?;
        }
        self.medium.sync()
    }

    /// Zeros for rows, and after that is durable, for their entries: an entry says until then that
    /// there is something to erase.
    fn erase(&self, gone: &[Slot]) -> Result<(), MediumError> {
        let runs = || gone.chunk_by(|a, b| b - a == 1 && b % BLOCK_ROWS != 0);
        for run in runs() {
            let zeros = vec![0; run.len() * self.head.dims as usize * 2];
            self.medium.write_at(self.head.vector_at(run[0]), &zeros)?;
            if let Some(coarse) = &self.coarse {
                let zeros = vec![0; run.len() * coarse.rotation.stride()];
                coarse.medium.write_at(coarse.row_at(run[0]), &zeros)?;
            }
        }
        self.sync_rows()?;
        for run in runs() {
            self.medium.write_at(self.head.entry_at(run[0]), &vec![0; run.len() * ENTRY])?;
        }
        self.medium.sync()
    }

    /// Zeros for dead rows that aren't, and an end behind the last row.
    fn scrub(&self) -> Result<(), MediumError> {
        let len = self.slots.len() as Slot;
        let end = if len == 0 { PAGE } else { self.head.vector_end(len - 1) };
        let mut media = vec![(&self.medium, end)];
        media.extend(self.coarse.as_ref().map(|coarse| (&coarse.medium, coarse.row_at(len))));
        for (medium, end) in media {
            if medium.len()? > end {
                medium.set_len(end)?;
                medium.sync()?;
            }
        }
        let mut traces = Vec::new();
        for slot in self.slots.dead() {
            if !self.is_blank(*slot)? {
                traces.push(*slot);
            }
        }
        traces.sort_unstable();
        if traces.is_empty() { Ok(()) } else { self.erase(&traces) }
    }

    /// Tells whether a row is all zeros, in both files, and its entry.
    fn is_blank(&self, slot: Slot) -> Result<bool, MediumError> {
        let (mut blank, mut buffer) = (true, Vec::new());
        let mut look = |medium: &dyn Medium, offset, len| {
            show(medium, offset, len, &mut buffer, |bytes| {
                blank &= bytes.iter().all(|byte| *byte == 0);
            })
        };
        look(&*self.medium, self.head.entry_at(slot), ENTRY)?;
        look(&*self.medium, self.head.vector_at(slot), self.head.dims as usize * 2)?;
        if let Some(coarse) = &self.coarse {
            look(&*coarse.medium, coarse.row_at(slot), coarse.rotation.stride())?;
        }
        Ok(blank)
    }

    fn sync_rows(&self) -> Result<(), MediumError> {
        self.medium.sync()?;
        self.coarse.as_ref().map_or(Ok(()), |coarse| coarse.medium.sync())
    }

    /// Writes all coarse vectors, their head last.
    fn write_coarse(
        &self,
        kernels: &dyn Kernels,
        medium: Arc<dyn Medium>,
        rotation: Rotation,
    ) -> Result<Coarse, MediumError> {
        let bytes = rotation.to_bytes();
        let head = CoarseHead {
            epoch: self.head.epoch,
            fingerprint: self.head.fingerprint,
            rotation_len: bytes.len() as u32,
            rotation: rotation.hash(),
        };
        medium.set_len(0)?;
        medium.sync()?;
        medium.write_at(PAGE, &bytes)?;
        let coarse = Coarse { medium, head, rotation };
        let slots: Vec<Slot> = (0..self.slots.len() as Slot).collect();
        for some in slots.chunks(REBUILD_ROWS) {
            let rows = self.coarse_rows(kernels, &coarse.rotation, some)?;
            coarse.medium.write_at(coarse.row_at(some[0]), &rows)?;
        }
        coarse.medium.set_len(coarse.row_at(slots.len() as Slot))?;
        coarse.medium.sync()?;
        coarse.medium.write_at(0, &coarse.head.encode())?;
        coarse.medium.sync()?;
        Ok(coarse)
    }

    /// Coarse rows of some slots, zeros for dead and damaged ones.
    fn coarse_rows(
        &self,
        kernels: &dyn Kernels,
        rotation: &Rotation,
        slots: &[Slot],
    ) -> Result<Vec<u8>, MediumError> {
        let mut rows = Vec::with_capacity(slots.len() * rotation.stride());
        let (mut bits, mut buffer, mut wide, mut turned) = Default::default();
        for slot in slots {
            let end = rows.len() + rotation.stride();
            if self.slots.key(*slot).is_some() && read_whole(self, *slot, &mut bits, &mut buffer)? {
                widen(&bits, &mut wide);
                rotation.row(kernels, &wide, &mut turned, &mut rows);
            }
            rows.resize(end, 0);
        }
        Ok(rows)
    }

    /// A rotation from the vectors that are there, when they are enough and too long to be scanned
    /// whole.
    fn learn(&self) -> Option<Rotation> {
        let (live, dims) = (self.slots.live(), self.head.dims as usize);
        if live < *LEARN_FROM.start() || dims <= LEARNED_COARSE {
            return None;
        }
        let step = live.div_ceil(*LEARN_FROM.end());
        let (mut bits, mut buffer, mut sample) = (Vec::new(), Vec::new(), Vec::new());
        for (slot, _) in self.slots.iter().step_by(step) {
            if read_whole(self, slot, &mut bits, &mut buffer).is_ok_and(|right| right) {
                let mut wide = Vec::new();
                widen(&bits, &mut wide);
                sample.push(wide);
            }
        }
        Rotation::learn(&sample, LEARNED_COARSE)
    }
}
