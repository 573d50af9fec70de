//! What came of a check.

use std::fmt;

/// The report of [`Store::verify`](crate::Store::verify).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Faults, in the order in which they were found; the first [`Report::MOST`].
    pub problems: Vec<Problem>,
    /// Problems beyond those.
    pub unlisted: u64,
    /// Counts of what was looked at.
    pub checked: Checked,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The fault, such as `turn record (missing)`.
    pub what: String,
    /// With what, such as `turn 3 of session number 1`.
    pub key: String,
    /// The remedy.
    pub advice: &'static str,
}

/// The number of things that were looked at, of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Checked {
    /// Sessions.
    pub sessions: u64,
    /// Turns.
    pub turns: u64,
    /// Replies and their receipts.
    pub replies: u64,
    /// Summaries.
    pub summaries: u64,
    /// Facts.
    pub facts: u64,
    /// Entities.
    pub entities: u64,
    /// Rows of the tables that lead to facts and entities, and of links.
    pub references: u64,
    /// Writes that wait in the journal.
    pub pending: u64,
    /// Messages and facts in the index of the search, of which some were looked at closely; 0
    /// before the first search.
    pub indexed: u64,
    /// Vectors of the embedder that is set.
    pub vectors: u64,
}

impl Report {
    /// Most problems that are listed.
    pub const MOST: usize = 1_000;

    /// Tells whether nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.problems.is_empty()
    }

    pub(crate) fn add(&mut self, what: impl Into<String>, key: impl Into<String>, advice: Advice) {
        if self.problems.len() < Self::MOST {
            let (what, key) = (what.into(), key.into());
            self.problems.push(Problem { what, key, advice: advice.text() });
        } else {
            self.unlisted += 1;
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}: {}", self.what, self.key, self.advice)
    }
}

/// A remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Advice {
    /// Something that was stored is gone or wrong.
    Restore,
    /// A session as a whole.
    Session,
    /// Things that are made from the records when the store is opened.
    Reopen,
    /// A vector, which can be made again.
    Vectors,
}

impl Advice {
    const fn text(self) -> &'static str {
        match self {
            Self::Restore => "copy the store, check the disk, restore a backup",
            Self::Reopen => "close the store and open it again; nothing that was said is wrong",
            Self::Vectors => {
                "it is made again in idle time; where that goes on, delete the files `.i8` and `.f16`"
            }
            Self::Session => {
                "copy the store, check the disk, restore a backup, or delete the session"
            }
        }
    }
}
