//! From a bundle to records: all of it in one step, or nothing.

use std::io::BufRead;

use garret_core::id::SessionId;
use redb::WriteTransaction;

use crate::bundle::error::{ImportError, Place};
use crate::bundle::frames;
use crate::bundle::frames::FrameReader;
use crate::bundle::lines::LineReader;
use crate::bundle::record::{BundleCounts, Record};
use crate::bundle::take::{Stop, Taker};
use crate::ground::error::Fault;
use crate::open::Open;

/// What an import does with a session whose name is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Taken {
    /// It is an error, and nothing is imported.
    #[default]
    Refuse,
    /// The imported session gets the first name that is free: `name-2`, `name-3` and so on.
    Rename,
}

/// What was imported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImportReport {
    /// The namespace that was exported.
    pub namespace: String,
    /// What was in the bundle.
    pub counts: BundleCounts,
    /// Facts among them that this namespace had already.
    pub known_facts: u64,
    /// Sessions that got another name: theirs, and that.
    pub renamed: Vec<(SessionId, SessionId)>,
}

/// Bytes of pages that wait in memory; more go to the medium, where no reader sees them before the
/// commit.
const MOST_WAITING: usize = 4 << 20;

pub(crate) fn take_all<R: BufRead>(
    open: &mut Open,
    reader: &mut Reader<R>,
    taken: Taken,
) -> Result<Result<ImportReport, ImportError>, Fault> {
    // From here on all that isn't on the medium is this import's alone.
    open.fold()?;
    open.link.spill(Some(MOST_WAITING));
    let done = take_and_commit(open, reader, taken);
    open.link.spill(None);
    done
}

fn take_and_commit<R: BufRead>(
    open: &mut Open,
    reader: &mut Reader<R>,
    taken: Taken,
) -> Result<Result<ImportReport, ImportError>, Fault> {
    let transaction = open.database.begin_write()?;
    let (report, hash) = match fill(&transaction, reader, taken)? {
        Ok(filled) => filled,
        Err(error) => return Ok(Err(error)),
    };
    let place = open.journal.next(&[b"bundle".as_slice(), &hash].concat());
    let counts = &report.counts;
    open.index.lose(counts.turns + counts.replies + counts.facts);
    open.commit(transaction, place)?;
    Ok(Ok(report))
}

/// Everything, up to the end; also the hash of all before it.
fn fill<R: BufRead>(
    transaction: &WriteTransaction,
    reader: &mut Reader<R>,
    taken: Taken,
) -> Result<Result<(ImportReport, [u8; 32]), ImportError>, Fault> {
    let mut taker = Taker::new(transaction, taken)?;
    loop {
        let Next { record, before, at } = match reader.next() {
            Ok(next) => next,
            Err(error) => return Ok(Err(error)),
        };
        let is_end = matches!(record, Record::End(_));
        if let Err(stop) = taker.take(record, before) {
            return stopped(stop, at);
        }
        if is_end {
            if let Err(error) = reader.end() {
                return Ok(Err(error));
            }
            return match taker.finish() {
                Ok(report) => Ok(Ok((report, before))),
                Err(stop) => stopped(stop, at),
            };
        }
    }
}

fn stopped<T>(stop: Stop, at: Place) -> Result<Result<T, ImportError>, Fault> {
    match stop {
        Stop::Fault(fault) => Err(fault),
        Stop::Wrong(why) => Ok(Err(ImportError::Damaged { at, why })),
        Stop::Exists(session) => Ok(Err(ImportError::SessionExists { at, session })),
    }
}

/// A record that was read.
pub(crate) struct Next<'a> {
    pub(crate) record: Record<'a>,
    /// Hash of everything before it.
    pub(crate) before: [u8; 32],
    pub(crate) at: Place,
}

pub(crate) enum Reader<R> {
    Frames(FrameReader<R>),
    Lines(LineReader<R>),
}

impl<R: BufRead> Reader<R> {
    /// Reads what comes before the first record; also the namespace.
    pub(crate) fn begin(mut from: R) -> Result<(Self, String), ImportError> {
        let at = Place::Frame(0);
        let start = from.fill_buf().map_err(|source| ImportError::From { at, source })?;
        match start.first() {
            None => Err(ImportError::CutShort { at }),
            Some(b'{') => LineReader::begin(from).map(|(reader, of)| (Self::Lines(reader), of)),
            Some(byte) if *byte == frames::MAGIC[0] => {
                FrameReader::begin(from).map(|(reader, of)| (Self::Frames(reader), of))
            }
            Some(_) => Err(ImportError::NotABundle),
        }
    }

    fn next(&mut self) -> Result<Next<'_>, ImportError> {
        match self {
            Self::Frames(reader) => reader.next(),
            Self::Lines(reader) => reader.next(),
        }
    }

    fn end(&mut self) -> Result<(), ImportError> {
        match self {
            Self::Frames(reader) => reader.end(),
            Self::Lines(reader) => reader.end(),
        }
    }
}
