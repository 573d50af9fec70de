//! Chat templates: a model's own Jinja source, rendered so that content can't become control.
//!
//! Content never goes through the template. Each message's text is replaced by a placeholder, the
//! template is rendered, and the result is taken apart again: what lies between placeholders is
//! scaffolding, in which special tokens are recognised; what a placeholder stands for is data, in
//! which they aren't. All text between two special tokens is one run that is tokenised as a whole,
//! because cutting elsewhere breaks merges (role header and first word, for example).
//!
//! White space at both ends of a content stays outside its placeholder, so that a template's
//! `| trim` works; a content of white space alone is passed as it is.
//!
//! A system message goes through the template if the template puts it in front. If it refuses it,
//! drops it, or moves it (Mistral shows it in the newest message, which would make every turn a new
//! prompt), its text is put before that of the next user message, with a blank line between.
//!
//! Tools are told of in the template's own form where that is the one of Hermes and Qwen: the
//! template shows a list `tools`, has calls written as `<tool_call>` around JSON, and takes
//! messages of the role `tool`. Whether it does is found out by rendering. Other forms (Llama 3,
//! Mistral) aren't known.
//!
//! Limits: a template that prints content through a filter other than `trim` gets the placeholder
//! and fails or garbles it at load, which is an error. Role marks that the vocabulary knows as
//! plain text (`[INST]` of the first Mistral models) can be spelled by content; no tokenizer
//! setting tells them apart. Time in a template is fixed when it is compiled: a clock in the
//! prefix would make every turn a new prompt. Work and memory of a hostile template are bounded by
//! fuel, and time by patience, with one hole: minijinja 3.1 joins lists without charging for it. A
//! template that doubles one some seventy times is refused after 10 s, but the thread that works on
//! it stays behind, busy until the process ends.

use garret_core::prompt::Role;
use jiff::civil::DateTime;

use crate::vocab::{SpecialIndex, SpecialKind, Specials};

mod jinja;
mod layout;
mod tools;

pub use layout::{Item, Layout};

use jinja::{Jinja, Slot};
use tools::Tools;

/// A message, as the template is to show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn<'a> {
    /// Speaker of the message.
    pub role: Role,
    /// Content of the message.
    pub content: &'a str,
    /// True when the tokens of the content are known already and only its place is asked for.
    pub kept: bool,
}

/// A part of a rendered prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment<'a> {
    /// Written by the template, or white space at an end of some content.
    Scaffold(String),
    /// Content of the message with this index.
    Content(usize, &'a str),
}

/// Treatment of system messages by a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SystemSupport {
    /// The template shows them in front.
    Native,
    /// Their text is put before the next user message's.
    Merged,
}

/// A chat template that is known to render.
#[derive(Debug)]
pub struct ChatTemplate {
    jinja: Jinja,
    system: SystemSupport,
    trailers: Trailers,
    headers: Headers,
    /// Tokens the scaffolding is cut at.
    cuts: SpecialIndex,
    /// Ids that content must never turn into.
    guarded: SpecialIndex,
    bos: Option<(garret_core::token::Token, String)>,
    add_bos: bool,
    tools: Tools,
}

/// Reason why a template can't be used, or refuses some messages.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// The source isn't valid Jinja.
    #[error(
        "the model's chat template doesn't parse: {message}; use a model with another template"
    )]
    Syntax {
        /// Message of the template engine.
        message: String,
    },
    /// A template that fails for the plainest of conversations.
    #[error(
        "the model's chat template doesn't render: {message}; use a model with another template"
    )]
    DoesNotRender {
        /// Message of the template engine, or of the template itself.
        message: String,
    },
    /// A template that refuses the messages.
    #[error("the chat template refuses the messages: {message}")]
    Refused {
        /// Message of the template engine, or of the template itself.
        message: String,
    },
    /// A template that left out what somebody said.
    #[error("the chat template leaves out message {index}")]
    Dropped {
        /// Index of the message.
        index: usize,
    },
}

/// Text that a template writes after a message of each role, before anything of the next one.
#[derive(Clone, Debug, Default)]
struct Trailers {
    system: String,
    user: String,
    assistant: String,
}

/// Text that a template writes between what comes after a user's message and a reply.
#[derive(Clone, Debug, Default)]
struct Headers {
    /// Header when it asks for the reply: what the model saw before it generated one.
    asked: String,
    /// Header when the reply is part of history. Some templates open a block of thoughts when they
    /// ask, and show replies without it; others name a channel only in history.
    shown: String,
}

impl Trailers {
    fn of(&self, role: Role) -> &str {
        match role {
            Role::System => &self.system,
            Role::Assistant => &self.assistant,
            _ => &self.user,
        }
    }
}

impl ChatTemplate {
    /// Compiles `source` and tries it on short conversations. `strftime_now` shows
    /// 26 July 2024, the date that templates with a clock fall back to themselves.
    ///
    /// # Errors
    /// [`TemplateError::Syntax`] or [`TemplateError::DoesNotRender`].
    pub fn compile(source: &str, specials: &Specials) -> Result<Self, TemplateError> {
        Self::compile_at(source, specials, DEFAULT_TIME)
    }

    /// Like [`compile`](Self::compile), with `now` as the time that `strftime_now` shows. It stays
    /// the same for the life of the template.
    ///
    /// # Errors
    /// See [`compile`](Self::compile).
    pub fn compile_at(
        source: &str,
        specials: &Specials,
        now: DateTime,
    ) -> Result<Self, TemplateError> {
        let jinja = Jinja::compile(source, specials, now)?;
        let mut template = Self {
            jinja,
            system: SystemSupport::Native,
            trailers: Trailers::default(),
            headers: Headers::default(),
            cuts: SpecialIndex::default(),
            guarded: SpecialIndex::default(),
            bos: specials.bos.clone(),
            add_bos: specials.add_bos,
            tools: Tools::new(source, specials),
        };
        let mut written = template.probe()?;
        // Branches that the probes don't reach can still be reached by a conversation.
        written.push(source.to_owned());
        (template.cuts, template.guarded) = index_specials(&written, specials);
        Ok(template)
    }

    /// Returns what becomes of system messages.
    pub fn system_support(&self) -> SystemSupport {
        self.system
    }

    /// Tokens that content must never turn into: control tokens, those that end a turn, and
    /// user-defined ones that this template uses as structure, whole in its source or put together
    /// while it renders.
    pub(crate) fn guarded(&self) -> &SpecialIndex {
        &self.guarded
    }

    /// Renders `turns`, and what comes before a reply if `reply_follows`, into segments. Joined,
    /// they are the whole rendering with content in place.
    ///
    /// # Errors
    /// [`TemplateError::Refused`] when the template raises an error or runs out of its bounds;
    /// [`TemplateError::Dropped`] when it leaves out a message.
    pub fn render<'a>(
        &self,
        turns: &[Turn<'a>],
        reply_follows: bool,
    ) -> Result<Vec<Segment<'a>>, TemplateError> {
        let slots = self.slots(turns);
        self.jinja.render(turns, &slots, self.tools.shown(turns), reply_follows)
    }

    /// Renders `turns` into what is tokenised and put in by id.
    ///
    /// # Errors
    /// See [`render`](Self::render).
    pub fn layout(&self, turns: &[Turn<'_>], reply_follows: bool) -> Result<Layout, TemplateError> {
        let slots = self.slots(turns);
        let segments = self.jinja.render(turns, &slots, self.tools.shown(turns), reply_follows)?;
        Ok(layout::Builder::new(self, turns, &segments).build())
    }

    /// Distributes the turns over the messages the template sees.
    fn slots(&self, turns: &[Turn<'_>]) -> Vec<Slot> {
        let mut slots: Vec<Slot> = Vec::with_capacity(turns.len());
        let mut waiting: Vec<usize> = Vec::new();
        for (index, turn) in turns.iter().enumerate() {
            let merged = self.system == SystemSupport::Merged && turn.role == Role::System;
            match turn.role {
                _ if merged && turn.content.trim().is_empty() => {}
                _ if merged => waiting.push(index),
                Role::User => {
                    waiting.push(index);
                    slots.push(Slot { role: Role::User, turns: std::mem::take(&mut waiting) });
                }
                role => slots.push(Slot { role, turns: vec![index] }),
            }
        }
        if !waiting.is_empty() {
            slots.push(Slot { role: Role::User, turns: waiting });
        }
        slots
    }

    /// Returns whether the turn at `index` is shown at the start of another one.
    fn is_merged(&self, turns: &[Turn<'_>], index: usize) -> bool {
        let is_system = |turn: &Turn<'_>| turn.role == Role::System;
        let follows = || {
            let mut later = turns.iter().skip(index + 1);
            later.any(|turn| matches!(turn.role, Role::User))
                || turns.iter().skip(index + 1).any(is_system)
        };
        self.system == SystemSupport::Merged && turns.get(index).is_some_and(is_system) && follows()
    }

    /// Tries the conversations every template has to render, and learns from them. Gives what the
    /// template wrote around their contents.
    fn probe(&mut self) -> Result<Vec<String>, TemplateError> {
        if !self.shows_system_first() {
            self.system = SystemSupport::Merged;
        }
        let conversations: [&[Role]; 3] = [
            &[Role::User],
            &[Role::System, Role::User],
            &[Role::User, Role::Assistant, Role::User],
        ];
        let mut written = Vec::new();
        for roles in conversations {
            for reply_follows in [false, true] {
                let turns = probe_turns(roles);
                let segments = self.render(&turns, reply_follows).map_err(as_load_error)?;
                written.extend(segments.into_iter().filter_map(|segment| match segment {
                    Segment::Scaffold(text) => Some(text),
                    Segment::Content(..) => None,
                }));
            }
        }
        self.learn_trailers()?;
        Ok(written)
    }

    fn shows_system_first(&self) -> bool {
        let conversations: [&[Role]; 2] =
            [&[Role::System, Role::User], &[Role::System, Role::User, Role::Assistant, Role::User]];
        conversations.into_iter().all(|roles| {
            self.render(&probe_turns(roles), true).is_ok_and(|segments| {
                let order = segments.iter().filter_map(|segment| match segment {
                    Segment::Content(index, _) => Some(*index),
                    Segment::Scaffold(_) => None,
                });
                order.eq(0..roles.len())
            })
        })
    }

    fn learn_trailers(&mut self) -> Result<(), TemplateError> {
        use Role::{Assistant, System, User};
        let longer = self.scaffold_after(&[User, Assistant, User], false).map_err(as_load_error)?;
        let after = |roles: &[Role]| {
            self.scaffold_after(roles, false).ok().and_then(|mut texts| texts.pop())
        };
        let [user_gap, assistant_gap] =
            [longer.first(), longer.get(1)].map(|gap| gap.cloned().unwrap_or_default());
        let last_user = after(&[User]).unwrap_or_default();
        let user = common_prefix(&user_gap, &last_user).to_owned();
        let last_assistant = after(&[User, Assistant]).unwrap_or_else(|| assistant_gap.clone());
        let assistant = common_prefix(&assistant_gap, &last_assistant).to_owned();
        let system = match self.system {
            SystemSupport::Merged => user.clone(),
            SystemSupport::Native => {
                let gaps = self.scaffold_after(&[System, User], false).map_err(as_load_error)?;
                let alone = after(&[System]).unwrap_or(last_user);
                common_prefix(gaps.first().map_or("", |gap| gap), &alone).to_owned()
            }
        };
        let asked = self.scaffold_after(&[User], true).map_err(as_load_error)?;
        let after_user = |text: &str| text.strip_prefix(user.as_str()).map(str::to_owned);
        let asked = asked.last().and_then(|text| after_user(text));
        if let (Some(asked), Some(shown)) = (asked, after_user(&user_gap)) {
            self.headers = Headers { asked, shown };
        }
        self.trailers = Trailers { system, user, assistant };
        Ok(())
    }

    /// Returns what is written after each content of a conversation of `roles`.
    fn scaffold_after(
        &self,
        roles: &[Role],
        reply_follows: bool,
    ) -> Result<Vec<String>, TemplateError> {
        let mut after: Vec<String> = Vec::new();
        for segment in self.render(&probe_turns(roles), reply_follows)? {
            match (segment, after.last_mut()) {
                (Segment::Content(..), _) => after.push(String::new()),
                (Segment::Scaffold(text), Some(last)) => last.push_str(&text),
                (Segment::Scaffold(_), None) => {}
            }
        }
        Ok(after)
    }
}

/// Tokens to cut scaffolding at, and tokens that content must not become, for a template that has
/// `written` these texts or has them in its source.
fn index_specials(written: &[String], specials: &Specials) -> (SpecialIndex, SpecialIndex) {
    let is_written = |word: &str| written.iter().any(|text| text.contains(word));
    let is_cut = |kind, text: &str, ends: bool| match kind {
        SpecialKind::Control | SpecialKind::Unknown => true,
        // Left in a run, they are recognised there just the same.
        SpecialKind::UserDefined => !text.trim().is_empty() && (ends || is_written(text)),
    };
    let cuts = specials
        .tokens
        .iter()
        .filter(|token| is_cut(token.kind, &token.text, token.ends_generation));
    let guarded = cuts.clone().filter(|token| token.kind != SpecialKind::Unknown);
    (SpecialIndex::new(cuts.cloned()), SpecialIndex::new(guarded.cloned()))
}

fn probe_turns(roles: &[Role]) -> Vec<Turn<'static>> {
    roles.iter().map(|role| Turn { role: *role, content: "x", kept: false }).collect()
}

fn as_load_error(error: TemplateError) -> TemplateError {
    match error {
        TemplateError::Refused { message } => TemplateError::DoesNotRender { message },
        TemplateError::Dropped { index } => TemplateError::DoesNotRender {
            message: format!("it leaves out message {index} of a short conversation"),
        },
        other => other,
    }
}

/// The longest text both begin with.
fn common_prefix<'a>(a: &'a str, b: &str) -> &'a str {
    let pairs = a.char_indices().zip(b.chars());
    let end =
        pairs.take_while(|((_, x), y)| x == y).last().map_or(0, |((i, x), _)| i + x.len_utf8());
    a.get(..end).unwrap_or_default()
}

/// 26 July 2024, midnight.
const DEFAULT_TIME: DateTime = DateTime::constant(2024, 7, 26, 0, 0, 0, 0);
