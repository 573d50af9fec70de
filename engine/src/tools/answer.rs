//! The answer of a tool, before it is shown to anybody.

use garret_core::id::{SessionId, TurnSeq};
use serde::Serialize;

use garret_language::local_time;

/// The answer of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Answer {
    /// The call, as it is written.
    pub call: String,
    /// The entries, in the order in which they are to be read.
    pub entries: Vec<Entry>,
    /// Words beside the entries, such as that there are none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// The call that goes on after the last entry, where there is more.
    pub next: Option<String>,
    /// True where, when not all entries can be shown, the last ones are, and not the first.
    #[serde(skip)]
    pub(super) newest: bool,
}

/// One thing that was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Entry {
    /// The public id: `SESSION/TURN/user`, `SESSION/TURN/assistant`, `s3`, `f12`.
    pub id: String,
    /// The conversation it is from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The turn there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnSeq>,
    /// The source: who said it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The date, where the machine is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// Other properties of the entry, in words of ours.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// The text: data, whatever it says.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// True when there is more of it before `text`.
    #[serde(skip_serializing_if = "is_false")]
    pub cut_before: bool,
    /// True when there is more of it after `text`.
    #[serde(skip_serializing_if = "is_false")]
    pub cut_after: bool,
    /// The call that gives this entry and those after it, in the direction of the answer.
    #[serde(skip)]
    pub(super) resume: String,
    /// The way in which a call names the character at which the text goes on, where it can be cut.
    #[serde(skip)]
    pub(super) cut: Option<PartialText>,
}

/// A text that can be shown in part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PartialText {
    /// The turn and, in another conversation, `in=`.
    pub(super) turn: TurnSeq,
    pub(super) place: String,
    /// Number, in the turn, of the first character of the entry's text.
    pub(super) base: usize,
    /// The call that gives what comes after the turn.
    pub(super) then: Option<String>,
}

impl PartialText {
    /// The call that goes on `chars` characters into the entry's text.
    pub(super) fn resume(&self, chars: usize) -> String {
        let Self { turn, place, base, .. } = self;
        format!("expand turn {turn} from {}{place}", base + chars)
    }
}

impl Entry {
    /// An entry for words of a turn.
    pub(super) fn said(session: &SessionId, turn: TurnSeq, source: &str) -> Self {
        let who = if source == "assistant" { "assistant" } else { "user" };
        Self {
            id: format!("{session}/{turn}/{who}"),
            session: Some(session.as_str().to_owned()),
            turn: Some(turn),
            source: Some(source.to_owned()),
            ..Self::default()
        }
    }

    /// The line above its text. `here` is the conversation that need not be named.
    pub(super) fn head(&self, here: &str) -> String {
        let mut parts = Vec::new();
        match (self.session.as_deref(), self.turn) {
            (Some(session), Some(turn)) if session == here => parts.push(format!("turn {turn}")),
            (Some(session), Some(turn)) => parts.push(format!("session {session}, turn {turn}")),
            _ if self.id.is_empty() => {}
            _ => parts.push(self.id.clone()),
        }
        parts.extend(self.source.clone());
        parts.extend(self.date.clone());
        if !self.about.is_empty() {
            parts.push(self.about.clone());
        }
        plain(&parts.join(", "))
    }

    /// Returns true when the call that goes on with the entry reads its turn alone.
    pub(super) fn resumes_in_turn(&self) -> bool {
        self.cut.as_ref().is_some_and(|cut| cut.resume(0) == self.resume)
    }

    /// Returns the text with dots where there is more.
    pub(super) fn dotted(&self) -> String {
        let before = if self.cut_before { "..." } else { "" };
        let after = if self.cut_after { "..." } else { "" };
        [before, &self.text, after].concat()
    }
}

impl Answer {
    /// One sentence and nothing else.
    pub(super) fn note(call: impl ToString, note: impl Into<String>) -> Self {
        Self { call: call.to_string(), note: note.into(), ..Self::default() }
    }

    /// Creates the answer to a call that failed.
    pub(crate) fn failed(call: impl ToString, error: &impl std::error::Error) -> Self {
        Self::note(call, format!("This can't be looked up: {error}."))
    }

    /// Writes the whole answer as plain lines for people. `here` is the conversation that need not
    /// be named.
    pub fn for_people(&self, here: &str) -> String {
        let mut text = String::new();
        for entry in &self.entries {
            text.extend(["[", &entry.head(here), "]\n"]);
            if !entry.text.is_empty() {
                text.extend([&*entry.dotted(), "\n"]);
            }
        }
        if !self.note.is_empty() {
            text.extend([&*self.note, "\n"]);
        }
        if let Some(next) = &self.next {
            text.extend(["There is more: ", next, "\n"]);
        }
        text.truncate(text.trim_end().len());
        text
    }
}

/// Writes day and minute where the machine is.
pub(super) fn date(at_ms: i64) -> String {
    local_time::format(at_ms, "%Y-%m-%d %H:%M").unwrap_or_else(|| "undated".to_owned())
}

/// A name or a call on one line, without what could end the brackets it stands in.
pub(super) fn plain(text: &str) -> String {
    let plain = |c| match c {
        '[' => '(',
        ']' => ')',
        c if is_break(c) || c.is_control() => ' ',
        c => c,
    };
    text.chars().map(plain).collect()
}

/// Whatever some reader may take for the end of a line.
pub(super) const fn is_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the shape serde asks for")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}
