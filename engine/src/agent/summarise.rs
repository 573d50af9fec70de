//! Compaction of a session: summaries for turns that leave the prompt, and the prompt without them.
//!
//! Every summary is stored as soon as it is made, and changes nothing else: the prompt still shows
//! the turns below it. When all are made the new beginning of the prompt is brought into the model's
//! cache beside the old one, and only then becomes the session's. So a message of the user that comes
//! in between finds everything as it was, and the work that was done is there for the next time.
//!
//! Limits: a summary whose model fails isn't made, and the model is left alone for a while; one that
//! answers badly is done without. Both lose nothing: history gives way as it does without summaries.
//! Of turns of which none can be read any more, a summary says just that.

use garret_core::compact::{Cause, Limits, Node, Pressure, Turn};
use garret_core::id::{SessionId, TurnSeq};
use garret_core::model::{ChatModel, ModelRole};
use garret_core::prompt::{Content, PromptEncoder};
use garret_core::token::Token;
use garret_storage::{
    NewSummary, ReadError, StateKind, Summary, SummaryMethod, Ticket, WriteError,
};

use super::apart::{lines_of, whole_prompt};
use super::slot::{Context, ContextError};
use super::tracked::Root;
use super::{Agent, states};
use crate::compact::{self, Job, Line, Shown, Step, Work};
use crate::companion::{Answer, Question, ask, ask_until};

/// When a compaction is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Nobody waits: also what doesn't press is done.
    Idle,
    /// Somebody may: only what presses.
    Pressed,
    /// The user or the model asked for it.
    Asked,
}

/// What a compaction did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compaction {
    /// Why it was done; `None` when none was due.
    pub cause: Option<Cause>,
    /// Summaries of turns that were made.
    pub leaves: u32,
    /// Summaries of summaries that were made.
    pub condensed: u32,
    /// Of both, those that were made without the model.
    pub extracts: u32,
    /// Times the model was asked.
    pub calls: u32,
    /// Tokens of their prompts that were in its cache.
    pub reused: u32,
    /// Tokens of their prompts that were decoded.
    pub prefilled: u32,
    /// Tokens it answered.
    pub generated: u32,
    /// Tokens of the new beginning of the prompt that were brought into the cache.
    pub rebased: u32,
    /// Turns that were passed over since they can't be read.
    pub unreadable: u64,
    /// Whether one was due and waits: its model failed not long ago and is left alone.
    pub waits: bool,
    /// Whether it was broken off, since the model or the disk failed or time ran out.
    pub failed: bool,
}

/// Why a compaction was broken off.
#[derive(Debug, thiserror::Error)]
pub(super) enum Broken {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Context(#[from] ContextError),
    #[error("the companion failed: {0}")]
    Model(String),
    #[error("the companion took too long")]
    TooLong,
    #[error("what was said can't be counted: {0}")]
    Count(String),
    #[error("nothing says it shorter")]
    NothingShorter,
}

/// What a compaction goes by.
struct Survey {
    /// The last turn that is covered, with all before it.
    frontier: TurnSeq,
    /// The turns after that, up to the next that is covered.
    turns: Vec<Turn>,
    /// The first turn further on that is covered: what summed up those before it was forgotten.
    next: Option<TurnSeq>,
    /// Says whether something was forgotten since.
    ticket: Ticket,
    /// Summaries up to the frontier that aren't part of another.
    roots: Vec<Summary>,
    /// The turn with which history begins by the session's record.
    from: TurnSeq,
    /// The oldest turn that the newest prompt showed, and the conversation's length from there on.
    live: Option<(TurnSeq, usize)>,
    /// Whether that is longer than the window, which may have been another one.
    too_long: bool,
}

impl Survey {
    /// The first and the last turn that the next summary of turns covers. What can't be read goes
    /// with the turns after it; between summaries, at the end, with those before it or by itself.
    fn run(&self, limits: &Limits) -> Option<(TurnSeq, TurnSeq)> {
        let first = self.frontier.saturating_add(1);
        let Some(next) = self.next else {
            return Some((first, limits.leaf(&self.turns)?.last()?.seq));
        };
        let end = next.saturating_sub(1);
        let patch = limits.patch(&self.turns).unwrap_or_default();
        let is_all = patch.len() == self.turns.len() && patch.len() < MOST_TURNS;
        let last = patch.last().map(|turn| turn.seq).filter(|_| !is_all).unwrap_or(end);
        (last >= first).then_some((first, last))
    }
}

/// A summary as it comes from the model, or from without.
struct Made {
    text: String,
    tokens: u32,
    method: SummaryMethod,
}

impl<M: ChatModel, E: PromptEncoder> Agent<M, E> {
    /// Compacts a session if that is due. Dropping the future ends it within one decode batch; every
    /// summary that was made is kept.
    pub async fn compact(&mut self, session: &SessionId, when: When) -> Compaction {
        let (done, broken) = self.try_compact(session, when).await;
        if let Some(error) = broken {
            tracing::warn!(%error, "the conversation isn't compacted further now; nothing is lost");
        }
        done
    }

    /// The same; and why it was broken off, if it was.
    pub(super) async fn try_compact(
        &mut self,
        session: &SessionId,
        when: When,
    ) -> (Compaction, Option<Broken>) {
        let mut done = Compaction::default();
        let deadline = self.parts.clock.monotonic_us().saturating_add(DEADLINE_US);
        let broken = self.compact_until(session, when, deadline, &mut done).await.err();
        done.failed = broken.is_some();
        if !done.failed && !done.waits {
            self.compacted(session, done.cause.is_some());
        }
        (done, broken)
    }

    /// Takes note that what asked for a compaction got one, or that there is nothing to compact.
    fn compacted(&mut self, session: &SessionId, done: bool) {
        let Some(mind) = self.mind.as_mut().filter(|mind| mind.session == *session) else { return };
        (mind.due.compact, mind.due.topic_changed) = (false, false);
        if done {
            mind.gate_mut().compacted();
        }
    }

    /// What the newest compaction of a session did, in words; `None` when there was none.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn last_compaction(&self, session: &SessionId) -> Result<Option<String>, ReadError> {
        let bytes = states::read(&self.parts.store, session, StateKind::Work)?;
        let work = Work::read(bytes, self.compactor_fingerprint());
        Ok(Some(work.last).filter(|last| !last.is_empty()))
    }

    /// SHA-256 of the file of the model that sums up.
    fn compactor_fingerprint(&self) -> [u8; 32] {
        self.model_of(ModelRole::Compactor).facts().fingerprint
    }

    async fn compact_until(
        &mut self,
        session: &SessionId,
        when: When,
        deadline: u64,
        done: &mut Compaction,
    ) -> Result<(), Broken> {
        let limits = Limits::of(&self.budget);
        let survey = self.survey(session)?;
        let pressure = self.pressure(session, &survey, when)?;
        done.cause = limits.due(&survey.turns, &pressure);
        // Summaries may be there that the prompt doesn't know of yet.
        let unfinished = survey.from <= survey.frontier;
        let presses = done.cause == Some(Cause::Full);
        let state = states::read(&self.parts.store, session, StateKind::Work)?;
        let mut work = Work::read(state, self.compactor_fingerprint());
        let may_ask = work.breaker.allows(self.parts.clock.wall().unix_ms);
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
            Err(Broken::Model(_) | Broken::TooLong) if done.calls == 0 => work.breaker.failed(now),
            _ if done.calls > 0 => work.breaker.succeeded(),
            _ => {}
        }
        let finished = self.adopt_summaries(session, done).await;
        let broken = made.is_err() || finished.is_err();
        let apart = self.apart.of(ModelRole::Compactor).is_some();
        work.last = describe(done, apart, broken);
        self.parts.store.set_state(session, StateKind::Work, &work.to_bytes())?;
        made.and(finished)
    }

    /// Makes summaries for as long as there are some to be made.
    async fn make_all(
        &mut self,
        session: &SessionId,
        bounds: &Bounds,
        done: &mut Compaction,
    ) -> Result<(), Broken> {
        for _ in 0..MOST_SUMMARIES {
            if self.parts.clock.monotonic_us() >= bounds.deadline {
                return Err(Broken::TooLong);
            }
            let survey = self.survey(session)?;
            let run = done.cause.and_then(|_| survey.run(&bounds.limits));
            let job = match run {
                Some((from, to)) => Some(self.job_of_turns(session, from, to)?),
                None => self.job_of_summaries(&survey, &bounds.limits)?,
            };
            let Some(mut job) = job else { return Ok(()) };
            let made = match job.lines.is_empty() {
                true => self.pass_over(session, &mut job, done)?,
                false => self.summarise(session, &survey, &job, bounds, done).await?,
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

    /// Reads what a compaction goes by.
    fn survey(&mut self, session: &SessionId) -> Result<Survey, Broken> {
        let ticket = self.parts.store.ticket();
        let frontier = self.parts.store.frontier(session)?;
        let mut roots = self.parts.store.roots(session)?;
        let next = self.parts.store.leaf_after(session, frontier)?;
        roots.retain(|summary| summary.to <= frontier);
        let from =
            self.context(session)?.map_or(frontier.saturating_add(1), |context| context.from);
        let live = self.live_from(session);
        let shown = live.and_then(|from| self.conversation(session, from, TurnSeq::MAX, None));
        let too_long = live.is_some() && shown.is_none();
        let live = shown.map(|live| (live.from, live.length));
        self.counts.turn_to(session);
        let limits = super::history::Limits { room: usize::MAX, ..self.limits() };
        let (encoder, counts) = (&mut self.parts.encoder, &mut self.counts);
        let read = self.parts.store.with_turns(session, frontier.saturating_add(1), |views| {
            let between = views.partition_point(|view| next.is_none_or(|next| view.seq < next));
            let views = &views[..between.min(MOST_TURNS)];
            let past = counts.shown(encoder, views, limits)?;
            let turn = |past: &super::history::Past<'_>| {
                let turn = past.turn();
                Turn { seq: turn.seq, tokens: u32::try_from(turn.cost).unwrap_or(u32::MAX) }
            };
            Ok::<Vec<_>, garret_core::prompt::EncodeError<E::Error>>(
                past.iter().map(turn).collect(),
            )
        })?;
        let turns = read.map_err(|error| Broken::Count(error.to_string()))?;
        Ok(Survey { frontier, turns, next, ticket, roots, from, live, too_long })
    }

    /// What speaks for a compaction.
    fn pressure(
        &self,
        session: &SessionId,
        survey: &Survey,
        when: When,
    ) -> Result<Pressure, Broken> {
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
        let mind = self.mind.as_ref().filter(|mind| mind.session == *session);
        let due = mind.map(|mind| mind.due).unwrap_or_default();
        Ok(Pressure {
            fill_percent: u32::try_from(fill).unwrap_or(u32::MAX),
            full_at_percent: self.options.compact_at,
            gap: self.options.compact_at > 0
                && survey.next.is_none()
                && first.zip(shown).is_some_and(|(a, b)| a < b),
            asked: when == When::Asked || due.compact,
            topic_changed: due.topic_changed && when == When::Idle,
            idle: when == When::Idle && self.options.compact_at > 0,
            hole: survey.next.is_some(),
        })
    }

    /// The summary that is to be made of these turns.
    fn job_of_turns(
        &mut self,
        session: &SessionId,
        from: TurnSeq,
        to: TurnSeq,
    ) -> Result<Job, Broken> {
        let lines = self.parts.store.with_turns(session, from, |views| {
            let turns = views.iter().take_while(|view| view.seq <= to);
            turns.flat_map(lines_of).collect()
        })?;
        self.job(0, (from, to), Vec::new(), lines)
    }

    /// The summary that is to be made of summaries, if they outgrew their share.
    fn job_of_summaries(
        &mut self,
        survey: &Survey,
        limits: &Limits,
    ) -> Result<Option<Job>, Broken> {
        let node = |root: &Summary| Node { depth: root.depth, tokens: root.tokens };
        let nodes: Vec<_> = survey.roots.iter().map(node).collect();
        let run = limits.condense(&nodes).and_then(|run| survey.roots.get(run));
        let Some([first, .., last]) = run else { return Ok(None) };
        let depth = first.depth.saturating_add(1);
        let run = run.unwrap_or_default();
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
        sources: Vec<garret_storage::SummaryId>,
        lines: Vec<Line>,
    ) -> Result<Job, Broken> {
        let mut source_tokens = 0_u32;
        for line in &lines {
            let tokens = self.count(&line.text)?.saturating_add(AROUND_A_LINE);
            source_tokens = source_tokens.saturating_add(tokens);
        }
        let times = || lines.iter().filter_map(|line| line.at_ms);
        let (earliest_ms, latest_ms) = (times().min(), times().max());
        Ok(Job { depth, from, to, sources, lines, source_tokens, earliest_ms, latest_ms })
    }

    fn count(&mut self, text: &str) -> Result<u32, Broken> {
        let tokens = self.parts.encoder.count(&Content::from(text), COUNT_LIMIT);
        let tokens = tokens.map_err(|error| Broken::Count(error.to_string()))?;
        Ok(u32::try_from(tokens).unwrap_or(u32::MAX))
    }

    /// Makes a summary: by the model, by the model in fewer words, or without it.
    async fn summarise(
        &mut self,
        session: &SessionId,
        survey: &Survey,
        job: &Job,
        bounds: &Bounds,
        done: &mut Compaction,
    ) -> Result<Made, Broken> {
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
            match compact::accept(&answer, job, &told, most, &mut count)? {
                Ok((text, tokens)) => {
                    let method = match step {
                        Step::Normal => SummaryMethod::Model,
                        Step::Shorter => SummaryMethod::Shorter,
                    };
                    return Ok(Made { text, tokens, method });
                }
                Err(rejected) => tracing::debug!(%rejected, ?step, "an answer is no summary"),
            }
        }
        let most = target.saturating_mul(2).min(LONGEST_EXTRACT).min(most);
        let extract = compact::extract(job, most, &mut |text: &str| self.count(text))?;
        let (text, tokens) = extract.ok_or(Broken::NothingShorter)?;
        Ok(Made { text, tokens, method: SummaryMethod::Extract })
    }

    /// Says of turns of which none can be read that they can't be, so that what comes after them
    /// isn't kept waiting.
    fn pass_over(
        &mut self,
        session: &SessionId,
        job: &mut Job,
        done: &mut Compaction,
    ) -> Result<Made, Broken> {
        let (from, to) = (job.from, job.to);
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
    /// with their text; with the answer, what it was told. `None` when neither fits.
    async fn ask_for(
        &mut self,
        session: &SessionId,
        survey: &Survey,
        job: &Job,
        step: Step,
        bounds: &Bounds,
    ) -> Result<Option<(Answer, String)>, Broken> {
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
            Ok(None) => Err(Broken::TooLong),
            Err(error) => Err(Broken::Model(error.to_string())),
        }
    }

    /// The prompt of a fork of the conversation, and what it asks. `None` where it doesn't have the
    /// turns, or the companion has a model of its own.
    fn fork_for(
        &mut self,
        session: &SessionId,
        survey: &Survey,
        job: &Job,
        step: Step,
        bounds: &Bounds,
    ) -> Option<(Vec<Token>, String)> {
        let (from, _) = survey.live.filter(|(from, _)| job.depth == 0 && *from <= job.from)?;
        if self.apart.of(ModelRole::Compactor).is_some() {
            return None;
        }
        let target = bounds.limits.summary;
        let begins = job.lines.first().map(|line| beginning(&line.text)).unwrap_or_default();
        let shown = if from == job.from { Shown::Above } else { Shown::AboveFrom(&begins) };
        let told = compact::instruction(job, step, target, &shown);
        let (_, max_tokens) = step.grammar(target);
        let fork = self.fork_prompt(session, Some(job.to), &told, max_tokens)?;
        Some((self.tokens.get(..fork.length)?.to_vec(), told))
    }

    /// A prompt of its own with the words of `job`, and what it asks: beside the conversation in its
    /// window, or in that of the companion's own model. `None` when it doesn't fit, however much is
    /// left out of long messages.
    fn transcript_for(
        &mut self,
        survey: &Survey,
        job: &Job,
        step: Step,
        bounds: &Bounds,
    ) -> Result<Option<(Vec<Token>, String)>, Broken> {
        let target = bounds.limits.summary;
        let told = compact::instruction(job, step, target, &Shown::Below);
        let (_, max_tokens) = step.grammar(target);
        let (encoder, room) = match self.apart.of_mut(ModelRole::Compactor) {
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
            Err(error) if self.apart.of_mut(ModelRole::Compactor).is_some() => {
                tracing::warn!(%error, "the compactor's own model can't be told of some turns");
                Ok(None)
            }
            Err(error) => Err(Broken::Count(error.to_string())),
        }
    }

    /// Has the prompt begin with the summaries there are, and history after them: first in the
    /// model's cache, then in the store.
    async fn adopt_summaries(
        &mut self,
        session: &SessionId,
        done: &mut Compaction,
    ) -> Result<(), Broken> {
        let ticket = self.parts.store.ticket();
        let frontier = self.parts.store.frontier(session)?;
        let from = frontier.saturating_add(1);
        let Some(before) = self.context(session)? else { return Ok(()) };
        if before.from >= from && done.condensed == 0 {
            return Ok(());
        }
        let roots = self.parts.store.roots(session)?;
        let roots: Vec<_> = roots.iter().filter(|root| root.to < from).map(Root::from).collect();
        let context: Context = self.build_context(session, roots, from)?;
        let system = self.system_with(&context);
        let prompt = self.conversation_under(&system, session, from, TurnSeq::MAX, None);
        if let Some(prompt) = prompt {
            let prompt = self.tokens.get(..prompt.length).unwrap_or(&self.tokens);
            match ask(&self.parts.model, ModelRole::Rebase, prompt, None, 0).await {
                Ok(answer) => done.rebased = answer.prefilled,
                Err(error) => tracing::debug!(%error, "the next turn prefills the new prompt"),
            }
        }
        let (bytes, at) = (context.to_bytes(), self.parts.clock.wall());
        self.parts.store.since(ticket).compact_session(session, &[], Some(&bytes), at)?;
        Ok(())
    }
}

/// What bounds the making of summaries.
struct Bounds {
    limits: Limits,
    /// Whether the model is asked at all.
    may_ask: bool,
    /// Monotonic time by which it ends, in microseconds.
    deadline: u64,
}

/// The first words of a message, on one line and without quotation marks.
fn beginning(text: &str) -> String {
    let words = text.split_whitespace().take(8).collect::<Vec<_>>().join(" ");
    words.chars().filter(|c| *c != '"').take(60).collect()
}

fn describe(done: &Compaction, apart: bool, broken: bool) -> String {
    let Compaction { leaves, condensed, extracts, calls, reused, prefilled, rebased, .. } = done;
    let unreadable = match done.unreadable {
        0 => String::new(),
        1 => "; 1 turn can't be read".to_owned(),
        more => format!("; {more} turns can't be read"),
    };
    let cause = done.cause.map_or("unfinished", Cause::as_str);
    let failed = if broken { ", broken off" } else { "" };
    let asked = if apart { "asked a model of its own" } else { "asked" };
    format!(
        "{cause}; {leaves} summaries of turns, {condensed} of summaries, {extracts} without the model; \
         {asked} {calls} times, with {reused} tokens from the KV cache and {prefilled} decoded; \
         {rebased} decoded of the new prompt{unreadable}{failed}"
    )
}

/// Blocks of a prompt that the next one has too.
const STAYING: [&str; 3] = ["system", "tracked", "history"];
/// Summaries of one compaction.
const MOST_SUMMARIES: usize = 12;
/// Turns that are looked at.
const MOST_TURNS: usize = 400;
/// A compaction takes no longer, in microseconds.
const DEADLINE_US: u64 = 600_000_000;
/// One answer takes no longer, in microseconds.
pub(super) const CALL_US: u64 = 180_000_000;
/// Tokens of a summary that is made without a model.
const LONGEST_EXTRACT: u32 = 512;
/// Tokens that a template puts around what was said, at least.
const AROUND_A_LINE: u32 = 4;
/// Nothing that is counted is longer.
const COUNT_LIMIT: usize = 1 << 24;
