//! The conversation log of Garret: what was said, durable before anything else happens.
//!
//! One namespace is a redb database of rkyv records that are read where they lie, and a journal of
//! the writes that aren't in it yet. The format is in `FORMAT.md`. [`Store`] is the whole interface.
//!
//! ```
//! use garret_core::time::{Confidence, WallTime};
//! use garret_hal::media::FileMedium;
//! use garret_storage::{NewReply, Store, StoredFinish};
//!
//! # let dir = tempfile::tempdir()?;
//! # let data_dir = dir.path().join("data");
//! let store = Store::open(&data_dir, "home", |path| Ok(Box::new(FileMedium::open(path)?)))?;
//! let kitchen = "kitchen".parse()?;
//! let at = WallTime { unix_ms: 1_767_225_600_000, confidence: Confidence::Good };
//!
//! let turn = store.accept(&kitchen, "My name is Ada.", at)?;
//! let reply = NewReply {
//!     text: "Hello, Ada.",
//!     tokens: &[],
//!     model_fingerprint: &[0; 32],
//!     finish: StoredFinish::Stop,
//!     at,
//!     receipt: b"what the turn cost",
//!     trace: b"what the model saw",
//! };
//! store.reply(&kitchen, turn, reply)?;
//!
//! store.with_turns(&kitchen, 1, |turns| {
//!     assert_eq!(turns[0].user, "My name is Ada.");
//!     assert_eq!(turns[0].reply.unwrap().text, "Hello, Ada.");
//! })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Store::add_fact`] and what is beside it keep [`facts`]: dated statements with a source, of which
//! none is lost or overwritten.
//!
//! [`Store::compact_session`] and what is beside it keep [`summaries`] of what was said, which lead
//! back to every turn.
//!
//! [`Store::search`] finds what was said by its words; see [`search`] for how.
//!
//! [`Store::stats`] counts what there is, [`Store::verify`] checks all of it, and [`Store::backup`]
//! copies it while it is in use. [`Store::export`] and [`Store::import`] take it elsewhere:
//!
//! ```
//! # use garret_core::time::{Confidence, WallTime};
//! # use garret_hal::media::RamMedium;
//! use garret_storage::{Format, Store, Taken};
//!
//! # let store = Store::on_medium("home", Box::new(RamMedium::new()))?;
//! # let at = WallTime { unix_ms: 0, confidence: Confidence::Good };
//! store.accept(&"kitchen".parse()?, "My name is Ada.", at)?;
//! let mut bundle = Vec::new();
//! let counts = store.export(&mut bundle, Format::Bundle)?;
//!
//! let other = Store::on_medium("away", Box::new(RamMedium::new()))?;
//! assert_eq!(other.import(&*bundle, Taken::Refuse)?.counts, counts);
//! assert!(other.verify()?.is_clean());
//! // The session is there already, so it gets another name.
//! let again = other.import(&*bundle, Taken::Rename)?;
//! assert_eq!(again.renamed[0].1.as_str(), "kitchen-2");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Store::forget`] removes words for good, with all that was made of them, and writes the files
//! anew, so that no byte of them stays; [`Store::verify_erased`] looks for them in every file, and
//! [`Store::erasures`] is the ledger. [`Store::compact`] writes the files anew by itself.
//!
//! What holds, and is tested by cutting the power at every moment of a workload: an acknowledged
//! write is there afterwards; one that was under way is there whole or not at all.
//!
//! Beside redb and rkyv it stands on `garret-language` for the words of all languages, and on
//! `unicode-normalization` and `unicode-segmentation` for keys of facts and for spellings of what is
//! erased. For [`vectors`] on two more: `half` (half-precision numbers), and
//! `zerocopy` (int8 rows read where they lie, without unsafe code of ours). `postcard` writes the
//! journal's frames and bundles, `serde_json` exports as JSON Lines: what people read elsewhere mustn't
//! depend on how well we escape.
//!
//! Limits: texts, token lists and receipts of at most [`MAX_BYTES`]; about 2 MiB of memory for
//! pages, and what waits in the journal on top. A write syncs once and writes whole blocks, as a frame
//! of its own: of 512 bytes where the device has such and its file system writes past the page cache,
//! else of 4 KiB. Every 2,048th also folds the journal, with two syncs.
//! `bench/README.md`, "durability", says how many bytes reached a device.
//! [`Store::import_turns`] took 100,000 short turns in batches of 1,000 at 38,000 to 50,000 a second,
//! each batch durable; a store of that size with 1,000 writes waiting opened in 4 ms of processor
//! time (x86_64, release build, both cores busy with other work). Listing reads every session's
//! record; a delete leaves the bytes in free pages until they are used again or the store is
//! compacted; files shrink only where their end is free, or then.

#![forbid(unsafe_code)]

mod bundle;
mod conversations;
mod erase;
pub mod facts;
mod files;
mod ground;
mod index;
mod journal;
mod open;
mod postings;
pub mod search;
mod store;
pub mod summaries;
pub mod vectors;
mod verify;

pub use bundle::{
    Backup, BackupError, BundleCounts, ExportError, Format, ImportError, ImportReport, Place, Taken,
};
pub use conversations::import::{Imported, ImportedTurn, MAX_BATCH_BYTES};
pub use conversations::view::{
    DamagedTurn, NewReply, ReplyView, SessionInfo, StoredFinish, TurnView,
};
pub use erase::{Erasure, Forgotten, ForgottenItem, ForgottenKind, Selection, Trace};
pub use facts::{
    Added, Entity, EntityId, Fact, FactError, FactFilter, FactId, FactIdError, FactKind, FactPage,
    FactSource, FactView, Link, LinkKind, NewFact, Node, Origin, Outcome, Pin, Usage,
};
pub use files::Compacted;
pub use files::name::{MAX_NAMESPACE_BYTES, NamespaceError, file_name, namespace_of, namespaces};
pub use files::part::Part;
pub use ground::error::{ReadError, WriteError};
pub use ground::limits::MAX_BYTES;
pub use open::error::OpenError;
pub use store::Store;
pub use store::since::Since;
pub use store::snapshot::{SnapshotKind, Ticket, Unusable};
pub use store::stats::{FactStats, Stats};
pub use store::summaries::MAX_STATE_BYTES;
pub use summaries::{
    NewSummary, StateKind, Summary, SummaryError, SummaryId, SummaryIdError, SummaryMethod,
};
pub use verify::{Checked, Problem, Report};
