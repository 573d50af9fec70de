//! Clocks: the machine's, which says how far it can be believed, and one for replay.
//!
//! ```
//! use garret_core::time::{Clock, Confidence};
//! use garret_hal::clock::{ManualClock, SystemClock};
//!
//! let clock = SystemClock::new();
//! let before = clock.monotonic_us();
//! assert!(clock.monotonic_us() >= before);
//!
//! let replay = ManualClock::at_unix_ms(1_800_000_000_000);
//! replay.advance_us(1_500);
//! assert_eq!(replay.monotonic_us(), 1_500);
//! assert_eq!(replay.wall().unix_ms, 1_800_000_000_001);
//! assert_eq!(replay.wall().confidence, Confidence::Good);
//! ```

use crate::tree::Tree;
use garret_core::time::{Clock, Confidence, WallTime};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime};

/// 2026-11-01T00:00:00Z in Unix milliseconds. No copy of this program ran before, so a clock that
/// says so is wrong.
pub const FLOOR_UNIX_MS: i64 = 1_793_491_200_000;

/// The machine's clock.
///
/// How far the time of day can be believed:
///
/// | evidence | confidence |
/// |---|---|
/// | earlier than [`FLOOR_UNIX_MS`] | [`Confidence::Wrong`] |
/// | systemd-timesyncd set the clock since boot | [`Confidence::Good`] |
/// | a battery-backed clock within a day of it agrees | [`Confidence::Good`] |
/// | anything else | [`Confidence::Unsure`] |
///
/// The evidence is `/run/systemd/timesync/synchronized` and `/sys/class/rtc/rtc0/since_epoch`. The
/// reading of the battery-backed clock is compared because a Raspberry Pi 5 has the chip and
/// often no battery: it then starts at 1970. A day allows for chips that keep local time. Limits: a
/// clock set by chrony or ntpd on a machine without such a chip is `Unsure`, since the kernel's own
/// flag (`adjtimex`) can't be read without unsafe code.
#[derive(Clone, Debug)]
pub struct SystemClock {
    start: Instant,
    tree: Tree,
}

impl SystemClock {
    /// A clock whose monotonic time begins now.
    pub fn new() -> Self {
        Self { start: Instant::now(), tree: Tree::default() }
    }

    /// A clock that looks for evidence below `root` instead of `/`: for tests.
    pub fn with_root(root: PathBuf) -> Self {
        Self { start: Instant::now(), tree: Tree::at(root) }
    }

    fn confidence(&self, unix_ms: i64) -> Confidence {
        let set = self.tree.exists("/run/systemd/timesync/synchronized");
        let rtc = self.tree.read("/sys/class/rtc/rtc0/since_epoch");
        confidence(unix_ms, set, rtc.as_deref().and_then(|text| text.trim().parse().ok()))
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn monotonic_us(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    fn wall(&self) -> WallTime {
        let unix_ms = unix_ms(SystemTime::now());
        WallTime { unix_ms, confidence: self.confidence(unix_ms) }
    }
}

/// A clock that moves only when told to; a clone is another handle on the same clock.
#[derive(Clone, Debug)]
pub struct ManualClock {
    state: Arc<Mutex<Manual>>,
}

impl ManualClock {
    /// A clock at `unix_ms` milliseconds since 1970, believed ([`Confidence::Good`]), whose
    /// monotonic time is 0.
    pub fn at_unix_ms(unix_ms: i64) -> Self {
        let wall_us = unix_ms.saturating_mul(1_000);
        let state = Manual { monotonic_us: 0, wall_us, confidence: Confidence::Good };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Lets `us` microseconds pass, on both the monotonic and the wall clock.
    pub fn advance_us(&self, us: u64) {
        let mut state = self.state();
        state.monotonic_us = state.monotonic_us.saturating_add(us);
        state.wall_us = state.wall_us.saturating_add_unsigned(us);
    }

    /// Sets the time of day, forward or back, as a time source does; monotonic time stands still.
    pub fn set_wall(&self, wall: WallTime) {
        let mut state = self.state();
        state.wall_us = wall.unix_ms.saturating_mul(1_000);
        state.confidence = wall.confidence;
    }

    // No code panics while it holds the lock, so a poisoned one still guards a whole state.
    fn state(&self) -> MutexGuard<'_, Manual> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for ManualClock {
    fn monotonic_us(&self) -> u64 {
        self.state().monotonic_us
    }

    fn wall(&self) -> WallTime {
        let state = self.state();
        WallTime { unix_ms: state.wall_us.div_euclid(1_000), confidence: state.confidence }
    }
}

#[derive(Debug)]
struct Manual {
    monotonic_us: u64,
    wall_us: i64,
    confidence: Confidence,
}

/// Returns how far `unix_ms` can be believed, given whether a time source set it since boot and the
/// seconds since 1970 that a battery-backed clock keeps.
fn confidence(unix_ms: i64, set_since_boot: bool, rtc_s: Option<i64>) -> Confidence {
    let backed = rtc_s.is_some_and(|rtc_s| rtc_s.saturating_mul(1_000).abs_diff(unix_ms) <= DAY_MS);
    match unix_ms {
        _ if unix_ms < FLOOR_UNIX_MS => Confidence::Wrong,
        _ if set_since_boot || backed => Confidence::Good,
        _ => Confidence::Unsure,
    }
}

fn unix_ms(time: SystemTime) -> i64 {
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |ms| -ms),
    }
}

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::fixture;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::time::Duration;

    const NOW: i64 = FLOOR_UNIX_MS + 86_400_000 * 30;

    fn at(files: &[(&str, &str)], unix_ms: i64) -> Confidence {
        let dir = fixture::tree(files);
        SystemClock::with_root(dir.path().to_path_buf()).confidence(unix_ms)
    }

    #[test]
    fn the_floor_is_the_first_of_november_2026() {
        // 2026-01-01 is 20,454 days after 1970-01-01; November 1st is the 305th day of 2026.
        assert_eq!(FLOOR_UNIX_MS, (20_454 + 304) * 86_400_000);
    }

    #[test]
    fn a_bare_machine_is_unsure() {
        assert_eq!(at(&[], NOW), Confidence::Unsure);
    }

    #[test]
    fn a_time_source_makes_it_good() {
        assert_eq!(at(&[("/run/systemd/timesync/synchronized", "")], NOW), Confidence::Good);
    }

    #[test]
    fn a_battery_backed_clock_makes_it_good_only_if_it_agrees() {
        let rtc =
            |seconds: i64| at(&[("/sys/class/rtc/rtc0/since_epoch", &format!("{seconds}\n"))], NOW);
        let now_s = NOW / 1_000;
        assert_eq!(rtc(now_s), Confidence::Good);
        assert_eq!(rtc(now_s + 14 * 3_600), Confidence::Good);
        assert_eq!(rtc(now_s - 86_400), Confidence::Good);
        assert_eq!(rtc(now_s - 86_401), Confidence::Unsure);
        // No battery: the chip counts from 1970.
        assert_eq!(rtc(4_000), Confidence::Unsure);
        assert_eq!(at(&[("/sys/class/rtc/rtc0/since_epoch", "x")], NOW), Confidence::Unsure);
    }

    #[test]
    fn the_running_clock_measures_and_reads_the_day() {
        let clock = SystemClock::new();
        let before = unix_ms(SystemTime::now());
        let wall = clock.wall().unix_ms;
        assert!(before <= wall && wall <= unix_ms(SystemTime::now()));
    }

    #[test]
    fn moments_before_1970_are_negative() {
        assert_eq!(unix_ms(SystemTime::UNIX_EPOCH - Duration::from_millis(1_500)), -1_500);
        assert_eq!(unix_ms(SystemTime::UNIX_EPOCH), 0);
    }

    #[test]
    fn a_set_wall_clock_leaves_monotonic_time_alone() {
        let clock = ManualClock::at_unix_ms(NOW);
        let handle = clock.clone();
        handle.advance_us(999);
        handle.set_wall(WallTime { unix_ms: -1, confidence: Confidence::Wrong });
        assert_eq!(clock.monotonic_us(), 999);
        assert_eq!(clock.wall(), WallTime { unix_ms: -1, confidence: Confidence::Wrong });
        handle.advance_us(1_000);
        assert_eq!(clock.wall().unix_ms, 0);
        handle.set_wall(WallTime { unix_ms: -2, confidence: Confidence::Wrong });
        handle.advance_us(999);
        assert_eq!(clock.wall().unix_ms, -2, "a millisecond not yet over doesn't count");
    }

    proptest! {
        #[test]
        fn before_the_floor_no_evidence_helps(
            ms in i64::MIN..FLOOR_UNIX_MS,
            set: bool,
            rtc: Option<i64>,
        ) {
            prop_assert_eq!(confidence(ms, set, rtc), Confidence::Wrong);
        }

        #[test]
        fn after_the_floor_it_is_never_wrong(ms in FLOOR_UNIX_MS.., set: bool, rtc: Option<i64>) {
            let found = confidence(ms, set, rtc);
            prop_assert!(found == Confidence::Good || (found == Confidence::Unsure && !set));
        }

        #[test]
        fn manual_time_never_goes_back(start: i64, steps in vec(any::<u64>(), 0..9)) {
            let clock = ManualClock::at_unix_ms(start);
            for step in steps {
                let before = clock.monotonic_us();
                let wall = clock.wall().unix_ms;
                clock.advance_us(step);
                prop_assert_eq!(clock.monotonic_us(), before.saturating_add(step));
                prop_assert!(clock.wall().unix_ms >= wall);
            }
        }
    }
}
