//! The machine that a figure was measured on, its clocks, and what it can do at most.

use std::hint::black_box;
use std::time::{Duration, Instant};

use garret_hal::sensors::{CpuSensor, Machine, MemorySensor};
use rustix::time::{ClockId, clock_gettime};

/// Prints device and build.
pub(crate) fn print() {
    print_device();
    println!("flags    garret {}, {}, one thread each", env!("CARGO_PKG_VERSION"), BUILD);
}

/// Prints the device.
pub(crate) fn print_device() {
    let machine = Machine::new();
    let cpu = machine.cpu();
    let memory = machine.memory().map_or(0, |memory| memory.total >> 20);
    let name = cpu_name().unwrap_or_else(|| "unknown processor".into());
    println!("device   {name}, {} threads seen, {memory} MiB", cpu.logical);
}

/// The build, in words.
pub(crate) const BUILD: &str =
    if cfg!(debug_assertions) { "debug build: not comparable" } else { "release build" };

fn cpu_name() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Returns the processor time of this thread so far.
pub(crate) fn thread_time() -> Duration {
    spent(ClockId::ThreadCPUTime)
}

/// Returns the processor time of this process so far.
pub(crate) fn process_time() -> Duration {
    spent(ClockId::ProcessCPUTime)
}

fn spent(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// The time that something took, in microseconds.
#[derive(Clone, Copy)]
pub(crate) struct TimeSpent {
    pub(crate) wall_us: f64,
    pub(crate) cpu_us: f64,
}

/// Does `act` and measures how long it takes.
pub(crate) fn timed<T>(act: impl FnOnce() -> T) -> (T, TimeSpent) {
    let began = Instant::now();
    let before = thread_time();
    let result = act();
    let cpu_us = (thread_time() - before).as_secs_f64() * 1e6;
    (result, TimeSpent { wall_us: began.elapsed().as_secs_f64() * 1e6, cpu_us })
}

/// Measures the bytes a second at which this thread reads `bytes` from memory, by processor time:
/// one after the other, or in four parts side by side, whichever is faster.
pub(crate) fn read_rate(bytes: &[i8]) -> f64 {
    let rate = |sum: fn(&[i8]) -> u64| {
        let (total, took) = timed(|| sum(black_box(bytes)));
        black_box(total);
        bytes.len() as f64 / (took.cpu_us / 1e6)
    };
    rate(sum::<1>).max(rate(sum::<4>))
}

/// Adds all words of `bytes`, many sums at a time, so that only memory limits it. A rest that
/// doesn't fill all parts is left out.
fn sum<const PARTS: usize>(bytes: &[i8]) -> u64 {
    let mut sums = [0_u64; 32];
    let (chunks, _) = bytes.as_chunks::<256>();
    let part = chunks.len() / PARTS;
    for at in 0..part {
        for chunk in (0..PARTS).map(|number| &chunks[number * part + at]) {
            let (words, _) = chunk.as_chunks::<8>();
            for (sum, word) in sums.iter_mut().zip(words) {
                *sum = sum.wrapping_add(u64::from_le_bytes(word.map(i8::cast_unsigned)));
            }
        }
    }
    sums.iter().fold(0, |sum, word| sum.wrapping_add(*word))
}

/// Reads a number of bytes in `/proc/self/status`, such as `VmRSS`.
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
        let bytes: Vec<i8> = (0..4_096).map(|i| (i % 7 == 0) as i8).collect();
        let words = bytes.as_chunks::<8>().0.iter();
        let expected = words.map(|word| u64::from_le_bytes(word.map(i8::cast_unsigned)));
        let expected: u64 = expected.fold(0, u64::wrapping_add);
        assert_eq!([sum::<1>(&bytes), sum::<4>(&bytes)], [expected; 2]);
    }
}
