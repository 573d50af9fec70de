//! Tools with which a model, or its user, looks up what the prompt doesn't show: exact words behind
//! a summary, what was said when, what is known about somebody.
//!
//! A [`Call`] is read from a line, [`run`] answers it from the store, and the [`Answer`] is shown
//! to a person as it is, or [`fence`]d for a model: as data, within a number of tokens.
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
//! what is remembered shows words of all its conversations anyway. Nothing leaves the namespace,
//! and no tool writes.
//!
//! Regular expressions are `regex-lite`'s: linear in pattern and text whatever the pattern, without
//! dependencies, a tenth of the code of `regex`; its classes (`\w`, `(?i)`) know ASCII alone. A
//! pattern has at most 500 bytes and a small program, and one call reads at most 4 MiB of turns,
//! the newest first, then says where to go on.

mod answer;
mod call;
mod context;
mod facts;
mod fence;
mod find;
mod grep;
mod native;
mod summaries;
mod turns;

pub use answer::{Answer, Entry};
pub use call::{Call, CallError, Page, Pattern, Place, Target};
pub use context::{Context, ToolError};
pub(crate) use fence::harmless;
pub use fence::{FencedAnswer, fence};
pub(crate) use native::{SPECS, read as read_call, usual as usual_call};

/// Answers a call. What isn't there is an answer, too: a sentence that says so.
///
/// # Errors
/// [`ToolError`] when no conversation is meant, or the store can't be read.
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
