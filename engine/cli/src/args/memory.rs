//! The arguments of `garret memory`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use garret_storage::{FactKind, search};

use crate::dates::parse as date;

#[derive(Debug, Args)]
pub(crate) struct Memory {
    #[command(subcommand)]
    pub(crate) action: MemoryAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MemoryAction {
    /// Find messages and facts by their words, in any language, and by their meaning where there
    /// are vectors; no chat model is needed
    Search(Search),
    /// Store a fact: a statement with a source and a date
    Add(Add),
    /// Take in an export of Garret's, or conversations held elsewhere, one JSON object a line
    ///
    /// A line has `text` and may have `session` (or LoCoMo's `conv` and `session`), `speaker` (or
    /// `role`: user, assistant or a name), `at` (or `timestamp`), `id` (or `dia_id`) and `caption`.
    /// What was imported before isn't again, so an import that was cut short can be repeated.
    Import(Import),
    /// Show a fact or a message
    Get(Get),
    /// List facts, in the order of writing
    List(List),
    /// Show how what a fact says changed, the oldest first
    History(Get),
    /// Have a fact stand in every prompt, as far as there is room; what replaces it takes its pin
    /// over
    Pin(Pin),
    /// Take a fact's pin away
    Unpin(Pin),
    /// Store a fact in the place of another one, which ends where the new one begins
    Supersede(Supersede),
    /// Make the vectors that are lacking, so that search goes by meaning too
    ///
    /// Adding and importing do so by themselves, and a chat does while nobody types; this goes on
    /// where they were stopped, and begins anew with another embedder.
    Embed {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Count what is remembered, and its bytes
    Stats {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Forget for good: from records, index, vectors and the bytes of every file
    ///
    /// Without --yes it says what would go. A turn goes with its reply, its receipt, the facts that
    /// were said in it and the summaries that cover it; with anything go the notes of the engine
    /// and what the model saw. A line in a ledger stays, which says when how much was forgotten,
    /// and not what.
    Forget(Forget),
    /// List when how much was forgotten
    Ledger {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Write everything anew, so that the files hold nothing that was deleted or replaced
    #[command(alias = "compact")]
    Vacuum {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Check everything that is stored; the exit status is 1 when something is wrong
    Verify {
        /// Look instead for this text, in every byte of every file
        #[arg(long, value_name = "TEXT")]
        erased: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Write everything in a form that `import` takes, here or elsewhere
    Export {
        /// The new file; `-` writes standard output
        file: PathBuf,
        /// Write JSON Lines instead of a bundle, as for a FILE that ends in .jsonl
        #[arg(long)]
        lines: bool,
    },
    /// Copy everything to a new file, which can take the place of the namespace's own
    Backup {
        /// The new file
        file: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Search {
    /// Text to look for; operators have no meaning
    #[arg(allow_hyphen_values = true)]
    pub(crate) text: String,
    /// Most hits to print
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) k: u16,
    /// Search this conversation alone
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Search as of this moment: what had been said, and what was true then
    #[arg(long, value_name = "DATE", value_parser = date)]
    pub(crate) as_of: Option<i64>,
    /// Find what this source said: user, assistant, or a name
    #[arg(long, value_name = "NAME")]
    pub(crate) source: Option<String>,
    /// Find what is of this kind; may be given several times
    #[arg(long)]
    pub(crate) kind: Vec<KindFilter>,
    /// Facts that were replaced or have ended, too
    #[arg(long)]
    pub(crate) replaced: bool,
    /// Number of first hits that the configured reranker reads; 0 for none [default: 20]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=1000))]
    pub(crate) rerank: Option<u16>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Say what each score is the sum of
    #[arg(long)]
    pub(crate) explain: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Add {
    #[command(flatten)]
    pub(crate) statement: Statement,
    /// Text of the fact; `-` reads standard input
    #[arg(allow_hyphen_values = true)]
    pub(crate) text: String,
}

#[derive(Debug, Args)]
pub(crate) struct Import {
    /// File of lines; `-` reads standard input
    pub(crate) file: PathBuf,
    /// Give conversations of an export whose names are taken another one
    #[arg(long)]
    pub(crate) rename: bool,
    /// Conversation of the lines that name none
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Supersede {
    #[command(flatten)]
    pub(crate) statement: Statement,
    /// The fact to replace, such as f12
    pub(crate) id: String,
    /// Text of the new fact; `-` reads standard input
    #[arg(allow_hyphen_values = true)]
    pub(crate) text: String,
}

/// The properties of a fact beside its text.
#[derive(Debug, Args)]
pub(crate) struct Statement {
    /// Source of the fact: user, assistant, tool, document, or anybody's name
    #[arg(long, value_name = "NAME", default_value = "user")]
    pub(crate) source: String,
    /// Subject: whom or what the fact is about
    #[arg(long, value_name = "NAME")]
    pub(crate) subject: Option<String>,
    /// Predicate: what the fact says about the subject, such as lives_in
    #[arg(long, value_name = "WORD", requires = "subject")]
    pub(crate) predicate: Option<String>,
    /// The value, such as Oslo
    #[arg(long, value_name = "TEXT", requires = "subject")]
    pub(crate) object: Option<String>,
    /// Moment from which on the fact is true [default: now]
    #[arg(long, value_name = "DATE", value_parser = date)]
    pub(crate) valid_at: Option<i64>,
    /// Until when it is true
    #[arg(long, value_name = "DATE", value_parser = date)]
    pub(crate) valid_to: Option<i64>,
    /// Conversation in which it was said
    #[arg(long, value_name = "ID", requires = "turn")]
    pub(crate) session: Option<String>,
    /// Turn in which it was said
    #[arg(long, value_name = "N", requires = "session")]
    pub(crate) turn: Option<u64>,
    /// The words of that turn that it rests on
    #[arg(long, value_name = "TEXT", requires = "session")]
    pub(crate) quote: Option<String>,
    /// Mark the fact as inferred, not said
    #[arg(long)]
    pub(crate) inferred: bool,
    /// A fact it was inferred from; may be given several times
    #[arg(long, value_name = "ID")]
    pub(crate) from: Vec<String>,
    /// Salience: how much the fact matters, 0 to 10 [default: rated by rules]
    #[arg(long, value_name = "N")]
    pub(crate) salience: Option<f32>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true))]
pub(crate) struct Forget {
    /// Facts, such as f12, and messages, such as kitchen/3/user: their turns as a whole
    #[arg(value_name = "ID", group = "what")]
    pub(crate) ids: Vec<String>,
    /// A conversation and the facts that were said in it; may be given several times
    #[arg(long, value_name = "ID", group = "what")]
    pub(crate) session: Vec<String>,
    /// Every turn and fact with these words in it, in any case of their letters
    #[arg(long = "match", value_name = "TEXT", group = "what")]
    pub(crate) matching: Option<String>,
    /// Forget for good; there is no way back
    #[arg(long)]
    pub(crate) yes: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Get {
    /// A fact, such as f12, or a message, such as kitchen/3/user
    pub(crate) id: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Pin {
    /// The fact, such as f12
    pub(crate) id: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Only facts that are pinned and true now, in the order in which prompts have them
    #[arg(long, conflicts_with_all = ["as_of", "latest", "kind", "source", "subject", "predicate", "session", "after", "limit"])]
    pub(crate) pinned: bool,
    /// Only facts that were true at this moment
    #[arg(long, value_name = "DATE", value_parser = date)]
    pub(crate) as_of: Option<i64>,
    /// Only facts that nothing replaced and that have no end
    #[arg(long)]
    pub(crate) latest: bool,
    /// Only facts of this kind
    #[arg(long)]
    pub(crate) kind: Option<Kind>,
    /// Only facts of this source
    #[arg(long, value_name = "NAME")]
    pub(crate) source: Option<String>,
    /// Only facts about this subject
    #[arg(long, value_name = "NAME")]
    pub(crate) subject: Option<String>,
    /// Only facts of this predicate
    #[arg(long, value_name = "WORD")]
    pub(crate) predicate: Option<String>,
    /// Only facts said in this conversation
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Only facts after this one: the last of the page before
    #[arg(long, value_name = "ID")]
    pub(crate) after: Option<String>,
    /// Most facts to print
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(crate) limit: u16,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Kinds of what can be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KindFilter {
    /// A message: what was said
    Message,
    /// A fact of any kind
    Fact,
    /// A fact that says something by itself
    Asserts,
    /// A fact that says one more thing of that kind about its subject
    Extends,
    /// A fact that ended another one
    Supersedes,
    /// A fact that was inferred
    Derives,
}

impl KindFilter {
    pub(crate) const fn kinds(self) -> &'static [search::Kind] {
        use search::Kind::{Fact, Message};
        match self {
            Self::Message => &[Message],
            Self::Fact => &[
                Fact(FactKind::Asserts),
                Fact(FactKind::Extends),
                Fact(FactKind::Supersedes),
                Fact(FactKind::Derives),
            ],
            Self::Asserts => &[Fact(FactKind::Asserts)],
            Self::Extends => &[Fact(FactKind::Extends)],
            Self::Supersedes => &[Fact(FactKind::Supersedes)],
            Self::Derives => &[Fact(FactKind::Derives)],
        }
    }
}

/// Kinds of fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Says something by itself
    Asserts,
    /// Says one more thing of that kind about its subject
    Extends,
    /// Ended another fact
    Supersedes,
    /// Was inferred, not said
    Derives,
}

impl From<Kind> for FactKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Asserts => Self::Asserts,
            Kind::Extends => Self::Extends,
            Kind::Supersedes => Self::Supersedes,
            Kind::Derives => Self::Derives,
        }
    }
}
