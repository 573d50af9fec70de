//! Why a store can't be opened.

use std::path::PathBuf;

use garret_core::medium::MediumError;

use crate::files::name::NamespaceError;

/// Why a store wasn't opened. The file is as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The namespace can't be one.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// Another process, or another `Store` in this one, has it.
    #[error(
        "namespace `{namespace}` is in use by {}: use that one, end it, or choose another \
         namespace",
        owner(*pid)
    )]
    InUse {
        /// The namespace asked for.
        namespace: String,
        /// Process id of the owner, where it could be read.
        pid: Option<u32>,
    },
    /// The data directory or the lock file can't be made.
    #[error(
        "can't prepare {}: {source}; check the data directory's owner, mode and space",
        path.display()
    )]
    Directory {
        /// The file that was to be made or opened.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// The medium can't be opened or read.
    #[error("can't open the store of namespace `{namespace}`: {source}")]
    Medium {
        /// The namespace asked for.
        namespace: String,
        /// The medium's error.
        source: MediumError,
    },
    /// The file holds something else.
    #[error(
        "the file of namespace `{namespace}` is not a Garret store ({why}): it was left as it is; \
         move it away or use another data directory"
    )]
    NotAStore {
        /// The namespace asked for.
        namespace: String,
        /// The sign by which it was recognised.
        why: String,
    },
    /// The file is a store, but broken.
    #[error(
        "the store of namespace `{namespace}` is damaged ({why}): it was left as it is; \
         copy it, check the disk, and restore a backup"
    )]
    Damaged {
        /// The namespace asked for.
        namespace: String,
        /// The damage that was found.
        why: String,
    },
    /// The journal can't be followed.
    #[error("the journal of namespace `{namespace}` {why}; nothing was changed")]
    Journal {
        /// The namespace asked for.
        namespace: String,
        /// The fault, and what to do.
        why: String,
    },
    /// The file belongs to another namespace.
    #[error(
        "the file of namespace `{namespace}` holds namespace `{found}`: it was renamed or copied \
         by hand; give it back its name"
    )]
    OtherNamespace {
        /// The namespace asked for.
        namespace: String,
        /// The one that the file names.
        found: String,
    },
    /// The file was written by a newer Garret.
    #[error(
        "the store of namespace `{namespace}` has format version {found}, this program knows up to \
         {known}: it was left as it is; use a newer Garret"
    )]
    NewerFormat {
        /// The namespace asked for.
        namespace: String,
        /// Version of the file.
        found: u32,
        /// Highest version that can be read.
        known: u32,
    },
}

fn owner(pid: Option<u32>) -> String {
    pid.map_or_else(|| "another process".to_owned(), |pid| format!("pid {pid}"))
}
