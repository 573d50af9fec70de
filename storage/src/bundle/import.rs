//! From a bundle to records: all of it in one step, or nothing.

use std::io::BufRead;

use garret_core::id::SessionId;
use redb::WriteTransaction;

use crate::bundle::error::{ImportError, Place};
use crate::bundle::frames;
use crate::bundle::frames::FrameReader;
use crate::bundle::lines::LineReader;
use crate::bundle::record::{BundleCounts, Record};
use crate::bundle::take::{Refusal, Taker};
use crate::ground::error::{Abort, Fault};
use crate::open::Open;

/// The treatment of a session whose name is taken, in an import.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Taken {
    /// It is an error, and nothing is imported.
    #[default]
    Refuse,
    /// The imported session gets the first name that is free: `name-2`, `name-3` and so on.
    Rename,
}

/// The result of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImportReport {
    /// The namespace that was exported.
    pub namespace: String,
    /// Contents of the bundle.
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
) -> Result<ImportReport, Abort<ImportError>> {
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
) -> Result<ImportReport, Abort<ImportError>> {
    let transaction = open.database.begin_write()?;
    let (report, hash) = fill(&transaction, reader, taken)?;
    let place = open.journal.next(&[b"bundle".as_slice(), &hash].concat());
    let counts = &report.counts;
    open.index.lose(counts.turns + counts.replies + counts.facts);
    open.commit(transaction, place)?;
    Ok(report)
}

/// Everything, up to the end; also the hash of all before it.
fn fill<R: BufRead>(
    transaction: &WriteTransaction,
    reader: &mut Reader<R>,
    taken: Taken,
) -> Result<(ImportReport, [u8; 32]), Abort<ImportError>> {
    let mut taker = Taker::new(transaction, taken)?;
    loop {
        let Next { record, before, at } = reader.next().map_err(Abort::Refused)?;
        let is_end = matches!(record, Record::End(_));
        taker.take(record, before).map_err(|abort| refused(abort, at))?;
        if is_end {
            reader.end().map_err(Abort::Refused)?;
            let report = taker.finish().map_err(|abort| refused(abort, at))?;
            return Ok((report, before));
        }
    }
}

/// Says where in the bundle the record was that isn't taken.
fn refused(abort: Abort<Refusal>, at: Place) -> Abort<ImportError> {
    let why = match abort {
        Abort::Refused(Refusal::Exists(session)) => {
            return Abort::Refused(ImportError::SessionExists { at, session });
        }
        Abort::Refused(Refusal::Wrong(why)) => why,
        // A stamp whose clock isn't known: the bundle is wrong, not the store.
        Abort::Fault(Fault::Damaged { what: "operation", key }) => format!("{key} can't be"),
        Abort::Fault(fault) => return Abort::Fault(fault),
    };
    Abort::Refused(ImportError::Damaged { at, why })
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
