//! Search in two stages.

use std::collections::BTreeSet;
use std::hint::black_box;

use garret_core::medium::MediumError;
use garret_core::vector::Kernels;
use zerocopy::FromBytes as _;

use crate::vectors::layout::{ENTRY, entry};
use crate::vectors::load::{Coarse, Loaded, show};
use crate::vectors::rotation::{halve, widen};
use crate::vectors::slots::Slot;
use crate::vectors::top::{Score, Top};
use crate::vectors::{UnitKey, VectorError, VectorStore};

/// Fewest rows that are scored exactly, where there are as many. Of 9,729 vectors of conversations,
/// by a rotation learned from 2,000 others, 52 held .997 of the ten closest and 32 held .992.
const CANDIDATES: usize = 40;

/// Rows that are scored exactly grow with the root of how many there are: that times this.
const CANDIDATES_PER_ROOT: f64 = 0.52;

/// Rows that are scored exactly for each hit that is asked for, where that is more.
const CANDIDATES_PER_HIT: usize = 4;

/// Deviations of the coarse vectors' error beyond which rows aren't looked at. Of 100,000 made-up
/// vectors with the spectrum of an embedder's, on average 104 of 164 candidates were looked at and
/// .9944 of the ten closest found, instead of .9968; with 4 deviations, 57 and .9904.
const FAR: f64 = 6.0;

/// Rows from which that error is taken at least.
const ENOUGH: f64 = 32.0;

/// Coarse rows that are read at once.
const STEP: usize = 8_192;

/// Coarse rows that are read at once where they can't be looked at in place.
const READ: usize = 256;

/// Products of which those that are wanted are asked for together.
const ASKED: usize = 1_024;

/// Products that are looked at together.
const GLANCE: usize = 16;

/// Bytes up to which whole vectors are mapped.
const MAPPED: usize = 32 << 20;

/// Whole vectors that memory is asked for together.
const TOUCHED: usize = 16;

/// Bytes that memory delivers at once.
const LINE: usize = 64;

/// A unit that was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// The unit.
    pub key: UnitKey,
    /// Cosine of the angle between its vector and the query, -1 to 1, from half-precision numbers.
    pub cosine: f32,
}

/// The closeness of every unit to a query.
#[derive(Clone, Debug, PartialEq)]
pub struct Scores {
    /// The closest units with their exact cosines, best first.
    pub top: Vec<Hit>,
    /// Mean of the cosines of all units that passed the filter; 0 when none did.
    pub mean: f32,
    /// Their standard deviation.
    pub deviation: f32,
    cosines: Vec<f32>,
    /// Units whose cosines are exact; `None` when all are.
    exact: Option<Marks>,
}

impl Scores {
    /// The cosine of the unit in a [`slot`](VectorStore::slot): exact for those in `top` and those
    /// that were [looked at](VectorStore::look), else from the coarse vectors. None where the filter
    /// left it out.
    pub fn cosine(&self, slot: u32) -> Option<f32> {
        self.cosines.get(slot as usize).copied().filter(|cosine| !cosine.is_nan())
    }
}

/// A set of slots, a bit for each.
#[derive(Clone, Debug, PartialEq)]
struct Marks(Vec<u64>);

impl Marks {
    fn new(slots: usize) -> Self {
        Self(vec![0; slots.div_ceil(64)])
    }

    /// Puts a slot into the set; whether it wasn't there.
    fn insert(&mut self, slot: Slot) -> bool {
        let Some(word) = self.0.get_mut(slot as usize / 64) else { return false };
        let (before, bit) = (*word, 1 << (slot % 64));
        *word |= bit;
        before & bit == 0
    }
}

/// A query, normalised.
struct Query {
    vector: Vec<f32>,
    halves: Vec<u16>,
}

impl VectorStore {
    /// The `k` units closest to `query` among those that pass `filter`, best first.
    ///
    /// The filter is asked before anything is cut, of units that are among the best so far; so it
    /// must not depend on what it was asked before. Nothing is found as long as there are no
    /// vectors of this embedder. Rows that can't be read are left out.
    ///
    /// # Errors
    /// [`VectorError::NoEmbedder`], [`VectorError::Dimensions`], [`VectorError::NoDirection`].
    pub fn search(
        &self,
        query: &[f32],
        k: usize,
        filter: &dyn Fn(UnitKey) -> bool,
    ) -> Result<Vec<Hit>, VectorError> {
        self.nearest(query, k, candidates(k, self.len()), Some(FAR), filter)
    }

    /// [`search`](Self::search) that scores `candidates` rows exactly.
    ///
    /// # Errors
    /// As there.
    pub fn search_among(
        &self,
        query: &[f32],
        k: usize,
        candidates: usize,
        filter: &dyn Fn(UnitKey) -> bool,
    ) -> Result<Vec<Hit>, VectorError> {
        self.nearest(query, k, candidates, None, filter)
    }

    /// [`search_among`](Self::search_among) that ends where the rest of the candidates is `far` away,
    /// in deviations of the error that coarse vectors had so far.
    fn nearest(
        &self,
        query: &[f32],
        k: usize,
        candidates: usize,
        far: Option<f64>,
        filter: &dyn Fn(UnitKey) -> bool,
    ) -> Result<Vec<Hit>, VectorError> {
        let query = self.prepare(query)?;
        let Some(loaded) = self.current() else { return Ok(Vec::new()) };
        let mut exact = Exact::new(self, loaded, &query, k);
        let Some(coarse) = &loaded.coarse else {
            let all = loaded.slots.iter().filter(|(_, key)| filter(*key)).map(|(slot, _)| slot);
            exact.score_all(&all.collect::<Vec<_>>());
            return Ok(exact.into_hits());
        };
        let mut top = Top::new(candidates.max(k));
        let (row, factor) = coarse.rotation.query(&*self.kernels, &query.vector);
        let mut wanted = Vec::new();
        self.scan(loaded, coarse, &row, |first, dots| {
            for (first, dots) in (first..).step_by(ASKED).zip(dots.chunks(ASKED)) {
                // Nearly all rows are too far: some at a time are passed over by their best.
                for (slot, dots) in (first..).step_by(GLANCE).zip(dots.chunks(GLANCE)) {
                    let best = dots.iter().fold(i32::MIN, |best, dot| best.max(*dot));
                    if top.wants(best) {
                        let all = (slot..).zip(dots).map(|(slot, dot)| (slot, *dot));
                        wanted.extend(all.filter(|(_, dot)| top.wants(*dot)));
                    }
                }
                // Together, as each one's key may have to come from memory.
                for (slot, dot) in wanted.drain(..) {
                    if top.wants(dot) && loaded.slots.key(slot).is_some_and(filter) {
                        top.push(dot, slot);
                    }
                }
            }
        });
        let mut errors = Errors::default();
        for some in top.into_best().chunks(TOUCHED) {
            let nearest = f64::from(some[0].0) * f64::from(factor);
            if far.is_some_and(|far| errors.is_beyond(exact.least(), nearest, far)) {
                break;
            }
            let slots: Vec<Slot> = some.iter().map(|(_, slot)| *slot).collect();
            exact.score(&slots, |at, cosine| {
                errors.add(f64::from(cosine) - f64::from(some[at].0) * f64::from(factor));
            });
        }
        Ok(exact.into_hits())
    }

    /// Says how close every unit that passes `filter` is to `query`; the closest `exact` units exactly.
    ///
    /// # Errors
    /// As [`search`](Self::search).
    pub fn scores(
        &self,
        query: &[f32],
        exact: usize,
        filter: &dyn Fn(UnitKey) -> bool,
    ) -> Result<Scores, VectorError> {
        let query = self.prepare(query)?;
        let mut scores =
            Scores { top: Vec::new(), mean: 0.0, deviation: 0.0, cosines: Vec::new(), exact: None };
        let Some(loaded) = self.current() else { return Ok(scores) };
        let pass = |slot| loaded.slots.key(slot).is_some_and(filter);
        scores.cosines = vec![f32::NAN; loaded.slots.len()];
        let mut top = Top::new(exact.max(1));
        if let Some(coarse) = &loaded.coarse {
            let (row, factor) = coarse.rotation.query(&*self.kernels, &query.vector);
            self.scan(loaded, coarse, &row, |first, dots| {
                let places = &mut scores.cosines[first as usize..];
                for ((slot, dot), place) in (first..).zip(dots).zip(places) {
                    if !pass(slot) {
                        continue;
                    }
                    *place = *dot as f32 * factor;
                    if top.wants(*dot) {
                        top.push(*dot, slot);
                    }
                }
            });
            let mut closest = Exact::new(self, loaded, &query, exact);
            closest.score_all(&top.into_best().into_iter().map(|(_, it)| it).collect::<Vec<_>>());
            scores.top = closest.into_hits();
            scores.exact = Some(Marks::new(loaded.slots.len()));
        } else {
            let slots: Vec<_> = (0..loaded.slots.len() as Slot).filter(|it| pass(*it)).collect();
            let mut all = Exact::new(self, loaded, &query, slots.len());
            all.score_all(&slots);
            scores.top = all.into_hits();
        }
        for hit in &scores.top {
            if let Some(slot) = loaded.slots.find(hit.key) {
                scores.cosines[slot as usize] = hit.cosine;
                if let Some(exact) = &mut scores.exact {
                    exact.insert(slot);
                }
            }
        }
        scores.top.truncate(exact);
        (scores.mean, scores.deviation) = spread(&scores.cosines);
        Ok(scores)
    }

    /// Makes the cosines of some more units to `query`, for which `scores` were made, exact: of those
    /// that have one. A row that can't be read keeps its coarse one. Whether there was one to look at.
    ///
    /// # Errors
    /// As [`search`](Self::search).
    pub fn look(
        &self,
        query: &[f32],
        slots: impl Iterator<Item = Slot>,
        scores: &mut Scores,
    ) -> Result<bool, VectorError> {
        let Scores { cosines, exact: Some(exact), .. } = scores else { return Ok(false) };
        let Some(loaded) = self.current() else { return Ok(false) };
        let unknown = |slot: &Slot| cosines.get(*slot as usize).is_some_and(|one| !one.is_nan());
        let slots: Vec<_> = slots.filter(unknown).filter(|slot| exact.insert(*slot)).collect();
        let query = self.prepare(query)?;
        let mut rows = Exact::new(self, loaded, &query, 1);
        for some in slots.chunks(TOUCHED) {
            rows.score(some, |at, cosine| cosines[some[at] as usize] = cosine);
        }
        Ok(!slots.is_empty())
    }

    /// Units whose rows aren't what was written, from a look at every byte of both files. The next
    /// [`maintain`](Self::maintain) drops them.
    ///
    /// # Errors
    /// [`VectorError::Medium`] when a file can't be read.
    pub fn damaged(&self) -> Result<Vec<UnitKey>, VectorError> {
        let Some(loaded) = self.current() else { return Ok(Vec::new()) };
        let waiting: BTreeSet<Slot> = self.pending().iter().map(|(slot, _)| *slot).collect();
        let (mut found, mut scratch) = (Vec::new(), Scratch::default());
        for (slot, key) in loaded.slots.iter() {
            let sealed = !waiting.contains(&slot);
            if !loaded.is_right(&*self.kernels, slot, key, sealed, &mut scratch)? {
                self.suspect().push(slot);
                found.push(key);
            }
        }
        Ok(found)
    }

    fn prepare(&self, query: &[f32]) -> Result<Query, VectorError> {
        let spec = self.spec.as_ref().ok_or(VectorError::NoEmbedder)?;
        let (mut vector, mut halves) = (Vec::new(), Vec::new());
        scaled(query, length_factor(query, spec.dims)?, &mut vector);
        halve(&vector, &mut halves);
        Ok(Query { vector, halves })
    }

    /// Products of a query's row with all coarse rows, some at a time. Rows that can't be read have
    /// none.
    fn scan(
        &self,
        loaded: &Loaded,
        coarse: &Coarse,
        query: &[i8],
        mut each: impl FnMut(Slot, &[i32]),
    ) {
        let rows = loaded.slots.len();
        let (mut dots, mut buffer) = (vec![0; STEP.min(rows)], Vec::<u8>::new());
        let multiply = |bytes: &[u8], dots: &mut [i32]| {
            if let Ok(rows) = <[i8]>::ref_from_bytes(bytes) {
                self.kernels.dot_rows_i8(query, rows, dots);
            }
        };
        for first in (0..rows).step_by(STEP) {
            let dots = &mut dots[..STEP.min(rows - first)];
            let (slot, len) = (first as Slot, dots.len() * query.len());
            let mut all = |bytes: &[u8]| multiply(bytes, dots);
            if coarse.medium.with_bytes(coarse.row_at(slot), len, &mut all) {
                each(slot, dots);
                continue;
            }
            // The last rows may be too new for a mapping; then the others are still in it.
            let mut shown = true;
            for (slot, dots) in (slot..).step_by(READ).zip(dots.chunks_mut(READ)) {
                let (at, len) = (coarse.row_at(slot), dots.len() * query.len());
                let mut some = |bytes: &[u8]| multiply(bytes, dots);
                shown = shown && coarse.medium.with_bytes(at, len, &mut some);
                if !shown {
                    buffer.resize(len, 0);
                    if let Err(error) = coarse.medium.read_at(at, &mut buffer) {
                        tracing::warn!(%error, slot, "coarse vectors can't be read");
                        continue;
                    }
                    multiply(&buffer, dots);
                }
                each(slot, dots);
            }
        }
    }
}

/// Scores rows by their whole vectors, and keeps the best.
struct Exact<'a> {
    store: &'a VectorStore,
    loaded: &'a Loaded,
    query: &'a Query,
    top: Top<Score>,
    bits: Vec<u16>,
    buffer: Vec<u8>,
}

impl<'a> Exact<'a> {
    fn new(store: &'a VectorStore, loaded: &'a Loaded, query: &'a Query, k: usize) -> Self {
        Self { store, loaded, query, top: Top::new(k), bits: Vec::new(), buffer: Vec::new() }
    }

    fn score_all(&mut self, slots: &[Slot]) {
        for some in slots.chunks(TOUCHED) {
            self.score(some, |_, _| ());
        }
    }

    /// Scores some rows together, and hands the place of each that can be read, and its cosine, to
    /// `each`.
    fn score(&mut self, slots: &[Slot], mut each: impl FnMut(usize, f32)) {
        let Self { store, loaded, query, top, bits, buffer } = self;
        slots.iter().for_each(|slot| touch_whole(loaded, *slot));
        for (at, slot) in slots.iter().enumerate() {
            let read = show_whole(loaded, *slot, buffer, |bytes| {
                let row = in_place(bytes).unwrap_or_else(|| {
                    copy_bits(bytes, bits);
                    bits
                });
                let cosine = store.kernels.dot_f16(&query.halves, row).clamp(-1.0, 1.0);
                top.push(Score(cosine), *slot);
                each(at, cosine);
            });
            match read {
                Ok(true) => {}
                Ok(false) => {
                    tracing::warn!(slot, "a damaged vector is left out and will be made anew");
                    store.suspect().push(*slot);
                }
                Err(error) => tracing::warn!(%error, slot, "a vector can't be read"),
            }
        }
    }

    /// The lowest cosine of the best, if there are as many as are kept.
    fn least(&mut self) -> Option<f32> {
        self.top.least().map(|Score(cosine)| cosine)
    }

    fn into_hits(self) -> Vec<Hit> {
        let hit = |(Score(cosine), slot)| Some(Hit { key: self.loaded.slots.key(slot)?, cosine });
        self.top.into_best().into_iter().filter_map(hit).collect()
    }
}

/// Errors of coarse vectors.
#[derive(Debug, Default)]
struct Errors {
    count: f64,
    sum: f64,
    squares: f64,
}

impl Errors {
    fn add(&mut self, error: f64) {
        self.count += 1.0;
        self.sum += error;
        self.squares += error * error;
    }

    /// Whether a row of this coarse cosine, and all that are farther, aren't among the best, whose
    /// lowest is `least`, unless it is off by `far` deviations or more.
    fn is_beyond(&self, least: Option<f32>, coarse: f64, far: f64) -> bool {
        let Some(least) = least.filter(|_| self.count >= ENOUGH) else { return false };
        let mean = self.sum / self.count;
        let deviation = (self.squares / self.count - mean * mean).max(0.0).sqrt();
        coarse + mean + far * deviation < f64::from(least)
    }
}

/// Buffers of [`Loaded::is_right`].
#[derive(Default)]
struct Scratch {
    bits: Vec<u16>,
    bytes: Vec<u8>,
    wide: Vec<f32>,
    turned: Vec<f32>,
    row: Vec<u8>,
}

impl Loaded {
    /// Tells whether a row is in both files as it was written, and its entry, if that is `sealed`.
    fn is_right(
        &self,
        kernels: &dyn Kernels,
        slot: Slot,
        key: UnitKey,
        sealed: bool,
        scratch: &mut Scratch,
    ) -> Result<bool, MediumError> {
        let Scratch { bits, bytes, wide, turned, row } = scratch;
        let mut right = read_whole(self, slot, bits, bytes)?;
        if sealed {
            let expected = entry(key, self.slots.check(slot), slot, self.head.epoch);
            show(&*self.medium, self.head.entry_at(slot), ENTRY, bytes, |found| {
                right &= found == expected;
            })?;
        }
        if let Some(coarse) = self.coarse.as_ref().filter(|_| right) {
            widen(bits, wide);
            row.clear();
            coarse.rotation.row(kernels, wide, turned, row);
            let at = coarse.row_at(slot);
            show(&*coarse.medium, at, row.len(), bytes, |found| right &= found == row)?;
        }
        Ok(right)
    }
}

/// Reads the whole vector of a row; false when its check says that it isn't the one written.
pub(crate) fn read_whole(
    loaded: &Loaded,
    slot: Slot,
    bits: &mut Vec<u16>,
    buffer: &mut Vec<u8>,
) -> Result<bool, MediumError> {
    show_whole(loaded, slot, buffer, |bytes| copy_bits(bytes, bits))
}

/// Shows the bytes of the whole vector of a row, unless their check says that they aren't what was
/// written; whether it did.
fn show_whole(
    loaded: &Loaded,
    slot: Slot,
    buffer: &mut Vec<u8>,
    mut look: impl FnMut(&[u8]),
) -> Result<bool, MediumError> {
    let (at, len) = (loaded.head.vector_at(slot), loaded.head.dims as usize * 2);
    let mut right = false;
    let mut take = |bytes: &[u8]| {
        right = loaded.head.vector_check(bytes) == loaded.slots.check(slot);
        if right {
            look(bytes);
        }
    };
    if is_mapped(loaded) {
        show(&*loaded.medium, at, len, buffer, take)?;
    } else {
        // By a read, not by a mapping: else whatever was a candidate once would stay in memory.
        buffer.resize(len, 0);
        loaded.medium.read_at(at, buffer)?;
        take(buffer);
    }
    Ok(right)
}

/// Tells whether whole vectors are looked at in a mapping.
fn is_mapped(loaded: &Loaded) -> bool {
    (loaded.head.dims as usize * 2).saturating_mul(loaded.slots.len()) <= MAPPED
}

/// Has memory deliver the whole vector of a row that is looked at soon: those of several rows come
/// side by side then, not one after another.
fn touch_whole(loaded: &Loaded, slot: Slot) {
    if is_mapped(loaded) {
        let (at, len) = (loaded.head.vector_at(slot), loaded.head.dims as usize * 2);
        loaded.medium.with_bytes(at, len, &mut |bytes| {
            black_box(bytes.iter().step_by(LINE).fold(0, |sum, byte| sum ^ byte));
        });
    }
}

/// A row's halves where they lie, if this processor reads them there.
fn in_place(bytes: &[u8]) -> Option<&[u16]> {
    let little = cfg!(target_endian = "little");
    little.then(|| <[u16]>::ref_from_bytes(bytes).ok()).flatten()
}

fn copy_bits(bytes: &[u8], bits: &mut Vec<u16>) {
    bits.clear();
    bits.extend(bytes.as_chunks::<2>().0.iter().map(|bits| u16::from_le_bytes(*bits)));
}

/// Returns what a vector is multiplied with to have length 1.
pub(crate) fn length_factor(vector: &[f32], dims: usize) -> Result<f64, VectorError> {
    if vector.len() != dims {
        return Err(VectorError::Dimensions { expected: dims, found: vector.len() });
    }
    // Eight sums, so that none waits for the one before it.
    let (eights, rest) = vector.as_chunks::<8>();
    let mut squares = [0.0; 8];
    for eight in eights {
        for (sum, x) in squares.iter_mut().zip(eight) {
            *sum += f64::from(*x) * f64::from(*x);
        }
    }
    let rest = rest.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>();
    let square = squares.iter().sum::<f64>() + rest;
    if !square.is_finite() || square == 0.0 {
        return Err(VectorError::NoDirection);
    }
    Ok(1.0 / square.sqrt())
}

/// A vector times a factor.
pub(crate) fn scaled(vector: &[f32], factor: f64, out: &mut Vec<f32>) {
    out.clear();
    out.extend(vector.iter().map(|x| (f64::from(*x) * factor) as f32));
}

/// Counts of `rows` are scored exactly for the best `k`.
fn candidates(k: usize, rows: usize) -> usize {
    let of_rows = ((rows as f64).sqrt() * CANDIDATES_PER_ROOT) as usize;
    let of_rows = of_rows.max(CANDIDATES);
    k.saturating_mul(CANDIDATES_PER_HIT).max(of_rows)
}

/// Mean and standard deviation of what isn't NaN.
fn spread(cosines: &[f32]) -> (f32, f32) {
    let (mut count, mut sum, mut squares) = (0.0_f64, 0.0_f64, 0.0_f64);
    for cosine in cosines.iter().filter(|cosine| !cosine.is_nan()) {
        let cosine = f64::from(*cosine);
        (count, sum, squares) = (count + 1.0, sum + cosine, squares + cosine * cosine);
    }
    if count == 0.0 {
        return (0.0, 0.0);
    }
    let mean = sum / count;
    (mean as f32, (squares / count - mean * mean).max(0.0).sqrt() as f32)
}
