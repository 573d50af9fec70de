//! redb, set up as every store uses it, and kept from ending the process.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use redb::{
    Builder, Database, Key, ReadOnlyTable, ReadTransaction, TableDefinition, TableError, Value,
};

use crate::ground::error::Fault;

/// Memory redb may use for pages, in bytes. Its own default is 1 GiB; the system keeps pages of files,
/// too, and with 8 MiB neither queries nor writes took less time.
pub(crate) const CACHE_BYTES: usize = 2 << 20;

/// redb, set up as every store uses it.
pub(crate) fn builder() -> Builder {
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE_BYTES);
    builder
}

/// Runs something of redb's; a panic in it becomes an error.
///
/// What `act` owned or borrowed mutably must not be used after an error.
pub(crate) fn contain<T>(act: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|panic| {
        let said = panic
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| panic.downcast_ref::<String>().cloned());
        Err(Fault::Engine(said.unwrap_or_else(|| "it panicked".to_owned())))
    })
}

/// Drops a database without its last commit. That would save what each fold saves anyway, and move
/// what waits into the file; in a damaged file it can panic twice, which ends the process.
pub(crate) fn discard(database: Database) {
    // It is left out while a panic unwinds: so one does, without a message.
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        let _dropped = database;
        resume_unwind(Box::new(()))
    }));
    debug_assert!(unwound.is_err());
}

/// Opens a table; `None` where the store is from before there was one.
pub(crate) fn open_if_there<K: Key + 'static, V: Value + 'static>(
    transaction: &ReadTransaction,
    table: TableDefinition<'_, K, V>,
) -> Result<Option<ReadOnlyTable<K, V>>, Fault> {
    match transaction.open_table(table) {
        Err(TableError::TableDoesNotExist(_)) => Ok(None),
        opened => Ok(Some(opened?)),
    }
}
