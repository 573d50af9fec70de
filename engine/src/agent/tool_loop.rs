//! The tool loop of a turn, in rounds: the model writes a tag, the tool answers, the model goes on.
//!
//! What was generated stays where it is in the cache; behind it come the end of the reply so far
//! and a message with the result. No later prompt has any of that: the stored reply is what was
//! shown, and a tag never is.
//!
//! Every prompt of a turn, with the reply that may follow it and the companions' reserve, fits into
//! the window: a result takes what the prompt has left free, and up to half of the reply's reserve;
//! what doesn't fit is announced with the call that goes on. The tokens of all rounds together are
//! at most the reply's reserve.
//!
//! A tag is obeyed only where the model wrote it by itself: not where it stands in the user's words,
//! in the conversation, in what is remembered or in a result, and not in code.
//!
//! A user always gets words. A model that used up its rounds is told so; one that then, or at once,
//! writes nothing that can be shown is asked once more under a grammar that has no tags; and when
//! that fails, too, a sentence of ours says what happened.

use garret_core::id::{SessionId, TurnSeq};
use garret_core::model::{ChatModel, Event, Finish, ModelRole, Reply, Request, Sampling};
use garret_core::prompt::{Content, Message, PromptEncoder, Role};
use garret_core::scan::is_quoted;
use garret_core::time::Confidence;
use garret_core::token::{Token, TokenBuf, TokenBytes};
use smol::future::{or, poll_fn};

use super::Agent;
use super::promise::is_promise;
use super::reply::{Asked, ReplyDraft, Wish};
use crate::cancel::Cancel;
use crate::receipt::RoundReport;
use crate::tools::{self, Answer, Call, Context, fence};
use crate::trace::record::detokenized;
use crate::trace::{Around, Exchange};

/// The turn that is being answered.
pub(super) struct Talk<'a> {
    pub(super) session: &'a SessionId,
    pub(super) turn: TurnSeq,
    /// Texts in the prompt that aren't the model's own: a tag from them isn't obeyed.
    quoted: Vec<String>,
    /// The prompt of this round.
    prompt: Vec<Token>,
    nudged: bool,
}

impl<'a> Talk<'a> {
    /// A turn whose first prompt has `foreign` texts beside the conversation: the user's message and
    /// what stands before it.
    pub(super) fn new(
        session: &'a SessionId,
        turn: TurnSeq,
        foreign: [&str; 2],
        prompt: &[Token],
    ) -> Self {
        let quoted = foreign.map(unescaped).to_vec();
        Self { session, turn, quoted, prompt: prompt.to_vec(), nudged: false }
    }
}

impl<M: ChatModel, E: PromptEncoder> Agent<M, E> {
    /// Generates a reply and looks up what the model asks for on the way.
    pub(super) async fn converse(
        &mut self,
        mut talk: Talk<'_>,
        draft: &mut ReplyDraft,
        cancel: &Cancel,
        on_text: &mut dyn FnMut(&str),
    ) -> Result<Finish, M::Error> {
        loop {
            draft.armed = self.options.tools && draft.rounds.len() < MAX_ROUNDS;
            let prompt = [&talk.prompt, draft.generated()].concat();
            let finish = match self.max_tokens(prompt.len(), draft) {
                0 => Finish::Length,
                most => self.generate(&prompt, most, None, draft, cancel, on_text).await?,
            };
            if !self.goes_on(&mut talk, draft, finish, on_text) {
                return self.insist(&talk, finish, draft, cancel, on_text).await;
            }
        }
    }

    /// Runs the model on `prompt` until its reply, by `grammar` if there is one, ends or asks for a
    /// tool.
    async fn generate(
        &self,
        prompt: &[Token],
        max_tokens: u32,
        grammar: Option<&str>,
        draft: &mut ReplyDraft,
        cancel: &Cancel,
        on_text: &mut dyn FnMut(&str),
    ) -> Result<Finish, M::Error> {
        let request = Request {
            role: ModelRole::Main,
            prompt,
            max_tokens,
            sampling: self.sampling(),
            grammar,
        };
        let mut reply = self.parts.model.start(request)?;
        let mut told = false;
        loop {
            let cancelled = async {
                cancel.cancelled().await;
                Next::Cancel
            };
            let event = async { Next::Event(poll_fn(|cx| reply.poll_event(cx)).await) };
            let next = if told { event.await } else { or(cancelled, event).await };
            match next {
                Next::Cancel => {
                    reply.cancel();
                    told = true;
                }
                Next::Event(Some(Ok(Event::Prefilled { reused, prefilled }))) => {
                    draft.prefilled(reused, prefilled);
                }
                Next::Event(Some(Ok(Event::Piece { token, bytes }))) => {
                    let now = || self.parts.clock.monotonic_us();
                    draft.first_us = draft.first_us.or_else(|| Some(now()));
                    if draft.push(token, bytes.as_ref(), on_text) {
                        return Ok(Finish::Stop);
                    }
                }
                Next::Event(end) => {
                    draft.finish(on_text);
                    return match end {
                        Some(Ok(Event::Finished(finish))) => Ok(finish),
                        Some(Err(error)) => Err(error),
                        _ => Ok(Finish::Cancelled),
                    };
                }
            }
        }
    }

    fn sampling(&self) -> Sampling {
        let mut seed = [0; 4];
        if self.options.draw_seed && self.parts.entropy.fill(&mut seed).is_ok() {
            return Sampling { seed: u32::from_le_bytes(seed), ..self.options.sampling };
        }
        self.options.sampling
    }

    /// Sees to it that a reply that ended with `finish` has words, unless the user ended it.
    async fn insist(
        &self,
        talk: &Talk<'_>,
        finish: Finish,
        draft: &mut ReplyDraft,
        cancel: &Cancel,
        on_text: &mut dyn FnMut(&str),
    ) -> Result<Finish, M::Error> {
        if finish == Finish::Cancelled || !draft.is_blank() {
            return Ok(finish);
        }
        draft.given_up = Some(self.written(draft));
        draft.begin_again();
        let again = match self.max_tokens(talk.prompt.len(), draft) {
            0 => Finish::Length,
            most => {
                let again = self.generate(&talk.prompt, most, Some(WORDS), draft, cancel, on_text);
                again.await.unwrap_or_else(|error| {
                    tracing::warn!(%error, "the model couldn't be asked again for words");
                    Finish::Stop
                })
            }
        };
        if again != Finish::Cancelled && draft.is_blank() {
            let sentence = if draft.rounds.is_empty() { NO_WORDS } else { ONLY_TOOLS };
            draft.say(sentence, on_text);
        }
        Ok(again)
    }

    /// Returns how many tokens may follow a prompt of `prompt` tokens.
    fn max_tokens(&self, prompt: usize, draft: &ReplyDraft) -> u32 {
        let left = self.budget.reply_reserve.saturating_sub(draft.receipt.reply_tokens);
        let free = (self.budget.turn_limit() as usize).saturating_sub(prompt);
        left.min(u32::try_from(free).unwrap_or(u32::MAX))
    }

    /// Prepares what comes after a generation that ended; returns whether something does.
    fn goes_on(
        &mut self,
        talk: &mut Talk<'_>,
        draft: &mut ReplyDraft,
        finish: Finish,
        on_text: &mut dyn FnMut(&str),
    ) -> bool {
        match draft.asked().cloned() {
            Some(asked) if self.is_foreign(talk, draft, &asked) => {
                tracing::info!("a tag was quoted and not obeyed");
                draft.go_on(on_text);
                true
            }
            Some(asked) => self.look_up(talk, draft, &asked),
            None if finish == Finish::Stop => self.nudge(talk, draft),
            None => false,
        }
    }

    /// Returns whether a tag stands in a text of the prompt that the model didn't write, in its own spelling
    /// or in the usual one.
    fn is_foreign(&self, talk: &Talk<'_>, draft: &ReplyDraft, asked: &Asked) -> bool {
        // A call is read with a brace too many or too few, so braces don't make it another one.
        let (inside, usual) = match &asked.wish {
            Wish::Tag(..) => (None, None),
            Wish::Call(json) => {
                let inside = json.trim().trim_start_matches('{').trim_end_matches('}');
                (Some(inside), tools::usual_call(json))
            }
        };
        let others = [inside, usual.as_deref()].map(|text| text.map(str::as_bytes));
        let spelled = [[Some(asked.raw.as_slice())].as_slice(), &others].concat();
        spelled.into_iter().flatten().any(|raw| self.is_in_prompt(talk, draft, raw))
    }

    /// Returns whether `raw` stands in a text of the prompt that the model didn't write.
    fn is_in_prompt(&self, talk: &Talk<'_>, draft: &ReplyDraft, raw: &[u8]) -> bool {
        if talk.quoted.iter().any(|text| is_quoted(raw, text)) {
            return true;
        }
        let prefix = self.session_prefix(talk.session).ok().flatten();
        if prefix.is_some_and(|prefix| is_quoted(raw, &unescaped(&prefix.text))) {
            return true;
        }
        let from = draft.receipt.history_from.unwrap_or(talk.turn);
        let read = self.parts.store.with_turns(talk.session, from, |views| {
            views.iter().any(|view| {
                // An imported reply is no word of this model, and its own never keep a tag.
                let reply = view.reply.as_ref().map_or("", |reply| reply.text);
                let texts = [view.user, reply, view.speaker.unwrap_or_default()];
                texts.into_iter().any(|text| is_quoted(raw, &unescaped(text)))
            })
        });
        // When that can't be read, the tag isn't obeyed.
        read.unwrap_or(true)
    }

    /// Answers a call, and appends the answer to the prompt; returns whether there was room.
    fn look_up(&mut self, talk: &mut Talk<'_>, draft: &mut ReplyDraft, asked: &Asked) -> bool {
        let answer = self.answer(talk, asked);
        let last = draft.rounds.len() + 1 == MAX_ROUNDS;
        let foot = if last { LAST } else { NEXT };
        let role = if self.tool_tokens.is_some() { Role::Tool } else { Role::User };
        let Some(room) = self.room(talk, draft, role, foot) else { return false };
        let room = room.min(self.budget.tool_result() as usize);
        let here = talk.session.as_str();
        let fenced = fence(&answer, &mut self.parts.encoder, room, here);
        let (text, shortened) = match fenced {
            Ok(Some(fenced)) => (fenced.text, fenced.shortened),
            Ok(None) | Err(_) => (NO_ROOM.to_owned(), true),
        };
        let sources = answer.entries.iter().filter_map(|entry| entry.source.as_ref());
        let texts = answer.entries.iter().map(|entry| &entry.text).chain(sources);
        talk.quoted.extend(texts.map(|text| unescaped(text)));
        let report = RoundReport { call: answer.call, shortened, ..RoundReport::default() };
        self.append(talk, draft, (role, &[&text, foot].concat()), report)
    }

    /// Reminds a model that promised to look something up and wrote no tag, once; returns whether it did.
    fn nudge(&mut self, talk: &mut Talk<'_>, draft: &mut ReplyDraft) -> bool {
        if !draft.armed || talk.nudged || !draft.rounds.is_empty() || !is_promise(draft.said()) {
            return false;
        }
        talk.nudged = true;
        let report = RoundReport { call: REMINDED.to_owned(), ..RoundReport::default() };
        let nudge = if self.tool_tokens.is_some() { NUDGE_TO_CALL } else { NUDGE };
        self.append(talk, draft, (Role::User, nudge), report)
    }

    fn answer(&self, talk: &Talk<'_>, asked: &Asked) -> Answer {
        let now = self.parts.clock.wall();
        let context = Context {
            store: &self.parts.store,
            embedder: self.parts.embedder.as_deref(),
            session: Some(talk.session),
            turn: Some(talk.turn),
            now: (now.confidence != Confidence::Wrong).then_some(now.unix_ms),
        };
        let (written, call) = match &asked.wish {
            Wish::Tag(verb, payload) => (format!("{verb} {payload}"), Call::parse(verb, payload)),
            Wish::Call(json) => (json.clone(), tools::read_call(json)),
        };
        let call = match call {
            Ok(call) => call,
            Err(error) => return Answer::failed(written, &error),
        };
        tools::run(&context, &call).unwrap_or_else(|error| Answer::failed(written, &error))
    }

    /// Returns the tokens that a result may have before `foot`; `None` when the reply took too much already.
    fn room(
        &mut self,
        talk: &Talk<'_>,
        draft: &ReplyDraft,
        role: Role,
        foot: &str,
    ) -> Option<usize> {
        let around = self.suffix(draft.generated(), (role, foot))?.len();
        let left = self.budget.reply_reserve.saturating_sub(draft.receipt.reply_tokens);
        let reply = left.min(self.budget.reply_reserve / 2);
        let taken = talk.prompt.len() + draft.generated().len() + around + reply as usize;
        let free = (self.budget.turn_limit() as usize).checked_sub(taken)?;
        (reply >= SHORTEST_REPLY && free > 0).then_some(free)
    }

    /// Makes the next prompt of what was generated and a message of `text`; returns whether that fits.
    fn append(
        &mut self,
        talk: &mut Talk<'_>,
        draft: &mut ReplyDraft,
        (role, text): (Role, &str),
        mut report: RoundReport,
    ) -> bool {
        let Some(suffix) = self.suffix(draft.generated(), (role, text)) else { return false };
        let length = talk.prompt.len() + draft.generated().len() + suffix.len();
        let reply = self.max_tokens(length, draft);
        if reply < SHORTEST_REPLY {
            return false;
        }
        let content = Content::from(text);
        report.tokens = self.parts.encoder.count(&content, length).map_or(0, tokens);
        talk.prompt.extend_from_slice(draft.generated());
        let around = Around::of(text, &detokenized(&self.parts.encoder, &suffix).0);
        talk.prompt.extend(suffix);
        let said = self.written(draft);
        draft.next_round(report, Exchange { said, result: text.to_owned() }, around);
        true
    }

    /// Returns all that the model wrote since the last prompt, with its tags.
    pub(super) fn written(&self, draft: &ReplyDraft) -> String {
        let (text, _) = detokenized(&self.parts.encoder, draft.generated());
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Encodes what comes after a reply of exactly these tokens: its end, a message of `text`, and the
    /// beginning of the next reply. It doesn't depend on what came before. `None` when this model's
    /// template shows such a reply otherwise than it was generated.
    fn suffix(&mut self, reply: &[Token], (role, text): (Role, &str)) -> Option<Vec<Token>> {
        let bytes: Vec<u8> = reply.iter().flat_map(|token| token.0.to_le_bytes()).collect();
        let assistant = Message {
            role: Role::Assistant,
            content: Content::from("x"),
            tokens: TokenBytes::new(&bytes),
        };
        let messages = [Message::new(Role::User, "x"), assistant, Message::new(role, text)];
        let mut before = self.encoded(messages.get(..1)?)?;
        let whole = self.encoded(&messages)?;
        before.extend_from_slice(reply);
        Some(whole.strip_prefix(before.as_slice())?.to_vec())
    }

    fn encoded(&mut self, messages: &[Message<'_>]) -> Option<Vec<Token>> {
        let mut tokens = vec![Token(0); self.budget.n_ctx as usize];
        let mut run = TokenBuf::new(&mut tokens);
        let encoded = self.parts.encoder.encode(messages, &mut run, &mut []);
        if let Err(error) = encoded {
            tracing::warn!(%error, "nothing is looked up: its result can't be put into a prompt");
            return None;
        }
        let length = run.len();
        tokens.truncate(length);
        Some(tokens)
    }
}

enum Next<T> {
    Cancel,
    Event(T),
}

/// Returns a text with the beginnings of tags that are spelled otherwise, by us or by others, as they
/// are read.
fn unescaped(text: &str) -> String {
    let mut text = text.to_owned();
    for spelled in ["&lt;", "&LT;", "&#60;", "&#x3c;", "&#x3C;", "\\u003c", "\\u003C"] {
        if text.contains(spelled) {
            text = text.replace(spelled, "<");
        }
    }
    text
}

fn tokens(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Most rounds of one turn.
const MAX_ROUNDS: usize = 3;
/// Tokens without which no reply is begun.
const SHORTEST_REPLY: u32 = 16;
/// Stands below a result.
const NEXT: &str = "Now answer the user's last message with it, or use another tool.";
/// Stands below the last result of a turn.
const LAST: &str = "Now answer the user's last message; no more tools in this turn.";
/// Grammar of a reply of at least one letter that can't hold a tag.
pub const WORDS: &str = r"root ::= [^<\x00-\x20] [^<]*";
/// Stands in place of a reply of a model that looks things up and says nothing.
const ONLY_TOOLS: &str = "(The model looked things up and gave no answer in words. Ask again, or use \
                          the tools yourself.)";
/// Stands in place of a reply of a model that says nothing.
const NO_WORDS: &str = "(The model gave no answer in words. Ask again, perhaps in other words.)";
/// Stands in place of a result that doesn't fit.
const NO_ROOM: &str = "[There is no room left for a result.]\n";
/// Reminds a model that promised and didn't.
const NUDGE: &str = "[Nothing was looked up yet: write the tool's tag now, and nothing else, or \
                     answer without looking it up.]";
/// Reminds a model that calls tools in the form of its own template.
const NUDGE_TO_CALL: &str = "[Nothing was looked up yet: call the function now, and write nothing \
                             else, or answer without looking it up.]";
/// Stands as the call of a round in which nothing was called.
const REMINDED: &str = "(reminded of a promise)";
