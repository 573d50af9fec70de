//! Cosines of one query, made comparable between queries and embedders.

/// How close units are to a query, in quarters of a standard deviation from the mean of all.
#[derive(Clone, Copy, Debug)]
pub(super) struct Meaning<'a> {
    cosines: &'a [f32],
    mean: f32,
    /// Four standard deviations.
    unit: f32,
}

impl<'a> Meaning<'a> {
    /// `None` where there isn't a single vector.
    pub(super) fn of(cosines: &'a [f32]) -> Option<Self> {
        let (mut sum, mut squares, mut count) = (0.0_f64, 0.0_f64, 0_u32);
        for cosine in cosines.iter().copied().filter(|cosine| cosine.is_finite()) {
            let cosine = f64::from(cosine);
            (sum, squares, count) = (sum + cosine, squares + cosine * cosine, count + 1);
        }
        if count == 0 {
            return None;
        }
        let (count, prior) = (f64::from(count), f64::from(PRIOR_UNITS));
        let mean = sum / count;
        // As if there were a few more, as usual ones are: else two units would have no scale.
        let square = (squares - sum * mean + prior * PRIOR_DEVIATION.powi(2)) / (count + prior);
        let deviation = square.max(1e-6).sqrt();
        Some(Self { cosines, mean: mean as f32, unit: 4.0 * deviation as f32 })
    }

    /// How close a unit is; 0, as the mean, without a vector.
    pub(super) fn of_unit(&self, document: u32) -> f32 {
        let cosine = self.cosines.get(document as usize).copied();
        cosine.filter(|cosine| cosine.is_finite()).map_or(0.0, |cosine| self.scaled(cosine))
    }

    /// Hands every unit that has a vector and is closer than the mean to `take`.
    pub(super) fn each(&self, mut take: impl FnMut(u32, f32)) {
        for (document, cosine) in (0..).zip(self.cosines) {
            if *cosine > self.mean {
                take(document, self.scaled(*cosine));
            }
        }
    }

    fn scaled(&self, cosine: f32) -> f32 {
        (cosine - self.mean) / self.unit
    }
}

/// What a small store is assumed to hold beside what it holds.
const PRIOR_UNITS: u32 = 8;
const PRIOR_DEVIATION: f64 = 0.12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_does_not_depend_on_the_embedder() {
        let cosines: Vec<f32> = (0..1000).map(|unit| (unit as f32).sin() * 0.1).collect();
        let other: Vec<f32> = cosines.iter().map(|cosine| 0.8 + cosine / 4.0).collect();
        let (one, other) = (Meaning::of(&cosines).unwrap(), Meaning::of(&other).unwrap());
        for unit in 0..1000 {
            assert!((one.of_unit(unit) - other.of_unit(unit)).abs() < 0.1, "{unit}");
        }
    }

    #[test]
    fn a_unit_without_a_vector_is_neither_close_nor_far() {
        let meaning = Meaning::of(&[0.9, f32::NAN, 0.1]).unwrap();
        assert_eq!((meaning.of_unit(1), meaning.of_unit(7)), (0.0, 0.0));
        assert!(meaning.of_unit(0) > 0.0);
        let mut close = Vec::new();
        meaning.each(|unit, _| close.push(unit));
        assert_eq!(close, [0]);
        assert!(Meaning::of(&[f32::NAN]).is_none() && Meaning::of(&[]).is_none());
    }
}
