//! The prompt of an accepted turn: everything that it is put together from is read here.

use garret_core::assemble::Input;
use garret_core::id::{SessionId, TurnSeq};
use garret_core::model::ChatModel;
use garret_core::prompt::PromptEncoder;
use garret_core::receipt::{BlockName, Omission, OmissionKind};
use garret_core::shorten::ShownText;
use garret_core::time::Confidence;

use super::error::TurnError;
use super::{Agent, LastReceipt};
use crate::cancel::Cancel;
use crate::prompt::build::{Prompt, Workbench, build};
use crate::prompt::error::{PromptError, erased};
use crate::prompt::history::Limits;
use crate::prompt::memory::{Query, Recall};
use crate::prompt::prefix::{News, PrefixError, SessionPrefix};
use crate::prompt::volatile::Volatile;
use crate::rerank::Reranking;

/// A message that was accepted as a turn.
#[derive(Clone, Copy)]
pub(super) struct AcceptedTurn<'a> {
    pub(super) session: &'a SessionId,
    pub(super) turn: TurnSeq,
    /// The user's words.
    pub(super) text: &'a str,
    /// The words as the prompt shows them.
    pub(super) message: &'a ShownText<'a>,
}

impl AcceptedTurn<'_> {
    fn unreadable(&self, reason: garret_storage::ReadError) -> TurnError {
        TurnError::History { turn: self.turn, reason }
    }

    fn unassembled(&self, reason: PromptError) -> TurnError {
        TurnError::Prompt { turn: self.turn, reason }
    }
}

/// The origin of the system message with which a prompt begins.
#[derive(Clone, Debug, Default)]
pub(super) struct SystemOrigin {
    /// The turn for which it was made.
    pub(super) made_at: TurnSeq,
    /// The turn whose trace has its text.
    pub(super) system_in: TurnSeq,
    /// The text, if that is this turn.
    pub(super) text: Option<String>,
}

impl<M: ChatModel, E: PromptEncoder> Agent<M, E> {
    /// Assembles the prompt of an accepted turn into `self.tokens`. Once `cancel` is set, what can be
    /// left out is.
    pub(super) fn prompt(
        &mut self,
        turn: AcceptedTurn<'_>,
        cancel: &Cancel,
    ) -> Result<(Prompt, SystemOrigin), TurnError> {
        let AcceptedTurn { session, message, .. } = turn;
        let prefix = self.prefix_maker().for_turn(session, turn.turn);
        let prefix = prefix.map_err(|error| match error {
            PrefixError::Read(reason) => turn.unreadable(reason),
            PrefixError::Count(reason) => turn.unassembled(reason),
        })?;
        let unreadable = |reason| turn.unreadable(reason);
        let last = self.last_receipt(session).map_err(unreadable)?;
        let keep_from = prefix.from.max(self.kept_from(last.as_ref()).unwrap_or(1));
        let origin = self.system_origin(session, turn.turn, &prefix, last.as_ref());
        let now = self.parts.clock.wall();
        let news = News::since(&self.parts.store, &prefix, now).map_err(unreadable)?;
        let (volatile, news_left_out) = self.volatile(turn, &news)?;
        let limits = self.limits();
        // No turn costs less than its scaffolding, so no more than this many can fit.
        let most = u64::from(self.budget.n_ctx) / FEWEST_TOKENS_A_TURN;
        let from = keep_from.max(turn.turn.saturating_sub(most)).max(1);
        let shown: Vec<_> = prefix.facts.iter().copied().chain(news.ids()).collect();
        let now = (now.confidence != Confidence::Wrong).then_some(now.unix_ms);
        let query = Query { session, turn: turn.turn, text: turn.text, now, tracked: &shown };
        let store = &*self.parts.store;
        let mut recall = Recall::new(store, self.parts.embedder.as_deref(), &self.budget, query);
        let go_on = || !cancel.is_cancelled();
        if let Some(by) = self.reranker.as_deref() {
            recall = recall.reranked(Reranking { go_on: &go_on, ..Reranking::new(by) });
        }
        let counts = &mut self.conversation.turn_to(store, session).counts;
        let mut bench = Workbench {
            budget: &self.budget,
            encoder: &mut self.parts.encoder,
            tokens: &mut self.tokens,
        };
        let system = self.instructions.counted();
        let read = store.with_turns(session, from, |views| {
            let earlier = views.partition_point(|view| view.seq < turn.turn);
            let past = counts.shown(bench.encoder, &views[..earlier], limits)?;
            let history: Vec<_> = past.iter().map(|past| past.turn()).collect();
            let oldest = history.first().map_or(turn.turn, |turn| turn.seq);
            let older = oldest.saturating_sub(1);
            let summed_up = older.min(prefix.from.saturating_sub(1));
            let omitted = [
                (OmissionKind::SummedUp, summed_up),
                (OmissionKind::Pins, prefix.pins_left_out + news_left_out),
                (OmissionKind::Summaries, prefix.summaries_left_out),
            ];
            let omitted = omitted.map(|(what, count)| Omission { what, count });
            let input = Input {
                system,
                tracked: prefix.counted(),
                history: &history,
                older: older - summed_up,
                keep_from: Some(keep_from),
                omitted: &omitted,
                ..Input::new(message)
            };
            build(&mut bench, turn.turn, &input, volatile, &mut recall)
        });
        let prompt = read.map_err(unreadable)?;
        let prompt = prompt.map_err(|error| turn.unassembled(erased(error)))?;
        Ok((prompt, origin))
    }

    /// Returns the turn with which the last prompt's history began, if it was made for this window.
    fn kept_from(&self, last: Option<&LastReceipt>) -> Option<TurnSeq> {
        let receipt = &last?.receipt;
        let same = receipt.report.n_ctx == self.budget.n_ctx
            && receipt.report.reply_reserve == self.budget.reply_reserve;
        receipt.history_from.filter(|_| same)
    }

    /// Makes the volatile block of a turn, without memory; with it, how many of the pinned facts in
    /// `news` had no room.
    fn volatile(
        &mut self,
        turn: AcceptedTurn<'_>,
        news: &News,
    ) -> Result<(Volatile, u64), TurnError> {
        let inference = self.take_inference(turn.session, turn.turn, turn.text);
        let now = self.parts.clock.wall();
        let encoder = &mut self.parts.encoder;
        let mut volatile = Volatile::new(&self.budget);
        let fill = || {
            if self.options.show_time {
                volatile.time(encoder, now)?;
            }
            let news_left_out = volatile.news(encoder, news)?;
            if let Some(inference) = inference {
                let blocks = (1..=inference.lines().len()).rev().map(|most| inference.block(most));
                volatile.first_that_fits(encoder, BlockName::Carry, blocks)?;
            }
            Ok(news_left_out)
        };
        let news_left_out: Result<_, garret_core::prompt::EncodeError<E::Error>> = fill();
        let news_left_out = news_left_out.map_err(|error| turn.unassembled(erased(error)))?;
        Ok((volatile, news_left_out))
    }

    /// Returns the origin of the system message in the prompt of `turn`.
    fn system_origin(
        &mut self,
        session: &SessionId,
        turn: TurnSeq,
        prefix: &SessionPrefix,
        last: Option<&LastReceipt>,
    ) -> SystemOrigin {
        let made_at = prefix.made_at;
        let same = last.filter(|last| last.receipt.made_at == made_at);
        let store = &self.parts.store;
        // Traces go when anything is erased or deleted.
        let same = same
            .map(|last| last.receipt.system_in)
            .filter(|at| self.conversation.find_trace_base(store, session, *at));
        match same {
            None => {
                let text = self.instructions.system(Some(prefix)).to_string();
                SystemOrigin { made_at, system_in: turn, text: Some(text) }
            }
            Some(system_in) => SystemOrigin { made_at, system_in, text: None },
        }
    }

    /// Returns the bounds of a history.
    pub(super) fn limits(&self) -> Limits {
        Limits {
            message: self.budget.message_text() as usize,
            room: self.budget.prompt_limit() as usize,
            dated: self.options.show_time,
            fingerprint: self.parts.model.facts().fingerprint,
        }
    }
}

/// Fewest tokens of a turn: a template opens and closes two messages with at least two tokens each.
const FEWEST_TOKENS_A_TURN: u64 = 4;
