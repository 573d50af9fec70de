//! Counts of turns, kept so that a turn is tokenised once and not at every prompt.

use std::collections::HashMap;

use garret_core::assemble::{self, NO_REPLY, OVERHEARD, PastReply, Turn};
use garret_core::id::TurnSeq;
use garret_core::prompt::{Content, EncodeError, PromptEncoder};
use garret_core::shorten::{ShownText, shorten};
use garret_core::time::Confidence;
use garret_core::token::TokenBytes;
use garret_storage::TurnView;

use garret_language::local_time;

/// The counts of turns of one session that were in a prompt before.
#[derive(Debug, Default)]
pub(crate) struct TurnCounts(HashMap<TurnSeq, CountedTurn>);

/// The way in which a turn is shown, and its tokens.
#[derive(Clone, Copy, Debug)]
struct CountedTurn {
    /// The checksum of the turn's record: another process may replace it.
    check: [u8; 8],
    /// Bytes of head and tail, where the message is shown shortened.
    cut: Option<(usize, usize)>,
    /// Tokens without the reply's.
    user: usize,
    /// Tokens of the reply, once there is one.
    reply: Option<usize>,
}

impl TurnCounts {
    /// Returns the newest of `views` that together cost at most the room in `limits`, oldest first, and
    /// one more if there is one, so that assembly sees that the window is full.
    pub(crate) fn shown<'a, E: PromptEncoder>(
        &mut self,
        encoder: &mut E,
        views: &'a [TurnView<'a>],
        limits: Limits,
    ) -> Result<Vec<PastTurn<'a>>, EncodeError<E::Error>> {
        let mut past = Vec::with_capacity(views.len());
        let mut room = limits.room;
        let mut day = Day::default();
        for view in views.iter().rev() {
            let text = if limits.dated { day_line(view) } else { String::new() };
            if text != day.text {
                let tokens = assemble::CountedText::new(encoder, &text)?.tokens;
                day = Day { text, tokens };
            }
            let turn = PastTurn { day: day.clone(), ..self.count(encoder, view, limits)? };
            let cost = turn.cost;
            past.push(turn);
            if cost > room {
                break;
            }
            room -= cost;
        }
        past.reverse();
        let oldest = past.first().map_or(0, |turn| turn.view.seq);
        self.0.retain(|seq, _| *seq >= oldest);
        Ok(past)
    }

    fn count<'a, E: PromptEncoder>(
        &mut self,
        encoder: &mut E,
        view: &'a TurnView<'a>,
        limits: Limits,
    ) -> Result<PastTurn<'a>, EncodeError<E::Error>> {
        let kept = kept_tokens(view, &limits.fingerprint);
        let words = words(view);
        let speaker = view.speaker.unwrap_or_default();
        let known = self.0.get(&view.seq).copied();
        let known = known.filter(|counted| counted.check == *view.check);
        let (shown, user) = match known {
            Some(CountedTurn { cut: Some((head, tail)), user, .. }) => {
                (ShownText::cut(words, head, tail).by(speaker), user)
            }
            Some(CountedTurn { cut: None, user, .. }) => {
                (ShownText::whole(words).by(speaker), user)
            }
            None => {
                let shown = shorten(encoder, words, limits.message)?.by(speaker);
                let user = encoder.count(&shown.content(), limits.message)?;
                (shown, user)
            }
        };
        let reply = match (known.and_then(|counted| counted.reply), &view.reply) {
            (Some(tokens), _) => tokens,
            (None, Some(_)) if !kept.is_empty() => kept.len(),
            (None, Some(reply)) if !reply.text.trim().is_empty() => {
                encoder.count(&Content::from(reply.text), limits.room)?
            }
            (None, _) => encoder.count(&Content::from(unanswered(view)), limits.room)?,
        };
        let counted = CountedTurn {
            check: *view.check,
            cut: shown.cut_bytes(),
            user,
            reply: view.reply.map(|_| reply),
        };
        self.0.insert(view.seq, counted);
        let day = Day::default();
        Ok(PastTurn { view, shown, day, kept, cost: user.saturating_add(reply) + SCAFFOLD })
    }
}

/// The bounds of a history.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Most tokens of a message's text.
    pub(crate) message: usize,
    /// Most tokens of a prompt.
    pub(crate) room: usize,
    /// Lines with the days stand in it.
    pub(crate) dated: bool,
    /// SHA-256 of the loaded model's file.
    pub(crate) fingerprint: [u8; 32],
}

/// An earlier turn, ready to be put into a prompt.
#[derive(Debug)]
pub(crate) struct PastTurn<'a> {
    view: &'a TurnView<'a>,
    shown: ShownText<'a>,
    day: Day,
    kept: TokenBytes<'a>,
    cost: usize,
}

impl<'a> PastTurn<'a> {
    /// Returns the turn as assembly takes it.
    pub(crate) fn turn(&'a self) -> Turn<'a> {
        let none = PastReply { text: unanswered(self.view), tokens: TokenBytes::default() };
        let said = self.view.reply.as_ref().filter(|reply| !reply.text.trim().is_empty());
        let said = said.map(|reply| PastReply { text: reply.text, tokens: self.kept });
        let reply = Some(said.unwrap_or(none));
        let day = assemble::CountedText { text: &self.day.text, tokens: self.day.tokens };
        Turn { seq: self.view.seq, user: &self.shown, day, reply, cost: self.cost }
    }
}

/// A line with a day; empty when it isn't known.
#[derive(Clone, Debug, Default)]
struct Day {
    text: String,
    tokens: u32,
}

/// Returns the line with the day of a turn where the user is; empty when its clock wasn't set.
fn day_line(view: &TurnView<'_>) -> String {
    let known = view.clock != Confidence::Wrong;
    let day = local_time::format(view.accepted_ms, "[%A %-d %B %Y]\n").filter(|_| known);
    day.unwrap_or_default()
}

/// Returns the words that stand for the reply of a turn that has none.
pub(crate) const fn unanswered(view: &TurnView<'_>) -> &'static str {
    if view.speaker.is_some() { OVERHEARD } else { NO_REPLY }
}

/// Returns the words of a turn's message as a prompt shows them.
pub(crate) fn words<'a>(view: &TurnView<'a>) -> &'a str {
    if view.user.trim().is_empty() { BLANK } else { view.user }
}

/// Returns the token ids of a reply if the loaded model generated it.
fn kept_tokens<'a>(view: &TurnView<'a>, fingerprint: &[u8; 32]) -> TokenBytes<'a> {
    match &view.reply {
        Some(reply) if reply.model_fingerprint == fingerprint => reply.tokens,
        _ => TokenBytes::default(),
    }
}

/// Stands for a message without words, which an import may bring: templates want some.
const BLANK: &str = "(A message without words.)";
/// Tokens that a template puts around the two messages of a turn, about.
const SCAFFOLD: usize = 12;
