//! AVX2 for int8 rows, with VNNI where there is one, and for sums of rows; simsimd for halves.

use std::arch::x86_64::*;

use garret_core::vector::{Kernels, Scalar, add_rows, dot_i8};
use half::f16;
use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};
use simsimd::SpatialSimilarity;

use super::{PARTS, each_row};

/// Proof that the processor has AVX2, FMA and F16C, and what `products` needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Avx2 {
    products: Products,
    halves: Halves,
}

/// Instruction that multiplies int8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Products {
    /// VPMADDUBSW, and sums of pairs.
    Pairs,
    /// VPDPBUSD, which adds four products to a sum, as AVX-VNNI has it.
    Fours,
    /// VPDPBUSD as AVX-512 has it.
    Fours512,
}

impl Products {
    /// Returns whether this processor has the instruction.
    fn is_there(self) -> bool {
        match self {
            Self::Pairs => is_x86_feature_detected!("avx2"),
            Self::Fours => is_x86_feature_detected!("avxvnni"),
            Self::Fours512 => {
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512vnni")
                    && is_x86_feature_detected!("avx512vl")
            }
        }
    }
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
        let best = [Products::Fours512, Products::Fours].into_iter().find(|way| way.is_there());
        able.then_some(Self { products: best.unwrap_or(Products::Pairs), halves })
    }
}

impl Kernels for Avx2 {
    fn dot_rows_i8(&self, query: &[i8], rows: &[i8], out: &mut [i32]) {
        match self.products {
            // SAFETY: `products` says so only where the processor has AVX-512 VNNI and VL.
            Products::Fours512 => unsafe { rows_fours_512(query, rows, out) },
            // SAFETY: `products` says so only where the processor has AVX-VNNI.
            Products::Fours => unsafe { rows_fours(query, rows, out) },
            // The only number whose negative isn't an int8. A quantised query doesn't hold it.
            Products::Pairs if query.contains(&i8::MIN) => Scalar.dot_rows_i8(query, rows, out),
            // SAFETY: an `Avx2` is made only where the processor has AVX2.
            Products::Pairs => unsafe { rows_pairs(query, rows, out) },
        }
    }

    fn dot_f16(&self, query: &[u16], row: &[u16]) -> f32 {
        let len = query.len().min(row.len());
        let query = &query[..len];
        let row = &row[..len];
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
        let at_once = if self.products == Products::Fours512 { BESIDE_512 } else { BESIDE };
        let wide = len > 0 && len.is_multiple_of(TOGETHER);
        let beside = if wide { lists / at_once * at_once } else { 0 };
        let (weights, others) = weights.split_at(beside * count);
        let (out, rest) = out.split_at_mut(beside * len);
        match self.products {
            _ if beside == 0 => {}
            // SAFETY: `products` says so only where the processor has AVX-512.
            Products::Fours512 => unsafe { add_rows_beside_512(count, weights, rows, (len, out)) },
            // SAFETY: an `Avx2` is made only where the processor has AVX2.
            _ => unsafe { add_rows_beside(count, weights, rows, (len, out)) },
        }
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

/// Sums of each list that are worked at together.
const TOGETHER: usize = 16;
/// Lists that are worked at side by side: their sums take half of the registers, and a quarter.
const BESIDE: usize = 4;
const BESIDE_512: usize = 8;

/// Defines [`Kernels::add_rows_each`] for a multiple of `$beside` lists and sums of a multiple of
/// [`TOGETHER`] numbers, `len` for each list. Sixteen columns of 384 rows fit the nearest memory
/// and are used for all lists before the next ones are fetched.
///
/// `$beside` lists are worked at side by side, in registers of `$lanes` numbers.
macro_rules! add_rows_beside {
    ($name:ident, $features:literal, $beside:ident lists, $lanes:literal numbers,
     $zero:ident, $load:ident, $all:ident, $product:ident, $sum:ident, $store:ident) => {
        #[target_feature(enable = $features)]
        fn $name(count: usize, weights: &[f32], rows: &[f32], (len, out): (usize, &mut [f32])) {
            // SAFETY: what is read are these numbers; it needs no alignment.
            let load = |numbers: &[f32; $lanes]| unsafe { $load(numbers.as_ptr()) };
            for at in (0..len).step_by(TOGETHER) {
                let lists = weights.chunks_exact(count * $beside);
                for (weights, out) in lists.zip(out.chunks_exact_mut(len * $beside)) {
                    let mut sums = [[$zero(); TOGETHER / $lanes]; $beside];
                    for (sums, out) in sums.iter_mut().zip(out.chunks_exact(len)) {
                        let (out, _) = out[at..].as_chunks::<$lanes>();
                        sums.iter_mut().zip(out).for_each(|(sum, out)| *sum = load(out));
                    }
                    let lists: [&[f32]; $beside] =
                        std::array::from_fn(|list| &weights[list * count..][..count]);
                    for (number, row) in rows.chunks_exact(len).take(count).enumerate() {
                        let Some(row) = row[at..].first_chunk::<TOGETHER>() else { break };
                        let (row, _) = row.as_chunks::<$lanes>();
                        let row: [_; TOGETHER / $lanes] = std::array::from_fn(|i| load(&row[i]));
                        for (sums, weights) in sums.iter_mut().zip(lists) {
                            // SAFETY: each list has `count` weights, and `number` is below that.
                            let weight = $all(unsafe { *weights.get_unchecked(number) });
                            for (sum, numbers) in sums.iter_mut().zip(row) {
                                *sum = $sum(*sum, $product(weight, numbers));
                            }
                        }
                    }
                    for (sums, out) in sums.iter().zip(out.chunks_exact_mut(len)) {
                        let (out, _) = out[at..].as_chunks_mut::<$lanes>();
                        for (sum, out) in sums.iter().zip(out) {
                            // SAFETY: what is written are these numbers; it needs no alignment.
                            unsafe { $store(out.as_mut_ptr(), *sum) };
                        }
                    }
                }
            }
        }
    };
}

add_rows_beside!(
    add_rows_beside, "avx2", BESIDE lists, 8 numbers,
    _mm256_setzero_ps, _mm256_loadu_ps, _mm256_set1_ps, _mm256_mul_ps, _mm256_add_ps, _mm256_storeu_ps
);
add_rows_beside!(
    add_rows_beside_512, "avx512f", BESIDE_512 lists, 16 numbers,
    _mm512_setzero_ps, _mm512_loadu_ps, _mm512_set1_ps, _mm512_mul_ps, _mm512_add_ps, _mm512_storeu_ps
);

#[target_feature(enable = "avx2")]
#[inline]
fn load_f32(numbers: &[f32; 8]) -> __m256 {
    // SAFETY: the 32 bytes read are those of `numbers`; this load needs no alignment.
    unsafe { _mm256_loadu_ps(numbers.as_ptr()) }
}

/// Asks for a line of memory. To the second level: into the first it cost a third of the speed on a
/// Zen 4.
fn ahead(line: *const i8) {
    // SAFETY: a prefetch of any address is allowed; it neither faults nor changes anything.
    unsafe { _mm_prefetch::<_MM_HINT_T2>(line) }
}

/// [`Kernels::dot_rows_i8`] for a query without -128.
///
/// `maddubs` takes |row| (0 to 128, unsigned) times query with the sign of row, which is the same
/// product; two of them are at most 2 * 128 * 127 = 32,512, so its sums of 16 bits never saturate.
#[target_feature(enable = "avx2")]
fn rows_pairs(query: &[i8], rows: &[i8], out: &mut [i32]) {
    let (wide, rest) = query.as_chunks::<32>();
    each_row(query, rows, out, ahead, |rows| {
        let sums = rows.map(|row| {
            let mut sums = _mm256_setzero_si256();
            for (query, row) in wide.iter().zip(row.as_chunks::<32>().0) {
                let query = load(query);
                let row = load(row);
                let pairs =
                    _mm256_maddubs_epi16(_mm256_abs_epi8(row), _mm256_sign_epi8(query, row));
                sums = _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
            }
            sums
        });
        with_rests(totals(sums), rest, rows)
    });
}

/// Defines [`Kernels::dot_rows_i8`] with VPDPBUSD, whose first factor is unsigned: row + 128, so
/// that 128 times the sum of the query is too much. Its sums wrap at 32 bits, as they have to.
macro_rules! rows_with_vpdpbusd {
    ($name:ident, $features:literal, $vpdpbusd:ident) => {
        #[target_feature(enable = $features)]
        fn $name(query: &[i8], rows: &[i8], out: &mut [i32]) {
            let (wide, rest) = query.as_chunks::<32>();
            let numbers = wide.as_flattened().iter().map(|number| i32::from(*number));
            let too_much = numbers.fold(0, i32::wrapping_add).wrapping_mul(128);
            let start = _mm256_setr_epi32(too_much.wrapping_neg(), 0, 0, 0, 0, 0, 0, 0);
            each_row(query, rows, out, ahead, |rows| {
                let sums = rows.map(|row| {
                    let mut sums = start;
                    for (query, row) in wide.iter().zip(row.as_chunks::<32>().0) {
                        let row = _mm256_xor_si256(load(row), _mm256_set1_epi8(i8::MIN));
                        sums = $vpdpbusd(sums, row, load(query));
                    }
                    sums
                });
                with_rests(totals(sums), rest, rows)
            });
        }
    };
}

rows_with_vpdpbusd!(rows_fours, "avx2,avxvnni", _mm256_dpbusd_avx_epi32);
rows_with_vpdpbusd!(rows_fours_512, "avx2,avx512vnni,avx512vl", _mm256_dpbusd_epi32);

/// Adds to the products of rows that of what is left of each when 32 numbers make a step.
#[inline]
fn with_rests(mut products: [i32; PARTS], rest: &[i8], rows: [&[i8]; PARTS]) -> [i32; PARTS] {
    if !rest.is_empty() {
        for (product, row) in products.iter_mut().zip(rows) {
            *product = product.wrapping_add(dot_i8(rest, row.as_chunks::<32>().1));
        }
    }
    products
}

#[target_feature(enable = "avx2")]
#[inline]
fn load(numbers: &[i8; 32]) -> __m256i {
    // SAFETY: the 32 bytes read are those of `numbers`; this load needs no alignment.
    unsafe { _mm256_loadu_si256(numbers.as_ptr().cast()) }
}

/// The sums of each.
#[target_feature(enable = "avx2")]
#[inline]
fn totals([a, b, c, d]: [__m256i; PARTS]) -> [i32; PARTS] {
    let all = _mm256_hadd_epi32(_mm256_hadd_epi32(a, b), _mm256_hadd_epi32(c, d));
    let all = _mm_add_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256::<1>(all));
    let low = _mm_cvtsi128_si64(all);
    let high = _mm_extract_epi64::<1>(all);
    [low as i32, (low >> 32) as i32, high as i32, (high >> 32) as i32]
}

/// [`Kernels::dot_f16`] of vectors of the same length.
fn direct(query: &[u16], row: &[u16]) -> f32 {
    // SAFETY: `simsimd::f16` is a transparent wrapper of u16, so the layouts are the same.
    let query = unsafe { std::slice::from_raw_parts(query.as_ptr().cast(), query.len()) };
    // SAFETY: as above.
    let row = unsafe { std::slice::from_raw_parts(row.as_ptr().cast(), row.len()) };
    simsimd::f16::dot(query, row).map_or(f32::NAN, |dot| dot as f32)
}

/// Computes the dot product of halves by way of `f32`.
fn widened(query: &[u16], row: &[u16]) -> f32 {
    let wide = |bits: &[u16]| {
        let mut out = [0.0; 256];
        bits.reinterpret_cast::<f16>().convert_to_f32_slice(&mut out[..bits.len()]);
        out
    };
    let dot = |(query, row): (&[u16], &[u16])| {
        let a = wide(query);
        let b = wide(row);
        let len = query.len();
        f32::dot(&a[..len], &b[..len]).unwrap_or(f64::NAN)
    };
    query.chunks(256).zip(row.chunks(256)).map(dot).sum::<f64>() as f32
}

#[cfg(test)]
impl Avx2 {
    /// Every way to multiply that this processor has.
    pub(super) fn all() -> Vec<Self> {
        let Some(chosen) = Self::new() else { return Vec::new() };
        let products = [Products::Pairs, Products::Fours, Products::Fours512];
        let products = products.into_iter().filter(|way| way.is_there());
        products
            .flat_map(|products| [Halves::Widened, chosen.halves].map(|halves| (products, halves)))
            .map(|(products, halves)| Self { products, halves })
            .collect()
    }
}
