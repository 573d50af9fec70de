//! Account of a turn: what it cost, block by block, and what was left out of the prompt and why.
//!
//! The tokens of all blocks add up to exactly [`Receipt::prompt_tokens`], and every turn or
//! character that is stored but not shown appears in [`Receipt::omitted`].

use heapless::Vec;

use crate::id::TurnSeq;

/// Account of one turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The window, in tokens.
    pub n_ctx: u32,
    /// Tokens of the prompt.
    pub prompt_tokens: u32,
    /// Prompt tokens found in the KV cache.
    pub reused_tokens: u32,
    /// Prompt tokens decoded for this turn.
    pub prefilled_tokens: u32,
    /// Tokens generated.
    pub reply_tokens: u32,
    /// Tokens kept free for the reply.
    pub reply_reserve: u32,
    /// Tokens kept free for a companion.
    pub companion_reserve: u32,
    /// Oldest earlier turn in the prompt; `None` when there is none.
    pub history_from: Option<TurnSeq>,
    /// The parts of the prompt in order.
    pub blocks: Vec<Block, 8>,
    /// Stored things that the prompt doesn't show.
    pub omitted: Vec<Omission, 7>,
}

impl Receipt {
    /// Returns the block of this name, if the prompt has one.
    pub fn block(&self, name: BlockName) -> Option<&Block> {
        self.blocks.iter().find(|block| block.name == name)
    }

    /// Returns how much of this kind the prompt leaves out.
    pub fn left_out(&self, what: OmissionKind) -> u64 {
        let found = self.omitted.iter().find(|omission| omission.what == what);
        found.map_or(0, |omission| omission.count)
    }
}

/// A part of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Name of the part.
    pub name: BlockName,
    /// Tokens that the part takes, the template's scaffolding included.
    pub tokens: u32,
    /// Most tokens that the part could have taken.
    pub ceiling: u32,
}

/// The parts of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BlockName {
    /// Instructions, at the beginning of the system message.
    System,
    /// Tracked part of the conversation, in the rest of the system message.
    Tracked,
    /// Earlier turns.
    History,
    /// The time. This and what follows stands in the newest message before the user's words.
    Time,
    /// Facts that were pinned, or ceased to hold, since the system message was made.
    Pinned,
    /// Inference that was made before the turn came.
    Carry,
    /// Messages and facts remembered from elsewhere.
    Memory,
    /// The newest message and the opening of the reply.
    Message,
}

impl BlockName {
    /// Returns the name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Tracked => "tracked",
            Self::History => "history",
            Self::Time => "time",
            Self::Pinned => "pinned",
            Self::Carry => "carry",
            Self::Memory => "memory",
            Self::Message => "message",
        }
    }
}

/// Something stored that the prompt doesn't show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Omission {
    /// Kind of what is left out.
    pub what: OmissionKind,
    /// Number of what is left out, in the unit of its kind.
    pub count: u64,
}

/// Kinds of omission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OmissionKind {
    /// Whole turns, the oldest ones.
    OldTurns,
    /// Whole turns that summaries cover.
    SummedUp,
    /// Characters from the middle of the newest message.
    MessageMiddle,
    /// Characters from the middle of messages in history.
    HistoryMiddle,
    /// Messages that were found in memory.
    Found,
    /// Pinned facts.
    Pins,
    /// Summaries of earlier turns.
    Summaries,
}

impl OmissionKind {
    /// Returns the unit of the count.
    pub const fn what(self) -> &'static str {
        match self {
            Self::OldTurns | Self::SummedUp => "turns",
            Self::MessageMiddle => "characters of the message",
            Self::HistoryMiddle => "characters of earlier messages",
            Self::Found => "messages found in memory",
            Self::Pins => "pinned facts",
            Self::Summaries => "summaries",
        }
    }

    /// Returns the reason, for people.
    pub const fn why(self) -> &'static str {
        match self {
            Self::OldTurns => "the oldest turns no longer fit into the window; they are stored",
            Self::SummedUp => "summaries cover them; they are stored",
            Self::MessageMiddle => {
                "the message is longer than its ceiling: head and tail are shown, it is stored whole"
            }
            Self::HistoryMiddle => {
                "messages longer than their ceiling: head and tail are shown, they are stored whole"
            }
            Self::Found => "those that fit into the share of memory are shown, the best first",
            Self::Pins => {
                "what the user pinned goes first, then what matters most; they are stored"
            }
            Self::Summaries => "those of the newest turns go first; they are stored",
        }
    }
}
