//! The marks of turns that were erased: their numbers stay, and nothing more is stored of them.

use redb::{ReadTransaction, ReadableTable as _, TableDefinition, WriteTransaction};

use crate::ground::database::open_if_there as if_there;
use crate::ground::error::Fault;
use crate::ground::table::{TurnKey, turn_key};

/// Turns that were forgotten, each with the number of the erasure, big-endian.
pub(crate) const FORGOTTEN: TableDefinition<'static, &'static TurnKey, &'static [u8; 8]> =
    TableDefinition::new("forgotten");

/// Tells whether a turn was forgotten.
pub(crate) fn is_forgotten(transaction: &WriteTransaction, turn: &TurnKey) -> Result<bool, Fault> {
    Ok(transaction.open_table(FORGOTTEN)?.get(turn)?.is_some())
}

/// Tells whether a turn was forgotten, in a transaction that reads.
pub(crate) fn is_marked(transaction: &ReadTransaction, turn: &TurnKey) -> Result<bool, Fault> {
    let forgotten = if_there(transaction, FORGOTTEN)?;
    Ok(match forgotten {
        Some(forgotten) => forgotten.get(turn)?.is_some(),
        None => false,
    })
}

/// Takes away the marks of a session that is gone as a whole.
pub(crate) fn unmark(transaction: &WriteTransaction, session: u64) -> Result<(), Fault> {
    let (first, last) = (turn_key(session, 0), turn_key(session, u64::MAX));
    let mut forgotten = transaction.open_table(FORGOTTEN)?;
    Ok(forgotten.retain_in::<&TurnKey, _>(&first..=&last, |_, _| false)?)
}
