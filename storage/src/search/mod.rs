//! Finding what was said and what is known, in any language, by its words and, where there is an
//! embedder, by its meaning.
//!
//! What is found is a **message** (the words of a turn or its reply, each by itself, since one of
//! the two usually holds the answer and the other would dilute it) or a **fact**. A message's
//! neighbours count beside it, so a reply is found by the question it answers. Without vectors,
//! each hit shares a word with the query, or comes right after a question that does.
//!
//! # How hits are ranked
//!
//! Some features of each unit ([`NAMES`] says which) are added up by fitted [`WEIGHTS`]. The
//! logistic function of that sum is its *relevance*: how likely it answers, comparable between
//! searches and between messages and facts, in stores of any size ([`CALIBRATION`]). It is calibrated
//! on questions asked of their own conversation and of another one; where even the best is unlikely,
//! nothing is found ([`UNLIKELY`]).
//!
//! Messages are ranked by relevance alone: a verbatim message answers as well when it is old. A
//! fact's relevance is multiplied by 1.25 times (.6 + .2 recency + .2 importance). So a fact of
//! middling age and weight ranks as a message of the same relevance does, and what has nothing to
//! do with the query stays below whatever has, however fresh. A fact stands by itself: it has no
//! neighbours, is its own session, and counts as no shorter than a usual message; instead it counts
//! more when it is about what the query names. Facts take at most half of the places, rounded up, and
//! facts that were inferred a quarter, as long as others that may answer fill the rest.
//!
//! What a hit is linked to is found with it: the message a fact was said in, the facts said in a
//! message, and facts linked to a fact. It has .3 of that hit's relevance if its own is less, and
//! says so ([`Hit::through`]).
//!
//! What a search leaves out (by session, source, kind or moment) it leaves out before anything is
//! ranked or cut. Times in a query ("in May 2023", "last week", "two days ago", "before 8 May
//! 2023") lift what was said then; those without a date count from [`Search::now`].
//!
//! # Measured
//!
//! Seven of LoCoMo's ten conversations, 1,523 questions (`garret-bench`'s `locomo`, weights fitted
//! on the other conversations); recall of the answering messages among the first ten and five, mean
//! reciprocal rank:
//!
//! | | R@10 | R@5 | MRR |
//! |---|---|---|---|
//! | words alone | .833 | .757 | .642 |
//! | all-MiniLM-L6-v2 (f16), one vector a message | .865 | .800 | .679 |
//!
//! A whole search on one core of an AMD EPYC (x86_64, release build, 509 of these questions, the
//! best of seven runs each), text in and hits with their texts out, embedding excluded:
//!
//! | messages | words, p50 / p99 | with vectors of 384 numbers | memory, words alone |
//! |---|---|---|---|
//! | 10,000 | .13 / .25 ms | .56 / .95 ms | 12 MiB |
//! | 100,000 | .26 / .86 ms | 9.3 / 18 ms (random vectors, not rotated) | 26 MiB |
//!
//! The first search of a process reads the stored index (`NAME.idx`) and the records that are newer:
//! 1.3 ms of processor time for 10,000 messages, 8.8 ms for 100,000 (measured in the same way on a
//! busy machine). Without the file it reads all records: .18 s and 1.4 s. Later ones read what was
//! written since. [`Index`] can be used without a store.
//!
//! # Limits
//!
//! Dates are days in UTC, their names are known in eight languages; questions for a time and words
//! that tell one are best known in English. At most 1,000 units are looked at closely for their
//! words and 200 for their meaning. Searches of one store wait for each other, and removing a
//! session waits for a search by vectors.

pub(crate) mod candidates;
pub(crate) mod check;
pub(crate) mod derived;
pub(crate) mod entities;
pub(crate) mod excerpt;
pub(crate) mod filter;
pub(crate) mod find;
pub(crate) mod index;
pub(crate) mod links;
pub(crate) mod meaning;
pub(crate) mod mix;
pub(crate) mod names;
pub(crate) mod query;
pub(crate) mod rank;
pub(crate) mod reading;
pub(crate) mod score;
pub(crate) mod sittings;
pub(crate) mod stored;
pub(crate) mod tend;
pub(crate) mod top;
pub(crate) mod unit;

pub(crate) use crate::search::derived::Derived;
pub use crate::search::find::{Found, Hit, Search, Source};
pub use crate::search::index::Index;
pub use crate::search::mix::{FACTS, INFERRED};
pub use crate::search::rank::{
    CALIBRATION, CALIBRATION_WITH_VECTORS, Calibration, FEATURES, Features, LEXICAL, NAMES,
    UNLIKELY, UNLIKELY_WITH_VECTORS, WEIGHTS, WEIGHTS_WITH_VECTORS, blend,
};
pub use crate::search::unit::Kind;
pub use crate::search::unit::{Ask, Ranked, Speaker, Unit};
