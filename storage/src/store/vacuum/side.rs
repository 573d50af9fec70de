//! The files that are made from the records: nothing stays in them of what the records lack.

use std::sync::Arc;

use redb::{ReadTransaction, ReadableDatabase as _};

use crate::facts::table::FACTS;
use crate::files::part::{Media, Part};
use crate::ground::database::open_if_there as if_there;
use crate::ground::error::Fault;
use crate::ground::table::{REPLIES, TURNS, turn_key};
use crate::open::Open;
use crate::store::vacuum::next::empty;
use crate::store::vectors::erase_all_but;
use crate::vectors::{UnitKey, VectorError, VectorStore};

/// Erases the vectors of what isn't among the records, and empties the index, which is made anew.
pub(crate) fn clear(
    open: &Open,
    media: &Arc<Media>,
    vectors: &mut Option<VectorStore>,
) -> Result<(), Fault> {
    if let Some(index) = media.open_existing(Part::Index).map_err(Fault::Medium)?
        && !index.is_empty().map_err(Fault::Medium)?
    {
        empty(&*index).map_err(Fault::Medium)?;
    }
    let transaction = open.database.begin_read()?;
    // One that can't be looked for stays: whatever is wrong will be told when it is read.
    let there = |key| is_there(&transaction, key).unwrap_or(true);
    erase_all_but(vectors, media, &there).map_err(|error| match error {
        VectorError::Medium(error) => Fault::Medium(error),
        other => Fault::Engine(other.to_string()),
    })
}

fn is_there(transaction: &ReadTransaction, key: UnitKey) -> Result<bool, Fault> {
    Ok(match key {
        UnitKey::Words { session, turn } => {
            transaction.open_table(TURNS)?.get(&turn_key(session, turn))?.is_some()
        }
        UnitKey::Reply { session, turn } => {
            transaction.open_table(REPLIES)?.get(&turn_key(session, turn))?.is_some()
        }
        UnitKey::Fact { id } => match if_there(transaction, FACTS)? {
            Some(facts) => facts.get(&id.to_be_bytes())?.is_some(),
            None => false,
        },
    })
}
