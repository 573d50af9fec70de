//! Vectors against a plain map and an exact scan, on files that are whole, foreign, damaged, or of
//! another embedder. Power cuts are in `vectors_crash`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use garret_core::medium::{Medium, MediumError};
use garret_core::vector::{Kernels, Scalar};
use garret_hal::media::{FileMedium, RamMedium};
use garret_storage::vectors::{
    LEARN_FROM, LEARNED_COARSE, Rotation, Scores, Side, Spec, UnitKey, VectorError, VectorStore,
};
use proptest::collection::vec;
use proptest::prelude::*;

pub(crate) const FINGERPRINT: [u8; 32] = [7; 32];

pub(crate) fn spec(dims: usize, rotation: Option<Rotation>) -> Spec {
    Spec { fingerprint: FINGERPRINT, dims, rotation }
}

pub(crate) fn words(turn: u64) -> UnitKey {
    UnitKey::Words { session: 1, turn }
}

/// Two media in memory that are there, perhaps empty.
#[derive(Clone, Default)]
struct Ram {
    coarse: RamMedium,
    whole: RamMedium,
}

impl Ram {
    fn open(&self, spec: Option<Spec>) -> VectorStore {
        let ram = self.clone();
        let files = move |side, _| {
            let medium = match side {
                Side::Coarse => ram.coarse.clone(),
                Side::Whole => ram.whole.clone(),
            };
            Ok(Some(Arc::new(medium) as Arc<dyn Medium>))
        };
        VectorStore::open(files, garret_hal::kernels::detect(), spec).unwrap()
    }

    fn snapshot(&self) -> (Vec<u8>, Vec<u8>) {
        (self.coarse.snapshot(), self.whole.snapshot())
    }

    fn of((coarse, whole): (Vec<u8>, Vec<u8>)) -> Self {
        Self { coarse: RamMedium::from_bytes(coarse), whole: RamMedium::from_bytes(whole) }
    }
}

/// Numbers from -1 to 1 that look random.
pub(crate) fn noise(seed: u64) -> f32 {
    let mut x = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x ^ (x >> 31)) as i64 as f32 / 2_f32.powi(63)
}

pub(crate) fn vector(seed: u64, dims: usize) -> Vec<f32> {
    (0..dims as u64).map(|dim| noise(seed * 10_000 + dim)).collect()
}

fn halves(vector: &[f32]) -> Vec<u16> {
    let length = vector.iter().map(|x| f64::from(x * x)).sum::<f64>().sqrt();
    vector.iter().map(|x| half(f64::from(*x) / length)).collect()
}

/// The nearest half of a number between -1 and 1, from its definition.
fn half(x: f64) -> u16 {
    let size = x.abs();
    let mut exponent = -14_i32;
    while size >= 2_f64.powi(exponent + 1) {
        exponent += 1;
    }
    let mantissa = (size / 2_f64.powi(exponent - 10)).round_ties_even() as u16;
    let bits = match mantissa {
        0..=1023 => mantissa,
        _ => (((exponent + 15) as u16) << 10) + (mantissa - 1024),
    };
    bits | (u16::from(x.is_sign_negative()) << 15)
}

fn exact(query: &[f32], vector: &[f32]) -> f32 {
    Scalar.dot_f16(&halves(query), &halves(vector)).clamp(-1.0, 1.0)
}

/// The same hits in the same order, where scores differ by more than rounding.
fn assert_best(
    hits: &[garret_storage::vectors::Hit],
    query: &[f32],
    model: &BTreeMap<UnitKey, Vec<f32>>,
    k: usize,
    filter: &dyn Fn(UnitKey) -> bool,
) {
    let of = |key: &UnitKey| exact(query, &model[key]);
    let mut best: Vec<f32> = model.keys().filter(|key| filter(**key)).map(of).collect();
    best.sort_by(|a, b| b.total_cmp(a));
    best.truncate(k);
    assert_eq!(hits.len(), best.len());
    for (hit, cosine) in hits.iter().zip(best) {
        assert!(filter(hit.key) && model.contains_key(&hit.key));
        assert!((hit.cosine - cosine).abs() < 1e-4, "{hit:?} {cosine}");
        assert!((of(&hit.key) - hit.cosine).abs() < 1e-4);
    }
}

#[derive(Clone, Debug)]
enum Step {
    Insert(Vec<u64>),
    Remove(Vec<u64>),
    Retain(u64),
    Flush,
    Maintain,
    Reopen,
    Search(u64, usize, u64),
}

fn step() -> impl Strategy<Value = Step> {
    let ids = || vec(0..400_u64, 1..60);
    prop_oneof![
        4 => ids().prop_map(Step::Insert),
        2 => ids().prop_map(Step::Remove),
        1 => (2..5_u64).prop_map(Step::Retain),
        1 => Just(Step::Flush),
        1 => Just(Step::Maintain),
        1 => Just(Step::Reopen),
        4 => (any::<u16>(), 0..20_usize, 1..4_u64)
            .prop_map(|(query, k, every)| Step::Search(query.into(), k, every)),
    ]
}

fn key(id: u64) -> UnitKey {
    match id % 3 {
        0 => UnitKey::Words { session: id % 5, turn: id },
        1 => UnitKey::Reply { session: id % 5, turn: id },
        _ => UnitKey::Fact { id },
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 48, failure_persistence: None, ..Default::default()
    })]

    /// With as many candidates as there are rows, two stages find what an exact scan does.
    #[test]
    fn two_stages_are_an_exact_scan(
        steps in vec(step(), 1..30),
        dims in prop_oneof![Just(3_usize), Just(40), Just(130)],
        prefix in prop::option::of(1..40_usize),
    ) {
        let ram = Ram::default();
        let spec = || Some(spec(dims, prefix.map(|coarse| Rotation::prefix(dims, coarse))));
        let (mut store, mut model) = (ram.open(spec()), BTreeMap::new());
        for step in steps {
            match step {
                Step::Insert(ids) => {
                    let new: Vec<_> = ids.iter().map(|id| (key(*id), vector(*id, dims))).collect();
                    let before = model.len();
                    model.extend(new.iter().cloned());
                    prop_assert_eq!(store.insert(&new)?, model.len() - before);
                }
                Step::Remove(ids) => {
                    let gone: Vec<_> = ids.iter().map(|id| key(*id)).collect();
                    let before = model.len();
                    model.retain(|key, _| !gone.contains(key));
                    prop_assert_eq!(store.remove(&gone)?, before - model.len());
                }
                Step::Retain(every) => {
                    let keep = |key: UnitKey| match key {
                        UnitKey::Fact { .. } => true,
                        _ => key.is_divisible(every),
                    };
                    let before = model.len();
                    model.retain(|key, _| keep(*key));
                    prop_assert_eq!(store.retain(&keep)?, before - model.len());
                }
                Step::Flush => store.flush()?,
                Step::Maintain => {
                    store.maintain()?;
                }
                Step::Reopen => {
                    store.flush()?;
                    store = ram.open(spec());
                }
                Step::Search(query, k, every) => {
                    let query = vector(query, dims);
                    let filter = |key: UnitKey| key.is_divisible(every);
                    let hits = store.search_among(&query, k, model.len(), &filter)?;
                    assert_best(&hits, &query, &model, k, &filter);
                    let scores = store.scores(&query, k, &filter)?;
                    prop_assert_eq!(scores.top.len(), hits.len());
                }
            }
            prop_assert_eq!(store.len(), model.len());
            prop_assert!(model.keys().all(|key| store.contains(*key)));
        }
        store.flush()?;
        prop_assert_eq!(store.damaged()?, []);
        prop_assert_eq!(ram.open(spec()).damaged()?, []);
        let mut keys: Vec<_> = store.keys().collect();
        keys.sort_unstable();
        prop_assert!(keys.iter().eq(model.keys()));
    }

    /// Bytes that nobody wrote are no vectors, and don't get in the way of new ones.
    #[test]
    fn foreign_files_count_as_empty(
        coarse in vec(any::<u8>(), 0..300),
        whole in vec(any::<u8>(), 0..300),
    ) {
        let ram = Ram::of((coarse, whole));
        let before = ram.snapshot();
        let mut store = ram.open(Some(spec(5, None)));
        prop_assert_eq!(store.search(&vector(1, 5), 3, &|_| true)?, []);
        prop_assert_eq!(ram.snapshot(), before);
        prop_assert_eq!(store.insert(&[(words(1), vector(1, 5))])?, 1);
        store.flush()?;
        let again = ram.open(Some(spec(5, None)));
        prop_assert_eq!(again.search(&vector(1, 5), 3, &|_| true)?.len(), 1);
    }
}

trait Divisible {
    fn is_divisible(&self, by: u64) -> bool;
}

impl Divisible for UnitKey {
    fn is_divisible(&self, by: u64) -> bool {
        let (Self::Words { turn: n, .. } | Self::Reply { turn: n, .. } | Self::Fact { id: n }) =
            *self;
        n % by == 0
    }
}

fn filled(ram: &Ram, count: u64, dims: usize) -> VectorStore {
    let mut store = ram.open(Some(spec(dims, None)));
    let units: Vec<_> = (0..count).map(|id| (words(id), vector(id, dims))).collect();
    store.insert(&units).unwrap();
    store.flush().unwrap();
    store
}

/// A filter that only the worst of 20,000 passes: it is applied before any row is cut.
#[test]
fn a_narrow_filter_finds_the_farthest() {
    let store = filled(&Ram::default(), 20_000, 16);
    let query = vector(3, 16);
    let all = store.search(&query, 20_000, &|_| true).unwrap();
    let worst = *all.last().unwrap();
    assert!(all.len() == 20_000 && worst.cosine < -0.6);
    let hits = store.search(&query, 5, &|key| key == worst.key).unwrap();
    assert_eq!(hits, [worst]);
}

#[test]
fn scores_have_every_unit_and_their_spread() {
    let store = filled(&Ram::default(), 500, 64);
    let query = vector(7, 64);
    let even = |key: UnitKey| key.is_divisible(2);
    let scores = store.scores(&query, 10, &even).unwrap();
    assert_eq!(scores.top, store.search(&query, 10, &even).unwrap());
    let mut cosines = Vec::new();
    for id in 0..500 {
        let slot = store.slot(words(id)).unwrap();
        let found = scores.cosine(slot);
        assert_eq!(found.is_some(), id % 2 == 0);
        let Some(found) = found else { continue };
        assert!((found - exact(&query, &vector(id, 64))).abs() < 0.02);
        cosines.push(found);
    }
    let mean = cosines.iter().sum::<f32>() / 250.0;
    let square = cosines.iter().map(|x| (x - mean).powi(2)).sum::<f32>() / 250.0;
    assert!((scores.mean - mean).abs() < 1e-5);
    assert!((scores.deviation - square.sqrt()).abs() < 1e-5);
    for hit in &scores.top {
        assert_eq!(scores.cosine(store.slot(hit.key).unwrap()), Some(hit.cosine));
    }
    let none = store.scores(&query, 10, &|_| false).unwrap();
    assert_eq!((none.top.len(), none.mean, none.deviation), (0, 0.0, 0.0));
}

/// Coarse vectors have a third of the numbers: what they say of most units is off by more than what
/// tells good answers from others.
#[test]
fn a_closer_look_makes_cosines_exact() {
    let mut store = Ram::default().open(Some(spec(384, Some(Rotation::prefix(384, 128)))));
    let units: Vec<_> = (0..500).map(|id| (words(id), vector(id, 384))).collect();
    store.insert(&units).unwrap();
    let query = vector(7, 384);
    let even = |key: UnitKey| key.is_divisible(2);
    let mut scores = store.scores(&query, 10, &even).unwrap();
    let off = |scores: &Scores, id: u64| {
        let found = scores.cosine(store.slot(words(id)).unwrap());
        found.map(|found| (found - exact(&query, &vector(id, 384))).abs())
    };
    let before = scores.clone();
    let far = (0..500).filter(|id| off(&scores, *id).is_some_and(|off| off > 0.01)).count();
    assert!(far > 100, "{far}");
    let slots = (0..100).map(|id| store.slot(words(id)).unwrap());
    assert!(store.look(&query, slots.chain([u32::MAX]), &mut scores).unwrap());
    for id in 0..500 {
        match off(&scores, id) {
            None => assert_eq!(id % 2, 1),
            Some(off) if id < 100 => assert!(off < 1e-4, "{id}: {off}"),
            some => assert_eq!(some, off(&before, id)),
        }
    }
    assert_eq!((&scores.top, scores.mean), (&before.top, before.mean));
}

#[test]
fn a_vector_without_direction_refuses_all() {
    let mut store = Ram::default().open(Some(spec(3, None)));
    let refused = |store: &mut VectorStore, bad: &[f32]| {
        store.insert(&[(words(1), &[1.0, 0.0, 0.0][..]), (words(2), bad)]).unwrap_err()
    };
    for bad in [[0.0; 3], [f32::NAN, 1.0, 0.0], [1.0, f32::NEG_INFINITY, 0.0]] {
        assert_eq!(refused(&mut store, &bad), VectorError::NoDirection);
        assert_eq!(store.search(&bad, 1, &|_| true), Err(VectorError::NoDirection));
    }
    let length = VectorError::Dimensions { expected: 3, found: 2 };
    assert_eq!(refused(&mut store, &[1.0, 0.0]), length);
    assert_eq!(store.search(&[1.0, 0.0], 1, &|_| true), Err(length));
    assert!(store.is_empty());
    let mut none = Ram::default().open(None);
    assert_eq!(none.insert(&[(words(1), [1.0])]), Err(VectorError::NoEmbedder));
    assert_eq!(none.search(&[1.0], 1, &|_| true), Err(VectorError::NoEmbedder));
}

/// The least and the greatest numbers have a direction, too.
#[test]
fn any_length_is_normalised() {
    let mut store = Ram::default().open(Some(spec(2, None)));
    for (turn, size) in [1e-30_f32, 1.0, 1e30].into_iter().enumerate() {
        store.insert(&[(words(turn as u64), [size, size])]).unwrap();
    }
    let hits = store.search(&[1e-20, 1e-20], 9, &|_| true).unwrap();
    assert_eq!(hits.len(), 3);
    assert!(hits.iter().all(|hit| (hit.cosine - 1.0).abs() < 1e-3));
}

#[test]
fn another_embedder_begins_anew_and_erases_what_is_not_its_own() {
    let ram = Ram::default();
    let old = filled(&ram, 10, 8);
    assert_eq!(old.len(), 10);
    let other = Spec { fingerprint: [8; 32], dims: 6, rotation: None };
    let before = ram.snapshot();
    let mut store = ram.open(Some(other.clone()));
    assert_eq!((store.len(), store.missing((0..10).map(words)).count()), (0, 10));
    assert_eq!(store.search(&vector(1, 6), 3, &|_| true), Ok(Vec::new()));
    assert_eq!(ram.snapshot(), before);
    // Forgetting reaches vectors that this embedder can't use.
    assert_eq!(store.remove(&[words(3)]), Ok(1));
    assert!(!ram.open(Some(spec(8, None))).contains(words(3)));
    assert_eq!(ram.open(Some(spec(8, None))).len(), 9);
    store.insert(&[(words(1), vector(1, 6))]).unwrap();
    store.flush().unwrap();
    assert_eq!(ram.open(Some(other)).len(), 1);
    assert_eq!(ram.open(Some(spec(8, None))).len(), 0);
    // And without any embedder.
    assert_eq!(ram.open(None).remove(&[words(1)]), Ok(1));
}

/// A file that a newer program wrote can't be searched for the vector of what is forgotten.
#[test]
fn what_cannot_be_read_is_emptied_when_something_is_forgotten() {
    let ram = Ram::default();
    filled(&ram, 10, 8);
    ram.whole.write_at(8, &[99]).unwrap();
    assert_eq!(ram.open(None).remove(&[]), Ok(0));
    assert!(!ram.whole.snapshot().is_empty());
    assert_eq!(ram.open(None).remove(&[words(77)]), Ok(0));
    assert_eq!(ram.snapshot(), (Vec::new(), Vec::new()));
}

/// Each byte of both files flipped: no wrong score, and after idle work nothing is amiss.
#[test]
fn a_flipped_byte_is_never_a_wrong_score() {
    let ram = Ram::default();
    filled(&ram, 6, 8);
    let (coarse, whole) = ram.snapshot();
    let units: Vec<_> = (0..6).map(|id| (words(id), vector(id, 8))).collect();
    let model: BTreeMap<_, _> = units.iter().cloned().collect();
    let used = |bytes: &[u8]| -> Vec<usize> {
        (0..bytes.len()).filter(|at| bytes[*at] != 0 || at % 97 == 0).collect()
    };
    let flips = used(&coarse).into_iter().map(|at| (Side::Coarse, at));
    for (side, at) in flips.chain(used(&whole).into_iter().map(|at| (Side::Whole, at))) {
        let (mut coarse, mut whole) = (coarse.clone(), whole.clone());
        match side {
            Side::Coarse => coarse[at] ^= 0x40,
            Side::Whole => whole[at] ^= 0x40,
        }
        let mut store = Ram::of((coarse, whole)).open(Some(spec(8, None)));
        let query = vector(2, 8);
        for hit in store.search(&query, 6, &|_| true).unwrap() {
            assert!((hit.cosine - exact(&query, &model[&hit.key])).abs() < 1e-4, "{side:?} {at}");
        }
        store.damaged().unwrap();
        store.maintain().unwrap();
        store.insert(&units).unwrap();
        store.flush().unwrap();
        assert_eq!(store.damaged(), Ok(Vec::new()));
        let hits = store.search(&query, 6, &|_| true).unwrap();
        assert_best(&hits, &query, &model, 6, &|_| true);
    }
}

/// Vectors near a space of 40 dimensions in 200, none of which is an axis.
fn low_rank(seed: u64) -> Vec<f32> {
    let mut out = vector(seed, 200).iter().map(|x| x * 0.02).collect::<Vec<_>>();
    for axis in 0..40 {
        let along = noise(seed * 41 + axis + 9_000_000_000);
        let direction = vector(axis + 50_000_000, 200);
        out.iter_mut().zip(direction).for_each(|(x, d)| *x += along * d);
    }
    out
}

#[test]
fn enough_vectors_teach_a_rotation() {
    let ram = Ram::default();
    let mut store = ram.open(Some(spec(200, None)));
    let enough = *LEARN_FROM.start() as u64;
    let unit = |id| (words(id), low_rank(id));
    store.insert(&(0..enough - 1).map(unit).collect::<Vec<_>>()).unwrap();
    assert_eq!(store.maintain(), Ok(false));
    assert_eq!(store.rotation().unwrap().coarse_dims(), 200);
    store.insert(&[unit(enough)]).unwrap();
    assert_eq!(store.maintain(), Ok(true));
    assert_eq!(store.maintain(), Ok(false));
    assert_eq!(store.rotation().unwrap().coarse_dims(), LEARNED_COARSE);
    store.flush().unwrap();
    let reopened = ram.open(Some(spec(200, None)));
    assert_eq!(reopened.rotation(), store.rotation());
    assert_eq!(reopened.damaged(), Ok(Vec::new()));
    // What was learned is as good as a full scan, with a tenth of the rows as candidates.
    let (mut found, mut wanted) = (0, 0);
    for query in (0..20).map(|id| low_rank(id + 1_000_000)) {
        let all = reopened.search_among(&query, 10, 10_000, &|_| true).unwrap();
        let few = reopened.search_among(&query, 10, 50, &|_| true).unwrap();
        wanted += all.len();
        found += all.iter().filter(|hit| few.contains(hit)).count();
    }
    assert!(found * 100 >= wanted * 99, "{found} of {wanted}");
}

/// A rotation that comes with the embedder takes the place of whatever the file has.
#[test]
fn a_known_rotation_replaces_another() {
    let ram = Ram::default();
    drop(filled(&ram, 30, 16));
    let sample: Vec<_> = (0..200).map(|id| vector(id, 16)).collect();
    let known = Rotation::learn(&sample, 4).unwrap();
    let mut store = ram.open(Some(spec(16, Some(known.clone()))));
    assert_eq!(store.rotation().unwrap().coarse_dims(), 16);
    assert_eq!(store.maintain(), Ok(true));
    assert_eq!(store.rotation(), Some(&known));
    assert_eq!(store.damaged(), Ok(Vec::new()));
    assert_eq!(ram.open(Some(spec(16, None))).rotation(), Some(&known));
}

/// The vectors of 24 dimensions in two files of a folder.
fn open_files(path: &Path) -> VectorStore {
    let path = path.to_owned();
    let files = move |side, create: bool| -> Result<Option<Arc<dyn Medium>>, MediumError> {
        let file = path.join(if side == Side::Coarse { "n.i8" } else { "n.f16" });
        if !create && !file.exists() {
            return Ok(None);
        }
        Ok(Some(Arc::new(FileMedium::open(&file)?)))
    };
    VectorStore::open(files, garret_hal::kernels::detect(), Some(spec(24, None))).unwrap()
}

/// A file is mapped anew when it has grown by a part: until then what is new is read, and the rest
/// looked at in place.
#[test]
fn rows_that_are_too_new_for_a_mapping_have_their_own_products() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open_files(dir.path());
    let units = |turns: std::ops::Range<u64>| -> Vec<_> {
        turns.map(|turn| (words(turn), vector(turn, 24))).collect()
    };
    let query = vector(9_999, 24);
    for turns in [0..600, 600..605, 605..620] {
        store.insert(&units(turns.clone())).unwrap();
        let scores = store.scores(&query, 1, &|_| true).unwrap();
        for (key, vector) in units(0..turns.end) {
            let found = scores.cosine(store.slot(key).unwrap()).unwrap();
            assert!((found - exact(&query, &vector)).abs() < 0.03, "{key:?} of {turns:?}");
        }
    }
}

/// On files, through their mapping; reading alone creates none.
#[test]
fn files_are_searched_and_not_made_by_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_owned();
    let open = || open_files(&path);
    let mut store = open();
    let query = vector(5, 24);
    assert_eq!(store.search(&query, 1, &|_| true), Ok(Vec::new()));
    assert_eq!(store.remove(&[words(1)]), Ok(0));
    assert_eq!(store.maintain(), Ok(false));
    assert_eq!(std::fs::read_dir(&path).unwrap().count(), 0);
    let mut model = BTreeMap::new();
    for round in 0..12 {
        let units: Vec<_> =
            (0..100).map(|id| (words(round * 100 + id), vector(round * 100 + id, 24))).collect();
        store.insert(&units).unwrap();
        model.extend(units);
        store.flush().unwrap();
        let gone = words(round * 100 + 50);
        assert_eq!(store.remove(&[gone]), Ok(1));
        model.remove(&gone);
        let hits = store.search_among(&query, 10, 2_000, &|_| true).unwrap();
        assert_best(&hits, &query, &model, 10, &|_| true);
    }
    drop(store);
    let store = open();
    assert_eq!((store.len(), store.damaged()), (model.len(), Ok(Vec::new())));
    let hits = store.search_among(&query, 10, 2_000, &|_| true).unwrap();
    assert_best(&hits, &query, &model, 10, &|_| true);
}

/// `FORMAT.md`, "Sum".
fn sum(bytes: &[u8], seed: u64) -> u64 {
    let whole = bytes.len() / 8 * 8;
    let mut last = bytes[whole..].to_vec();
    last.resize(8, 0);
    let words = bytes[..whole].chunks(8).chain([&*last]);
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
    mix(words.fold(seed, |sum, bytes| added(sum, word(bytes))) ^ bytes.len() as u64)
}

fn added(sum: u64, word: u64) -> u64 {
    let sum = (sum ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    sum ^ (sum >> 32)
}

fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn fourfold(bytes: &[u8]) -> u64 {
    let whole = bytes.len() / 32 * 32;
    let mut sums = [0, 1, 2, 3];
    for (at, word) in bytes[..whole].chunks(8).enumerate() {
        sums[at % 4] = added(sums[at % 4], u64::from_le_bytes(word.try_into().unwrap()));
    }
    sum(&bytes[whole..], sums.into_iter().fold(bytes.len() as u64, added))
}

/// Vectors that a program before fourfold sums wrote cost hours to be made anew on a small board.
#[test]
fn a_file_of_version_1_is_searched_and_added_to() {
    use sha2::Digest as _;
    const DIMS: usize = 41;
    let ram = Ram::default();
    let units: Vec<_> = (1..=6).map(|turn| (words(turn), vector(turn, DIMS))).collect();
    let mut store = ram.open(Some(spec(DIMS, None)));
    store.insert(&units[..5]).unwrap();
    store.flush().unwrap();
    let (coarse, mut whole) = ram.snapshot();
    assert_eq!(whole[8], 2);
    whole[8] = 1;
    let check = sha2::Sha256::digest(&whole[..56]);
    whole[56..64].copy_from_slice(&check[..8]);
    let epoch = u64::from_le_bytes(whole[16..24].try_into().unwrap());
    for row in 0..5 {
        let (entry, vector) = (4_096 + row * 32, 4_096 + 128 * 32 + row * DIMS * 2);
        let vector = whole[vector..vector + DIMS * 2].to_vec();
        assert_eq!(whole[entry + 4..entry + 8], (fourfold(&vector) as u32).to_le_bytes());
        whole[entry + 4..entry + 8].copy_from_slice(&(sum(&vector, 0) as u32).to_le_bytes());
        let check = sum(&whole[entry..entry + 24], mix(epoch) ^ row as u64);
        whole[entry + 24..entry + 32].copy_from_slice(&check.to_le_bytes());
    }
    let ram = Ram::of((coarse, whole));
    let mut model: BTreeMap<_, _> = units[..5].iter().cloned().collect();
    for count in [5, 6] {
        let mut store = ram.open(Some(spec(DIMS, None)));
        assert_eq!(store.len(), count);
        assert_eq!(store.damaged().unwrap(), []);
        let hits = store.search(&units[2].1, 4, &|_| true).unwrap();
        assert_best(&hits, &units[2].1, &model, 4, &|_| true);
        store.insert(&units[5..]).unwrap();
        store.flush().unwrap();
        model.extend(units[5..].iter().cloned());
    }
    assert_eq!(ram.whole.snapshot()[8], 1);
}
