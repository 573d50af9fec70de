//! An encoder with one token a byte, so that a test can read a prompt back.

use std::convert::Infallible;

use garret_core::prompt::{Content, EncodeError, Message, PromptEncoder, Role, ToolSpec};
use garret_core::token::{Token, TokenBuf};

/// Opens a message of each role; what follows are its bytes.
pub const SYSTEM: Token = Token(1_000);
/// See [`SYSTEM`].
pub const USER: Token = Token(1_001);
/// See [`SYSTEM`].
pub const ASSISTANT: Token = Token(1_002);
/// Closes a message.
pub const END: Token = Token(1_003);
/// See [`SYSTEM`].
pub const TOOL: Token = Token(1_004);

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub struct ByteEncoder;

impl PromptEncoder for ByteEncoder {
    type Error = Infallible;

    fn encode(
        &mut self,
        messages: &[Message<'_>],
        out: &mut TokenBuf<'_>,
        ends: &mut [usize],
    ) -> Result<(), EncodeError<Infallible>> {
        encode(messages, "", out, ends)
    }

    fn count(
        &mut self,
        content: &Content<'_>,
        _limit: usize,
    ) -> Result<usize, EncodeError<Infallible>> {
        Ok(content.len())
    }

    fn spell(&self, token: Token, out: &mut dyn FnMut(&[u8])) {
        match u8::try_from(token.0) {
            Ok(byte) => out(&[byte]),
            Err(_) if token == END => out(b"</>\n"),
            Err(_) => out(format!("<{}>", name(token)).as_bytes()),
        }
    }
}

/// A prompt as the text that its tokens spell.
pub fn spelled(prompt: &[Token]) -> String {
    let mut bytes = Vec::new();
    for token in prompt {
        ByteEncoder.spell(*token, &mut |piece| bytes.extend_from_slice(piece));
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The same of a model whose template tells of tools: their names stand behind the system message.
#[derive(Clone, Debug, Default)]
pub struct ToolEncoder {
    told: String,
    tools: String,
}

impl ToolEncoder {
    /// An encoder that says `told` of every tool beside its name.
    pub fn new(told: &str) -> Self {
        Self { told: told.to_owned(), tools: String::new() }
    }
}

impl PromptEncoder for ToolEncoder {
    type Error = Infallible;

    fn encode(
        &mut self,
        messages: &[Message<'_>],
        out: &mut TokenBuf<'_>,
        ends: &mut [usize],
    ) -> Result<(), EncodeError<Infallible>> {
        encode(messages, &self.tools, out, ends)
    }

    fn tell_of(&mut self, tools: &[ToolSpec<'_>]) -> bool {
        self.tools = tools.iter().map(|tool| format!(" {}{}", tool.name, self.told)).collect();
        true
    }

    fn count(
        &mut self,
        content: &Content<'_>,
        _limit: usize,
    ) -> Result<usize, EncodeError<Infallible>> {
        Ok(content.len())
    }

    fn spell(&self, token: Token, out: &mut dyn FnMut(&[u8])) {
        ByteEncoder.spell(token, out);
    }
}

fn encode(
    messages: &[Message<'_>],
    tools: &str,
    out: &mut TokenBuf<'_>,
    ends: &mut [usize],
) -> Result<(), EncodeError<Infallible>> {
    let full = |_| EncodeError::Full;
    for (i, message) in messages.iter().enumerate() {
        out.push(opener(message.role)).map_err(full)?;
        let told = if i == 0 && message.role == Role::System { tools } else { "" };
        if message.tokens.is_empty() {
            let bytes = message.content.parts().chain([told]).flat_map(str::bytes);
            out.extend(bytes.map(|byte| Token(byte.into()))).map_err(full)?;
        } else {
            out.extend(message.tokens.iter()).map_err(full)?;
        }
        out.push(END).map_err(full)?;
        if let Some(end) = ends.get_mut(i) {
            *end = out.len();
        }
    }
    out.push(ASSISTANT).map_err(full)
}

/// The messages of a prompt that [`ByteEncoder`] made: role name and text.
///
/// # Panics
/// When it is none.
pub fn read(prompt: &[Token]) -> Vec<(&'static str, String)> {
    let (last, body) = prompt.split_last().expect("a prompt has tokens");
    assert_eq!(*last, ASSISTANT, "a prompt ends where the reply begins");
    body.split_inclusive(|token| *token == END)
        .map(|message| {
            let (open, rest) = message.split_first().expect("split parts have tokens");
            let bytes = rest[..rest.len() - 1].iter();
            let bytes = bytes.map(|token| u8::try_from(token.0).expect("a byte")).collect();
            let text = String::from_utf8(bytes).expect("whole characters");
            (name(*open), text)
        })
        .collect()
}

fn opener(role: Role) -> Token {
    match role {
        Role::System => SYSTEM,
        Role::User => USER,
        Role::Tool => TOOL,
        _ => ASSISTANT,
    }
}

fn name(token: Token) -> &'static str {
    match token {
        SYSTEM => "system",
        USER => "user",
        ASSISTANT => "assistant",
        TOOL => "tool",
        other => panic!("{other:?} opens no message"),
    }
}
