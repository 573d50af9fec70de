//! Media: where bytes are kept, as implementations of [`Medium`].
//!
//! | type | holds | for |
//! |---|---|---|
//! | [`FileMedium`] | one regular file | production |
//! | [`RamMedium`] | memory | conversations that must leave no trace, tests |
//! | [`FaultyMedium`] | memory that loses power or fills up when told to | crash proofs |
//!
//! ```
//! use garret_core::medium::Medium;
//! use garret_hal::media::RamMedium;
//!
//! let medium = RamMedium::new();
//! medium.write_at(4, b"attic")?;
//! let mut out = [0; 9];
//! medium.read_at(0, &mut out)?;
//! assert_eq!(&out, b"\0\0\0\0attic");
//! # Ok::<(), garret_core::medium::MediumError>(())
//! ```
//!
//! All three agree where the port leaves room: a read of no bytes succeeds anywhere, a write of no
//! bytes never grows the medium, a write past the end fills the gap with zeros, and a range that
//! ends beyond `i64::MAX` is [`Full`] for a write and [`OutOfRange`] for a read.
//!
//! [`Full`]: garret_core::medium::MediumError::Full
//! [`OutOfRange`]: garret_core::medium::MediumError::OutOfRange

use garret_core::medium::{Medium, MediumError};

mod bytes;
mod direct;
mod faulty;
mod file;
mod ram;

pub use faulty::{Cut, Faults, FaultyMedium, Op, Recording, SECTOR};
pub use file::FileMedium;
pub use ram::RamMedium;

/// The last byte that may be used, as on a Linux file.
const MAX_LEN: u64 = i64::MAX.unsigned_abs();

/// The end of `len` bytes at `offset`, where a medium may be that long.
fn end_of(offset: u64, len: usize) -> Option<u64> {
    let len = u64::try_from(len).ok()?;
    offset.checked_add(len).filter(|end| *end <= MAX_LEN)
}

/// Reads all of `medium` into memory.
///
/// # Errors
/// As [`Medium::read_at`]; [`MediumError::Full`] when memory doesn't hold it.
pub fn read_all(medium: &dyn Medium) -> Result<Vec<u8>, MediumError> {
    let len = usize::try_from(medium.len()?).map_err(|_| MediumError::Full)?;
    let mut out = Vec::new();
    bytes::resize(&mut out, len)?;
    medium.read_at(0, &mut out)?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        Write(u64, Vec<u8>),
        SetLen(u64),
        Read(u64, usize),
        Sync,
    }

    fn step() -> impl Strategy<Value = Step> {
        let at = prop_oneof![0..3_000_u64, Just(u64::MAX), Just(MAX_LEN)];
        prop_oneof![
            (at.clone(), vec(any::<u8>(), 0..1_500)).prop_map(|(at, bytes)| Step::Write(at, bytes)),
            (0..3_000_u64).prop_map(Step::SetLen),
            (at, 0..1_500_usize).prop_map(|(at, len)| Step::Read(at, len)),
            Just(Step::Sync),
        ]
    }

    /// The port's contract, spelt out on a vector.
    fn on_model(model: &mut Vec<u8>, step: &Step) -> Result<Vec<u8>, MediumError> {
        match step {
            Step::Write(at, bytes) => {
                if bytes.is_empty() {
                    return Ok(Vec::new());
                }
                if *at > 1 << 20 {
                    return Err(MediumError::Full);
                }
                let at = *at as usize;
                model.resize(model.len().max(at + bytes.len()), 0);
                model[at..at + bytes.len()].copy_from_slice(bytes);
            }
            Step::SetLen(len) => model.resize(*len as usize, 0),
            Step::Read(_, 0) => {}
            Step::Read(at, len) => {
                let at = usize::try_from(*at).unwrap();
                let range = at..at.saturating_add(*len);
                return model.get(range).map(<[u8]>::to_vec).ok_or(MediumError::OutOfRange);
            }
            Step::Sync => {}
        }
        Ok(Vec::new())
    }

    fn on_medium(medium: &dyn Medium, step: &Step) -> Result<Vec<u8>, MediumError> {
        match step {
            Step::Write(at, bytes) => medium.write_at(*at, bytes).map(|()| Vec::new()),
            Step::SetLen(len) => medium.set_len(*len).map(|()| Vec::new()),
            Step::Read(at, len) => {
                let mut out = vec![0xaa; *len];
                medium.read_at(*at, &mut out).map(|()| out)
            }
            Step::Sync => medium.sync().map(|()| Vec::new()),
        }
    }

    fn check(
        medium: &dyn Medium,
        steps: &[Step],
        may_refuse_to_show: bool,
    ) -> Result<(), TestCaseError> {
        let mut model = Vec::new();
        for step in steps {
            prop_assert_eq!(on_medium(medium, step), on_model(&mut model, step));
            prop_assert_eq!(medium.len()?, model.len() as u64);
            prop_assert_eq!(medium.is_empty()?, model.is_empty());
        }
        prop_assert_eq!(read_all(medium)?, &*model);
        let shown = medium.with_bytes(0, model.len(), &mut |bytes| assert_eq!(bytes, model));
        prop_assert!(shown || may_refuse_to_show);
        Ok(())
    }

    proptest! {
        #[test]
        fn ram_is_a_vector(steps in vec(step(), 0..40)) {
            check(&RamMedium::new(), &steps, false)?;
        }

        #[test]
        fn without_faults_the_faulty_medium_is_a_vector(steps in vec(step(), 0..40)) {
            check(&FaultyMedium::new(Faults::default()), &steps, true)?;
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_file_is_a_vector(steps in vec(step(), 0..20)) {
            let dir = tempfile::tempdir()?;
            let path = dir.path().join("medium");
            check(&FileMedium::open(&path)?, &steps, true)?;
            // What one handle wrote, the next one sees.
            let again = read_all(&FileMedium::open(&path)?)?;
            prop_assert_eq!(again, std::fs::read(&path)?);
        }
    }

    #[test]
    fn the_longest_range_is_refused_without_allocating() {
        for medium in [&RamMedium::new() as &dyn Medium, &FaultyMedium::new(Faults::default())] {
            assert_eq!(medium.set_len(u64::MAX), Err(MediumError::Full));
            assert_eq!(medium.set_len(MAX_LEN), Err(MediumError::Full));
            assert_eq!(medium.len(), Ok(0));
        }
    }
}
