//! An encoder with one token a byte, so that a test can tell the length of a prompt beforehand and
//! read the prompt back.
//!
//! Hidden from the documentation, and always compiled: it serves the tests of every crate, those
//! without an allocator among them, and a program that doesn't name it doesn't hold it.

use core::convert::Infallible;

use crate::prompt::{Content, EncodeError, Message, PromptEncoder, Role};
use crate::token::{Token, TokenBuf};

/// Opens a message of the system; its bytes follow.
pub const SYSTEM: Token = Token(1_000);
/// Opens a message of the user; its bytes follow.
pub const USER: Token = Token(1_001);
/// Opens a reply; its bytes follow, or nothing at the end of a prompt.
pub const ASSISTANT: Token = Token(1_002);
/// Closes a message.
pub const END: Token = Token(1_003);
/// Opens the answer of a tool; its bytes follow.
pub const TOOL: Token = Token(1_004);

/// The encoder: a token that opens, one for each byte, a token that closes.
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

    fn detokenize(&self, token: Token, out: &mut dyn FnMut(&[u8])) {
        match u8::try_from(token.0) {
            Ok(byte) => out(&[byte]),
            Err(_) if token == END => out(b"</>\n"),
            Err(_) => [b"<", opened(token).as_bytes(), b">"].into_iter().for_each(out),
        }
    }
}

/// Appends the run of `messages` to `out`, as [`ByteEncoder`] does, with the bytes of `tools` at
/// the end of a system message that comes first.
///
/// # Errors
/// [`EncodeError::Full`] when the run doesn't fit into `out`.
pub fn encode(
    messages: &[Message<'_>],
    tools: &str,
    out: &mut TokenBuf<'_>,
    ends: &mut [usize],
) -> Result<(), EncodeError<Infallible>> {
    for (i, message) in messages.iter().enumerate() {
        out.push(opener(message.role)).map_err(|_| EncodeError::Full)?;
        let tools = if i == 0 && message.role == Role::System { tools } else { "" };
        if message.tokens.is_empty() {
            let bytes = message.content.parts().chain([tools]).flat_map(str::bytes);
            out.extend(bytes.map(|byte| Token(byte.into()))).map_err(|_| EncodeError::Full)?;
        } else {
            out.extend(message.tokens.iter()).map_err(|_| EncodeError::Full)?;
        }
        out.push(END).map_err(|_| EncodeError::Full)?;
        if let Some(end) = ends.get_mut(i) {
            *end = out.len();
        }
    }
    out.push(ASSISTANT).map_err(|_| EncodeError::Full)
}

/// Returns the name of the role whose messages `token` opens; empty for a token that opens none.
pub fn opened(token: Token) -> &'static str {
    let roles = [Role::System, Role::User, Role::Assistant, Role::Tool];
    roles.into_iter().find(|role| opener(*role) == token).map_or("", Role::as_str)
}

const fn opener(role: Role) -> Token {
    match role {
        Role::System => SYSTEM,
        Role::User => USER,
        Role::Assistant => ASSISTANT,
        Role::Tool => TOOL,
    }
}
