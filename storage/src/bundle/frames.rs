//! A bundle as bytes: frames in postcard, each with a check of everything up to it.
//!
//! `FORMAT.md`, "Bundles", has the bytes.

use std::io::{self, Read, Write};

use sha2::{Digest as _, Sha256};

use crate::bundle::error::{ImportError, Place};
use crate::bundle::import::Next;
use crate::bundle::record::{End, Record};
use crate::ground::codec::SEAL;
use crate::ground::limits::MAX_BYTES;

/// First bytes of a bundle.
pub(crate) const MAGIC: [u8; 16] = *b"Garret bundle\r\n\x1a";
/// Version that is written; the highest that can be read.
pub(crate) const VERSION: u32 = 1;
/// Largest frame: three of the largest texts, and what belongs to them.
const MAX_FRAME: usize = 3 * MAX_BYTES + (64 << 10);

/// Writes frames.
pub(crate) struct FrameWriter<W> {
    out: W,
    hash: Sha256,
}

impl<W: Write> FrameWriter<W> {
    pub(crate) fn begin(out: W, namespace: &str) -> io::Result<Self> {
        let mut writer = Self { out, hash: Sha256::new() };
        writer.put(&MAGIC)?;
        writer.put(&VERSION.to_le_bytes())?;
        let len = u16::try_from(namespace.len()).map_err(io::Error::other)?;
        writer.put(&len.to_le_bytes())?;
        writer.put(namespace.as_bytes())?;
        writer.seal()?;
        Ok(writer)
    }

    pub(crate) fn write(&mut self, record: &Record<'_>) -> io::Result<()> {
        let payload = postcard::to_allocvec(record).map_err(io::Error::other)?;
        let len = u32::try_from(payload.len()).map_err(io::Error::other)?;
        self.put(&len.to_le_bytes())?;
        self.put(&payload)?;
        self.seal()
    }

    pub(crate) fn end(mut self, mut end: End) -> io::Result<()> {
        end.sha256 = Some(self.hash.clone().finalize().into());
        self.write(&Record::End(end))?;
        self.out.flush()
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hash.update(bytes);
        self.out.write_all(bytes)
    }

    fn seal(&mut self) -> io::Result<()> {
        let check = check(&self.hash);
        self.put(&check)
    }
}

/// Reads frames.
pub(crate) struct FrameReader<R> {
    from: R,
    hash: Sha256,
    frame: u64,
    payload: Vec<u8>,
}

impl<R: Read> FrameReader<R> {
    /// Reads what comes before the first frame. Also the namespace.
    pub(crate) fn begin(from: R) -> Result<(Self, String), ImportError> {
        let mut reader = Self { from, hash: Sha256::new(), frame: 0, payload: Vec::new() };
        if reader.take()? != MAGIC {
            return Err(ImportError::NotABundle);
        }
        let version = u32::from_le_bytes(reader.take()?);
        if version > VERSION {
            return Err(ImportError::Newer { found: version, known: VERSION });
        }
        let len = u16::from_le_bytes(reader.take()?);
        reader.fill(usize::from(len))?;
        let namespace = String::from_utf8(reader.payload.clone());
        reader.check()?;
        match namespace {
            Ok(namespace) if version > 0 => Ok((reader, namespace)),
            _ => Err(reader.damaged("its version or namespace can't be")),
        }
    }

    /// The next record.
    pub(crate) fn next(&mut self) -> Result<Next<'_>, ImportError> {
        self.frame += 1;
        let (at, before) = (self.place(), self.hash.clone().finalize().into());
        let bytes = usize::try_from(u32::from_le_bytes(self.take()?)).unwrap_or(usize::MAX);
        if bytes > MAX_FRAME {
            return Err(self.damaged("its length can't be"));
        }
        self.fill(bytes)?;
        self.check()?;
        let damaged = || ImportError::Damaged { at, why: "it can't be read".to_owned() };
        match postcard::take_from_bytes(&self.payload) {
            // Without it the last frame could be another's.
            Ok((Record::End(End { sha256: None, .. }), _)) => Err(damaged()),
            Ok((record, [])) => Ok(Next { record, before, at }),
            _ => Err(damaged()),
        }
    }

    /// Sees to it that nothing follows.
    pub(crate) fn end(&mut self) -> Result<(), ImportError> {
        match self.from.read_exact(&mut [0]) {
            Ok(()) => Err(self.damaged("something follows the end")),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(()),
            Err(source) => Err(ImportError::From { at: self.place(), source }),
        }
    }

    fn place(&self) -> Place {
        Place::Frame(self.frame)
    }

    fn damaged(&self, why: &str) -> ImportError {
        ImportError::Damaged { at: self.place(), why: why.to_owned() }
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], ImportError> {
        let mut bytes = [0; N];
        self.from.read_exact(&mut bytes).map_err(|source| failed(self.place(), source))?;
        self.hash.update(bytes);
        Ok(bytes)
    }

    /// Reads so many bytes; memory is taken as they come, not as they are promised.
    fn fill(&mut self, len: usize) -> Result<(), ImportError> {
        self.payload.clear();
        let limit = u64::try_from(len).unwrap_or(u64::MAX);
        let read = self.from.by_ref().take(limit).read_to_end(&mut self.payload);
        let read = read.map_err(|source| failed(self.place(), source))?;
        if read < len {
            return Err(ImportError::CutShort { at: self.place() });
        }
        self.hash.update(&self.payload);
        Ok(())
    }

    fn check(&mut self) -> Result<(), ImportError> {
        let expected = check(&self.hash);
        if self.take()? == expected { Ok(()) } else { Err(self.damaged("its check is wrong")) }
    }
}

fn check(hash: &Sha256) -> [u8; SEAL] {
    let [a, b, c, d, e, f, g, h, ..] = <[u8; 32]>::from(hash.clone().finalize());
    [a, b, c, d, e, f, g, h]
}

fn failed(at: Place, source: io::Error) -> ImportError {
    match source.kind() {
        io::ErrorKind::UnexpectedEof => ImportError::CutShort { at },
        _ => ImportError::From { at, source },
    }
}
