//! A conversation with everything that the model saw in each of its turns, as JSON or Markdown.
//!
//! ```
//! use garret::export::{Options, export};
//! # use garret_core::time::{Confidence, WallTime};
//! # use garret_hal::media::RamMedium;
//! # use garret_storage::Store;
//! # let store = Store::on_medium("docs", Box::new(RamMedium::new()))?;
//! # let session = "kitchen".parse()?;
//! # store.accept(&session, "Hello", WallTime { unix_ms: 0, confidence: Confidence::Good })?;
//! let mut json = Vec::new();
//! export(&store, &session, &Options::default(), &mut json)?;
//! # let json: serde_json::Value = serde_json::from_slice(&json)?;
//! # assert_eq!(json["turns"][0]["user"], "Hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! It is written turn by turn: never more than one prompt is in memory.
//!
//! # JSON
//!
//! One object, one line for each turn, in this version of the schema. `?` marks what may be `null`;
//! sizes are in tokens unless another unit is named; moments are RFC 3339 in the local time zone.
//!
//! ```text
//! {"format": "garret-session", "version": 1,
//!  "session": name, "title": text, "created": moment?, "exported": moment?,
//!  "turns": [TURN, ...]}
//!
//! TURN
//!   turn         its number, from 1
//!   state        "answered", "unanswered", "damaged" or "forgotten"
//!   accepted     moment? the message was stored, before the model saw it
//!   clock        "good", "unsure" or "wrong": how far that clock could be trusted?
//!   speaker      name? of who said it instead of the user, in an imported conversation
//!   user         text? of the message, whole
//!   reply        REPLY?
//!   prompt       PROMPT?
//!   no_prompt    text?: why there is none, or why it isn't exact
//!   rounds       [ROUND, ...] what the model looked up in the middle of the reply
//!   wrote        text? that the model wrote last, where that isn't what was shown: with its tags
//!   given_up     text? that it wrote before, of which nothing could be shown, so that it was given
//!                the same once more
//!   receipt      RECEIPT?
//!   companions   COMPANIONS? to run after the turn
//!   facts        [FACT, ...] that were learned from the turn and are still known
//!   summaries    [SUMMARY, ...] of turns up to this one
//!
//! REPLY          text, finish ("stop", "length", "cancelled" or "failed"), finished (moment?),
//!                model {sha256, file?}, first_token_ms?, total_ms? (milliseconds from the message)
//! PROMPT         exact (whether the segments' texts, one after another, are the very text that the
//!                model was given), segments [SEGMENT, ...]
//! SEGMENT        block (the receipt's, to which it counts), by ("template", "garret", "user" or
//!                "assistant"), turn? (from which it is), text
//! ROUND          call, wrote (tag and all), segments [SEGMENT, ...] (what the model was given after
//!                that), tokens? (of the result), shortened?, reused_tokens?, prefilled_tokens?
//! RECEIPT        n_ctx, prompt_tokens, reused_tokens, prefilled_tokens, reply_tokens, reply_reserve,
//!                blocks [{name, tokens, ceiling}], omitted [{what, count, why}], memory [id, ...];
//!                companion_reserve, history_from? (turn), made_at? (turn for which the beginning of
//!                the prompt was made)
//! COMPANIONS     due [name, ...], noticed [reason, ...], asked [name, ...] (by the model)
//! FACT           id, text, source, quote?, inferred, recorded (moment?)
//! SUMMARY        id, depth, from, to (turns), text, tokens, method, model {sha256, file?}, made
//!                (moment?)
//! ```
//!
//! # Markdown
//!
//! The same for people, by blocks of the prompt. A stored text stands in a fence that is longer
//! than any run of backticks in it, so that it can't end it; control characters are shown as
//! pictures.
//!
//! # Limits
//!
//! What companions were asked and answered isn't stored: facts and summaries, what is shown of them
//! in later prompts, and the gate's reasons are. Turns that were imported, or answered before
//! traces were kept, have no prompt, and a forget removes those of all turns before it. Bytes that
//! are no UTF-8 (a character that the end of a reply cut in two) are shown as U+FFFD. What the
//! template wrote between two texts stands in one segment, with the block of the second.

mod head;
mod markdown;
mod prompt;
mod turn;

use std::io::{self, Write};

use garret_core::id::{SessionId, TurnSeq};
use garret_storage::{ReadError, Store};

use head::Head;
use turn::{Reader, Turn};

pub use markdown::{code, fence};

/// The form in which an export is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// JSON, for programs, and exact.
    #[default]
    Json,
    /// Markdown, for people.
    Markdown,
}

/// The part of a conversation that is exported, and the form.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The form.
    pub format: Format,
    /// This turn alone; `None` for all.
    pub turn: Option<TurnSeq>,
    /// File names of models, by the SHA-256 of the file.
    pub models: Vec<([u8; 32], String)>,
    /// The moment at which the export is made, in milliseconds since 1970; `None` leaves it out.
    pub now_ms: Option<i64>,
}

/// The reason for which there is no export, or only the beginning of one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// No conversation has this name.
    #[error("there is no conversation `{0}`: see `garret session list`")]
    UnknownSession(SessionId),
    /// The conversation has no such turn.
    #[error("conversation `{session}` has no turn {turn}: its turns are 1 to {turns}")]
    UnknownTurn {
        /// The conversation.
        session: SessionId,
        /// The turn.
        turn: TurnSeq,
        /// The number of its turns.
        turns: TurnSeq,
    },
    /// The store can't be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The export can't be written.
    #[error("the export can't be written: {0}")]
    Write(#[from] io::Error),
}

/// Writes a conversation to `out` and returns the number of turns written.
///
/// # Errors
/// [`ExportError`]; a part of an export may be written by then.
pub fn export(
    store: &Store,
    session: &SessionId,
    options: &Options,
    out: &mut dyn Write,
) -> Result<u64, ExportError> {
    let info = store.session(session)?;
    let info = info.ok_or_else(|| ExportError::UnknownSession(session.clone()))?;
    let turns = match options.turn {
        None => 1..=info.turns,
        Some(turn) if (1..=info.turns).contains(&turn) => turn..=turn,
        Some(turn) => {
            let session = session.clone();
            let turns = info.turns;
            return Err(ExportError::UnknownTurn { session, turn, turns });
        }
    };
    let mut reader = Reader::new(store, session, &options.models)?;
    let head = Head::new(&info, options.now_ms);
    match options.format {
        Format::Json => head.begin_json(out)?,
        Format::Markdown => markdown::head(out, &head, info.turns)?,
    }
    let mut written = 0;
    for turn in turns {
        let turn = reader.turn(turn)?;
        match options.format {
            Format::Json => json_turn(out, &turn, written == 0)?,
            Format::Markdown => markdown::turn(out, &turn)?,
        }
        written += 1;
    }
    if options.format == Format::Json {
        out.write_all(b"\n]}\n")?;
    }
    out.flush()?;
    Ok(written)
}

fn json_turn(out: &mut dyn Write, turn: &Turn, first: bool) -> io::Result<()> {
    out.write_all(if first { b"\n" } else { b",\n" })?;
    serde_json::to_writer(out, turn)?;
    Ok(())
}
