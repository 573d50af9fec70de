//! What goes in and what comes out: owned summaries, borrowed views of records.

use garret_core::id::{SessionId, TurnSeq};
use garret_core::model::Finish;
use garret_core::time::{Confidence, WallTime};
use garret_core::token::{Token, TokenBytes};

/// One line in the list of sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionInfo {
    /// Its name.
    pub id: SessionId,
    /// Its title; empty when it has none.
    pub title: String,
    /// Wall clock when its first turn was accepted, in milliseconds since 1970.
    pub created_ms: i64,
    /// Wall clock when its newest turn was accepted, in milliseconds since 1970.
    pub updated_ms: i64,
    /// Turns accepted; the newest has this number.
    pub turns: TurnSeq,
}

/// A turn, read in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TurnView<'a> {
    /// Its number in the session, from 1.
    pub seq: TurnSeq,
    /// The words said to the assistant, unchanged: the user's, unless there is a `speaker`.
    pub user: &'a str,
    /// The speaker, when it wasn't the user: in an imported conversation, a name or `assistant`.
    pub speaker: Option<&'a str>,
    /// Wall clock at acceptance, in milliseconds since 1970.
    pub accepted_ms: i64,
    /// The trust that this clock deserved.
    pub clock: Confidence,
    /// Check of its record: another one where its session, its number, `user` or the clock is another
    /// one.
    pub check: &'a [u8; 8],
    /// The answer, once there is one.
    pub reply: Option<ReplyView<'a>>,
    /// True if there is an answer that can't be read; `reply` is `None` then.
    pub reply_damaged: bool,
}

/// A turn of which something can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DamagedTurn {
    /// Its number in the session.
    pub seq: TurnSeq,
    /// The fault that was found.
    pub what: &'static str,
    /// True if the user's words can be read all the same, and only the reply can't.
    pub only_reply: bool,
}

/// A reply, read in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReplyView<'a> {
    /// Its text, as far as it got.
    pub text: &'a str,
    /// Its token ids, of the model of `model_fingerprint`.
    pub tokens: TokenBytes<'a>,
    /// Fingerprint of the model that gave it.
    pub model_fingerprint: &'a [u8; 32],
    /// Why it ended.
    pub finish: StoredFinish,
    /// Wall clock at its end, in milliseconds since 1970.
    pub finished_ms: i64,
    /// The trust that this clock deserved.
    pub clock: Confidence,
}

/// A reply to be stored.
#[derive(Clone, Copy, Debug)]
pub struct NewReply<'a> {
    /// Its text, as far as it got.
    pub text: &'a str,
    /// Its token ids.
    pub tokens: &'a [Token],
    /// Fingerprint of the model that gave it.
    pub model_fingerprint: &'a [u8; 32],
    /// Why it ended.
    pub finish: StoredFinish,
    /// The moment when it ended.
    pub at: WallTime,
    /// The turn's receipt, opaque here.
    pub receipt: &'a [u8],
    /// The prompt that the model saw, opaque here; empty where that isn't kept.
    pub trace: &'a [u8],
}

/// Why a stored reply ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoredFinish {
    /// The model ended its turn.
    Stop,
    /// The limit of tokens was reached.
    Length,
    /// The user interrupted it.
    Cancelled,
    /// The model failed on the way.
    Failed,
}

impl StoredFinish {
    /// The name on the wire: `stop`, `length`, `cancelled` or `failed`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
        }
    }

    pub(crate) const fn to_byte(self) -> u8 {
        match self {
            Self::Stop => 0,
            Self::Length => 1,
            Self::Cancelled => 2,
            Self::Failed => 3,
        }
    }

    pub(crate) const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Stop),
            1 => Some(Self::Length),
            2 => Some(Self::Cancelled),
            3 => Some(Self::Failed),
            _ => None,
        }
    }
}

impl From<Finish> for StoredFinish {
    fn from(finish: Finish) -> Self {
        match finish {
            Finish::Stop => Self::Stop,
            Finish::Length => Self::Length,
            Finish::Cancelled => Self::Cancelled,
            // An ending this version has no name for isn't one of the model's own.
            _ => Self::Failed,
        }
    }
}
