//! Records as bytes: rkyv archives with a check at the end, read where they lie.

use rkyv::api::high::{HighSerializer, HighValidator};
use rkyv::bytecheck::CheckBytes;
use rkyv::rancor::Error;
use rkyv::ser::allocator::ArenaHandle;
use rkyv::util::AlignedVec;
use rkyv::{Portable, Serialize};
use sha2::{Digest as _, Sha256};

use crate::ground::error::Fault;

/// Bytes at the end of each value: the first ones of the SHA-256 of all before them.
pub(crate) const SEAL: usize = 8;

/// The check that a value of these bytes ends with.
pub(crate) fn seal(bytes: &[u8]) -> [u8; SEAL] {
    let [a, b, c, d, e, f, g, h, ..] = <[u8; 32]>::from(Sha256::digest(bytes));
    [a, b, c, d, e, f, g, h]
}

/// A value without its check, if that is right.
pub(crate) fn unseal(value: &[u8]) -> Option<&[u8]> {
    let (bytes, end) = value.split_last_chunk::<SEAL>()?;
    (seal(bytes) == *end).then_some(bytes)
}

/// The check of a value that counts under one key alone.
pub(crate) fn seal_under(key: &[u8], bytes: &[u8]) -> [u8; SEAL] {
    let hash = Sha256::new().chain_update(key).chain_update(bytes).finalize();
    let [a, b, c, d, e, f, g, h, ..] = <[u8; 32]>::from(hash);
    [a, b, c, d, e, f, g, h]
}

pub(crate) fn archive<R>(record: &R) -> Result<AlignedVec, Fault>
where
    R: for<'a> Serialize<HighSerializer<AlignedVec, ArenaHandle<'a>, Error>>,
{
    rkyv::to_bytes(record)
        .map_err(|error: Error| Fault::Engine(format!("can't encode a record: {error}")))
}

/// A record where it lies, its value checked.
pub(crate) fn access<'a, R>(
    value: &'a [u8],
    what: &'static str,
    key: impl FnOnce() -> String,
) -> Result<&'a R, Fault>
where
    R: Portable + for<'b> CheckBytes<HighValidator<'b, Error>>,
{
    let record = unseal(value).and_then(|bytes| rkyv::access::<R, Error>(bytes).ok());
    record.ok_or_else(|| Fault::Damaged { what, key: key() })
}

/// The value of a record: its bytes and their check.
pub(crate) fn encode<R>(record: &R) -> Result<AlignedVec, Fault>
where
    R: for<'a> Serialize<HighSerializer<AlignedVec, ArenaHandle<'a>, Error>>,
{
    let mut bytes = archive(record)?;
    let end = seal(&bytes);
    bytes.extend_from_slice(&end);
    Ok(bytes)
}
