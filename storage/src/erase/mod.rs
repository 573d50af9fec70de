//! Forgetting for good: words, what was made of them, and their bytes.

use garret_core::id::{SessionId, TurnSeq};
use garret_core::time::{Confidence, WallTime};
use redb::{ReadableDatabase as _, ReadableTable as _};

use crate::erase::plan::plan;
use crate::facts::FactId;
use crate::ground::database::open_if_there as if_there;
use crate::ground::error::{Abort, ReadError, WriteError};
use crate::journal::apply::Outcome;
use crate::journal::op::Op;
use crate::store::Store;
use crate::store::turns::unexpected;
use crate::store::vacuum::VacuumReport;

pub(crate) mod apply;
pub(crate) mod ledger;
pub(crate) mod needle;
pub(crate) mod plan;
pub(crate) mod verify;
pub(crate) mod walk;

pub(crate) use crate::conversations::erased::{is_forgotten, is_marked, unmark};
pub(crate) use crate::erase::apply::{Removal, all_turns, apply, turns};
pub use crate::erase::verify::Trace;

/// What is to be forgotten: all of it together.
///
/// ```
/// use garret_storage::Selection;
/// let selection = Selection { pattern: Some("Nebukadnezar"), ..Selection::default() };
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Selection<'a> {
    /// These facts.
    pub facts: &'a [FactId],
    /// These turns: what was said, by whom, the reply and the receipt.
    pub turns: &'a [(SessionId, TurnSeq)],
    /// These sessions, and the facts that were said in them.
    pub sessions: &'a [SessionId],
    /// Every turn, fact and title that has these words in it, what speakers named so said, and
    /// what is told about entities named so. They are found in any case and Unicode form of their
    /// letters, within words, too.
    pub pattern: Option<&'a str>,
}

/// What was forgotten, or would be.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct ErasureReport {
    /// Everything that goes, by name.
    pub items: Vec<ErasedItem>,
    /// Sessions whose names have the pattern in them. They keep those: rename them.
    pub named: Vec<String>,
    /// Its number in the ledger; `None` after a dry run, and where there was nothing to erase.
    pub erasure: Option<u64>,
    /// What erasing the bytes made of the files; `None` where that wasn't done.
    pub files: Option<VacuumReport>,
    /// Why the bytes could not be erased now. Nobody can read them by way of the store any more;
    /// they are erased by one of the next writes that can.
    pub unfinished: Option<WriteError>,
}

/// One thing that is forgotten.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ErasedItem {
    /// What it is.
    pub kind: ErasedKind,
    /// `SESSION/TURN/user`, `SESSION/TURN/assistant`, `SESSION/TURN` for a receipt and a speaker,
    /// `SESSION` for a title and a session, `f12` for a fact, `e12` for an entity, `SESSION/s12` for a
    /// summary, `SESSION/KIND` for a state, `SESSION/TURN/trace` for a trace.
    pub id: String,
    /// Bytes of its record; of a title those of its text.
    pub bytes: u64,
}

/// Kinds of what can be forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ErasedKind {
    /// A session, by name.
    Session,
    /// The title of a session that stays.
    Title,
    /// What the user said in a turn.
    Turn,
    /// What was answered.
    Reply,
    /// What the turn cost.
    Receipt,
    /// Who spoke, in an imported conversation.
    Speaker,
    /// A fact.
    Fact,
    /// Whom or what there were facts about.
    Entity,
    /// A summary of turns.
    Summary,
    /// What the engine kept of a session.
    State,
    /// What the model saw in a turn.
    Trace,
}

impl ErasedKind {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Title => "title",
            Self::Turn => "turn",
            Self::Reply => "reply",
            Self::Receipt => "receipt",
            Self::Speaker => "speaker",
            Self::Fact => "fact",
            Self::Entity => "entity",
            Self::Summary => "summary",
            Self::State => "state",
            Self::Trace => "trace",
        }
    }
}

/// A line of the ledger: when how much was forgotten. What it was isn't there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Erasure {
    /// From 1, in the order of the erasures.
    pub number: u64,
    /// Wall clock, in milliseconds since 1970.
    pub at_ms: i64,
    /// How far that clock could be trusted.
    pub clock: Confidence,
    /// Sessions that went as a whole.
    pub sessions: u64,
    /// Turns, those of such sessions included.
    pub turns: u64,
    /// Replies.
    pub replies: u64,
    /// Receipts.
    pub receipts: u64,
    /// Titles of sessions that stayed.
    pub titles: u64,
    /// Facts.
    pub facts: u64,
    /// Entities.
    pub entities: u64,
    /// Links.
    pub links: u64,
    /// Bytes of all of it.
    pub bytes: u64,
    /// Summaries, those of such sessions included.
    pub summaries: u64,
    /// States of sessions, all there were that may have words.
    pub states: u64,
    /// Traces, all there were.
    pub traces: u64,
}

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
    /// written anew ([`vacuum`](Self::vacuum)), so that no byte of it is in them;
    /// [`verify_erased`](Self::verify_erased) looks. When that fails, [`ErasureReport::unfinished`]
    /// says why. Where the power goes meanwhile, the next write does it.
    ///
    /// The words may also be elsewhere: in backups, exports, a terminal's scrollback, or the
    /// context of a model that is running.
    ///
    /// # Errors
    /// [`WriteError::UnknownSession`], [`WriteError::UnknownTurn`], [`WriteError::Fact`] for what
    /// isn't there, [`WriteError::BlankPattern`] and others; nothing is forgotten then, save as
    /// that type says.
    pub fn erase(
        &self,
        selection: &Selection<'_>,
        at: WallTime,
        dry_run: bool,
    ) -> Result<ErasureReport, WriteError> {
        let mut held = self.derived.hold();
        let (mut vectors, mut slot) = (self.vectors.write(), self.slot());
        let plan = self.attempt(&mut slot, false, |open| {
            plan(&open.database.begin_read()?, selection, at.into())
        });
        let plan = plan.map_err(Abort::into_error)?;
        let mut forgotten =
            ErasureReport { items: plan.items, named: plan.named, ..ErasureReport::default() };
        if dry_run {
            return Ok(forgotten);
        }
        if !plan.removal.is_empty() {
            self.snapshots.wipe(self.media())?;
            let op = Op::Erase(plan.removal);
            let erasure = self.attempt(&mut slot, true, |open| match open.perform(&op)? {
                Outcome::Erased { erasure } => {
                    self.derived.forget();
                    held.discard();
                    Ok(erasure)
                }
                other => unexpected(&other),
            });
            forgotten.erasure = Some(erasure.map_err(Abort::into_error)?);
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
                return Ok(Vec::new());
            };
            let mut found = Vec::new();
            for entry in table.iter()? {
                let (number, bytes) = entry?;
                let number = u64::from_be_bytes(*number.value());
                found.push(ledger::ErasureRecord::read(number, bytes.value())?);
            }
            Ok(found)
        })
    }
}
