//! NEON, for boards with the dot product instruction and for those without.

use std::arch::aarch64::*;
use std::arch::{asm, is_aarch64_feature_detected};

use garret_core::vector::{Kernels, Scalar, dot_i8};

use super::each_row;

/// Proof that the processor has NEON, and whether it has SDOT as well.
#[derive(Clone, Copy, Debug)]
pub(super) struct Neon {
    sdot: bool,
}

impl Neon {
    pub(super) fn new() -> Option<Self> {
        let sdot = is_aarch64_feature_detected!("dotprod");
        is_aarch64_feature_detected!("neon").then_some(Self { sdot })
    }
}

impl Kernels for Neon {
    fn dot_rows_i8(&self, query: &[i8], rows: &[i8], out: &mut [i32]) {
        if self.sdot {
            // SAFETY: `sdot` is true only where the processor has NEON and the dot product.
            unsafe { rows_sdot(query, rows, out) }
        } else {
            // SAFETY: a `Neon` is made only where the processor has NEON.
            unsafe { rows_smull(query, rows, out) }
        }
    }

    fn dot_f16(&self, query: &[u16], row: &[u16]) -> f32 {
        // SAFETY: a `Neon` is made only where the processor has NEON.
        unsafe { halves(query, row) }
    }
}

#[target_feature(enable = "neon,dotprod")]
fn rows_sdot(query: &[i8], rows: &[i8], out: &mut [i32]) {
    each_row(query, rows, out, prefetch, |rows| rows.map(|row| row_sdot(query, row)));
}

#[target_feature(enable = "neon")]
fn rows_smull(query: &[i8], rows: &[i8], out: &mut [i32]) {
    each_row(query, rows, out, prefetch, |rows| rows.map(|row| row_smull(query, row)));
}

fn prefetch(line: *const i8) {
    // SAFETY: a prefetch of any address is allowed; it neither faults nor changes anything.
    unsafe {
        asm!("prfm pldl1strm, [{line}]", line = in(reg) line,
            options(nostack, preserves_flags, readonly));
    }
}

/// The product of two vectors of the same length. SDOT adds four exact products to each of four
/// sums of 32 bits, so every byte is allowed and sums wrap as the reference's do.
#[target_feature(enable = "neon,dotprod")]
#[inline]
fn row_sdot(query: &[i8], row: &[i8]) -> i32 {
    let (query, query_rest) = query.as_chunks::<16>();
    let (row, row_rest) = row.as_chunks::<16>();
    let mut sums = vdupq_n_s32(0);
    for (query, row) in query.iter().zip(row) {
        let query = load(query);
        let row = load(row);
        // SAFETY: the instruction is there (dotprod), reads and writes only these registers.
        unsafe {
            asm!("sdot {sums:v}.4s, {query:v}.16b, {row:v}.16b",
                sums = inout(vreg) sums, query = in(vreg) query, row = in(vreg) row,
                options(pure, nomem, nostack, preserves_flags));
        }
    }
    vaddvq_s32(sums).wrapping_add(dot_i8(query_rest, row_rest))
}

/// Computes the dot product of two rows without SDOT: products of 16 bits (at most 16,384), added
/// in pairs to sums of 32.
#[target_feature(enable = "neon")]
#[inline]
fn row_smull(query: &[i8], row: &[i8]) -> i32 {
    let (query, query_rest) = query.as_chunks::<16>();
    let (row, row_rest) = row.as_chunks::<16>();
    let mut sums = vdupq_n_s32(0);
    for (query, row) in query.iter().zip(row) {
        let query = load(query);
        let row = load(row);
        sums = vpadalq_s16(sums, vmull_s8(vget_low_s8(query), vget_low_s8(row)));
        sums = vpadalq_s16(sums, vmull_high_s8(query, row));
    }
    vaddvq_s32(sums).wrapping_add(dot_i8(query_rest, row_rest))
}

#[target_feature(enable = "neon")]
#[inline]
fn load(numbers: &[i8; 16]) -> int8x16_t {
    // SAFETY: the 16 bytes read are those of `numbers`; this load needs no alignment.
    unsafe { vld1q_s8(numbers.as_ptr()) }
}

/// [`Kernels::dot_f16`].
#[target_feature(enable = "neon")]
fn halves(query: &[u16], row: &[u16]) -> f32 {
    let len = query.len().min(row.len());
    let (query, query_rest) = query[..len].as_chunks::<8>();
    let (row, row_rest) = row[..len].as_chunks::<8>();
    let mut low = vdupq_n_f32(0.0);
    let mut high = vdupq_n_f32(0.0);
    for (query, row) in query.iter().zip(row) {
        let query = widen(query);
        let row = widen(row);
        low = vfmaq_f32(low, query.0, row.0);
        high = vfmaq_f32(high, query.1, row.1);
    }
    vaddvq_f32(vaddq_f32(low, high)) + Scalar.dot_f16(query_rest, row_rest)
}

/// Eight halves as two times four `f32`.
#[target_feature(enable = "neon")]
#[inline]
fn widen(bits: &[u16; 8]) -> (float32x4_t, float32x4_t) {
    // SAFETY: the 16 bytes read are those of `bits`; this load needs no alignment beyond u16's.
    let bits = unsafe { vld1q_u16(bits.as_ptr()) };
    let low = vcvt_f32_f16(vreinterpret_f16_u16(vget_low_u16(bits)));
    (low, vcvt_high_f32_f16(vreinterpretq_f16_u16(bits)))
}

#[cfg(test)]
impl Neon {
    /// Both ways to multiply int8 rows, where this processor has them.
    pub(super) fn all() -> Vec<Self> {
        let chosen = Self::new();
        [true, false]
            .into_iter()
            .filter(|sdot| chosen.is_some_and(|chosen| chosen.sdot || !sdot))
            .map(|sdot| Self { sdot })
            .collect()
    }
}
