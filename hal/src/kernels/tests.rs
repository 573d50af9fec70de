use garret_core::vector::{Kernels, Scalar};
use half::f16;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// Every way that this processor can go, the chosen one first.
fn kernels() -> Vec<Arc<dyn Kernels>> {
    let mut all = vec![detect()];
    #[cfg(target_arch = "x86_64")]
    all.extend(x86::Avx2::all().into_iter().map(|one| Arc::new(one) as Arc<dyn Kernels>));
    #[cfg(target_arch = "aarch64")]
    all.extend(neon::Neon::all().into_iter().map(|one| Arc::new(one) as Arc<dyn Kernels>));
    all
}

/// Bytes that look like quantised vectors, all bytes, and the ends of the range on their own.
fn bytes(len: impl Into<proptest::collection::SizeRange>) -> impl Strategy<Value = Vec<i8>> {
    let len = len.into();
    prop_oneof![
        vec(any::<i8>(), len.clone()),
        vec(-127_i8..=127, len.clone()),
        vec(prop_oneof![Just(127_i8), Just(-127), Just(-128)], len.clone()),
        vec(prop_oneof![Just(-128_i8), Just(0)], len.clone()),
        vec(Just(0_i8), len),
    ]
}

/// Bits of halves: all of them, those of unit vectors, denormals, and what isn't a number.
fn bits(len: impl Into<proptest::collection::SizeRange>) -> impl Strategy<Value = Vec<u16>> {
    let len = len.into();
    let unit = (-1.0_f32..=1.0).prop_map(|x| f16::from_f32(x).to_bits());
    let denormal = prop_oneof![1_u16..0x400, 0x8001_u16..0x8400];
    let bad = prop_oneof![Just(0x7c00_u16), Just(0xfc00), Just(0x7e00), Just(0xffff), Just(0x7c01)];
    prop_oneof![
        4 => vec(unit.clone(), len.clone()),
        2 => vec(any::<u16>(), len.clone()),
        2 => vec(denormal, len.clone()),
        1 => vec(prop_oneof![Just(0x7bff_u16), Just(0xfbff)], len.clone()),
        1 => vec(Just(0_u16), len.clone()),
        2 => vec(prop_oneof![20 => unit, 1 => bad], len),
    ]
}

/// Numbers of vectors, and any others.
fn number() -> impl Strategy<Value = f32> {
    prop_oneof![8 => -1.0_f32..=1.0, 1 => any::<f32>(), 1 => Just(0.0)]
}

/// The same number where it is one, up to the rounding of its sums; the same kind of no number.
fn agree(found: f32, expected: f32, query: &[u16], row: &[u16]) -> bool {
    if !expected.is_finite() {
        return found.is_nan() == expected.is_nan() && (found.is_nan() || found == expected);
    }
    let size = |bits: &u16| f64::from(f16::from_bits(*bits)).abs();
    let sizes: f64 = query.iter().zip(row).map(|(a, b)| size(a) * size(b)).sum();
    let terms = query.len().min(row.len()) as f64;
    f64::from(found - expected).abs() <= sizes * terms.max(1.0) * f64::from(f32::EPSILON)
}

proptest! {
    #[test]
    fn int8_rows_are_the_reference_to_the_bit(
        (query, rows) in (0..300_usize).prop_flat_map(|dims| (bytes(dims), bytes(0..dims * 11 + 2))),
        places in 0..13_usize,
    ) {
        let mut expected = vec![1; places];
        Scalar.dot_rows_i8(&query, &rows, &mut expected);
        for kernels in kernels() {
            let mut found = vec![2; places];
            kernels.dot_rows_i8(&query, &rows, &mut found);
            prop_assert_eq!(&found, &expected);
        }
    }

    #[test]
    fn sums_of_rows_are_the_reference_to_the_bit(
        (len, weights, rows) in prop_oneof![0..150_usize, (0..4_usize).prop_map(|n| n * 64)]
            .prop_flat_map(|len| (Just(len), vec(number(), 0..9), vec(number(), len * 5 + 1))),
    ) {
        let mut expected = vec![0.25; len];
        Scalar.add_rows(&weights, &rows, &mut expected);
        for kernels in kernels() {
            let mut found = vec![0.25; len];
            kernels.add_rows(&weights, &rows, &mut found);
            let same = |(a, b): (&f32, &f32)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
            prop_assert!(found.iter().zip(&expected).all(same), "{found:?} for {expected:?}");
        }
    }

    #[test]
    fn sums_of_rows_for_several_lists_are_what_each_is_alone(
        (len, count, weights, rows) in prop_oneof![1..50_usize, (1..8_usize).prop_map(|n| n * 16)]
            .prop_flat_map(|len| (Just(len), 1..9_usize, 0..11_usize))
            .prop_flat_map(|(len, count, lists)| {
                let weights = vec(number(), lists * count);
                (Just(len), Just(count), weights, vec(number(), len * 5 + 1))
            }),
    ) {
        let mut expected = vec![0.25; weights.len() / count * len];
        for (weights, out) in weights.chunks_exact(count).zip(expected.chunks_exact_mut(len)) {
            Scalar.add_rows(weights, &rows, out);
        }
        for kernels in kernels() {
            let mut found = vec![0.25; expected.len()];
            kernels.add_rows_each(count, &weights, &rows, &mut found);
            let same = |(a, b): (&f32, &f32)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
            prop_assert!(found.iter().zip(&expected).all(same), "{found:?} for {expected:?}");
        }
    }

    #[test]
    fn halves_are_the_reference_up_to_rounding(query in bits(0..600), row in bits(0..600)) {
        let expected = Scalar.dot_f16(&query, &row);
        for kernels in kernels() {
            let found = kernels.dot_f16(&query, &row);
            prop_assert!(agree(found, expected, &query, &row), "{found} for {expected}");
        }
    }
}

/// Each pair of bytes in each place of a step, where the others are 0.
#[test]
fn every_product_of_two_bytes_is_right_in_every_lane() {
    for kernels in kernels() {
        for lane in [0, 1, 7, 8, 15, 16, 31, 32, 36] {
            let mut rows = vec![0_i8; 37 * 256];
            for (row, byte) in rows.chunks_exact_mut(37).zip(i8::MIN..=i8::MAX) {
                row[lane] = byte;
            }
            for number in i8::MIN..=i8::MAX {
                let mut query = [0_i8; 37];
                query[lane] = number;
                let mut out = [0; 256];
                kernels.dot_rows_i8(&query, &rows, &mut out);
                for (byte, product) in (i8::MIN..=i8::MAX).zip(out) {
                    assert_eq!(product, i32::from(number) * i32::from(byte));
                }
            }
        }
    }
}

/// Each half times one, in each place of a step.
#[test]
fn every_half_is_widened_exactly() {
    let one = f16::ONE.to_bits();
    for kernels in kernels() {
        for lane in [0, 3, 7, 8, 10] {
            let mut query = [0_u16; 11];
            query[lane] = one;
            for bits in 0..=u16::MAX {
                let mut row = [0_u16; 11];
                row[lane] = bits;
                let found = kernels.dot_f16(&query, &row);
                let expected = f16::from_bits(bits);
                assert!(found == expected.to_f32() || found.is_nan() && expected.is_nan());
            }
        }
    }
}

/// In rows that are worked at together, in one that is left, and with numbers left of each.
#[test]
fn sums_wrap_as_the_reference_does() {
    let long = vec![-127_i8; 140_003];
    let rows = long.repeat(5);
    for kernels in kernels() {
        let mut found = [0; 5];
        let mut expected = [0; 5];
        Scalar.dot_rows_i8(&long, &rows, &mut expected);
        kernels.dot_rows_i8(&long, &rows, &mut found);
        assert_eq!(found, expected);
    }
}
