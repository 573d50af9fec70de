//! What a figure was measured on, and what the machine can do at most.

use std::hint::black_box;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::conditions;

/// Prints device and build.
pub(crate) fn print() {
    conditions::print_device();
    println!(
        "flags    garret {}, {}, one thread each",
        env!("CARGO_PKG_VERSION"),
        conditions::BUILD
    );
}

/// Processor time of this thread so far.
pub(crate) fn thread_time() -> Duration {
    spent(ClockId::ThreadCPUTime)
}

/// Processor time of this process so far.
pub(crate) fn process_time() -> Duration {
    spent(ClockId::ProcessCPUTime)
}

fn spent(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Microseconds that something took.
#[derive(Clone, Copy)]
pub(crate) struct Took {
    pub(crate) wall_us: f64,
    pub(crate) cpu_us: f64,
}

/// What `act` gives and how long it takes.
pub(crate) fn timed<T>(act: impl FnOnce() -> T) -> (T, Took) {
    let (began, before) = (Instant::now(), thread_time());
    let result = act();
    let cpu_us = (thread_time() - before).as_secs_f64() * 1e6;
    (result, Took { wall_us: began.elapsed().as_secs_f64() * 1e6, cpu_us })
}

/// How fast one thread reads from memory.
pub(crate) struct Bandwidth(Vec<u64>);

impl Bandwidth {
    /// With more bytes than any cache holds.
    pub(crate) fn new() -> Self {
        Self((0..BUFFER as u64 / 8).collect())
    }

    /// Bytes a second of one pass, by processor time.
    pub(crate) fn pass(&self) -> f64 {
        let (sum, took) = timed(|| sum(black_box(&self.0)));
        black_box(sum);
        BUFFER as f64 / (took.cpu_us / 1e6)
    }
}

const BUFFER: usize = 256 << 20;

/// Many sums at a time, so that only memory limits it.
fn sum(words: &[u64]) -> u64 {
    let mut sums = [0_u64; 32];
    let (chunks, rest) = words.as_chunks::<32>();
    for chunk in chunks {
        sums.iter_mut().zip(chunk).for_each(|(sum, word)| *sum = sum.wrapping_add(*word));
    }
    sums.iter().chain(rest).fold(0, |sum, word| sum.wrapping_add(*word))
}

/// A number of bytes in `/proc/self/status`, such as `VmRSS`.
pub(crate) fn status_bytes(name: &str) -> Option<f64> {
    field(&std::fs::read_to_string("/proc/self/status").ok()?, name)
}

fn field(status: &str, name: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let kilobytes: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes * 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_a_status_are_bytes() {
        let status = "Name:\tx\nVmRSS:\t    2048 kB\nVmRSSx:\t 1 kB\n";
        assert_eq!(field(status, "VmRSS"), Some(2048.0 * 1024.0));
        assert_eq!(field(status, "VmR"), None);
    }

    #[test]
    fn every_word_is_summed() {
        let words: Vec<u64> = (1..=1000).collect();
        assert_eq!(sum(&words), 500_500);
    }
}
