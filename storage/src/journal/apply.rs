//! What an operation does to the tables. The same operation on the same tables always does the
//! same: numbers come from counters in the store, times from the operation.

use garret_core::id::TurnSeq;
use redb::WriteTransaction;

use crate::conversations::import::Place;
use crate::conversations::importer::import;
use crate::conversations::op::Reply;
use crate::conversations::write::{
    accept, load, numbers_of_damaged, rename, reply, set_title, unknown,
};
use crate::erase::apply::remove_turns;
use crate::facts::Effect;
use crate::ground::error::{Abort, Fault, WriteError};
use crate::ground::table::SESSIONS;
use crate::journal::op::Op;
use crate::summaries::{Compaction, SummaryId};
use crate::{erase, facts, summaries};

/// The result of an operation.
#[derive(Debug, PartialEq)]
pub(crate) enum Outcome {
    /// A user's message is this turn.
    Accepted { number: u64, seq: TurnSeq },
    /// A turn of the session of this number has its reply.
    Replied { number: u64 },
    /// The session of this number has another name.
    Renamed { number: u64 },
    /// Nothing that the store has to know.
    Done,
    /// The sessions of these numbers are gone.
    Deleted { numbers: Vec<u64> },
    /// The effect on facts.
    Facts(Effect),
    /// The place where each went; `None` for what was there already.
    Imported(Vec<Option<Place>>),
    /// Something was forgotten; the erasure has this number.
    Erased { erasure: u64 },
    /// Summaries have these numbers.
    Compacted(Vec<SummaryId>),
}

impl Outcome {
    /// Tells whether nothing changed, so that there is nothing to keep.
    pub(crate) fn is_nothing(&self) -> bool {
        match self {
            Self::Imported(places) => places.iter().all(Option::is_none),
            Self::Facts(effect) => effect.is_nothing(),
            _ => false,
        }
    }
}

/// Applies `op` within `transaction`. After a refusal the transaction must be dropped.
pub(crate) fn apply(
    transaction: &WriteTransaction,
    op: &Op<'_>,
) -> Result<Outcome, Abort<WriteError>> {
    match op {
        Op::Accept { session, text, at } => {
            let (number, seq) = accept(transaction, session, text, *at)?;
            Ok(Outcome::Accepted { number, seq })
        }
        Op::Reply(op) => answer(transaction, op, &[]),
        Op::TracedReply { reply: op, trace } => answer(transaction, op, trace),
        Op::Rename { session, to } => {
            rename(transaction, session, to).map(|number| Outcome::Renamed { number })
        }
        Op::SetTitle { session, title } => {
            set_title(transaction, session, title).map(|()| Outcome::Done)
        }
        Op::Delete { session } => delete(transaction, session),
        Op::Facts(op) => facts::apply(transaction, op).map(Outcome::Facts),
        Op::Import(all) => Ok(Outcome::Imported(import(transaction, all)?)),
        Op::Erase(removal) => {
            let erasure = erase::apply(transaction, removal)?;
            Ok(Outcome::Erased { erasure })
        }
        Op::Compact(op) => compact(transaction, op),
        Op::SetState { session, kind, bytes } => {
            let Some(record) = load(&transaction.open_table(SESSIONS)?, session)? else {
                return unknown(session);
            };
            summaries::set_state(transaction, record.number, *kind, bytes)?;
            Ok(Outcome::Done)
        }
    }
}

/// The reply to a turn, and what the model saw.
fn answer(
    transaction: &WriteTransaction,
    op: &Reply<'_>,
    trace: &[u8],
) -> Result<Outcome, Abort<WriteError>> {
    let (number, key) = reply(transaction, op)?;
    summaries::put_trace(transaction, &key, trace)?;
    Ok(Outcome::Replied { number })
}

fn compact(
    transaction: &WriteTransaction,
    op: &Compaction<'_>,
) -> Result<Outcome, Abort<WriteError>> {
    let Some(record) = load(&transaction.open_table(SESSIONS)?, op.session)? else {
        return unknown(op.session);
    };
    let ids = summaries::apply(transaction, record.number, record.turns, op)?;
    Ok(Outcome::Compacted(ids))
}

fn delete(transaction: &WriteTransaction, session: &str) -> Result<Outcome, Abort<WriteError>> {
    let loaded = load(&transaction.open_table(SESSIONS)?, session);
    let numbers = match loaded {
        Ok(Some(record)) => vec![record.number],
        Ok(None) => return unknown(session),
        Err(Fault::Damaged { .. }) => numbers_of_damaged(transaction, session)?,
        Err(fault) => return Err(fault.into()),
    };
    numbers.iter().try_for_each(|number| remove_turns(transaction, *number))?;
    transaction.open_table(SESSIONS)?.remove(session.as_bytes())?;
    Ok(Outcome::Deleted { numbers })
}
