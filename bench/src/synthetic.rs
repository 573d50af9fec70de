//! Made-up vectors whose spectrum decays as that of real embeddings does.

/// Numbers without a pattern, the same for the same seed (splitmix64).
#[derive(Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Draws a number of at least 0 and less than 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Draws a number less than `bound`, which isn't 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.unit() * bound as f64) as usize
    }

    /// One of `items`, which aren't none.
    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// Draws a number of the normal distribution.
    pub(crate) fn normal(&mut self) -> f32 {
        let a = 1.0 - self.unit();
        let b = self.unit();
        ((-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()) as f32
    }
}

/// Draws vectors of length 1.
pub(crate) struct Source {
    /// Row by row, lower triangle with zeros above: noise times this has the covariance.
    factor: Vec<f32>,
    mean: Vec<f32>,
    random: Random,
}

impl Source {
    /// Variances that fall off as 1/(i+3)^1.2 along directions that aren't the axes. The first
    /// third of the directions holds 86% of the variance; of MiniLM's 87%.
    pub(crate) fn decaying(dims: usize, seed: u64) -> Self {
        let mut random = Random::new(seed);
        // Orthonormal directions from noise, by Gram-Schmidt.
        let mut directions: Vec<Vec<f32>> = Vec::with_capacity(dims);
        while directions.len() < dims {
            let mut next: Vec<f32> = (0..dims).map(|_| random.normal()).collect();
            for known in directions.iter().chain(&directions) {
                let along = dot(known, &next);
                next.iter_mut().zip(known).for_each(|(next, known)| *next -= along * known);
            }
            normalise(&mut next);
            directions.push(next);
        }
        let mut covariance = vec![0.0; dims * dims];
        for (i, direction) in directions.iter().enumerate() {
            let variance = (i as f64 + 3.0).powf(-1.2);
            add_outer(&mut covariance, direction, variance);
        }
        Self { factor: cholesky(covariance, dims), mean: vec![0.0; dims], random }
    }

    /// A source drawn like `samples`: by their mean and covariance.
    pub(crate) fn like(samples: &[Vec<f32>], seed: u64) -> Option<Self> {
        let dims = samples.first()?.len();
        let share = 1.0 / samples.len() as f64;
        let mut mean = vec![0.0_f32; dims];
        for sample in samples {
            mean.iter_mut().zip(sample).for_each(|(mean, x)| *mean += x * share as f32);
        }
        let mut covariance = vec![0.0; dims * dims];
        for sample in samples {
            let centred: Vec<f32> = sample.iter().zip(&mean).map(|(x, mean)| x - mean).collect();
            add_outer(&mut covariance, &centred, share);
        }
        Some(Self { factor: cholesky(covariance, dims), mean, random: Random::new(seed) })
    }

    /// `count` vectors, one after the other.
    pub(crate) fn draw(&mut self, count: usize) -> Vec<f32> {
        let dims = self.mean.len();
        let mut all = Vec::with_capacity(count * dims);
        for _ in 0..count {
            let noise: Vec<f32> = (0..dims).map(|_| self.random.normal()).collect();
            let rows = self.factor.chunks_exact(dims).enumerate();
            let drawn = rows.map(|(i, row)| dot(&row[..=i], &noise[..=i]));
            let mut vector: Vec<f32> = drawn.zip(&self.mean).map(|(x, mean)| x + mean).collect();
            normalise(&mut vector);
            all.extend(vector);
        }
        all
    }
}

fn add_outer(covariance: &mut [f64], vector: &[f32], weight: f64) {
    for (row, a) in covariance.chunks_exact_mut(vector.len()).zip(vector) {
        let scaled = weight * f64::from(*a);
        row.iter_mut().zip(vector).for_each(|(sum, b)| *sum += scaled * f64::from(*b));
    }
}

/// The lower triangle L with L L^T = `matrix`; directions without variance get none.
fn cholesky(mut matrix: Vec<f64>, dims: usize) -> Vec<f32> {
    for column in 0..dims {
        for row in column..dims {
            let a = row * dims;
            let b = column * dims;
            let known: f64 = (0..column).map(|i| matrix[a + i] * matrix[b + i]).sum();
            let rest = matrix[a + column] - known;
            matrix[a + column] = if row == column {
                rest.max(0.0).sqrt()
            } else if matrix[b + column] > 1e-9 {
                rest / matrix[b + column]
            } else {
                0.0
            };
        }
    }
    let lower = |(i, x): (usize, &f64)| if i % dims <= i / dims { *x as f32 } else { 0.0 };
    matrix.iter().enumerate().map(lower).collect()
}

/// The sum of products, eight at a time so that the processor's wide registers are used.
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0_f32; 8];
    let ((a, rest_a), (b, rest_b)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    for (a, b) in a.iter().zip(b) {
        for lane in 0..8 {
            sums[lane] += a[lane] * b[lane];
        }
    }
    let rest: f32 = rest_a.iter().zip(rest_b).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f32>() + rest
}

fn normalise(vector: &mut [f32]) {
    let length = dot(vector, vector).sqrt();
    if length > 0.0 {
        vector.iter_mut().for_each(|x| *x /= length);
    }
}

/// The `k` rows with the greatest dot product for each query, by looking at all of them.
pub(crate) fn exact(rows: &[f32], queries: &[f32], dims: usize, k: usize) -> Vec<Vec<i64>> {
    let nearest = |query: &[f32]| {
        let scored = rows.chunks_exact(dims).map(|row| dot(row, query)).zip(0_i64..);
        let mut scored: Vec<_> = scored.collect();
        let best = k.min(scored.len());
        if best < scored.len() {
            scored.select_nth_unstable_by(best, |a, b| b.0.total_cmp(&a.0));
        }
        scored.truncate(best);
        scored.sort_by(|a, b| b.0.total_cmp(&a.0));
        scored.into_iter().map(|(_, id)| id).collect()
    };
    queries.chunks_exact(dims).map(nearest).collect()
}

/// The share of what should be found that was found, over all queries.
pub(crate) fn recall(found: &[Vec<i64>], wanted: &[Vec<i64>]) -> f64 {
    let hits = |(found, wanted): (&Vec<i64>, &Vec<i64>)| {
        wanted.iter().filter(|id| found.contains(id)).count()
    };
    let all: usize = wanted.iter().map(Vec::len).sum();
    found.iter().zip(wanted).map(hits).sum::<usize>() as f64 / all.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_drawn_with_the_covariance_of_the_samples() {
        // Two numbers that rise and fall together, a third that hardly moves.
        let mut random = Random::new(7);
        let sample = |_| {
            let x = random.normal();
            vec![x, 0.8 * x + 0.2 * random.normal(), 3.0]
        };
        let samples: Vec<_> = (0..2_000).map(sample).collect();
        let mut source = Source::like(&samples, 1).unwrap();
        let drawn = source.draw(2_000);
        assert_eq!(drawn, Source::like(&samples, 1).unwrap().draw(2_000));
        let mut same = 0;
        let mut lengths = 0.0;
        for vector in drawn.chunks_exact(3) {
            same += usize::from(vector[0].signum() == vector[1].signum());
            lengths += dot(vector, vector);
            assert!(vector[2] > 0.0);
        }
        assert!(same > 1_700, "{same}");
        assert!((lengths / 2_000.0 - 1.0).abs() < 1e-3);
        assert!(Source::like(&[], 1).is_none());
    }

    #[test]
    fn a_decaying_spectrum_is_not_along_the_axes() {
        let drawn = Source::decaying(48, 3).draw(500);
        let variance = |i: usize| drawn.chunks_exact(48).map(|v| v[i] * v[i]).sum::<f32>();
        let of_axes: Vec<f32> = (0..48).map(variance).collect();
        let most = of_axes.iter().copied().fold(0.0, f32::max);
        assert!(most < 500.0 * 0.2, "one axis holds {most} of 500");
    }

    #[test]
    fn exact_search_is_that_of_a_sort_and_recall_counts_what_it_shares() {
        let rows = Source::decaying(16, 5).draw(200);
        let found = exact(&rows, &rows[..32], 16, 3);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0][0], found[1][0]), (0, 1));
        for (found, query) in found.iter().zip(rows.chunks_exact(16)) {
            let mut all: Vec<_> = rows.chunks_exact(16).map(|row| dot(row, query)).collect();
            let last = all[found[2] as usize];
            all.sort_by(f32::total_cmp);
            assert_eq!(all[197], last);
        }
        assert_eq!(recall(&found, &found), 1.0);
        assert_eq!(recall(&[vec![1, 2], vec![]], &[vec![2, 9], vec![4, 5]]), 0.25);
        assert_eq!(exact(&rows[..32], &rows[..16], 16, 10)[0].len(), 2);
    }
}
