//! The coarse form of a vector: its first dimensions in a chosen basis, as int8.

use garret_core::vector::{Kernels, Scalar};
use half::f16;
use half::slice::HalfFloatSliceExt as _;
use sha2::{Digest as _, Sha256};

use crate::vectors::layout::{MAX_DIMS, mix, seal, sealed, u32_at};

/// An orthogonal change of basis of which the first dimensions are kept.
///
/// A model that was trained for it (Matryoshka) has the most telling dimensions first: then they
/// are taken as they are, by [`Rotation::prefix`]. Of any other model the first dimensions are no
/// better than the last, and a basis [learned](Rotation::learn) from its vectors puts first what differs
/// between them. Dot products of what is kept are close to those of the whole vectors.
///
/// ```
/// use garret_storage::vectors::Rotation;
///
/// // Vectors of four dimensions that differ in the last two alone.
/// let sample: Vec<Vec<f32>> =
///     (0..50).map(|i| (i as f32 / 8.0).sin_cos()).map(|(a, b)| vec![0.0, 0.0, a, b]).collect();
/// let rotation = Rotation::learn(&sample, 2).unwrap();
/// assert_eq!((rotation.dims(), rotation.coarse_dims()), (4, 2));
/// assert_eq!(Rotation::from_bytes(&rotation.to_bytes()), Some(rotation));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Rotation {
    dims: usize,
    coarse: usize,
    /// The factor by which a number becomes an int8.
    scale: f32,
    /// Empty where the first dimensions are taken as they are; else `coarse` numbers for each
    /// dimension of the whole vector, so that a vector is turned without adding across a register.
    columns: Vec<f32>,
}

impl Rotation {
    /// The first `coarse` of `dims` dimensions as they are. More than there are means all.
    pub fn prefix(dims: usize, coarse: usize) -> Self {
        let coarse = coarse.clamp(1, dims.max(1));
        // A unit vector's numbers are around 1 / sqrt(dims); five times that is rare.
        let largest = (5.0 / (dims.max(1) as f32).sqrt()).min(1.0);
        Self { dims, coarse, scale: LARGEST / largest, columns: Vec::new() }
    }

    /// The basis whose first `coarse` dimensions keep the most of `sample` (by its principal
    /// components, not centred), found by the same steps every time.
    ///
    /// From 2,000 vectors of diverse texts on it serves other texts, too; from a few hundred it is
    /// no better than [`Rotation::prefix`]. Takes about 2 n d^2 + 40 d^2 c operations for n vectors
    /// of d dimensions, of which c are kept: some seconds for 1,024.
    ///
    /// None where the sample holds no numbers, vectors of several lengths, or what isn't finite.
    pub fn learn(sample: &[Vec<f32>], coarse: usize) -> Option<Self> {
        let dims = sample.first().map(Vec::len).filter(|dims| (1..=MAX_DIMS).contains(dims))?;
        let coarse = coarse.clamp(1, dims);
        let moments = moments(sample, dims)?;
        let rows = principal(&moments, dims, coarse);
        let mut columns = vec![0.0; dims * coarse];
        for (kept, row) in rows.iter().enumerate() {
            for (dim, number) in row.iter().enumerate() {
                columns[dim * coarse + kept] = f16::from_f64(*number).to_f32();
            }
        }
        let mut learned = Self { dims, coarse, scale: 1.0, columns };
        learned.scale = LARGEST / learned.largest(sample);
        Some(learned)
    }

    /// Dimensions of a whole vector.
    pub fn dims(&self) -> usize {
        self.dims
    }

    /// Dimensions that are kept.
    pub fn coarse_dims(&self) -> usize {
        self.coarse
    }

    /// Tells whether it was learned from vectors.
    pub fn is_learned(&self) -> bool {
        !self.columns.is_empty()
    }

    /// Returns the bytes that are stored and shipped: `FORMAT.md`, "Rotation".
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        for number in [VERSION, self.dims as u32, self.coarse as u32, self.scale.to_bits()] {
            out.extend(number.to_le_bytes());
        }
        out.extend(self.columns.iter().flat_map(|x| f16::from_f32(*x).to_le_bytes()));
        out.extend([0; 8]);
        seal(&mut out);
        out
    }

    /// Most bytes that one of vectors of so many dimensions is stored in.
    pub(crate) fn most_bytes(dims: usize) -> usize {
        HEAD + dims * dims * 2 + 8
    }

    /// The rotation that [`to_bytes`](Self::to_bytes) gave these bytes; none for any others.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let body = sealed(bytes).then(|| bytes.get(HEAD..bytes.len() - 8))??;
        if bytes[..8] != MAGIC || u32_at(bytes, 8) != VERSION {
            return None;
        }
        let (dims, coarse) = (u32_at(bytes, 12) as usize, u32_at(bytes, 16) as usize);
        let scale = f32::from_bits(u32_at(bytes, 20));
        let (numbers, rest) = body.as_chunks::<2>();
        let columns: Vec<f32> = numbers.iter().map(|x| f16::from_le_bytes(*x).to_f32()).collect();
        let whole = columns.is_empty() || columns.len() == dims.checked_mul(coarse)?;
        let sane = (1..=MAX_DIMS).contains(&dims) && (1..=dims).contains(&coarse);
        let finite = scale.is_normal() && scale > 0.0 && columns.iter().all(|x| x.is_finite());
        (sane && whole && finite && rest.is_empty()).then_some(Self {
            dims,
            coarse,
            scale,
            columns,
        })
    }

    /// SHA-256 of [`to_bytes`](Self::to_bytes).
    pub fn hash(&self) -> [u8; 32] {
        Sha256::digest(self.to_bytes()).into()
    }

    /// Returns what is kept of a vector of [`dims`](Self::dims) numbers.
    pub(crate) fn turn(&self, kernels: &dyn Kernels, vector: &[f32], out: &mut Vec<f32>) {
        out.clear();
        if self.columns.is_empty() {
            out.extend(&vector[..self.coarse]);
            return;
        }
        out.resize(self.coarse, 0.0);
        kernels.add_rows(vector, &self.columns, out);
    }

    /// A stored row of this many int8: a multiple of 32, with zeros behind what is kept.
    pub(crate) fn stride(&self) -> usize {
        self.coarse.next_multiple_of(32)
    }

    /// The stored row of a vector; `turned` is scratch.
    pub(crate) fn row(
        &self,
        kernels: &dyn Kernels,
        vector: &[f32],
        turned: &mut Vec<f32>,
        out: &mut Vec<u8>,
    ) {
        self.turn(kernels, vector, turned);
        self.put(turned, out);
    }

    /// The stored rows of vectors that lie one after another; `turned` is scratch.
    pub(crate) fn rows(
        &self,
        kernels: &dyn Kernels,
        vectors: &[f32],
        turned: &mut Vec<f32>,
        out: &mut Vec<u8>,
    ) {
        if !self.is_learned() {
            let vectors = vectors.chunks_exact(self.dims);
            return vectors.for_each(|vector| self.row(kernels, vector, turned, out));
        }
        turned.clear();
        turned.resize(vectors.len() / self.dims * self.coarse, 0.0);
        kernels.add_rows_each(self.dims, vectors, &self.columns, turned);
        turned.chunks_exact(self.coarse).for_each(|turned| self.put(turned, out));
    }

    /// Adds what is kept of a vector as a stored row.
    fn put(&self, turned: &[f32], out: &mut Vec<u8>) {
        let end = out.len() + self.stride();
        out.extend(turned.iter().map(|x| quantise(*x, self.scale).cast_unsigned()));
        out.resize(end, 0);
    }

    /// A query as a row, and what its product with a stored row is multiplied with to become a
    /// cosine. A query has a scale of its own.
    pub(crate) fn query(&self, kernels: &dyn Kernels, vector: &[f32]) -> (Vec<i8>, f32) {
        let mut turned = Vec::new();
        self.turn(kernels, vector, &mut turned);
        let largest = turned.iter().fold(f32::MIN_POSITIVE, |most, x| most.max(x.abs()));
        let scale = LARGEST / largest.max(1e-6);
        let mut row: Vec<i8> = turned.iter().map(|x| quantise(*x, scale)).collect();
        row.resize(self.stride(), 0);
        (row, 1.0 / (scale * self.scale))
    }

    /// Returns what all but one in ten thousand numbers of the sample's coarse forms are at most.
    fn largest(&self, sample: &[Vec<f32>]) -> f32 {
        let (mut turned, mut sizes) = (Vec::new(), Vec::new());
        for vector in sample.iter().take(MAX_SAMPLE) {
            self.turn(&Scalar, vector, &mut turned);
            sizes.extend(turned.iter().map(|x| x.abs()));
        }
        let last = sizes.len().saturating_sub(1);
        let at = last - last / 10_000;
        let (_, size, _) = sizes.select_nth_unstable_by(at, f32::total_cmp);
        size.max(1e-6)
    }
}

const MAGIC: [u8; 8] = *b"GarretRo";
const VERSION: u32 = 1;
const HEAD: usize = 24;

/// Largest int8 that is used: its negative is one as well.
const LARGEST: f32 = 127.0;

/// Most vectors of a sample that the scale is taken from.
const MAX_SAMPLE: usize = 4_096;

/// Steps after which the basis hardly changes what is kept.
const STEPS: usize = 20;

fn quantise(x: f32, scale: f32) -> i8 {
    let scaled = x * scale;
    (scaled + 0.5_f32.copysign(scaled)).clamp(-LARGEST, LARGEST) as i8
}

/// The sum of x x^T over the sample, row by row.
fn moments(sample: &[Vec<f32>], dims: usize) -> Option<Vec<f64>> {
    let mut sums = vec![0.0_f64; dims * dims];
    for vector in sample {
        if vector.len() != dims || !vector.iter().all(|x| x.is_finite()) {
            return None;
        }
        for (a, row) in vector.iter().zip(sums.chunks_exact_mut(dims)) {
            for (b, sum) in vector.iter().zip(row) {
                *sum += f64::from(a * b);
            }
        }
    }
    Some(sums)
}

/// Orthonormal rows that span nearly the space of the `count` largest eigenvalues, largest first,
/// by orthogonal iteration from a fixed start.
fn principal(moments: &[f64], dims: usize, count: usize) -> Vec<Vec<f64>> {
    let start =
        |row: usize, dim: usize| mix((row * dims + dim) as u64) as i64 as f64 / 2_f64.powi(63);
    let mut basis: Vec<Vec<f64>> =
        (0..count).map(|row| (0..dims).map(|dim| start(row, dim)).collect()).collect();
    orthonormalise(&mut basis, dims);
    for _ in 0..STEPS {
        for row in &mut basis {
            let mut turned = vec![0.0; dims];
            for (weight, moment) in row.iter().zip(moments.chunks_exact(dims)) {
                for (sum, x) in turned.iter_mut().zip(moment) {
                    *sum += weight * x;
                }
            }
            *row = turned;
        }
        orthonormalise(&mut basis, dims);
    }
    basis
}

/// Modified Gram-Schmidt, twice for precision. What depends on the rows before it (a sample of
/// fewer dimensions than are to be kept) is replaced by an axis that doesn't.
fn orthonormalise(basis: &mut [Vec<f64>], dims: usize) {
    let mut axes = 0..dims;
    for at in 0..basis.len() {
        let (before, rest) = basis.split_at_mut(at);
        let row = &mut rest[0];
        while !normalise_against(before, row) {
            let Some(axis) = axes.next() else { break };
            row.fill(0.0);
            row[axis] = 1.0;
        }
    }
}

/// Tells whether something was left of `row` besides what `before` spans; it has length 1 then.
fn normalise_against(before: &[Vec<f64>], row: &mut [f64]) -> bool {
    if !scale_to_unit(row, 0.0) {
        return false;
    }
    for _ in 0..2 {
        for other in before {
            let along: f64 = row.iter().zip(other).map(|(a, b)| a * b).sum();
            row.iter_mut().zip(other).for_each(|(a, b)| *a -= along * b);
        }
    }
    scale_to_unit(row, 1e-9)
}

fn scale_to_unit(row: &mut [f64], least: f64) -> bool {
    let length = row.iter().map(|x| x * x).sum::<f64>().sqrt();
    if length <= least || !length.is_finite() {
        return false;
    }
    row.iter_mut().for_each(|x| *x /= length);
    true
}

/// Halves of a vector's numbers, as bits.
pub(crate) fn halve(vector: &[f32], out: &mut Vec<u16>) {
    out.clear();
    out.resize(vector.len(), 0);
    half::slice::HalfBitsSliceExt::reinterpret_cast_mut::<f16>(&mut out[..])
        .convert_from_f32_slice(vector);
}

/// The numbers of a vector's halves.
pub(crate) fn widen(bits: &[u16], out: &mut Vec<f32>) {
    out.clear();
    out.resize(bits.len(), 0.0);
    half::slice::HalfBitsSliceExt::reinterpret_cast::<f16>(bits).convert_to_f32_slice(out);
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn dot(a: &[f32], b: &[f32]) -> f32 {
        a.iter().zip(b).map(|(a, b)| a * b).sum()
    }

    /// Vectors near a plane that lies askew in 24 dimensions.
    fn askew(count: usize) -> Vec<Vec<f32>> {
        let noise = |i: usize| mix(i as u64) as i64 as f32 / 2_f32.powi(63);
        let plane: Vec<Vec<f32>> =
            (0..3).map(|p| (0..24).map(|d| noise(p * 24 + d + 1_000_000)).collect()).collect();
        (0..count)
            .map(|i| {
                let mut one: Vec<f32> = (0..24).map(|d| noise(i * 24 + d) * 0.01).collect();
                for (p, direction) in plane.iter().enumerate() {
                    let along = noise(i * 3 + p + 7_000_000);
                    one.iter_mut().zip(direction).for_each(|(x, d)| *x += along * d);
                }
                one
            })
            .collect()
    }

    #[test]
    fn what_is_learned_keeps_dot_products_that_the_first_dimensions_lose() {
        let sample = askew(200);
        let (learned, prefix) = (Rotation::learn(&sample, 3).unwrap(), Rotation::prefix(24, 3));
        let worst = |rotation: &Rotation| {
            let mut worst = 0_f32;
            let (mut a, mut b) = (Vec::new(), Vec::new());
            for pair in sample.windows(2) {
                rotation.turn(&Scalar, &pair[0], &mut a);
                rotation.turn(&Scalar, &pair[1], &mut b);
                worst = worst.max((dot(&a, &b) - dot(&pair[0], &pair[1])).abs());
            }
            worst
        };
        assert!(worst(&learned) < 0.05, "{}", worst(&learned));
        assert!(worst(&prefix) > 1.0, "{}", worst(&prefix));
    }

    #[test]
    fn a_learned_basis_is_orthonormal_even_from_a_poor_sample() {
        for sample in [askew(200), askew(1), vec![vec![0.0; 24]; 5]] {
            let learned = Rotation::learn(&sample, 10).unwrap();
            let row = |kept: usize| -> Vec<f32> {
                learned.columns.iter().skip(kept).step_by(10).copied().collect()
            };
            for a in 0..10 {
                for b in 0..10 {
                    let expected = f32::from(u8::from(a == b));
                    assert!((dot(&row(a), &row(b)) - expected).abs() < 0.004, "{a} {b}");
                }
            }
        }
    }

    #[test]
    fn bad_samples_are_refused() {
        assert_eq!(Rotation::learn(&[], 4), None);
        assert_eq!(Rotation::learn(&[vec![]], 4), None);
        assert_eq!(Rotation::learn(&[vec![1.0], vec![1.0, 2.0]], 1), None);
        assert_eq!(Rotation::learn(&[vec![f32::NAN]], 1), None);
    }

    #[test]
    fn a_changed_byte_is_found() {
        let bytes = Rotation::learn(&askew(20), 5).unwrap().to_bytes();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert_eq!(Rotation::from_bytes(&changed), None);
            assert_eq!(Rotation::from_bytes(&bytes[..at]), None);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        /// All dimensions as int8: an error of half a step of either side at most.
        #[test]
        fn a_coarse_product_is_close(
            (a, b) in (1..70_usize).prop_flat_map(|n| (vec(-1_f32..1.0, n), vec(-1_f32..1.0, n))),
        ) {
            let unit = |v: &[f32]| -> Vec<f32> {
                let length = dot(v, v).sqrt().max(1e-3);
                v.iter().map(|x| x / length).collect()
            };
            let (a, b) = (unit(&a), unit(&b));
            let rotation = Rotation { scale: 127.0, ..Rotation::prefix(a.len(), a.len()) };
            let (query, factor) = rotation.query(&Scalar, &a);
            let mut row = Vec::new();
            rotation.row(&Scalar, &b, &mut Vec::new(), &mut row);
            let found: i32 = query
                .iter()
                .zip(&row)
                .map(|(a, b)| i32::from(*a) * i32::from(b.cast_signed()))
                .sum();
            let bound = (a.len() as f32).sqrt() * 0.5 / 127.0 * 2.1 + 1e-4;
            prop_assert!((found as f32 * factor - dot(&a, &b)).abs() <= bound);
        }

        #[test]
        fn foreign_bytes_never_panic(bytes in vec(any::<u8>(), 0..200), magic in any::<bool>()) {
            let mut bytes = bytes;
            if magic && bytes.len() > 16 {
                bytes[..8].copy_from_slice(&MAGIC);
                seal(&mut bytes);
            }
            let _ = Rotation::from_bytes(&bytes);
        }
    }
}
