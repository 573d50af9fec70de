//! Finding what was said, and keeping the text index and the waiting list of vectors.

use std::collections::BTreeSet;
use std::sync::PoisonError;

use garret_core::id::SessionId;
use garret_core::medium::MediumError;
use garret_language::without_names;
use redb::{ReadTransaction, ReadableDatabase as _, ReadableTableMetadata as _};

use crate::facts::table::FACTS;
use crate::files::part::Part;
use crate::ground::database::{contain, open_if_there as if_there};
use crate::ground::error::{Fault, ReadError, WriteError};
use crate::ground::table::{REPLIES, TURNS};
use crate::index::Replaced;
use crate::search::derived::{AtOnce, Held, spared};
use crate::search::excerpt::Asked;
use crate::search::filter::Filter;
use crate::search::find::{Cut, EXACT, Found, Search, filter, hit};
use crate::search::index::{Index, Wanted};
use crate::search::links;
use crate::search::meaning::{Closeness, Stored};
use crate::search::query::Query;
use crate::search::tend::{Lacking, MOST_AT_END, widen};
use crate::search::unit::Ranked;
use crate::store::Store;
use crate::vectors::key::UnitKey;
use crate::vectors::waiting::{Look, strip_names};

impl Store {
    /// The `k` messages and facts that answer `query` best, of `session` or of all, by their words;
    /// see [`Store::find`].
    ///
    /// # Errors
    /// [`ReadError::UnknownSession`] and others.
    pub fn search(
        &self,
        query: &str,
        session: Option<&SessionId>,
        k: usize,
    ) -> Result<Found, ReadError> {
        self.find(&Search { session, ..Search::new(query, k) })
    }

    /// The messages and facts that answer best. Any text is a query; one that has to do with
    /// nothing in the store finds nothing.
    ///
    /// The first search reads the index from its file, and as texts what that lacks
    /// ([`Store::unindexed`]); where there is none it reads the whole store (1.6 s of processor time
    /// for 100,000 short messages on x86_64). Later ones read what was written since. None of it
    /// keeps anybody from writing, and nothing is written.
    ///
    /// # Errors
    /// [`ReadError::UnknownSession`] and others.
    pub fn find(&self, search: &Search<'_>) -> Result<Found, ReadError> {
        let session = search.session.map(|id| self.number_of(id)).transpose()?;
        // The records' file may be written anew meanwhile: then its snapshot is gone.
        self.try_find(search, session).or_else(|_| self.try_find(search, session))
    }

    fn try_find(&self, search: &Search<'_>, session: Option<u64>) -> Result<Found, ReadError> {
        let except = search.except.and_then(|(id, turn)| Some((self.number_of(id).ok()?, turn)));
        self.derived.with(
            |at_once| self.snapshot_with(at_once),
            |kept, transaction| {
                let index = &kept.index;
                let mut query = index.query(search.query, search.now);
                query.know(&kept.entities);
                let Some(mut filter) = filter(index, search, session) else {
                    return Ok(Found { hits: Vec::new(), searched: 0 });
                };
                filter.except = except;
                let ranked = contain(|| self.rank(transaction, index, &query, &filter, search))?;
                let searched = index.count(&filter);
                let asked = Asked::new(&query.words);
                let cut = Cut { asked: &asked, most: search.excerpt };
                let hits = ranked.iter().map(|one| spared(hit(transaction, kept, one, cut)));
                let hits = hits.filter_map(Result::transpose);
                let hits = contain(|| hits.collect::<Result<_, _>>())?;
                Ok(Found { hits, searched })
            },
        )
    }

    /// A query without the names of those who speak in the store, as it is to be embedded: a name
    /// draws in whatever addresses that person ([`without_names`]).
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn without_names(&self, query: &str) -> Result<String, ReadError> {
        self.derived.with(
            |at_once| self.snapshot_with(at_once),
            |kept, _| Ok(without_names(query, &kept.index.names.all().collect::<Vec<_>>())),
        )
    }

    /// Returns what answers, the best first.
    fn rank(
        &self,
        transaction: &ReadTransaction,
        index: &Index,
        query: &Query,
        filter: &Filter,
        search: &Search<'_>,
    ) -> Result<Vec<Ranked>, Fault> {
        let rank = |close: Option<&dyn Closeness>| {
            let wanted = Wanted { query, filter, close, now: search.now };
            let mut best = index.best(&wanted, search.k);
            links::follow(transaction, index, &wanted, &mut best, search.k)?;
            Ok(best.mixed(search.k))
        };
        let passes = |key: UnitKey| {
            let open = filter.is_open() && !matches!(key, UnitKey::Fact { .. });
            open || index.document(key).is_some_and(|document| {
                index.units.get(document as usize).is_some_and(|unit| filter.passes(index, unit))
            })
        };
        let by_meaning = search.vector.and_then(|vector| {
            self.with_vectors(|vectors| {
                let scores = vectors.scores(vector, EXACT, &passes);
                let scores = scores.inspect_err(|error| {
                    tracing::warn!(%error, "searched by words alone");
                });
                let scores = scores.ok().filter(|scores| !scores.top.is_empty())?;
                Some(rank(Some(&Stored::new(vectors, vector, scores, index.len()))))
            })
        });
        by_meaning.flatten().unwrap_or_else(|| rank(None))
    }

    /// A snapshot of the records; `at_once` is called in the same moment.
    pub(crate) fn snapshot_with(&self, at_once: AtOnce<'_>) -> Result<ReadTransaction, ReadError> {
        self.reading(|open| {
            let transaction = open.database.begin_read()?;
            at_once(open);
            Ok(transaction)
        })
    }

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

    /// Counts messages and facts the file of the text index lacks: what the first search of a
    /// process has to read as texts. Later ones read what was written since.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn unindexed(&self) -> Result<u64, ReadError> {
        Ok(self.lacking()?.unread)
    }

    /// Messages and facts that the first search of a process may have to read without much ado.
    pub const INDEX_TAIL: u64 = 1_024;

    /// Returns what is due when the store is closed.
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

    /// Up to `limit` units that have no vector of the embedder yet, with the text to embed: first
    /// what was said, by session and turn, then replies, then facts. Texts without anything to
    /// embed, and those that can't be read, aren't among them; texts of conversations between
    /// people come without the names of these ([`without_names`]). Empty without an embedder.
    ///
    /// The first look after the store was opened goes through all records, some 20 ms for 100,000
    /// units that have their vectors; later ones cost what is new.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn unembedded(&self, limit: usize) -> Result<Vec<(UnitKey, String)>, ReadError> {
        let vectors = self.vectors.read();
        let Some(vectors) = vectors.as_ref().filter(|vectors| vectors.spec.is_some()) else {
            return Ok(Vec::new());
        };
        let waiting = &self.vectors.waiting;
        let _looking = waiting.looking.lock().unwrap_or_else(PoisonError::into_inner);
        let (noted, from, beginnings) = waiting.state().take(vectors.version());
        if noted.is_empty() && from.is_none() {
            return Ok(Vec::new());
        }
        let looked = self.on_snapshot(|transaction, _| {
            let mut look = Look { vectors, limit, found: Vec::new(), rest: BTreeSet::new() };
            look.at_noted(transaction, &noted)?;
            let from = match from {
                Some(from) => look.from(transaction, from)?,
                None => None,
            };
            strip_names(transaction, &mut look.found)?;
            let found = look.found.iter().map(|(key, _)| *key);
            let waits = look.rest.iter().copied().chain(found).collect();
            Ok((look.found, waits, from))
        });
        match looked {
            Ok((found, waits, from)) => {
                waiting.state().put((waits, from, beginnings));
                Ok(found)
            }
            Err(error) => {
                waiting.forget();
                Err(error)
            }
        }
    }
}
