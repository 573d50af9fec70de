//! Dot products with the processor's own instructions: [`Kernels`] chosen while running.
//!
//! | processor | int8 rows | halves | sums of rows |
//! |---|---|---|---|
//! | x86_64 with AVX2, FMA and F16C | our own, VPMADDUBSW | simsimd | our own |
//! | the same with VNNI (N100, Zen 4) | our own, VPDPBUSD | simsimd | our own |
//! | aarch64 with dot product (Pi 5, Jetson Orin) | our own, SDOT | our own, FCVTL | the reference |
//! | aarch64 without (Pi 4) | our own, SMULL and SADALP | our own, FCVTL | the reference |
//! | any other | the scalar reference of `garret-core` | the same | the same |
//!
//! int8 rows are read with a prefetch 1 KiB ahead (on ARM 4), on x86_64 from four places side by
//! side, which on the machines measured keeps a scan from memory at the speed of the memory;
//! several rows that lie together were slower. Our own code rather than simsimd's, because that
//! reads at a third to half of the speed and falls back to plain C on Linux for ARM. Of simsimd we
//! use the dot product alone: its cosine takes a vector with NaN for a perfect match.
//!
//! ```
//! use garret_core::vector::Kernels;
//!
//! let kernels = garret_hal::kernels::detect();
//! let mut out = [0; 2];
//! kernels.dot_rows_i8(&[1, -2], &[3, 4, 5, -6], &mut out);
//! assert_eq!(out, [-5, 17]);
//! ```

use std::sync::Arc;

use garret_core::vector::{Kernels, Scalar};

#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod x86;

/// The fastest kernels that this processor runs.
pub fn detect() -> Arc<dyn Kernels> {
    #[cfg(target_arch = "x86_64")]
    if let Some(kernels) = x86::Avx2::new() {
        return Arc::new(kernels);
    }
    #[cfg(target_arch = "aarch64")]
    if let Some(kernels) = neon::Neon::new() {
        return Arc::new(kernels);
    }
    Arc::new(Scalar)
}

/// How far ahead of the row in hand a scan asks for memory, in bytes. On a Zen 4 a mapped file was
/// read a third faster than with 4,096, and memory as fast.
#[cfg(target_arch = "x86_64")]
const AHEAD: usize = 1_024;
#[cfg(target_arch = "aarch64")]
const AHEAD: usize = 4_096;

/// Bytes that memory delivers at once.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const LINE: usize = 64;

/// Parts of the rows that are read side by side: while one waits for a page of memory to be found,
/// others are delivered. On a Zen 4 four of them were read up to a quarter faster than one.
#[cfg(target_arch = "x86_64")]
const PARTS: usize = 4;
#[cfg(target_arch = "aarch64")]
const PARTS: usize = 1;

/// Calls `dot` with each row that has a place in `out`, [`PARTS`] at a time, and puts 0 where there
/// is no row.
///
/// `ahead` is given every line of memory that will be wanted [`AHEAD`] bytes later. It may lie
/// behind the end of `rows`.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[inline(always)]
fn each_row(
    query: &[i8],
    rows: &[i8],
    out: &mut [i32],
    ahead: impl Fn(*const i8),
    dot: impl Fn([&[i8]; PARTS]) -> [i32; PARTS],
) {
    let len = query.len();
    // A row of no numbers has the product 0.
    let whole = rows.len().checked_div(len).unwrap_or(0).min(out.len());
    let (out, without) = out.split_at_mut(whole);
    without.fill(0);
    let part = whole / PARTS;
    let wanted = |row: usize| {
        let row = &rows[row * len..][..len];
        for line in (0..len).step_by(LINE) {
            ahead(row.as_ptr().wrapping_add(AHEAD + line));
        }
        row
    };
    for at in 0..part {
        let products = dot(std::array::from_fn(|number| wanted(number * part + at)));
        for (number, product) in products.into_iter().enumerate() {
            out[number * part + at] = product;
        }
    }
    for (row, place) in out.iter_mut().enumerate().skip(part * PARTS) {
        *place = dot([wanted(row); PARTS])[0];
    }
}
