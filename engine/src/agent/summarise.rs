//! Summarising a session: summaries for turns that leave the prompt, and the prompt without them.
//!
//! Every summary is stored as soon as it is made, and changes nothing else: the prompt still shows
//! the turns below it. When all are made the new beginning of the prompt is brought into the model's
//! cache beside the old one, and only then becomes the session's. So a message of the user that comes
//! in between finds everything as it was, and the work that was done is there for the next time.
//!
//! Limits: a summary whose model fails isn't made, and the model is left alone for a while; one that
//! answers badly is done without. Both lose nothing: history gives way as it does without summaries.
//! Of turns of which none can be read any more, a summary says just that.

use garret_core::compact::{Cause, Limits, Pressure, Turn};
use garret_core::id::{SessionId, TurnSeq};
use garret_core::model::{ChatModel, ModelRole};
use garret_core::prompt::{Content, PromptEncoder};
use garret_core::token::Token;
use garret_storage::{NewSummary, ReadError, StateKind, SummaryId, SummaryMethod, WriteError};

use super::{Agent, CALL_US};
use crate::companion::transcript::{Line, lines_of, whole_prompt};
use crate::companion::{Answer, Question, ask, ask_until};
use crate::prompt::error::{PromptError, erased};
use crate::prompt::history;
use crate::prompt::prefix::PrefixError;
use crate::prompt::tracked::Root;
use crate::state;
use crate::summarise::{
    AcceptError, Job, MAX_TURNS, SourcePlace, Step, SummariserState, Survey, accept, extract,
    instruction,
};

/// The moment at which summarising is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Nobody waits: summaries that don't press are made, too.
    Idle,
    /// Somebody may wait: only summaries that press are made.
    Pressed,
    /// The user or the model asked for summaries.
    Asked,
}

/// The outcome of summarising a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SummaryRun {
    /// The cause; `None` when nothing was due.
    pub cause: Option<Cause>,
    /// Summaries of turns that were made.
    pub leaves: u32,
    /// Summaries of summaries that were made.
    pub condensed: u32,
    /// Summaries of both kinds that were made without the model.
    pub extracts: u32,
    /// Times the model was asked.
    pub calls: u32,
    /// Tokens of the prompts to the model that were in its cache.
    pub reused: u32,
    /// Tokens of the prompts to the model that were decoded.
    pub prefilled: u32,
    /// Tokens that the model answered.
    pub generated: u32,
    /// Tokens of the new beginning of the prompt that were brought into the cache.
    pub rebased: u32,
    /// Turns that were passed over since they can't be read.
    pub unreadable: u64,
    /// Summaries were due and wait: their model failed not long ago and is left alone.
    pub waits: bool,
    /// The run was broken off, since the model or the disk failed or time ran out.
    pub failed: bool,
}

/// The error by which summarising was broken off.
#[derive(Debug, thiserror::Error)]
pub(super) enum SummaryError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Prefix(#[from] PrefixError),
    #[error("the companion failed: {0}")]
    Model(String),
    #[error("the companion took too long")]
    TooLong,
    #[error("what was said can't be counted: {0}")]
    Count(PromptError),
    #[error("nothing says it shorter")]
    NothingShorter,
}

/// A summary as it comes from the model, or from without.
struct Made {
    text: String,
    tokens: u32,
    method: SummaryMethod,
}

impl SummaryRun {
    /// Returns the sum of two runs, with the cause and the end of the later one.
    pub(super) fn and(self, later: Self) -> Self {
        Self {
            leaves: self.leaves + later.leaves,
            condensed: self.condensed + later.condensed,
            extracts: self.extracts + later.extracts,
            calls: self.calls + later.calls,
            reused: self.reused + later.reused,
            prefilled: self.prefilled + later.prefilled,
            generated: self.generated + later.generated,
            rebased: self.rebased + later.rebased,
            unreadable: self.unreadable + later.unreadable,
            cause: later.cause.or(self.cause),
            waits: later.waits,
            failed: later.failed,
        }
    }
}

impl<M: ChatModel, E: PromptEncoder> Agent<M, E> {
    /// Sums older turns of a session up if that is due. Dropping the future ends it within one decode batch; every
    /// summary that was made is kept.
    pub async fn summarise(&mut self, session: &SessionId, when: When) -> SummaryRun {
        let (done, broken) = self.try_summarise(session, when).await;
        if let Some(error) = broken {
            tracing::warn!(%error, "the conversation isn't summed up further now; nothing is lost");
        }
        done
    }

    /// Sums older turns up like [`Agent::summarise`]; returns why it was broken off, if it was, too.
    pub(super) async fn try_summarise(
        &mut self,
        session: &SessionId,
        when: When,
    ) -> (SummaryRun, Option<SummaryError>) {
        let mut done = SummaryRun::default();
        let deadline = self.parts.clock.monotonic_us().saturating_add(DEADLINE_US);
        let broken = self.summarise_until(session, when, deadline, &mut done).await.err();
        done.failed = broken.is_some();
        if !done.failed && !done.waits {
            self.summarised(session, done.cause.is_some());
        }
        (done, broken)
    }

    /// Takes note that what asked for summaries got them, or that there is nothing to sum up.
    fn summarised(&mut self, session: &SessionId, done: bool) {
        let conversation = self.conversation.turn_to(&self.parts.store, session);
        let Some(schedule) = &mut conversation.schedule else { return };
        schedule.due.summarise = false;
        schedule.due.topic_changed = false;
        if done {
            schedule.gate_mut().compacted();
        }
    }

    /// Reads the outcome of the newest summarising of a session, in words; `None` when there was none.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn last_summary_run(&self, session: &SessionId) -> Result<Option<String>, ReadError> {
        let bytes = state::read(&self.parts.store, session, StateKind::Work)?;
        let kept = SummariserState::read(bytes, self.compactor_fingerprint());
        Ok(Some(kept.last).filter(|last| !last.is_empty()))
    }

    /// Returns the SHA-256 of the file of the model that sums up.
    fn compactor_fingerprint(&self) -> [u8; 32] {
        self.model_of(ModelRole::Compactor).facts().fingerprint
    }

    async fn summarise_until(
        &mut self,
        session: &SessionId,
        when: When,
        deadline: u64,
        done: &mut SummaryRun,
    ) -> Result<(), SummaryError> {
        let limits = Limits::of(&self.budget);
        let survey = self.survey(session)?;
        let pressure = self.pressure(session, &survey, when)?;
        done.cause = limits.due(&survey.turns, &pressure);
        // Summaries may be there that the prompt doesn't know of yet.
        let unfinished = survey.from <= survey.frontier;
        let presses = done.cause == Some(Cause::Full);
        let bytes = state::read(&self.parts.store, session, StateKind::Work)?;
        let mut kept = SummariserState::read(bytes, self.compactor_fingerprint());
        let may_ask = kept.backoff.allows(self.parts.clock.wall().unix_ms);
        let waits = done.cause.is_some() && !may_ask && !presses;
        if !unfinished && (done.cause.is_none() || waits) {
            done.waits = waits;
            return Ok(());
        }
        let bounds = Bounds { limits, may_ask, deadline };
        let made = self.make_all(session, &bounds, done).await;
        let now = self.parts.clock.wall().unix_ms;
        // A model that answered before it failed is asked again at once.
        match &made {
            Err(SummaryError::Model(_) | SummaryError::TooLong) if done.calls == 0 => {
                kept.backoff.failed(now)
            }
            _ if done.calls > 0 => kept.backoff.succeeded(),
            _ => {}
        }
        let finished = self.adopt_summaries(session, done).await;
        let broken = made.is_err() || finished.is_err();
        let own_model = self.own_models.of(ModelRole::Compactor).is_some();
        kept.last = describe(done, own_model, broken);
        self.parts.store.set_state(session, StateKind::Work, &state::encode(&kept))?;
        made.and(finished)
    }

    /// Makes summaries for as long as there are some to be made.
    async fn make_all(
        &mut self,
        session: &SessionId,
        bounds: &Bounds,
        done: &mut SummaryRun,
    ) -> Result<(), SummaryError> {
        for _ in 0..MAX_SUMMARIES {
            if self.parts.clock.monotonic_us() >= bounds.deadline {
                return Err(SummaryError::TooLong);
            }
            let survey = self.survey(session)?;
            let leaf = done.cause.and_then(|_| survey.next_leaf(&bounds.limits));
            let job = match leaf {
                Some((from, to)) => Some(self.job_of_turns(session, from, to)?),
                None => self.job_of_summaries(&survey, &bounds.limits)?,
            };
            let Some(mut job) = job else { return Ok(()) };
            let made = match job.lines.is_empty() {
                true => self.pass_over(session, &mut job, done)?,
                false => self.make(session, &survey, &job, bounds, done).await?,
            };
            let summary = NewSummary {
                depth: job.depth,
                from: job.from,
                to: job.to,
                sources: &job.sources,
                text: &made.text,
                tokens: made.tokens,
                source_tokens: job.source_tokens,
                method: made.method,
                model_fingerprint: &self.compactor_fingerprint(),
            };
            let at = self.parts.clock.wall();
            let store = self.parts.store.since(survey.ticket);
            store.compact_session(session, &[summary], None, at)?;
            done.leaves += u32::from(job.depth == 0);
            done.condensed += u32::from(job.depth > 0);
            done.extracts += u32::from(made.method == SummaryMethod::Extract);
        }
        Ok(())
    }

    /// Surveys a session's summaries and its prompt.
    fn survey(&mut self, session: &SessionId) -> Result<Survey, SummaryError> {
        let ticket = self.parts.store.ticket();
        let frontier = self.parts.store.frontier(session)?;
        let mut roots = self.parts.store.roots(session)?;
        let next = self.parts.store.leaf_after(session, frontier)?;
        roots.retain(|summary| summary.to <= frontier);
        let from =
            self.session_prefix(session)?.map_or(frontier.saturating_add(1), |prefix| prefix.from);
        let live = self.live_from(session);
        let shown = live.and_then(|from| self.conversation(session, from, TurnSeq::MAX, None));
        let too_long = live.is_some() && shown.is_none();
        let live = shown.map(|live| (live.from, live.length));
        let limits = history::Limits { room: usize::MAX, ..self.limits() };
        let encoder = &mut self.parts.encoder;
        let counts = &mut self.conversation.turn_to(&self.parts.store, session).counts;
        let read = self.parts.store.with_turns(session, frontier.saturating_add(1), |views| {
            let between = views.partition_point(|view| next.is_none_or(|next| view.seq < next));
            let views = &views[..between.min(MAX_TURNS)];
            let past = counts.shown(encoder, views, limits)?;
            let turn = |past: &history::PastTurn<'_>| {
                let turn = past.turn();
                Turn { seq: turn.seq, tokens: u32::try_from(turn.cost).unwrap_or(u32::MAX) }
            };
            Ok::<Vec<_>, garret_core::prompt::EncodeError<E::Error>>(
                past.iter().map(turn).collect(),
            )
        })?;
        let turns = read.map_err(|error| SummaryError::Count(erased(error)))?;
        Ok(Survey { frontier, turns, next, ticket, roots, from, live, too_long })
    }

    /// Weighs what speaks for summaries.
    fn pressure(
        &mut self,
        session: &SessionId,
        survey: &Survey,
        when: When,
    ) -> Result<Pressure, SummaryError> {
        let last = self.last_receipt(session)?;
        // What the newest prompt had beside the conversation, the next one has again.
        let beside = last.as_ref().map_or(0, |last| {
            let report = &last.receipt.report;
            let stays = report.blocks.iter().filter(|block| STAYING.contains(&&*block.name));
            report.prompt_tokens.saturating_sub(stays.map(|block| block.tokens).sum())
        });
        let limit = u64::from(self.budget.prompt_limit()).max(1);
        let unknown = if survey.too_long { limit } else { 0 };
        let length = survey.live.map_or(unknown, |(_, length)| length as u64);
        let fill = (length + u64::from(beside)).saturating_mul(100) / limit;
        let first = survey.turns.first().map(|turn| turn.seq);
        let shown = survey.live.map(|(from, _)| from);
        let conversation = self.conversation.turn_to(&self.parts.store, session);
        let due = conversation.schedule.as_ref().map(|schedule| schedule.due).unwrap_or_default();
        Ok(Pressure {
            fill_percent: u32::try_from(fill).unwrap_or(u32::MAX),
            full_at_percent: self.options.compact_at,
            gap: self.options.compact_at > 0
                && survey.next.is_none()
                && first.zip(shown).is_some_and(|(a, b)| a < b),
            asked: when == When::Asked || due.summarise,
            topic_changed: due.topic_changed && when == When::Idle,
            idle: when == When::Idle && self.options.compact_at > 0,
            hole: survey.next.is_some(),
        })
    }

    /// Reads the turns from `from` to `to` for a summary of them.
    fn job_of_turns(
        &mut self,
        session: &SessionId,
        from: TurnSeq,
        to: TurnSeq,
    ) -> Result<Job, SummaryError> {
        let lines = self.parts.store.with_turns(session, from, |views| {
            let turns = views.iter().take_while(|view| view.seq <= to);
            turns.flat_map(lines_of).collect()
        })?;
        self.job(0, (from, to), Vec::new(), lines)
    }

    /// Prepares a summary of summaries, if they outgrew their share.
    fn job_of_summaries(
        &mut self,
        survey: &Survey,
        limits: &Limits,
    ) -> Result<Option<Job>, SummaryError> {
        let Some(run @ [first, .., last]) = survey.next_condensed(limits) else { return Ok(None) };
        let depth = first.depth.saturating_add(1);
        let lines = run.iter().map(|root| Line {
            turn: root.from,
            speaker: "notes".into(),
            at_ms: Some(root.earliest_ms).filter(|ms| *ms != 0),
            text: root.text.clone(),
        });
        let sources = run.iter().map(|root| root.id).collect();
        let mut job = self.job(depth, (first.from, last.to), sources, lines.collect())?;
        let latest = run.iter().map(|root| root.latest_ms).filter(|ms| *ms != 0);
        job.latest_ms = latest.max();
        Ok(Some(job))
    }

    fn job(
        &mut self,
        depth: u8,
        (from, to): (TurnSeq, TurnSeq),
        sources: Vec<SummaryId>,
        lines: Vec<Line>,
    ) -> Result<Job, SummaryError> {
        let mut source_tokens = 0_u32;
        for line in &lines {
            let tokens = self.count(&line.text)?.saturating_add(AROUND_A_LINE);
            source_tokens = source_tokens.saturating_add(tokens);
        }
        let times = || lines.iter().filter_map(|line| line.at_ms);
        let earliest_ms = times().min();
        let latest_ms = times().max();
        Ok(Job { depth, from, to, sources, lines, source_tokens, earliest_ms, latest_ms })
    }

    fn count(&mut self, text: &str) -> Result<u32, SummaryError> {
        let tokens = self.parts.encoder.count(&Content::from(text), COUNT_LIMIT);
        let tokens = tokens.map_err(|error| SummaryError::Count(erased(error)))?;
        Ok(u32::try_from(tokens).unwrap_or(u32::MAX))
    }

    /// Makes a summary: by the model, by the model in fewer words, or without it.
    async fn make(
        &mut self,
        session: &SessionId,
        survey: &Survey,
        job: &Job,
        bounds: &Bounds,
        done: &mut SummaryRun,
    ) -> Result<Made, SummaryError> {
        let target = bounds.limits.summary;
        let below_source = job.source_tokens.saturating_sub(1);
        let most = self.budget.longest_summary().min(below_source);
        let steps: &[Step] = if bounds.may_ask { &[Step::Normal, Step::Shorter] } else { &[] };
        for &step in steps {
            let asked = self.ask_for(session, survey, job, step, bounds).await?;
            let Some((answer, told)) = asked else { continue };
            done.calls += 1;
            done.reused += answer.reused;
            done.prefilled += answer.prefilled;
            done.generated += answer.generated;
            let mut count = |text: &str| self.count(text);
            match accept(&answer, job, &told, most, &mut count) {
                Ok((text, tokens)) => {
                    let method = match step {
                        Step::Normal => SummaryMethod::Model,
                        Step::Shorter => SummaryMethod::Shorter,
                    };
                    return Ok(Made { text, tokens, method });
                }
                Err(AcceptError::Rejected(why)) => {
                    tracing::debug!(%why, ?step, "an answer is no summary");
                }
                Err(AcceptError::Count(error)) => return Err(error),
            }
        }
        let most = target.saturating_mul(2).min(LONGEST_EXTRACT).min(most);
        let extract = extract(job, most, &mut |text: &str| self.count(text))?;
        let (text, tokens) = extract.ok_or(SummaryError::NothingShorter)?;
        Ok(Made { text, tokens, method: SummaryMethod::Extract })
    }

    /// Says of turns of which none can be read that they can't be, so that what comes after them
    /// isn't kept waiting.
    fn pass_over(
        &mut self,
        session: &SessionId,
        job: &mut Job,
        done: &mut SummaryRun,
    ) -> Result<Made, SummaryError> {
        let Job { from, to, .. } = *job;
        tracing::warn!(%session, from, to, "turns can't be read and are passed over");
        done.unreadable += to.saturating_sub(from).saturating_add(1);
        let text = match from == to {
            true => format!("- What was said in turn {from} can't be read any more."),
            false => format!("- What was said in turns {from} to {to} can't be read any more."),
        };
        let tokens = self.count(&text)?;
        // How long they were isn't known.
        job.source_tokens = tokens.saturating_add(1);
        Ok(Made { text, tokens, method: SummaryMethod::Extract })
    }

    /// Asks the companion for a summary, on a fork of the conversation if that has the turns, else
    /// with their text. Returns the answer and the instruction; `None` when neither fits.
    async fn ask_for(
        &mut self,
        session: &SessionId,
        survey: &Survey,
        job: &Job,
        step: Step,
        bounds: &Bounds,
    ) -> Result<Option<(Answer, String)>, SummaryError> {
        let asked = match self.fork_for(session, survey, job, step, bounds) {
            Some(asked) => Some(asked),
            None => self.transcript_for(survey, job, step, bounds)?,
        };
        let Some((prompt, told)) = asked else { return Ok(None) };
        let (grammar, max_tokens) = step.grammar(bounds.limits.summary);
        let role = ModelRole::Compactor;
        let question = Question { role, instruction: &told, grammar: Some(&grammar), max_tokens };
        let clock = &*self.parts.clock;
        let deadline = clock.monotonic_us().saturating_add(CALL_US).min(bounds.deadline);
        match ask_until(self.model_of(role), &question, &prompt, clock, deadline).await {
            Ok(Some(answer)) => Ok(Some((answer, told))),
            Ok(None) => Err(SummaryError::TooLong),
            Err(error) => Err(SummaryError::Model(error.to_string())),
        }
    }

    /// Encodes a fork of the conversation, and returns the instruction, too. `None` where the
    /// conversation doesn't have the turns, or the companion has a model of its own.
    fn fork_for(
        &mut self,
        session: &SessionId,
        survey: &Survey,
        job: &Job,
        step: Step,
        bounds: &Bounds,
    ) -> Option<(Vec<Token>, String)> {
        let (from, _) = survey.live.filter(|(from, _)| job.depth == 0 && *from <= job.from)?;
        if self.own_models.of(ModelRole::Compactor).is_some() {
            return None;
        }
        let target = bounds.limits.summary;
        let begins = job.lines.first().map(|line| beginning(&line.text)).unwrap_or_default();
        let shown =
            if from == job.from { SourcePlace::Above } else { SourcePlace::AboveFrom(&begins) };
        let told = instruction(job, step, target, &shown);
        let (_, max_tokens) = step.grammar(target);
        let fork = self.fork_prompt(session, Some(job.to), &told, max_tokens)?;
        Some((self.tokens.get(..fork.length)?.to_vec(), told))
    }

    /// Encodes a prompt of its own with the words of `job`, and returns the instruction, too: beside the conversation in its
    /// window, or in that of the companion's own model. `None` when it doesn't fit, however much is
    /// left out of long messages.
    fn transcript_for(
        &mut self,
        survey: &Survey,
        job: &Job,
        step: Step,
        bounds: &Bounds,
    ) -> Result<Option<(Vec<Token>, String)>, SummaryError> {
        let target = bounds.limits.summary;
        let told = instruction(job, step, target, &SourcePlace::Below);
        let (_, max_tokens) = step.grammar(target);
        let (encoder, room) = match self.own_models.of_mut(ModelRole::Compactor) {
            Some(own) => (&mut own.encoder, own.model.facts().n_ctx as usize),
            None => {
                let conversation = survey.live.map_or(0, |(_, length)| length);
                (&mut self.parts.encoder, self.budget.companion_room(conversation))
            }
        };
        let room = room.saturating_sub(max_tokens as usize);
        let prompt = whole_prompt(encoder, &job.lines, &told, room);
        match prompt {
            Ok(prompt) => Ok(prompt.map(|prompt| (prompt, told))),
            // Another model's tokenizer or template may refuse what this one's take.
            Err(error) if self.own_models.of_mut(ModelRole::Compactor).is_some() => {
                tracing::warn!(%error, "the compactor's own model can't be told of some turns");
                Ok(None)
            }
            Err(error) => Err(SummaryError::Count(erased(error))),
        }
    }

    /// Has the prompt begin with the summaries there are, and history after them: first in the
    /// model's cache, then in the store.
    async fn adopt_summaries(
        &mut self,
        session: &SessionId,
        done: &mut SummaryRun,
    ) -> Result<(), SummaryError> {
        let ticket = self.parts.store.ticket();
        let frontier = self.parts.store.frontier(session)?;
        let from = frontier.saturating_add(1);
        let Some(before) = self.session_prefix(session)? else { return Ok(()) };
        if before.from >= from && done.condensed == 0 {
            return Ok(());
        }
        let roots = self.parts.store.roots(session)?;
        let roots: Vec<_> = roots.iter().filter(|root| root.to < from).map(Root::from).collect();
        let prefix = self.prefix_maker().for_next_turn(session, roots, from)?;
        let system = self.instructions.system(Some(&prefix));
        let prompt = self.conversation_under(&system, session, from, TurnSeq::MAX, None);
        if let Some(prompt) = prompt {
            let prompt = self.tokens.get(..prompt.length).unwrap_or(&self.tokens);
            match ask(&self.parts.model, ModelRole::Rebase, prompt, None, 0).await {
                Ok(answer) => done.rebased = answer.prefilled,
                Err(error) => tracing::debug!(%error, "the next turn prefills the new prompt"),
            }
        }
        let bytes = state::encode(&prefix);
        let at = self.parts.clock.wall();
        self.parts.store.since(ticket).compact_session(session, &[], Some(&bytes), at)?;
        Ok(())
    }
}

/// The bounds of making summaries.
struct Bounds {
    limits: Limits,
    /// The model may be asked.
    may_ask: bool,
    /// Monotonic time by which it ends, in microseconds.
    deadline: u64,
}

/// Returns the first words of a message, on one line and without quotation marks.
fn beginning(text: &str) -> String {
    let words = text.split_whitespace().take(8).collect::<Vec<_>>().join(" ");
    words.chars().filter(|c| *c != '"').take(60).collect()
}

/// Returns the outcome of summarising in words.
fn describe(done: &SummaryRun, own_model: bool, broken: bool) -> String {
    let SummaryRun { leaves, condensed, extracts, calls, reused, prefilled, rebased, .. } = done;
    let unreadable = match done.unreadable {
        0 => String::new(),
        1 => "; 1 turn can't be read".to_owned(),
        more => format!("; {more} turns can't be read"),
    };
    let cause = done.cause.map_or("unfinished", Cause::as_str);
    let failed = if broken { ", broken off" } else { "" };
    let asked = if own_model { "asked a model of its own" } else { "asked" };
    format!(
        "{cause}; {leaves} summaries of turns, {condensed} of summaries, {extracts} without the model; \
         {asked} {calls} times, with {reused} tokens from the KV cache and {prefilled} decoded; \
         {rebased} decoded of the new prompt{unreadable}{failed}"
    )
}

/// Blocks of a prompt that the next one has, too.
const STAYING: [&str; 3] = ["system", "tracked", "history"];
/// Most summaries of one run.
const MAX_SUMMARIES: usize = 12;
/// Microseconds after which a run ends.
const DEADLINE_US: u64 = 600_000_000;
/// Tokens of a summary that is made without a model.
const LONGEST_EXTRACT: u32 = 512;
/// Tokens that a template puts around what was said, at least.
const AROUND_A_LINE: u32 = 4;
/// Tokens up to which a text is counted: none is longer.
const COUNT_LIMIT: usize = 1 << 24;
