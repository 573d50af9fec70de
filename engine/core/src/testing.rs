//! An encoder for core's own tests: one token a byte, `<role>` and `</role>` as single tokens.

use core::convert::Infallible;

use crate::prompt::{Content, EncodeError, Message, PromptEncoder};
use crate::token::{Token, TokenBuf};

pub(crate) struct ByteEncoder;

pub(crate) const OPEN: i32 = 1_000;
pub(crate) const CLOSE: i32 = 1_001;
pub(crate) const BEGIN: i32 = 1_002;

impl PromptEncoder for ByteEncoder {
    type Error = Infallible;

    fn encode(
        &mut self,
        messages: &[Message<'_>],
        out: &mut TokenBuf<'_>,
        ends: &mut [usize],
    ) -> Result<(), EncodeError<Infallible>> {
        let mut push = |id| out.push(Token(id)).map_err(|_| EncodeError::Full);
        push(BEGIN)?;
        let mut len = 1;
        for (i, message) in messages.iter().enumerate() {
            push(OPEN)?;
            push(message.role as i32 + 2_000)?;
            len += 3;
            for byte in message.content.parts().flat_map(str::bytes) {
                push(i32::from(byte))?;
                len += 1;
            }
            push(CLOSE)?;
            if let Some(end) = ends.get_mut(i) {
                *end = len;
            }
        }
        push(OPEN)
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
            Err(_) => out(b"<>"),
        }
    }
}
