//! Files of a namespace: their names, the lock, and redb's pages staged before they reach a file.

pub(crate) mod backend;
pub(crate) mod create;
pub(crate) mod lock;
pub(crate) mod memory;
pub(crate) mod name;
pub(crate) mod part;

/// Lengths of a namespace's files before and after a rewrite.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VacuumReport {
    /// Bytes of all of them before.
    pub before: u64,
    /// Bytes of all of them after.
    pub after: u64,
}
