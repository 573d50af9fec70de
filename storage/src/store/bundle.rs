//! Copies of a namespace: backups, exports, and what they are taken in from.

use std::io::{BufReader, BufWriter, Read, Write};
use std::sync::Arc;

use garret_core::medium::{Medium, MediumError};
use redb::ReadableDatabase as _;

use crate::bundle::backup::{Backup, BackupError};
use crate::bundle::error::{ExportError, ImportError};
use crate::bundle::export::{BUFFER, Format, Sink, Writer, all};
use crate::bundle::frames::FrameWriter;
use crate::bundle::import::{ImportReport, Reader, Taken, take_all};
use crate::bundle::lines::LineWriter;
use crate::bundle::record::BundleCounts;
use crate::ground::database::contain;
use crate::ground::error::ReadError;
use crate::open::explain;
use crate::store::Store;
use crate::store::vacuum::{Snapshot, Uncopied, rewrite};

impl Store {
    /// Copies everything that was acknowledged, as it was at one moment, to a medium that holds
    /// nothing. The copy is a whole `NAME.redb` without a journal: under that name, in any data
    /// directory, it is this namespace. It is durable when this returns, save its name: sync the
    /// directory of a new file.
    ///
    /// Others may read and write meanwhile. A copy that was cut short is no store, and can be
    /// written over. Records that are damaged are copied as they are; see [`Store::verify`].
    ///
    /// # Errors
    /// [`BackupError`].
    pub fn backup(&self, to: Box<dyn Medium>) -> Result<Backup, BackupError> {
        let to: Arc<dyn Medium> = Arc::from(to);
        let copied = self.on_snapshot(|transaction, last| {
            match rewrite(&Snapshot { transaction, last }, to.clone()) {
                Err(Uncopied::From(fault)) => Err(fault),
                copied => Ok(copied),
            }
        })?;
        let copied = copied.map_err(|why| match why {
            Uncopied::NotEmpty => BackupError::NotEmpty,
            Uncopied::To(MediumError::Full) => BackupError::Full,
            Uncopied::To(error) => BackupError::To(error),
            Uncopied::From(fault) => BackupError::From(fault.into()),
        })?;
        Ok(Backup { bytes: copied.bytes, rows: copied.rows })
    }

    /// Writes everything that was acknowledged, as it was at one moment, in a form that
    /// [`Store::import`] takes, here or elsewhere, by this version or a later one. What is made
    /// from the records, as vectors are, isn't in it, and neither are the states of sessions: what the
    /// engine notes there holds where it was noted.
    ///
    /// Others may read and write meanwhile, but an export ends with an error where the records are
    /// written anew ([`Store::compact`], [`Store::forget`]) before it is done. Memory is needed for a line about each session and the
    /// largest record.
    ///
    /// # Errors
    /// [`ExportError`], also where a record is damaged: an export that leaves one out would pass
    /// for all there is.
    pub fn export(&self, to: impl Write, format: Format) -> Result<BundleCounts, ExportError> {
        let (transaction, link) =
            self.reading(|open| Ok(Ok((open.database.begin_read()?, open.link.clone()))))?;
        let to = BufWriter::with_capacity(BUFFER, to);
        let writer = match format {
            Format::Bundle => FrameWriter::begin(to, self.namespace()).map(Writer::Frames),
            Format::Lines => LineWriter::begin(to, self.namespace()).map(Writer::Lines),
        };
        let mut sink = Sink {
            writer: writer.map_err(ExportError::To)?,
            counts: BundleCounts::default(),
            refused: None,
        };
        let done = contain(|| all(&transaction, &mut sink)).map_err(|fault| explain(fault, &link));
        match (done, sink.refused.take()) {
            (_, Some(error)) => Err(ExportError::To(error)),
            (Err(fault), None) => Err(ReadError::from(fault).into()),
            (Ok(()), None) => sink.end().map_err(ExportError::To),
        }
    }

    /// Takes in what [`Store::export`] wrote, of this namespace or another one, in either form.
    ///
    /// All of it is there when this returns, durably, and nothing of it after an error or a power
    /// cut: it is one write. Others wait meanwhile, so `from` should be quick, such as a file.
    /// Memory stays small however much it is.
    ///
    /// Sessions come with their turns, replies and receipts as they were, and are used after those
    /// that are here. Numbers of sessions, facts and entities are given anew where there are some
    /// here. A name that is an entity here is that one. What a fact says that a fact here says of
    /// the same time already is that fact, so facts imported twice are there once; where different
    /// ones of a slot meet, each ends where the next one starts.
    ///
    /// # Errors
    /// [`ImportError`].
    pub fn import(&self, from: impl Read, taken: Taken) -> Result<ImportReport, ImportError> {
        let (mut reader, namespace) = Reader::begin(BufReader::with_capacity(BUFFER, from))?;
        let done = self.writing(|open| Ok(Ok(take_all(open, &mut reader, taken)?)))?;
        done.map(|report| ImportReport { namespace, ..report })
    }
}
