//! Receipts as they are stored and shown.
//!
//! On the wire a receipt is JSON; in the store it is a record with a version, of which older ones are
//! read, too.

use garret_core::gate::Decision;
use garret_core::id::{SessionId, TurnSeq};
use garret_core::receipt::Receipt;
use garret_core::scan::Companions;
use garret_storage::{ReadError, Store};
use serde::{Deserialize, Serialize};

use crate::state;

/// A receipt in words and numbers, as `--json` prints it and `/why` explains it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiptReport {
    /// The window, in tokens.
    pub n_ctx: u32,
    /// Tokens of the prompt.
    pub prompt_tokens: u32,
    /// Tokens of the prompt that were found in the KV cache.
    pub reused_tokens: u32,
    /// Tokens of the prompt that were decoded for this turn.
    pub prefilled_tokens: u32,
    /// Tokens generated.
    pub reply_tokens: u32,
    /// Tokens kept free for the reply.
    pub reply_reserve: u32,
    /// Parts of the prompt.
    pub blocks: Vec<BlockReport>,
    /// Kinds of things that are stored and not shown.
    pub omitted: Vec<OmissionReport>,
    /// Ids of the messages in the block `memory`, in its order.
    pub memory: Vec<String>,
}

/// A lookup in the middle of a reply. Its tokens are no part of the prompt that
/// the receipt accounts for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundReport {
    /// The call, as it is written.
    pub call: String,
    /// Tokens of the message with the result.
    pub tokens: u32,
    /// The result had to be shortened.
    pub shortened: bool,
    /// Tokens of the prompt with the result that were found in the KV cache.
    pub reused_tokens: u32,
    /// Tokens of the prompt with the result that were decoded.
    pub prefilled_tokens: u32,
}

/// A part of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockReport {
    /// `system`, `tracked`, `history`, `time`, `pinned`, `carry`, `memory` or `message`.
    pub name: String,
    /// Tokens of the part.
    pub tokens: u32,
    /// Most tokens that the part could have.
    pub ceiling: u32,
}

/// Something stored that the prompt didn't show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OmissionReport {
    /// The kind.
    pub what: String,
    /// Number of things of the kind.
    pub count: u64,
    /// The reason.
    pub why: String,
}

impl ReceiptReport {
    /// Makes the report of a turn whose prompt showed the messages of these ids.
    pub fn new(receipt: &Receipt, memory: &[String]) -> Self {
        let blocks = receipt.blocks.iter().map(|block| BlockReport {
            name: block.name.as_str().into(),
            tokens: block.tokens,
            ceiling: block.ceiling,
        });
        let omitted = receipt.omitted.iter().map(|omission| OmissionReport {
            what: omission.what.what().into(),
            count: omission.count,
            why: omission.what.why().into(),
        });
        Self {
            n_ctx: receipt.n_ctx,
            prompt_tokens: receipt.prompt_tokens,
            reused_tokens: receipt.reused_tokens,
            prefilled_tokens: receipt.prefilled_tokens,
            reply_tokens: receipt.reply_tokens,
            reply_reserve: receipt.reply_reserve,
            blocks: blocks.collect(),
            omitted: omitted.collect(),
            memory: memory.to_vec(),
        }
    }
}

/// A receipt with what the next turn wants to know of this one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredReceipt {
    /// The part that is shown.
    pub report: ReceiptReport,
    /// Tokens kept free for a companion.
    pub companion_reserve: u32,
    /// Oldest earlier turn that was in the prompt.
    pub history_from: Option<TurnSeq>,
    /// The turn for which the beginning of its prompt was made; 0 where that isn't known.
    pub made_at: TurnSeq,
    /// The turn whose trace has the text of its system message; 0 for none.
    pub system_in: TurnSeq,
    /// The companions that were to run after the turn, and the reasons.
    pub companions: CompanionsReport,
    /// The lookups on the way.
    pub rounds: Vec<RoundReport>,
    /// Names of the companions that the model asked for.
    pub asked: Vec<String>,
}

/// The companions that a turn gave reason for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompanionsReport {
    /// The inferrer.
    pub infer: bool,
    /// The compactor.
    pub compact: bool,
    /// The reader of facts.
    pub extract: bool,
    /// The reasons, such as `contradiction`.
    pub reasons: Vec<String>,
}

impl From<&Decision> for CompanionsReport {
    fn from(decision: &Decision) -> Self {
        let Decision { infer, compact, extract, reasons, .. } = *decision;
        let reasons = reasons.iter().map(|reason| reason.as_str().to_owned()).collect();
        Self { infer, compact, extract, reasons }
    }
}

impl StoredReceipt {
    /// Makes the record of a turn whose prompt showed the messages of these ids.
    pub fn new(receipt: &Receipt, memory: &[String]) -> Self {
        Self {
            report: ReceiptReport::new(receipt, memory),
            companion_reserve: receipt.companion_reserve,
            history_from: receipt.history_from,
            made_at: 0,
            system_in: 0,
            companions: CompanionsReport::default(),
            rounds: Vec::new(),
            asked: Vec::new(),
        }
    }

    /// Adds the lookups on the way, and the companions that the model asked for.
    #[must_use]
    pub fn with_rounds(mut self, rounds: &[RoundReport], companions: Companions) -> Self {
        self.rounds = rounds.to_vec();
        self.asked = companions.iter().map(|one| one.as_str().to_owned()).collect();
        self
    }

    /// Returns the bytes of the record.
    pub fn to_bytes(&self) -> Vec<u8> {
        state::encode(self)
    }

    /// Reads a record; `None` when its version isn't known or it is damaged, which loses the
    /// explanation of a past turn and nothing else.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        state::decode(bytes)
    }
}

/// Version 4 has no rounds and no companions asked for, version 3 no companions at all, version 2
/// neither of the two turns.
impl state::Record for StoredReceipt {
    const VERSION: u8 = 5;
    const OLDER: &'static [(u8, &'static [u8])] = &[(4, &[0; 2]), (3, &[0; 6]), (2, &[0; 8])];
}

/// The receipt of the newest answered turn of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastReceipt {
    /// The number of the turn.
    pub turn: TurnSeq,
    /// The receipt of the turn.
    pub receipt: StoredReceipt,
}

impl LastReceipt {
    /// Reads the receipt of the newest answered turn of `session`; `None` when nothing was answered, or
    /// its receipt can't be read.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn read(store: &Store, session: &SessionId) -> Result<Option<Self>, ReadError> {
        let Some((turn, bytes)) = store.last_receipt(session)? else { return Ok(None) };
        Ok(StoredReceipt::from_bytes(&bytes).map(|receipt| Self { turn, receipt }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receipt() -> StoredReceipt {
        let omitted = vec![OmissionReport { what: "turns".into(), count: 7, why: "old".into() }];
        let blocks = vec![BlockReport { name: "system".into(), tokens: 12, ceiling: 448 }];
        let report = ReceiptReport {
            n_ctx: 2_048,
            prompt_tokens: 12,
            reused_tokens: 4,
            prefilled_tokens: 8,
            reply_tokens: 3,
            reply_reserve: 512,
            blocks,
            omitted,
            memory: vec!["kitchen/3/user".into()],
        };
        let companions = CompanionsReport {
            infer: true,
            compact: false,
            extract: true,
            reasons: vec!["contradiction".into()],
        };
        let (companion_reserve, history_from) = (128, Some(8));
        let (made_at, system_in) = (7, 6);
        let round = RoundReport { call: "expand turn 3".into(), tokens: 90, ..Default::default() };
        let (rounds, asked) = (vec![round], vec!["compact".into()]);
        StoredReceipt {
            report,
            companion_reserve,
            history_from,
            made_at,
            system_in,
            companions,
            rounds,
            asked,
        }
    }

    #[test]
    fn a_stored_receipt_comes_back() {
        let bytes = receipt().to_bytes();
        assert_eq!(StoredReceipt::from_bytes(&bytes), Some(receipt()));
    }

    /// Old receipts keep their explanations.
    #[test]
    fn receipts_of_the_versions_before_are_read() {
        let old = StoredReceipt { rounds: Vec::new(), asked: Vec::new(), ..receipt() };
        let bytes = old.to_bytes();
        let body = &bytes[1..bytes.len() - 2];
        assert_eq!(StoredReceipt::from_bytes(&[&[4], body].concat()), Some(old.clone()));
        let old = StoredReceipt { companions: CompanionsReport::default(), ..old };
        let bytes = old.to_bytes();
        let body = &bytes[1..bytes.len() - 6];
        assert_eq!(StoredReceipt::from_bytes(&[&[3], body].concat()), Some(old.clone()));
        let older = StoredReceipt { made_at: 0, system_in: 0, ..old };
        let body = &body[..body.len() - 2];
        assert_eq!(StoredReceipt::from_bytes(&[&[2], body].concat()), Some(older));
    }

    #[test]
    fn damaged_and_foreign_records_are_none() {
        let bytes = receipt().to_bytes();
        for end in 0..bytes.len() {
            assert_eq!(StoredReceipt::from_bytes(&bytes[..end]), None, "cut at {end}");
        }
        assert_eq!(StoredReceipt::from_bytes(&[&[6], &bytes[1..]].concat()), None);
    }
}
