//! The prompt of an accepted turn: history, what only this turn needs, the user's words.

use garret_core::assemble::{self, Input, Scratch};
use garret_core::budget::Budget;
use garret_core::id::{SessionId, TurnSeq};
use garret_core::model::ChatModel;
use garret_core::prompt::{Message, PromptEncoder, Role};
use garret_core::receipt::{Omission, Omitted, Receipt};
use garret_core::shorten::Shown;
use garret_core::time::Confidence;
use garret_core::token::{Token, TokenBuf};
use garret_storage::Ticket;

use super::error::{PromptError, TurnError, erased};
use super::history::Limits;
use super::recall::{Asking, Recall};
use super::remembered::Block;
use super::slot::{Context, ContextError};
use super::volatile::Volatile;
use super::{Agent, LastReceipt};
use crate::rerank::Reranking;
use crate::trace::{Cut, Dated, Frames, Piece, Shape, System, Trace, find};

/// A prompt in a buffer of tokens.
pub(super) struct Prompt {
    pub(super) receipt: Receipt,
    /// Its tokens.
    pub(super) length: usize,
    /// What stands before the user's words, for this turn alone.
    pub(super) volatile: String,
    /// Ids of the messages in its block of memory.
    pub(super) memory: Vec<String>,
    pub(super) beginning: Beginning,
    /// How it was put together.
    pub(super) shape: Shape,
}

/// The trace with the system message of a session's newest turns, as far as others refer to it.
#[derive(Clone, Debug)]
pub(super) struct Base {
    session: SessionId,
    /// Says whether it may be gone.
    ticket: Ticket,
    turn: TurnSeq,
    pub(super) pieces: Vec<Piece>,
}

impl Base {
    /// That of `turn`, if `trace` has a system message.
    pub(super) fn of(
        session: &SessionId,
        ticket: Ticket,
        turn: TurnSeq,
        trace: &Trace,
    ) -> Option<Self> {
        let pieces = trace.pieces().to_vec();
        let is_one = matches!(trace.system, System::Text(_));
        is_one.then(|| Self { session: session.clone(), ticket, turn, pieces })
    }

    /// Whether it is that of `turn`, and there.
    pub(super) fn is_of(&self, session: &SessionId, ticket: Ticket, turn: TurnSeq) -> bool {
        self.session == *session && self.ticket == ticket && self.turn == turn
    }
}

/// Where what a prompt begins with comes from.
#[derive(Clone, Debug, Default)]
pub(super) struct Beginning {
    /// The turn for which it was made.
    pub(super) made_at: TurnSeq,
    /// The turn whose trace has the system message.
    pub(super) system_in: TurnSeq,
    /// The system message, if that is this turn.
    pub(super) system: Option<String>,
}

impl Prompt {
    /// What the model sees.
    pub(super) fn trace(&self) -> Trace {
        let Beginning { system, system_in, .. } = &self.beginning;
        Trace {
            system: system.clone().map_or(System::AsIn(*system_in), System::Text),
            history_from: self.receipt.history_from,
            volatile: self.volatile.clone(),
            rounds: Vec::new(),
            shape: Some(self.shape.clone()),
        }
    }

    /// Whether it has something that no later prompt has.
    pub(super) const fn is_volatile(&self) -> bool {
        !self.volatile.is_empty()
    }
}

impl<M: ChatModel, E: PromptEncoder> Agent<M, E> {
    /// Assembles the prompt of an accepted turn into `self.tokens`. What can be left out is when
    /// `go_on` says no.
    pub(super) fn prompt(
        &mut self,
        session: &SessionId,
        turn: TurnSeq,
        text: &str,
        message: &Shown<'_>,
        go_on: &dyn Fn() -> bool,
    ) -> Result<Prompt, TurnError> {
        let unreadable = |reason| TurnError::History { turn, reason };
        let unassembled = |reason| TurnError::Prompt { turn, reason };
        let context = self.context_for(session, turn).map_err(|error| match error {
            ContextError::Read(reason) => unreadable(reason),
            ContextError::Count(reason) => unassembled(reason),
        })?;
        let last = self.last_receipt(session).map_err(unreadable)?;
        let kept = last.as_ref().and_then(|last| {
            let same = last.receipt.report.n_ctx == self.budget.n_ctx
                && last.receipt.report.reply_reserve == self.budget.reply_reserve;
            last.receipt.history_from.filter(|_| same)
        });
        let keep_from = context.from.max(kept.unwrap_or(1));
        let beginning = self.beginning(session, turn, &context, last.as_ref());
        let news = self.news(&context).map_err(unreadable)?;
        let thought = self.take_carry(session, turn, text);
        self.counts.turn_to(session);
        let limits = self.limits();
        // No turn costs less than its scaffolding, so no more than this many can fit.
        let most = u64::from(self.budget.n_ctx) / FEWEST_TOKENS_A_TURN;
        let from = keep_from.max(turn.saturating_sub(most)).max(1);
        let now = self.parts.clock.wall();
        let (system, tracked) = (self.system.counted(), context.counted());
        let (encoder, counts, store) =
            (&mut self.parts.encoder, &mut self.counts, &self.parts.store);
        let mut volatile = Volatile::new(&self.budget);
        if self.options.show_time {
            volatile.time(encoder, now).map_err(|error| unassembled(erased(error)))?;
        }
        let news_left_out = volatile.news(encoder, &news);
        let news_left_out = news_left_out.map_err(|error| unassembled(erased(error)))?;
        let carried = volatile.carry(encoder, thought.as_ref());
        carried.map_err(|error| unassembled(erased(error)))?;
        let shown: Vec<_> = context.facts.iter().copied().chain(news.ids()).collect();
        let now = (now.confidence != Confidence::Wrong).then_some(now.unix_ms);
        let embedder = self.parts.embedder.as_deref();
        let reranker = self.reranker.as_deref();
        let (budget, tokens) = (&self.budget, &mut self.tokens);
        let read = store.with_turns(session, from, |views| {
            let earlier = views.partition_point(|view| view.seq < turn);
            let past = counts.shown(encoder, &views[..earlier], limits).map_err(erased)?;
            let history: Vec<_> = past.iter().map(|past| past.turn()).collect();
            let oldest = history.first().map_or(turn, |turn| turn.seq);
            let older = oldest.saturating_sub(1);
            let summed_up = older.min(context.from.saturating_sub(1));
            let omitted = [
                (Omitted::SummedUp, summed_up),
                (Omitted::Pins, context.pins_left_out + news_left_out),
                (Omitted::Summaries, context.summaries_left_out),
            ];
            let omitted = omitted.map(|(what, count)| Omission { what, count });
            let input = Input {
                system,
                tracked,
                history: &history,
                older: older - summed_up,
                keep_from: Some(keep_from),
                omitted: &omitted,
                ..Input::new(message)
            };
            let asking = Asking { session, turn, text, now, tracked: &shown };
            let mut recall = Recall::new(store, embedder, budget, asking);
            if let Some(by) = reranker {
                recall = recall.reranked(Reranking { go_on, ..Reranking::new(by) });
            }
            compose(&mut Bench { budget, encoder, tokens }, &input, volatile, &mut recall)
        });
        let prompt = read.map_err(unreadable)?;
        let prompt = prompt.map_err(unassembled)?;
        Ok(Prompt { beginning, ..prompt })
    }

    /// Where the beginning of the prompt of `turn` comes from.
    fn beginning(
        &mut self,
        session: &SessionId,
        turn: TurnSeq,
        context: &Context,
        last: Option<&LastReceipt>,
    ) -> Beginning {
        let made_at = context.made_at;
        let same = last.filter(|last| last.receipt.made_at == made_at);
        // Traces go when anything is forgotten or deleted.
        let same =
            same.map(|last| last.receipt.system_in).filter(|at| self.find_base(session, *at));
        match same {
            None => {
                let system = [&*self.system.text, &context.text].concat();
                Beginning { made_at, system_in: turn, system: Some(system) }
            }
            Some(system_in) => Beginning { made_at, system_in, system: None },
        }
    }

    /// Sees to it that the trace of `turn` is the one that others refer to, if it is there and has a
    /// system message; read once. Whether it is.
    fn find_base(&mut self, session: &SessionId, turn: TurnSeq) -> bool {
        let ticket = self.parts.store.ticket();
        if self.base.as_ref().is_some_and(|base| base.is_of(session, ticket, turn)) {
            return true;
        }
        let trace = Trace::read(&self.parts.store, session, turn);
        let trace =
            trace.inspect_err(|error| tracing::warn!(%error, turn, "a trace is begun anew"));
        self.base = trace.ok().flatten().and_then(|it| Base::of(session, ticket, turn, &it));
        self.base.is_some()
    }

    /// What bounds a history.
    pub(super) fn limits(&self) -> Limits {
        Limits {
            message: self.budget.message_text() as usize,
            room: self.budget.prompt_limit() as usize,
            dated: self.options.show_time,
            fingerprint: self.parts.model.facts().fingerprint,
        }
    }
}

/// What a prompt is made with.
struct Bench<'b, E> {
    budget: &'b Budget,
    encoder: &'b mut E,
    tokens: &'b mut [Token],
}

/// Assembles `input` with what only this turn needs, and what is remembered, beside it.
fn compose<E: PromptEncoder>(
    bench: &mut Bench<'_, E>,
    input: &Input<'_>,
    mut volatile: Volatile,
    recall: &mut Recall<'_>,
) -> Result<Prompt, PromptError> {
    let (mut prompt, mut ends) = assembled(bench, input, &volatile)?;
    // Beside memory history may have to give way; what it no longer shows may then be remembered.
    for _ in 0..2 {
        let from = prompt.receipt.history_from;
        let block = recall.block(bench.encoder, from).map_err(erased)?;
        if block.ids.is_empty() {
            note_left_out(&mut prompt.receipt, block.left_out);
            break;
        }
        volatile.remember(bench.encoder, block).map_err(erased)?;
        let input = Input { keep_from: from.or(input.keep_from), ..*input };
        match assembled(bench, &input, &volatile) {
            Ok(with) => (prompt, ends) = with,
            Err(reason) => {
                tracing::warn!(%reason, "nothing is remembered: the block doesn't fit");
                volatile.remember(bench.encoder, Block::default()).map_err(erased)?;
                (prompt, ends) = assembled(bench, &input, &volatile)?;
                break;
            }
        }
        if prompt.receipt.history_from == from {
            break;
        }
    }
    prompt.shape = shape(bench, input, &volatile, &prompt, &ends, recall.turn());
    Ok(prompt)
}

/// How the texts of a prompt, which is in the buffer of tokens and whose messages end at `ends`, were
/// put together.
fn shape<E: PromptEncoder>(
    bench: &mut Bench<'_, E>,
    input: &Input<'_>,
    volatile: &Volatile,
    prompt: &Prompt,
    ends: &[usize],
    turn: TurnSeq,
) -> Shape {
    let tokens = bench.tokens.get(..prompt.length).unwrap_or(bench.tokens);
    let (spelled, starts) = spelled(bench.encoder, tokens);
    let ends: Vec<_> = ends.iter().filter_map(|end| starts.get(*end).copied()).collect();
    let shown = prompt.receipt.history_from.unwrap_or(TurnSeq::MAX);
    let history = input.history.partition_point(|turn| turn.seq < shown);
    let history = input.history.get(history..).unwrap_or_default();
    let shown = assemble::Volatile { text: &prompt.volatile, parts: &[] };
    let input = Input { volatile: shown, ..*input };
    let messages = || assemble::messages(&input, history);
    let texts: Vec<String> = messages().map(|message| message.content.parts().collect()).collect();
    let gaps = || gaps(bench, messages().map(|message| message.role));
    let frames = Frames::between(&spelled, &ends, &texts, gaps);
    let cut =
        |turn, shown: &Shown<'_>| shown.cut_bytes().map(|(head, tail)| Cut { turn, head, tail });
    let newest = cut(turn, input.message);
    Shape {
        instructions: input.system.text.len(),
        volatile: volatile.bytes(),
        days: dated(history),
        cuts: history.iter().filter_map(|turn| cut(turn.seq, turn.user)).chain(newest).collect(),
        frames,
        ..Shape::default()
    }
}

/// Before which turns of a history a day stands.
fn dated(history: &[assemble::Turn<'_>]) -> Vec<Dated> {
    let marks = history.iter().zip(assemble::marks(history)).filter(|(_, day)| !day.is_empty());
    marks.map(|(turn, day)| Dated { turn: turn.seq, day: day.to_owned() }).collect()
}

/// What the template writes before, between and after messages of these roles; `None` where it isn't
/// the same for every text.
fn gaps<E: PromptEncoder>(
    bench: &mut Bench<'_, E>,
    roles: impl Iterator<Item = Role>,
) -> Option<Vec<Vec<u8>>> {
    let messages: Vec<_> = roles.map(|role| Message::new(role, MARK)).collect();
    let mut tokens = vec![Token(0); bench.tokens.len()];
    let mut run = TokenBuf::new(&mut tokens);
    bench.encoder.encode(&messages, &mut run, &mut []).ok()?;
    let length = run.len();
    let (text, _) = spelled(bench.encoder, tokens.get(..length)?);
    let (mut gaps, mut rest) = (Vec::with_capacity(messages.len() + 1), &*text);
    while let Some(at) = find(rest, MARK.as_bytes()) {
        gaps.push(rest.get(..at)?.to_vec());
        rest = rest.get(at + MARK.len()..)?;
    }
    gaps.push(rest.to_vec());
    (gaps.len() == messages.len() + 1).then_some(gaps)
}

/// The text of a run, and where in it each of its tokens begins, and the last one ends.
pub(super) fn spelled<E: PromptEncoder>(encoder: &E, tokens: &[Token]) -> (Vec<u8>, Vec<usize>) {
    let (mut text, mut starts) = (Vec::new(), vec![0]);
    for token in tokens {
        encoder.detokenize(*token, &mut |bytes| text.extend_from_slice(bytes));
        starts.push(text.len());
    }
    (text, starts)
}

/// Accounts for what was found and isn't in the prompt at all.
fn note_left_out(receipt: &mut Receipt, count: u64) {
    if count > 0 {
        // One of each kind, and room for as many.
        let _ = receipt.omitted.push(Omission { what: Omitted::Found, count });
    }
}

/// A prompt that has no shape yet, and where in the buffer of tokens its messages end.
fn assembled<E: PromptEncoder>(
    bench: &mut Bench<'_, E>,
    input: &Input<'_>,
    volatile: &Volatile,
) -> Result<(Prompt, Vec<usize>), PromptError> {
    let text = volatile.text();
    let parts = volatile.parts();
    let found = Omission { what: Omitted::Found, count: volatile.found_and_left_out() };
    let omitted: Vec<_> = input.omitted.iter().copied().chain([found]).collect();
    let shown = assemble::Volatile { text: &text, parts: &parts };
    let input = Input { volatile: shown, omitted: &omitted, ..*input };
    let mut messages = vec![Message::new(Role::User, ""); 2 * input.history.len() + 2];
    let mut ends = vec![0; messages.len()];
    let Bench { budget, encoder, tokens } = bench;
    let scratch = Scratch { messages: &mut messages, ends: &mut ends, tokens };
    let slot = assemble::assemble(budget, *encoder, &input, scratch).map_err(erased)?;
    let (length, receipt) = (slot.tokens.len(), slot.receipt);
    let (memory, beginning) = (volatile.remembered().to_vec(), Beginning::default());
    let shape = Shape::default();
    Ok((Prompt { receipt, length, volatile: text, memory, beginning, shape }, ends))
}

/// Stands for a text where only what is around it counts. No template writes it.
const MARK: &str = "~q7Zx~";
/// A template opens and closes two messages a turn with at least two tokens each.
const FEWEST_TOKENS_A_TURN: u64 = 4;
