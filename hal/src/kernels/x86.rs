//! AVX2 for int8 rows; simsimd for halves.

use std::arch::x86_64::*;

use garret_core::vector::{Kernels, Scalar, add_rows, dot_i8};
use half::f16;
use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};
use simsimd::SpatialSimilarity;

use super::each_row;

/// Proof that the processor has AVX2, FMA and F16C.
#[derive(Clone, Copy, Debug)]
pub(super) struct Avx2 {
    halves: Halves,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Halves {
    /// simsimd's product of halves.
    Direct,
    /// simsimd's product of `f32`, since its product of halves sums in halves on processors with
    /// AVX512-FP16, which is off by up to a thousandth.
    Widened,
}

impl Avx2 {
    pub(super) fn new() -> Option<Self> {
        let able = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c");
        let halves = match simsimd::capabilities::uses_sapphire() {
            true => Halves::Widened,
            false => Halves::Direct,
        };
        able.then_some(Self { halves })
    }
}

impl Kernels for Avx2 {
    fn dot_rows_i8(&self, query: &[i8], rows: &[i8], out: &mut [i32]) {
        // The only number whose negative isn't an int8. A quantised query doesn't hold it.
        if query.contains(&i8::MIN) {
            return Scalar.dot_rows_i8(query, rows, out);
        }
        // SAFETY: an `Avx2` is made only where the processor has AVX2.
        unsafe { rows_i8(query, rows, out) }
    }

    fn dot_f16(&self, query: &[u16], row: &[u16]) -> f32 {
        let len = query.len().min(row.len());
        let (query, row) = (&query[..len], &row[..len]);
        match self.halves {
            Halves::Direct => direct(query, row),
            Halves::Widened => widened(query, row),
        }
    }

    fn add_rows(&self, weights: &[f32], rows: &[f32], out: &mut [f32]) {
        if !out.len().is_multiple_of(SUMS * 8) {
            return add_rows(weights, rows, out);
        }
        // SAFETY: an `Avx2` is made only where the processor has AVX2.
        unsafe { add_wide_rows(weights, rows, out) }
    }

    fn add_rows_each(&self, count: usize, weights: &[f32], rows: &[f32], out: &mut [f32]) {
        let count = count.max(1);
        let lists = weights.len() / count;
        let len = out.len() / lists.max(1);
        let wide = len > 0 && len.is_multiple_of(NARROW * 8);
        let beside = if wide { lists / BESIDE * BESIDE } else { 0 };
        let (weights, others) = weights.split_at(beside * count);
        let (out, rest) = out.split_at_mut(beside * len);
        // SAFETY: an `Avx2` is made only where the processor has AVX2.
        unsafe { add_rows_beside(count, weights, rows, (len, out)) };
        let lists = others.chunks_exact(count).zip(rest.chunks_exact_mut(len.max(1)));
        lists.for_each(|(weights, sums)| self.add_rows(weights, rows, sums));
    }
}

/// Registers of sums that are kept at a time: so many additions are under way at once.
const SUMS: usize = 8;

/// [`Kernels::add_rows`] for rows of a multiple of 64 numbers. Products aren't fused with sums,
/// which would round once instead of twice.
#[target_feature(enable = "avx2")]
fn add_wide_rows(weights: &[f32], rows: &[f32], out: &mut [f32]) {
    let len = out.len().max(1);
    for (at, sums) in out.chunks_exact_mut(SUMS * 8).enumerate() {
        let (sums, _) = sums.as_chunks_mut::<8>();
        let mut wide = [_mm256_setzero_ps(); SUMS];
        wide.iter_mut().zip(&*sums).for_each(|(wide, sum)| *wide = load_f32(sum));
        for (weight, row) in weights.iter().zip(rows.chunks_exact(len)) {
            let weight = _mm256_set1_ps(*weight);
            let (row, _) = row[at * SUMS * 8..][..SUMS * 8].as_chunks::<8>();
            for (sum, numbers) in wide.iter_mut().zip(row) {
                *sum = _mm256_add_ps(*sum, _mm256_mul_ps(weight, load_f32(numbers)));
            }
        }
        for (sum, wide) in sums.iter_mut().zip(wide) {
            // SAFETY: the 32 bytes written are those of `sum`; this store needs no alignment.
            unsafe { _mm256_storeu_ps(sum.as_mut_ptr(), wide) };
        }
    }
}

/// Registers of sums of each list, and lists that are worked at side by side.
const NARROW: usize = 2;
const BESIDE: usize = 4;

/// [`Kernels::add_rows_each`] for a multiple of [`BESIDE`] lists and sums of a multiple of 16 numbers,
/// `len` for each list. Sixteen columns of 384 rows fit the nearest memory and are used for all
/// lists before the next ones are fetched.
#[target_feature(enable = "avx2")]
fn add_rows_beside(count: usize, weights: &[f32], rows: &[f32], (len, out): (usize, &mut [f32])) {
    for at in (0..len).step_by(NARROW * 8) {
        let lists = weights.chunks_exact(count * BESIDE).zip(out.chunks_exact_mut(len * BESIDE));
        for (weights, out) in lists {
            let mut sums = [[_mm256_setzero_ps(); NARROW]; BESIDE];
            for (sums, out) in sums.iter_mut().zip(out.chunks_exact(len)) {
                let (out, _) = out[at..].as_chunks::<8>();
                sums.iter_mut().zip(out).for_each(|(sum, out)| *sum = load_f32(out));
            }
            let [a, b, c, d] = [0, 1, 2, 3].map(|list| &weights[list * count..][..count]);
            let weights = a.iter().zip(b).zip(c.iter().zip(d));
            for (((a, b), (c, d)), row) in weights.zip(rows.chunks_exact(len)) {
                let Some(row) = row[at..].first_chunk::<{ NARROW * 8 }>() else { break };
                let (row, _) = row.as_chunks::<8>();
                let row: [__m256; NARROW] = std::array::from_fn(|i| load_f32(&row[i]));
                for (sums, weight) in sums.iter_mut().zip([a, b, c, d]) {
                    let weight = _mm256_set1_ps(*weight);
                    for (sum, numbers) in sums.iter_mut().zip(row) {
                        *sum = _mm256_add_ps(*sum, _mm256_mul_ps(weight, numbers));
                    }
                }
            }
            for (sums, out) in sums.iter().zip(out.chunks_exact_mut(len)) {
                let (out, _) = out[at..].as_chunks_mut::<8>();
                for (sum, out) in sums.iter().zip(out) {
                    // SAFETY: the 32 bytes written are those of `out`; this store needs no alignment.
                    unsafe { _mm256_storeu_ps(out.as_mut_ptr(), *sum) };
                }
            }
        }
    }
}

#[target_feature(enable = "avx2")]
#[inline]
fn load_f32(numbers: &[f32; 8]) -> __m256 {
    // SAFETY: the 32 bytes read are those of `numbers`; this load needs no alignment.
    unsafe { _mm256_loadu_ps(numbers.as_ptr()) }
}

#[target_feature(enable = "avx2")]
fn rows_i8(query: &[i8], rows: &[i8], out: &mut [i32]) {
    // To the second level: into the first it cost a third of the speed on a Zen 4.
    let ahead = |line| _mm_prefetch::<_MM_HINT_T2>(line);
    each_row(query, rows, out, ahead, |row| row_i8(query, row));
}

/// The product of two vectors of the same length, of which `query` doesn't hold -128.
///
/// `maddubs` takes |row| (0 to 128, unsigned) times query with the sign of row, which is the same
/// product; two of them are at most 2 * 128 * 127 = 32,512, so its sums of 16 bits never saturate.
#[target_feature(enable = "avx2")]
#[inline]
fn row_i8(query: &[i8], row: &[i8]) -> i32 {
    let (query, query_rest) = query.as_chunks::<32>();
    let (row, row_rest) = row.as_chunks::<32>();
    let mut sums = _mm256_setzero_si256();
    for (query, row) in query.iter().zip(row) {
        let (query, row) = (load(query), load(row));
        let pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(row), _mm256_sign_epi8(query, row));
        sums = _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
    }
    total(sums).wrapping_add(dot_i8(query_rest, row_rest))
}

#[target_feature(enable = "avx2")]
#[inline]
fn load(numbers: &[i8; 32]) -> __m256i {
    // SAFETY: the 32 bytes read are those of `numbers`; this load needs no alignment.
    unsafe { _mm256_loadu_si256(numbers.as_ptr().cast()) }
}

#[target_feature(enable = "avx2")]
#[inline]
fn total(sums: __m256i) -> i32 {
    let four = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256::<1>(sums));
    let two = _mm_add_epi32(four, _mm_shuffle_epi32::<0b01_00_11_10>(four));
    _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32::<0b10_11_00_01>(two)))
}

/// [`Kernels::dot_f16`] of vectors of the same length.
fn direct(query: &[u16], row: &[u16]) -> f32 {
    // SAFETY: `simsimd::f16` is a transparent wrapper of u16, so the layouts are the same.
    let query = unsafe { std::slice::from_raw_parts(query.as_ptr().cast(), query.len()) };
    // SAFETY: as above.
    let row = unsafe { std::slice::from_raw_parts(row.as_ptr().cast(), row.len()) };
    simsimd::f16::dot(query, row).map_or(f32::NAN, |dot| dot as f32)
}

/// The same by way of `f32`.
fn widened(query: &[u16], row: &[u16]) -> f32 {
    let wide = |bits: &[u16]| {
        let mut out = [0.0; 256];
        bits.reinterpret_cast::<f16>().convert_to_f32_slice(&mut out[..bits.len()]);
        out
    };
    let dot = |(query, row): (&[u16], &[u16])| {
        let (a, b, len) = (wide(query), wide(row), query.len());
        f32::dot(&a[..len], &b[..len]).unwrap_or(f64::NAN)
    };
    query.chunks(256).zip(row.chunks(256)).map(dot).sum::<f64>() as f32
}

#[cfg(test)]
impl Avx2 {
    /// Both ways to multiply halves, whatever this processor would choose.
    pub(super) fn all() -> Vec<Self> {
        let with = |halves| Self { halves };
        let ways = [Halves::Direct, Halves::Widened];
        let chosen = Self::new();
        ways.into_iter()
            .filter(|way| {
                chosen.is_some_and(|chosen| chosen.halves == *way || *way == Halves::Widened)
            })
            .map(with)
            .collect()
    }
}
