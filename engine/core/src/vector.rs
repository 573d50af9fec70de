//! Port for dot products, the work under vector search, and its scalar reference.
//!
//! Three shapes are enough: one query against many int8 rows that lie one after another (the coarse
//! scan), one query against one row of half-precision numbers (the exact score of a candidate), and
//! a weighted sum of rows (a vector in another basis). Whatever implements [`Kernels`] agrees with
//! [`Scalar`]: to the bit for int8 and for sums of rows, up to the order of rounding for halves.
//!
//! ```
//! use garret_core::vector::{Kernels, Scalar};
//!
//! let mut out = [0; 2];
//! Scalar.dot_rows_i8(&[1, -2], &[3, 4, 5, -6], &mut out);
//! assert_eq!(out, [-5, 17]);
//!
//! let (one, half) = (0x3c00, 0x3800); // 1.0 and 0.5 as binary16
//! assert_eq!(Scalar.dot_f16(&[one, half], &[half, half]), 0.75);
//! ```
//!
//! Limits: sums of int8 products wrap at 32 bits, which needs more than 131,071 dimensions.

use half::f16;

/// Dot products, by whatever the processor has for them.
pub trait Kernels: Send + Sync {
    /// The dot product of `query` with each row of `rows`.
    ///
    /// `rows` is row-major, `query.len()` numbers a row; `out` has one place a row. A place without
    /// a whole row, or any place when the query is empty, becomes 0; rows without a place are left
    /// out. Every byte is a number, -128 included; sums wrap at 32 bits.
    fn dot_rows_i8(&self, query: &[i8], rows: &[i8], out: &mut [i32]);

    /// The dot product of two vectors of IEEE binary16 numbers, given as their bits.
    ///
    /// Products are exact and sums have at least the precision of `f32`. The longer vector is cut
    /// to the shorter. NaN, or infinities that cancel each other, give NaN.
    fn dot_f16(&self, query: &[u16], row: &[u16]) -> f32;

    /// Adds to `out` each row of `rows` times its weight, the first row first.
    ///
    /// `rows` is row-major, `out.len()` numbers a row; rows without a weight, weights without a
    /// whole row and all of them when `out` is empty are left out. Each product and each sum is
    /// rounded to `f32` by itself, so that every implementation gives the same bits (of NaN, any).
    fn add_rows(&self, weights: &[f32], rows: &[f32], out: &mut [f32]) {
        add_rows(weights, rows, out);
    }

    /// [`add_rows`](Self::add_rows) of the same rows for several lists of weights, all of them
    /// `count` long and one after another, as are their sums: so that rows which don't fit the
    /// nearest memory are fetched once for many. Lists without sums, and sums without a list, are
    /// left out; `count` must not be 0.
    fn add_rows_each(&self, count: usize, weights: &[f32], rows: &[f32], out: &mut [f32]) {
        for (weights, sums) in each_list(count, weights, out) {
            self.add_rows(weights, rows, sums);
        }
    }
}

/// The reference: one number after another, on any processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scalar;

impl Kernels for Scalar {
    fn dot_rows_i8(&self, query: &[i8], rows: &[i8], out: &mut [i32]) {
        // A row of no numbers has the product 0, and there are as many as anybody wants.
        let mut rows = rows.chunks_exact(query.len().max(1));
        for place in out {
            *place = rows.next().map_or(0, |row| dot_i8(query, row));
        }
    }

    fn dot_f16(&self, query: &[u16], row: &[u16]) -> f32 {
        let wide = |bits: &u16| f16::from_bits(*bits).to_f64();
        let sum = query.iter().zip(row).map(|(a, b)| wide(a) * wide(b)).sum::<f64>();
        narrow(sum)
    }
}

/// [`Kernels::add_rows`] with as many sums at a time as most processors hold in registers.
pub fn add_rows(weights: &[f32], rows: &[f32], out: &mut [f32]) {
    let len = out.len().max(1);
    let mut at = 0;
    let (blocks, rest) = out.as_chunks_mut::<AT_A_TIME>();
    for block in blocks {
        let mut sums = *block;
        for (weight, row) in weights.iter().zip(rows.chunks_exact(len)) {
            let part = row.get(at..).and_then(|row| row.first_chunk::<AT_A_TIME>());
            for (sum, number) in sums.iter_mut().zip(part.into_iter().flatten()) {
                *sum += weight * number;
            }
        }
        *block = sums;
        at = at.saturating_add(AT_A_TIME);
    }
    for (weight, row) in weights.iter().zip(rows.chunks_exact(len)) {
        for (sum, number) in rest.iter_mut().zip(row.get(at..).into_iter().flatten()) {
            *sum += weight * number;
        }
    }
}

/// Lists of `count` weights, and the sums of each: as many of `out` as there are for each.
pub fn each_list<'a>(
    count: usize,
    weights: &'a [f32],
    out: &'a mut [f32],
) -> impl Iterator<Item = (&'a [f32], &'a mut [f32])> {
    let count = count.max(1);
    let lists = weights.len().checked_div(count).unwrap_or(0);
    let len = out.len().checked_div(lists).unwrap_or(0).max(1);
    weights.chunks_exact(count).zip(out.chunks_exact_mut(len))
}

/// Sums that are held in registers: eight of four numbers each.
const AT_A_TIME: usize = 32;

/// The dot product of two vectors of the same length; the longer is cut to the shorter.
pub fn dot_i8(a: &[i8], b: &[i8]) -> i32 {
    let product = |(a, b): (&i8, &i8)| i32::from(*a).wrapping_mul(i32::from(*b));
    a.iter().zip(b).map(product).fold(0, i32::wrapping_add)
}

/// The nearest `f32`.
#[expect(clippy::as_conversions, reason = "the standard library has no other rounding conversion")]
fn narrow(sum: f64) -> f32 {
    sum as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(query: &[i8], rows: &[i8], places: usize) -> std::vec::Vec<i32> {
        let mut out = std::vec![7; places];
        Scalar.dot_rows_i8(query, rows, &mut out);
        out
    }

    #[test]
    fn a_place_without_a_row_becomes_zero() {
        assert_eq!(rows(&[1, 2], &[3, 4, 5], 3), [11, 0, 0]);
        assert_eq!(rows(&[], &[3, 4, 5], 2), [0, 0]);
        assert_eq!(rows(&[1, 2], &[3, 4, 5, 6], 1), [11]);
    }

    #[test]
    fn rows_are_added_in_their_order() {
        for len in [1, 31, 32, 70] {
            let rows: std::vec::Vec<f32> = (0..len * 3_u16).map(f32::from).collect();
            let mut out = std::vec![0.5; usize::from(len)];
            // The last row has no weight, and the last weight no row.
            Scalar.add_rows(&[2.0, 1e-3], &rows, &mut out);
            let mut expected = (0..len).map(|at| {
                let first = f32::from(at);
                let second = f32::from(at + len);
                0.5 + 2.0 * first + 1e-3 * second
            });
            assert!(out.iter().all(|sum| expected.next() == Some(*sum)), "{len}");
            let before = out.clone();
            Scalar.add_rows(&[1.0], &rows[..usize::from(len) - 1], &mut out);
            assert_eq!(out, before);
        }
        Scalar.add_rows(&[1.0], &[1.0], &mut []);
    }

    #[test]
    fn every_byte_is_a_number() {
        assert_eq!(rows(&[-128, -128], &[-128, -128, 127, -128], 2), [32_768, 128]);
    }

    #[test]
    fn sums_wrap() {
        let long = std::vec![-128; 131_072];
        assert_eq!(rows(&long, &long, 1), [i32::MIN]);
    }

    #[test]
    fn halves_are_exact_and_bad_numbers_show() {
        let bits = |x: f32| f16::from_f32(x).to_bits();
        let tiny = 1; // 2^-24, the smallest
        assert_eq!(Scalar.dot_f16(&[tiny], &[tiny]), 2_f32.powi(-48));
        assert_eq!(Scalar.dot_f16(&[bits(65_504.0)], &[bits(65_504.0), tiny]), 65_504_f32.powi(2));
        let infinite = bits(f32::INFINITY);
        assert_eq!(Scalar.dot_f16(&[infinite, tiny], &[tiny, tiny]), f32::INFINITY);
        assert!(Scalar.dot_f16(&[infinite, infinite], &[bits(1.0), bits(-1.0)]).is_nan());
        assert!(Scalar.dot_f16(&[infinite], &[bits(0.0)]).is_nan());
        assert!(Scalar.dot_f16(&[bits(f32::NAN), tiny], &[tiny, tiny]).is_nan());
    }
}
