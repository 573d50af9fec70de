//! Writing the index to its file: idle work, and some when a store is closed.

use garret_core::medium::MediumError;
use redb::ReadableDatabase as _;
use redb::ReadableTableMetadata as _;

use crate::facts::table::FACTS;
use crate::files::part::Part;
use crate::ground::database::{contain, open_if_there as if_there};
use crate::ground::error::{Fault, ReadError, WriteError};
use crate::ground::table::{REPLIES, TURNS};
use crate::index::Replaced;
use crate::search::derived::Held;
use crate::store::Store;

/// How much the file of the index lacks.
struct Lacking {
    /// Messages and facts that it doesn't have, of how many.
    unread: u64,
    all: u64,
    /// Something in it was deleted.
    deleted: bool,
}

impl Store {
    /// Idle work on the text index: writes to its file what it lacks, where that is at least `least`
    /// messages and facts and more than a thirty-second part of all, or where something in it was
    /// deleted. The first search of the next process then reads few texts. Says whether it wrote.
    ///
    /// Searches wait meanwhile; writers for as long as the file is written, with two syncs. Texts
    /// that no search has read yet are read (14 s of processor time for a million short ones on
    /// x86_64). A store that is closed after something was written does it as well, with
    /// [`INDEX_TAIL`](Self::INDEX_TAIL), unless it would have to read many texts that were written
    /// before.
    ///
    /// # Errors
    /// [`WriteError`]; nothing that was said depends on it.
    pub fn tend_index(&self, least: u64) -> Result<bool, WriteError> {
        if !self.media().has(Part::Index) || !self.lacking().map_err(widen)?.is_due(least) {
            return Ok(false);
        }
        let mut held = self.derived.hold();
        self.seal_index(&mut held)
    }

    /// How many messages and facts the file of the text index lacks: what the first search of a
    /// process has to read as texts. Later ones read what was written since.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn unindexed(&self) -> Result<u64, ReadError> {
        Ok(self.lacking()?.unread)
    }

    /// What the first search of a process may have to read without much ado, in messages and facts.
    pub const INDEX_TAIL: u64 = 1_024;

    /// What is due when the store is closed.
    pub(crate) fn tend_index_at_end(&self) {
        let written = self.slot().open.as_ref().and_then(|open| open.index.written());
        let Some(written) = written.filter(|_| self.media().has(Part::Index)) else { return };
        match contain(|| Ok(self.seal_at_end(written))) {
            Ok(Ok(_)) | Ok(Err(WriteError::Medium(MediumError::Denied))) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the text index stays as it is"),
            Err(fault) => tracing::warn!(?fault, "the text index stays as it is"),
        }
    }

    /// Does so, after so many messages and facts were written; else empties a file that doesn't count.
    fn seal_at_end(&self, written: u64) -> Result<bool, WriteError> {
        let lacking = self.lacking().map_err(widen)?;
        let mut held = self.derived.hold();
        let most = written.saturating_mul(2).max(MOST_AT_END);
        if lacking.is_due(Self::INDEX_TAIL) && (held.is_kept() || lacking.unread <= most) {
            return self.seal_index(&mut held);
        }
        let cleared = self.run(&mut self.slot(), false, |open| Ok(open.index.clear_scrap()))?;
        cleared.map(|()| false).map_err(|error| Fault::Medium(error).into())
    }

    fn lacking(&self) -> Result<Lacking, ReadError> {
        self.reading(|open| {
            let transaction = open.database.begin_read()?;
            let facts = if_there(&transaction, FACTS)?;
            let facts = facts.map_or(Ok(0), |facts| facts.len())?;
            let turns = transaction.open_table(TURNS)?.len()?;
            let all = turns + transaction.open_table(REPLIES)?.len()? + facts;
            let (unread, deleted) = open.index.unread().unwrap_or((all, false));
            Ok(Lacking { unread, all, deleted })
        })
    }

    /// Brings the index up to date and writes it.
    fn seal_index(&self, held: &mut Held<'_>) -> Result<bool, WriteError> {
        let now = self.derived.catch_up(held, |at_once| self.snapshot_with(at_once));
        let now = now.map_err(widen)?;
        let kept = now.kept;
        let segments = kept.segments_to_keep();
        let check = u64::from_le_bytes(now.last.check);
        let Some(segment) = kept.segment(segments, check) else { return Ok(false) };
        // Others have written meanwhile, but not more than one fold ago.
        let mut slot = self.slot();
        let written = self.run(&mut slot, false, |open| {
            if open.rewrite_due {
                return Ok(Ok(Replaced::NotNow));
            }
            let base = kept.base.as_ref().map(|base| (&base.root, segments));
            Ok(open.index.replace(now.last, base, &segment))
        })?;
        drop(slot);
        match written {
            Ok(Replaced::By(root)) => {
                if kept.sealed(segments, segment, root).is_none() {
                    held.discard();
                }
                Ok(true)
            }
            Ok(Replaced::NotNow) => Ok(false),
            // The next time begins anew.
            Ok(Replaced::Other) => {
                kept.base = None;
                Ok(false)
            }
            Err(error) => {
                kept.base = None;
                Err(Fault::Medium(error).into())
            }
        }
    }
}

/// Texts that are read when a store is closed, however few of them were written since it was opened.
const MOST_AT_END: u64 = 65_536;

impl Lacking {
    fn is_due(&self, least: u64) -> bool {
        self.deleted || self.unread >= least.max(self.all / 32).max(1)
    }
}

fn widen(error: ReadError) -> WriteError {
    match error {
        ReadError::Medium(error) => WriteError::Medium(error),
        ReadError::Damaged { what, key } => WriteError::Damaged { what, key },
        other => WriteError::Engine(other.to_string()),
    }
}
