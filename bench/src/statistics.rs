//! Medians, percentiles and trends of small samples.

/// Returns the value below which `share` (0 to 1) of `values` lie, by nearest rank; NaN of none.
pub(crate) fn percentile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied().unwrap_or(f64::NAN)
}

/// Returns the middle value; NaN of none.
pub(crate) fn median(values: &[f64]) -> f64 {
    percentile(values, 0.5)
}

/// Returns how much `values` grow from one to the next, by the line that fits them best; NaN of
/// fewer than two.
pub(crate) fn slope(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let middle = (count - 1.0) / 2.0;
    let mean = values.iter().sum::<f64>() / count;
    let pairs = values.iter().enumerate().map(|(at, value)| (at as f64 - middle, value - mean));
    let (up, over) = pairs.fold((0.0, 0.0), |(up, over), (x, y)| (up + x * y, over + x * x));
    up / over
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_the_nearest() {
        let values = [5.0, 1.0, 4.0, 2.0, 3.0];
        assert_eq!(median(&values), 3.0);
        assert_eq!(percentile(&values, 0.95), 5.0);
        assert_eq!(percentile(&values, 0.0), 1.0);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn a_line_is_fitted_through_noise() {
        assert_eq!(slope(&[1.0, 3.0, 5.0, 7.0]), 2.0);
        assert_eq!(slope(&[1.0, 2.0, 1.0, 2.0, 1.0]), 0.0);
        assert!(slope(&[1.0]).is_nan());
    }
}
