//! Erasing words for good, and proving that they are gone.

use std::fs::File;
use std::io::Read as _;

use garret_core::medium::MediumError;
use garret_core::time::WallTime;
use redb::{ReadableDatabase as _, ReadableTable as _};

use crate::erase::needle::Needle;
use crate::erase::plan::{Stop, plan};
use crate::erase::verify::{Trace, records, scan};
use crate::erase::{Erasure, Forgotten, Selection, ledger};
use crate::files::part::Part;
use crate::ground::database::open_if_there as if_there;
use crate::ground::error::{ReadError, WriteError};
use crate::journal::apply::Outcome;
use crate::journal::op::Op;
use crate::store::Store;
use crate::store::turns::unexpected;

impl Store {
    /// Forgets for good, at `at`, or says what would be forgotten and changes nothing (`dry_run`).
    ///
    /// With a turn go its reply, its receipt, who spoke, the facts that were said in it, and its
    /// session's title where that repeats it, and the summaries that cover it; with a session all of its
    /// turns and its name. With anything go all traces and all states but
    /// [`StateKind::Gate`](crate::StateKind::Gate), which may quote it: they are made anew, or not
    /// needed. With a fact go
    /// the facts derived from it, its links and how often it was of use, and whom it is about where
    /// nothing else is said about them.
    ///
    /// What is left of a turn is its number: it stays counted, [`with_turns`](Self::with_turns)
    /// leaves it out, and it isn't damaged. Of facts nothing is left. What was true at any moment,
    /// according to the others, stays as it was: a fact that a forgotten one replaced keeps its
    /// end, so that nothing is true in the forgotten one's time, and has what comes after that as
    /// its successor, if anything does. A retired duplicate of a forgotten fact is current again.
    ///
    /// The records are without it, durably, before anything else happens. Then all files are
    /// written anew ([`compact`](Self::compact)), so that no byte of it is in them;
    /// [`verify_erased`](Self::verify_erased) looks. When that fails, [`Forgotten::unfinished`]
    /// says why. Where the power goes meanwhile, the next write does it.
    ///
    /// The words may also be elsewhere: in backups, exports, a terminal's scrollback, or the
    /// context of a model that is running.
    ///
    /// # Errors
    /// [`WriteError::UnknownSession`], [`WriteError::UnknownTurn`], [`WriteError::Fact`] for what
    /// isn't there, [`WriteError::BlankPattern`] and others; nothing is forgotten then, save as
    /// that type says.
    pub fn forget(
        &self,
        selection: &Selection<'_>,
        at: WallTime,
        dry_run: bool,
    ) -> Result<Forgotten, WriteError> {
        let mut held = self.derived.hold();
        let (mut vectors, mut slot) = (self.vectors.write(), self.slot());
        let plan = self.run(&mut slot, false, |open| {
            match plan(&open.database.begin_read()?, selection, at.into()) {
                Ok(plan) => Ok(Ok(plan)),
                Err(Stop::Refused(error)) => Ok(Err(error)),
                Err(Stop::Fault(fault)) => Err(fault),
            }
        })??;
        let mut forgotten =
            Forgotten { items: plan.items, named: plan.named, ..Forgotten::default() };
        if dry_run {
            return Ok(forgotten);
        }
        if !plan.removal.is_empty() {
            self.snapshots.wipe(self.media())?;
            let op = Op::Forget(plan.removal);
            let erasure = self.run(&mut slot, true, |open| match open.perform(&op)? {
                Ok(Outcome::Forgotten { erasure }) => {
                    self.derived.forget();
                    held.discard();
                    Ok(Ok(erasure))
                }
                other => unexpected(other),
            })??;
            forgotten.erasure = Some(erasure);
        }
        if self.run(&mut slot, false, |open| Ok(open.rewrite_due))? {
            match self.rewrite(&mut slot, &mut vectors) {
                Ok(files) => forgotten.files = Some(files),
                Err(fault) => forgotten.unfinished = Some(fault.into()),
            }
        }
        Ok(forgotten)
    }

    /// The ledger: every time that something was forgotten, the first one first.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn erasures(&self) -> Result<Vec<Erasure>, ReadError> {
        self.reading(|open| {
            let transaction = open.database.begin_read()?;
            let Some(table) = if_there(&transaction, ledger::ERASURES)? else {
                return Ok(Ok(Vec::new()));
            };
            let mut found = Vec::new();
            for entry in table.iter()? {
                let (number, bytes) = entry?;
                let number = u64::from_be_bytes(*number.value());
                found.push(ledger::ErasureRecord::read(number, bytes.value())?);
            }
            Ok(Ok(found))
        })
    }

    /// Looks for `pattern` in every byte of every file of the namespace (records, journal, vectors,
    /// index, what a rewrite left, the lock) and in all records. Nothing found: it is erased.
    ///
    /// In records, a pattern that is text is found in any case and Unicode form of its letters, as
    /// [`Store::forget`] finds it. In files it is found byte for byte, ASCII letters in any case,
    /// and other letters as they are, all small, all capital, capital at the start of words, or
    /// folded, each composed or decomposed. Other encodings (a model's token ids, hashes) are not
    /// looked through; they are parts of records and go with them.
    ///
    /// It reads everything once, in blocks, and stops at [`MOST_TRACES`](Self::MOST_TRACES).
    ///
    /// # Errors
    /// [`ReadError::BlankPattern`] and others.
    pub fn verify_erased(&self, pattern: &[u8]) -> Result<Vec<Trace>, ReadError> {
        let needle = Needle::new(pattern).ok_or(ReadError::BlankPattern)?;
        let mut slot = self.slot();
        let mut traces =
            self.run(&mut slot, false, |open| records(&open.database.begin_read()?, &needle))?;
        for part in Part::ALL {
            let medium = match part {
                Part::Records => Some(slot.records.clone()),
                part => self.media().open_existing(part).map_err(ReadError::Medium)?,
            };
            let Some(medium) = medium else { continue };
            let mut at = 0;
            let len = medium.len().map_err(ReadError::Medium)?;
            let read = |out: &mut [u8]| {
                let take = usize::try_from(len - at).unwrap_or(usize::MAX).min(out.len());
                medium.read_at(at, out.get_mut(..take).unwrap_or_default())?;
                at += u64::try_from(take).unwrap_or(0);
                Ok(take)
            };
            let offsets = scan(&needle, read).map_err(ReadError::Medium)?;
            let (extension, path) = (part.extension(), self.media().path(part));
            traces.extend(offsets.into_iter().map(|offset| Trace::Bytes {
                extension,
                path: path.clone(),
                offset,
            }));
        }
        traces.extend(self.in_lock(&needle).map_err(ReadError::Medium)?);
        traces.truncate(Self::MOST_TRACES);
        Ok(traces)
    }

    /// Most places that [`verify_erased`](Self::verify_erased) tells.
    pub const MOST_TRACES: usize = crate::erase::verify::MOST_TRACES;

    fn in_lock(&self, needle: &Needle) -> Result<Vec<Trace>, MediumError> {
        let Some(path) = self.path().map(|path| path.with_extension("lock")) else {
            return Ok(Vec::new());
        };
        let failed = |error: std::io::Error| MediumError::Device {
            errno: error.raw_os_error().unwrap_or(0),
        };
        let mut file = File::open(&path).map_err(failed)?;
        let offsets = scan(needle, |out| file.read(out).map_err(failed))?;
        let trace = |offset| Trace::Bytes { extension: "lock", path: Some(path.clone()), offset };
        Ok(offsets.into_iter().map(trace).collect())
    }
}
