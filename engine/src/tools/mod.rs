//! Tools with which a model, or its user, looks up what the prompt doesn't show: exact words behind
//! a summary, what was said when, what is known about somebody.
//!
//! A [`Call`] is read from a line, [`run`] answers it from the store, and the [`Answer`] is shown to
//! a person as it is, or [`fence`]d for a model: as data, within a number of tokens.
//!
//! ```
//! use garret::tools::{self, Call, Context};
//! # use garret_core::time::{Confidence, WallTime};
//! # use garret_hal::media::RamMedium;
//! # use garret_storage::Store;
//! # let store = Store::on_medium("home", Box::new(RamMedium::new()))?;
//! let session = "kitchen".parse()?;
//! let at = WallTime { unix_ms: 0, confidence: Confidence::Good };
//! store.accept(&session, "The bees swarmed at noon.", at)?;
//!
//! let context = Context { session: Some(&session), ..Context::new(&store) };
//! let answer = tools::run(&context, &Call::read("grep swarm")?)?;
//! assert_eq!(answer.entries[0].text, "The bees swarmed at noon.");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A call may name another conversation (`in=kitchen`, `in=all`): a namespace is one tenant, and
//! what is remembered shows words of all its conversations anyway. Nothing leaves the namespace, and
//! no tool writes.
//!
//! Regular expressions are `regex-lite`'s: linear in pattern and text whatever the pattern, without
//! dependencies, a tenth of the code of `regex`; its classes (`\w`, `(?i)`) know ASCII alone. A
//! pattern has at most 500 bytes and a small program, and one call reads at most 4 MiB of turns, the
//! newest first, then says where to go on.

mod answer;
mod call;
mod facts;
mod fence;
mod find;
mod grep;
mod native;
mod summaries;
mod turns;

use garret_core::id::{SessionId, TurnSeq};
use garret_storage::{ReadError, Store};

use crate::embed::Embed;

pub use answer::{Answer, Entry};
pub use call::{Call, CallError, Page, Pattern, Place, Target};
pub(crate) use fence::harmless;
pub use fence::{Fenced, fence};
pub(crate) use native::{SPECS, read as read_call, usual as usual_call};

/// What a call is answered from.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// What is remembered.
    pub store: &'a Store,
    /// Makes the vector of a query, so that `lookup` goes by meaning too.
    pub embedder: Option<&'a dyn Embed>,
    /// The conversation that is meant where none is named; without one, a call has to name it.
    pub session: Option<&'a SessionId>,
    /// The turn that is being answered: what is said in it isn't found.
    pub turn: Option<TurnSeq>,
    /// Now, in milliseconds since 1970, if the clock can be trusted.
    pub now: Option<i64>,
}

impl<'a> Context<'a> {
    /// A context of a store alone.
    pub const fn new(store: &'a Store) -> Self {
        Self { store, embedder: None, session: None, turn: None, now: None }
    }

    /// The conversation a call is about; `None` for all of them.
    fn place(&self, place: &'a Place) -> Result<Option<&'a SessionId>, ToolError> {
        match place {
            Place::Everywhere => Ok(None),
            Place::Session(id) => Ok(Some(id)),
            Place::Here => self.session.map(Some).ok_or(ToolError::Nowhere),
        }
    }

    /// The conversation of a call about one.
    fn one(&self, place: &'a Place) -> Result<&'a SessionId, ToolError> {
        self.place(place)?.ok_or(ToolError::Nowhere)
    }

    /// Whether a turn of `session` is the one that is being answered, or later.
    fn is_current(&self, session: &SessionId, turn: TurnSeq) -> bool {
        self.session == Some(session) && self.turn.is_some_and(|current| turn >= current)
    }
}

impl std::fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("session", &self.session)
            .field("turn", &self.turn)
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}

/// Why a call has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// It is about a conversation and none is meant.
    #[error("say in which conversation: in=NAME")]
    Nowhere,
    /// The store can't be read, or has no such conversation.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Answers a call. What isn't there is an answer, too: a sentence that says so.
///
/// # Errors
/// [`ToolError`].
pub fn run(context: &Context<'_>, call: &Call) -> Result<Answer, ToolError> {
    match call {
        Call::Grep { pattern, place, page, before } => match pattern {
            Pattern::Words(words) => find::words(context, call, words, place, *page),
            Pattern::Regex(regex, _) => {
                let range = grep::Range { place, page: *page, before: *before };
                grep::regex(context, call, regex, &range)
            }
        },
        Call::Lookup { words, page } => find::lookup(context, call, words, *page),
        Call::Describe { target: Target::Turn(turn), place } => {
            turns::describe_turn(context, call, *turn, place)
        }
        Call::Describe { target: Target::Summary(summary), place } => {
            summaries::describe(context, call, *summary, place)
        }
        Call::ExpandSummary { summary, from, place } => {
            summaries::expand(context, call, *summary, *from, place)
        }
        Call::ExpandTurn { turn, from, place } => {
            turns::expand_turn(context, call, *turn, *from, place)
        }
        Call::Timeline { count, before, place } => {
            turns::timeline(context, call, *count, *before, place)
        }
        Call::Pinned { page } => facts::pinned(context, call, *page),
        Call::Entity { name, page } => facts::entity(context, call, name, *page),
    }
}
