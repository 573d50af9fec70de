//! Prompt assembly: which messages a prompt holds, within a budget, in caller-provided buffers.
//!
//! A prompt is the system message (instructions, then what is tracked of the conversation), whole
//! turns of history from some turn on, and the newest message. The run that is counted is the run
//! that is decoded: the encoder is asked for the whole prompt, and while that doesn't fit, the
//! oldest turns leave. They leave in bulk, so that the prefix then stays the same for many turns
//! and the KV cache stays useful.
//!
//! What only this turn needs (the time, what is remembered from elsewhere) stands in the newest
//! message, before the user's words, and in no later prompt: history has the user's words alone, so
//! that its prefix stays the same.
//!
//! Guarantees, for every input: tokens of the prompt + reply reserve + companion reserve <= n_ctx;
//! the system message and the newest message are always there; turns are whole; history begins with
//! a user message; every turn left out is counted in the receipt.

use crate::budget::Budget;
use crate::id::TurnSeq;
use crate::prompt::{Content, EncodeError, Message, PromptEncoder, Role};
use crate::receipt::{Block, BlockName, Omission, OmissionKind, Receipt};
use crate::shorten::ShownText;
use crate::token::{Token, TokenBuf, TokenBytes};

/// An earlier turn.
#[derive(Clone, Copy, Debug)]
pub struct Turn<'a> {
    /// Number of the turn in its session.
    pub seq: TurnSeq,
    /// Message of the user.
    pub user: &'a ShownText<'a>,
    /// A line with the day on which it was said, with its end; empty for none. It stands before the
    /// first turn that is shown and wherever the day is another than that of the turn before.
    pub day: CountedText<'a>,
    /// Reply of the model; `None` or blank when there never was one, which the prompt then says.
    pub reply: Option<PastReply<'a>>,
    /// Tokens the turn takes in a prompt without its day, by an earlier count. An estimate is
    /// enough: it only saves encoding what can't fit.
    pub cost: usize,
}

/// A reply in history.
#[derive(Clone, Copy, Debug)]
pub struct PastReply<'a> {
    /// Text of the reply.
    pub text: &'a str,
    /// Token ids of the reply, if the model that is loaded generated it; else empty.
    pub tokens: TokenBytes<'a>,
}

/// Material of a prompt.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// Instructions: the beginning of the system message; empty for none.
    pub system: CountedText<'a>,
    /// Tracked part of the conversation: the rest of the system message, with whatever sets it off;
    /// empty for none. The caller sees to it that it has at most [`Budget::tracked`] tokens.
    pub tracked: CountedText<'a>,
    /// Earlier turns, oldest first.
    pub history: &'a [Turn<'a>],
    /// Number of turns before `history`, which the caller knows not to fit; they count as left out.
    pub older: u64,
    /// Oldest turn of the previous prompt of this conversation: history starts there again, so that
    /// its prefix is stable, until the window is full. `None` considers every turn.
    pub keep_from: Option<TurnSeq>,
    /// Block that this turn alone needs; it stands before the newest message's own text.
    pub volatile: Volatile<'a>,
    /// The newest message.
    pub message: &'a ShownText<'a>,
    /// Omissions of the caller, for the receipt: of each kind at most one, and none of those that
    /// assembly itself counts.
    pub omitted: &'a [Omission],
}

impl<'a> Input<'a> {
    /// Creates the input of a prompt that is a message and nothing else.
    pub const fn new(message: &'a ShownText<'a>) -> Self {
        Self {
            system: CountedText { text: "", tokens: 0 },
            tracked: CountedText { text: "", tokens: 0 },
            history: &[],
            older: 0,
            keep_from: None,
            volatile: Volatile { text: "", parts: &[] },
            message,
            omitted: &[],
        }
    }
}

/// A text with the tokens that it takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountedText<'a> {
    /// The text.
    pub text: &'a str,
    /// Tokens of the text by itself, as [`PromptEncoder::count`] gives them.
    pub tokens: u32,
}

impl<'a> CountedText<'a> {
    /// Counts `text`.
    ///
    /// # Errors
    /// Those of the encoder.
    pub fn new<E: PromptEncoder>(
        encoder: &mut E,
        text: &'a str,
    ) -> Result<Self, EncodeError<E::Error>> {
        let count = encoder.count(&Content::from(text), usize::MAX)?;
        Ok(Self { text, tokens: tokens(count) })
    }
}

/// A block of text that a turn needs and later ones don't.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Volatile<'a> {
    /// The block, with whatever sets it off from the text that follows; empty for none. The caller
    /// sees to it that it has at most [`Budget::volatile`] and [`Budget::memory`] tokens together.
    pub text: &'a str,
    /// Parts of the block, in order.
    pub parts: &'a [Part],
}

/// A part of a volatile block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Name of the part.
    pub name: BlockName,
    /// Tokens of the part by itself.
    pub tokens: u32,
    /// Most tokens that the part could have had.
    pub ceiling: u32,
}

/// Buffers for [`assemble`]. `messages` and `ends` need two entries for each turn of history and
/// two more; with fewer, older turns are left out. `tokens` needs [`Budget::prompt_limit`] entries.
#[derive(Debug)]
pub struct Scratch<'s, 'a> {
    /// Messages of the prompt, in order.
    pub messages: &'s mut [Message<'a>],
    /// End of each message in the run.
    pub ends: &'s mut [usize],
    /// The run.
    pub tokens: &'s mut [Token],
}

/// An assembled prompt.
#[derive(Debug)]
pub struct Prompt<'s> {
    /// Exactly what the model is to decode.
    pub tokens: &'s [Token],
    /// Account of the prompt; the fields about decoding are 0 until the turn ran.
    pub receipt: Receipt,
}

/// Assembles a prompt.
///
/// # Errors
/// See [`AssembleError`]; nothing is cut to avoid one.
pub fn assemble<'s, 'a, E: PromptEncoder>(
    budget: &Budget,
    encoder: &mut E,
    input: &Input<'a>,
    scratch: Scratch<'s, 'a>,
) -> Result<Prompt<'s>, AssembleError<E::Error>> {
    let limit = usize::try_from(budget.prompt_limit()).unwrap_or(usize::MAX);
    let Scratch { messages, ends, tokens } = scratch;
    let room = messages.len().min(ends.len());
    if tokens.len() < limit || room < 2 {
        return Err(AssembleError::Scratch);
    }
    let ceiling = budget.system_text();
    if input.system.tokens > ceiling {
        return Err(AssembleError::SystemTooLong { ceiling });
    }
    let mut fixed = Draft { messages, ends, run: TokenBuf::new(first(tokens, limit)) };
    let mut length = |volatile| {
        let account = fixed.fill(encoder, &Input { volatile, ..*input }, &[]);
        account.map(|account| account.total).map_err(|error| too_long(error, limit))
    };
    let plain = length(Volatile::default())?;
    let fixed = if input.volatile.text.is_empty() { plain } else { length(input.volatile)? };
    let pool = limit.saturating_sub(fixed);
    let mut history = start(input, pool, room.saturating_sub(2) / 2);
    let account = loop {
        let mut draft = Draft { messages, ends, run: TokenBuf::new(first(tokens, limit)) };
        match draft.fill(encoder, input, history) {
            Ok(account) => break account,
            Err(EncodeError::Full) if !history.is_empty() => history = fewer(history),
            Err(error) => return Err(too_long(error, limit)),
        }
    };
    let volatile = fixed.saturating_sub(plain);
    let receipt = receipt(budget, input, history, &Account { volatile, ..account });
    Ok(Prompt { tokens: first(tokens, account.total), receipt })
}

/// Returns the messages, in order, of a prompt that shows `history`, which is the history of
/// `input` or the end of it: the messages that [`assemble`] encodes.
pub fn messages<'a>(
    input: &Input<'a>,
    history: &'a [Turn<'a>],
) -> impl Iterator<Item = Message<'a>> + use<'a> {
    let message = Message::new(Role::User, input.message.content_after(input.volatile.text));
    system_message(input).into_iter().chain(earlier(history)).chain([message])
}

fn system_message<'a>(input: &Input<'a>) -> Option<Message<'a>> {
    let system = Content::from_parts([input.system.text, input.tracked.text]);
    (!system.is_empty()).then(|| Message::new(Role::System, system))
}

/// Encodes a conversation in which every message has its reply and nothing more is asked: the
/// beginning of the next prompt, if `history` begins as it will then. `scratch` is as large as for
/// [`assemble`], or larger.
///
/// # Errors
/// [`EncodeError::Full`] when the buffers are too small.
pub fn conversation<'s, 'a, E: PromptEncoder>(
    encoder: &mut E,
    system: &'a str,
    history: &'a [Turn<'a>],
    scratch: Scratch<'s, 'a>,
) -> Result<&'s [Token], EncodeError<E::Error>> {
    let Scratch { messages, ends, tokens } = scratch;
    let system = (!system.is_empty()).then(|| Message::new(Role::System, system));
    let all = system.into_iter().chain(earlier(history));
    let count = usize::from(system.is_some()).saturating_add(history.len().saturating_mul(2));
    if count > messages.len() || count > ends.len() {
        return Err(EncodeError::Full);
    }
    for (slot, message) in messages.iter_mut().zip(all) {
        *slot = message;
    }
    encoder.encode(first_ref(messages, count), &mut TokenBuf::new(tokens), ends)?;
    let end = count.checked_sub(1).and_then(|last| ends.get(last)).copied().unwrap_or(0);
    Ok(first(tokens, end))
}

/// A conversation of which something else is asked at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fork<'s> {
    /// The run: the conversation, what is asked as a message of the user, and the opening of a
    /// reply.
    pub tokens: &'s [Token],
    /// Number of tokens, from the front, that are the conversation's.
    pub shared: usize,
}

/// Encodes the run of [`conversation`] with `ask` after it: the same tokens up to the end of the
/// conversation. `scratch` has room for one more message.
///
/// # Errors
/// [`EncodeError::Full`] when the buffers are too small.
pub fn fork<'s, 'a, E: PromptEncoder>(
    encoder: &mut E,
    system: &'a str,
    history: &'a [Turn<'a>],
    ask: &'a str,
    scratch: Scratch<'s, 'a>,
) -> Result<Fork<'s>, EncodeError<E::Error>> {
    let Scratch { messages, ends, tokens } = scratch;
    let system = (!system.is_empty()).then(|| Message::new(Role::System, system));
    let before = usize::from(system.is_some()).saturating_add(history.len().saturating_mul(2));
    let count = before.saturating_add(1);
    if count > messages.len() || count > ends.len() {
        return Err(EncodeError::Full);
    }
    let asked = Message::new(Role::User, ask);
    let all = system.into_iter().chain(earlier(history)).chain([asked]);
    for (slot, message) in messages.iter_mut().zip(all) {
        *slot = message;
    }
    let mut run = TokenBuf::new(tokens);
    encoder.encode(first_ref(messages, count), &mut run, ends)?;
    let length = run.len();
    let shared = before.checked_sub(1).and_then(|last| ends.get(last)).copied().unwrap_or(0);
    Ok(Fork { tokens: first(tokens, length), shared })
}

/// Reason why no prompt could be assembled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AssembleError<E> {
    /// The system message is over its ceiling. It is never cut.
    #[error(
        "the system prompt is longer than the {ceiling} tokens it can have in this window: \
         shorten it or ask for a larger window"
    )]
    SystemTooLong {
        /// Most tokens of text it can have.
        ceiling: u32,
    },
    /// System message and newest message alone exceed the window.
    #[error(
        "the system prompt and the message don't fit into the {limit} tokens of the prompt: \
         ask for a larger window"
    )]
    MessageTooLong {
        /// Most tokens a prompt can have.
        limit: usize,
    },
    /// A buffer in [`Scratch`] is too small for any prompt.
    #[error("the buffers for assembling a prompt are too small")]
    Scratch,
    /// The template or the tokenizer failed.
    #[error(transparent)]
    Encoder(E),
}

impl<E> AssembleError<E> {
    /// Converts the encoder's error by `map`.
    pub fn map_encoder<F>(self, map: impl FnOnce(E) -> F) -> AssembleError<F> {
        match self {
            Self::SystemTooLong { ceiling } => AssembleError::SystemTooLong { ceiling },
            Self::MessageTooLong { limit } => AssembleError::MessageTooLong { limit },
            Self::Scratch => AssembleError::Scratch,
            Self::Encoder(error) => AssembleError::Encoder(map(error)),
        }
    }
}

impl<E> From<EncodeError<E>> for AssembleError<E> {
    fn from(error: EncodeError<E>) -> Self {
        match error {
            EncodeError::Full => Self::Scratch,
            EncodeError::Encoder(error) => Self::Encoder(error),
        }
    }
}

/// The reply that stands in a prompt for one that was never given: templates want roles to
/// alternate, and an empty reply would teach the model to say nothing.
pub const NO_REPLY: &str = "(This message was not answered: the answer was interrupted.)";

/// The reply that stands in a prompt for one that nobody waited for: what a named speaker said was
/// said to somebody else.
pub const OVERHEARD: &str = "(Noted.)";

/// An attempt at a prompt.
struct Draft<'d, 'a> {
    messages: &'d mut [Message<'a>],
    ends: &'d mut [usize],
    run: TokenBuf<'d>,
}

/// Lengths in tokens: of the run up to the end of the system message, of history, of what the
/// volatile block adds to the newest message, and of all.
struct Account {
    system: usize,
    history: usize,
    volatile: usize,
    total: usize,
}

impl<'a> Draft<'_, 'a> {
    fn fill<E: PromptEncoder>(
        &mut self,
        encoder: &mut E,
        input: &Input<'a>,
        history: &'a [Turn<'a>],
    ) -> Result<Account, EncodeError<E::Error>> {
        let mut count = 0_usize;
        for (slot, message) in self.messages.iter_mut().zip(messages(input, history)) {
            *slot = message;
            count = count.saturating_add(1);
        }
        self.run.clear();
        self.ends.fill(0);
        encoder.encode(first_ref(self.messages, count), &mut self.run, self.ends)?;
        let end_of = |messages: usize| {
            let last = messages.checked_sub(1).and_then(|i| self.ends.get(i)).copied();
            last.unwrap_or(0)
        };
        let system = end_of(usize::from(system_message(input).is_some()));
        let before_message = end_of(count.saturating_sub(1));
        Ok(Account {
            system,
            history: before_message.saturating_sub(system),
            volatile: 0,
            total: self.run.len(),
        })
    }
}

/// The messages of earlier turns.
fn earlier<'a>(history: &'a [Turn<'a>]) -> impl Iterator<Item = Message<'a>> + use<'a> {
    history.iter().zip(marks(history)).flat_map(|(turn, day)| pair(turn, day))
}

/// Returns the line with a day that stands before each of the turns; empty for none.
pub fn marks<'a>(history: &'a [Turn<'a>]) -> impl Iterator<Item = &'a str> + use<'a> {
    let before = [""].into_iter().chain(history.iter().map(|turn| turn.day.text));
    let days = history.iter().map(|turn| turn.day.text).zip(before);
    days.map(|(day, before)| if day == before { "" } else { day })
}

/// The two messages of an earlier turn, which `day` stands before.
fn pair<'a>(turn: &'a Turn<'a>, day: &'a str) -> [Message<'a>; 2] {
    let user = Message::new(Role::User, turn.user.content_after(day));
    let none = PastReply { text: NO_REPLY, tokens: TokenBytes::default() };
    let reply = turn.reply.filter(|reply| !reply.text.trim().is_empty()).unwrap_or(none);
    let content = Content::from(reply.text);
    [user, Message { role: Role::Assistant, content, tokens: reply.tokens }]
}

/// The turns to begin with: from `keep_from` on if they fit into `pool` tokens, else the newest
/// that fill five eighths of it, and in any case the newest one if that fits; at most `room` turns.
fn start<'a>(input: &Input<'a>, pool: usize, room: usize) -> &'a [Turn<'a>] {
    let history = input.history;
    let kept = input.keep_from.map_or(0, |seq| history.partition_point(|turn| turn.seq < seq));
    let kept = kept.max(history.len().saturating_sub(room));
    let candidates = history.get(kept..).unwrap_or(&[]);
    if cost(candidates) <= pool {
        return candidates;
    }
    let filling = newest(candidates, refill(pool));
    if filling.is_empty() { newest(last(candidates), pool) } else { filling }
}

fn cost(turns: &[Turn<'_>]) -> usize {
    let mut sum = 0_usize;
    let mut later = "";
    for turn in turns.iter().rev() {
        sum = sum.saturating_add(dated(turn, later));
        later = turn.day.text;
    }
    sum
}

/// Returns the tokens that a turn adds to later ones, of which the oldest is of the day `later`.
fn dated(turn: &Turn<'_>, later: &str) -> usize {
    let day = if turn.day.text == later { 0 } else { turn.day.tokens };
    turn.cost.saturating_add(usize::try_from(day).unwrap_or(usize::MAX))
}

fn last<'a>(turns: &'a [Turn<'a>]) -> &'a [Turn<'a>] {
    turns.get(turns.len().saturating_sub(1)..).unwrap_or(&[])
}

/// The newest turns whose costs add up to at most `room`.
fn newest<'a>(turns: &'a [Turn<'a>], room: usize) -> &'a [Turn<'a>] {
    let mut left = room;
    let mut later = "";
    let fitting = turns.iter().rev().take_while(|turn| {
        let cost = dated(turn, later);
        let fits = cost <= left;
        left = left.saturating_sub(cost);
        later = turn.day.text;
        fits
    });
    let count = fitting.count();
    turns.get(turns.len().saturating_sub(count)..).unwrap_or(&[])
}

/// Fewer of these turns, whose costs were estimated too low: the newest that make up five eighths
/// of what they were said to cost, or the newer half when the costs tell nothing.
fn fewer<'a>(turns: &'a [Turn<'a>]) -> &'a [Turn<'a>] {
    let cheaper = newest(turns, refill(cost(turns)));
    if !cheaper.is_empty() && cheaper.len() < turns.len() {
        return cheaper;
    }
    turns.get(turns.len().div_ceil(2)..).unwrap_or(&[])
}

fn receipt(budget: &Budget, input: &Input<'_>, history: &[Turn<'_>], account: &Account) -> Receipt {
    let others = account.total.saturating_sub(account.history);
    let mut receipt = Receipt {
        n_ctx: budget.n_ctx,
        prompt_tokens: tokens(account.total),
        reused_tokens: 0,
        prefilled_tokens: 0,
        reply_tokens: 0,
        reply_reserve: budget.reply_reserve,
        companion_reserve: budget.companion_reserve,
        history_from: history.first().map(|turn| turn.seq),
        blocks: heapless::Vec::new(),
        omitted: heapless::Vec::new(),
    };
    let system = tokens(account.system);
    let tracked = input.tracked.tokens.min(system);
    let rest = budget.prompt_limit().saturating_sub(tokens(others));
    let message = others.saturating_sub(account.system).saturating_sub(account.volatile);
    let block = |name, tokens, ceiling| Block { name, tokens, ceiling };
    let parts = volatile(input.volatile.parts, tokens(account.volatile));
    let front = [
        block(BlockName::System, system.saturating_sub(tracked), budget.system),
        block(BlockName::Tracked, tracked, budget.tracked),
        block(BlockName::History, tokens(account.history), rest),
    ];
    let back = block(BlockName::Message, tokens(message), budget.message);
    for part in front.into_iter().chain(parts).chain([back]) {
        // One of each name, and room for as many.
        let _ = receipt.blocks.push(part);
    }
    let dropped = input.history.len().saturating_sub(history.len());
    let middles = history.iter().fold(0_usize, |sum, t| sum.saturating_add(t.user.left_out()));
    let own = [
        (OmissionKind::OldTurns, input.older.saturating_add(wide(dropped))),
        (OmissionKind::HistoryMiddle, wide(middles)),
        (OmissionKind::MessageMiddle, wide(input.message.left_out())),
    ];
    let own = own.map(|(what, count)| Omission { what, count });
    for omission in own.iter().chain(input.omitted).filter(|omission| omission.count > 0) {
        // One of each kind, and room for as many.
        let _ = receipt.omitted.push(*omission);
    }
    receipt
}

/// The blocks of a volatile block of `total` tokens. Texts counted apart can differ by a few tokens
/// from what they are together; the last part that isn't empty has the difference.
fn volatile(parts: &[Part], total: u32) -> impl Iterator<Item = Block> + '_ {
    let last = parts.iter().rposition(|part| part.tokens > 0);
    let mut left = total;
    parts.iter().enumerate().map(move |(i, part)| {
        let tokens = if last == Some(i) { left } else { part.tokens.min(left) };
        left = left.saturating_sub(tokens);
        Block { name: part.name, tokens, ceiling: part.ceiling }
    })
}

fn too_long<E>(error: EncodeError<E>, limit: usize) -> AssembleError<E> {
    match error {
        EncodeError::Full => AssembleError::MessageTooLong { limit },
        EncodeError::Encoder(error) => AssembleError::Encoder(error),
    }
}

/// Share of a room that is filled again when history had to give way: five eighths.
const fn refill(pool: usize) -> usize {
    (pool / 8).saturating_mul(5)
}

/// A count of tokens; a window is a `u32`, so no count exceeds it.
fn tokens(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// A count of things in memory, which fits into 64 bits on every machine there is.
fn wide(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

fn first<T>(slice: &mut [T], count: usize) -> &mut [T] {
    let count = count.min(slice.len());
    slice.split_at_mut_checked(count).map_or(&mut [], |(front, _)| front)
}

fn first_ref<T>(slice: &[T], count: usize) -> &[T] {
    slice.get(..count).unwrap_or(slice)
}

#[cfg(test)]
#[path = "assemble_tests.rs"]
mod tests;
