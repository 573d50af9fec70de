//! Names for new conversations: short to type, in order of time, never the same twice by accident.

use garret_core::id::SessionId;
use garret_core::time::{Clock, Confidence, Entropy, NoEntropy};
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// A name such as `2026-11-29-k3xq9a`; the date is left out when the clock is known to be wrong.
///
/// # Errors
/// When the system gives no random bytes.
pub(crate) fn new_session(
    clock: &dyn Clock,
    entropy: &dyn Entropy,
) -> Result<SessionId, NoEntropy> {
    let mut random = [0; 6];
    entropy.fill(&mut random)?;
    let letters = random.map(|byte| char::from(LETTERS[usize::from(byte) % LETTERS.len()]));
    let letters: String = letters.iter().collect();
    let wall = clock.wall();
    let date = match Timestamp::from_millisecond(wall.unix_ms) {
        Ok(time) if wall.confidence != Confidence::Wrong => {
            format!("{}-", time.to_zoned_datetime(TimeZone::system()).date())
        }
        _ => String::new(),
    };
    // At most 12 bytes of date and 6 letters: always a valid id.
    format!("{date}{letters}").parse().map_err(|_| NoEntropy)
}

/// Letters and digits, without those that look like others.
const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
