//! Prompts of one token a byte as texts, and an encoder of that kind that tells of tools.

use std::convert::Infallible;

use garret_core::prompt::{Content, EncodeError, Message, PromptEncoder, ToolSpec};
pub use garret_core::testing::{ASSISTANT, ByteEncoder, END, SYSTEM, TOOL, USER};
use garret_core::testing::{encode, opened};
use garret_core::token::{Token, TokenBuf};

/// A prompt as the text that its tokens spell.
pub fn detokenized(prompt: &[Token]) -> String {
    let mut bytes = Vec::new();
    for token in prompt {
        ByteEncoder.detokenize(*token, &mut |piece| bytes.extend_from_slice(piece));
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

    fn set_tools(&mut self, tools: &[ToolSpec<'_>]) -> bool {
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

    fn detokenize(&self, token: Token, out: &mut dyn FnMut(&[u8])) {
        ByteEncoder.detokenize(token, out);
    }
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
            assert_ne!(opened(*open), "", "{open:?} opens a message");
            (opened(*open), text)
        })
        .collect()
}
