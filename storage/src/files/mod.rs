//! Files of a namespace: their names, the lock, and redb's pages staged before they reach a file.

pub(crate) mod backend;
pub(crate) mod create;
pub(crate) mod lock;
pub(crate) mod memory;
pub(crate) mod name;
pub(crate) mod part;
