//! The tool protocol: how a model is told of its tools, in its instructions or in the form of its own
//! template.

use std::fmt;
use std::sync::Arc;

use garret_core::budget::Budget;
use garret_core::prompt::{Content, EncodeError, Message, PromptEncoder, Role};
use garret_core::token::{Token, TokenBuf};

use super::Options;
use super::error::{AgentError, ToolProtocolError};
use crate::prompt::error::erased;
use crate::tools::SPECS;

/// The form in which a model is told of tools and calls them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolProtocol {
    /// The form of the model's own template where that is known and short enough, else tags.
    #[default]
    Auto,
    /// Tags: `<<garret-tool: lookup bees>>`.
    Tags,
    /// The form of the model's own template: `<tool_call>` around JSON.
    Native,
}

impl fmt::Display for ToolProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Tags => "tags",
            Self::Native => "native",
        })
    }
}

/// Puts the use of tools behind the system prompt, where there are any, or has the encoder tell of
/// them; with the tokens that the latter takes.
pub(super) fn choose<E: PromptEncoder>(
    options: Options,
    encoder: &mut E,
    budget: &Budget,
) -> Result<(Options, Option<u32>), AgentError> {
    if !options.tools {
        return Ok((options, None));
    }
    let native = match options.tool_protocol {
        ToolProtocol::Tags => None,
        wanted => match tell(encoder, budget, &options.system_prompt) {
            Ok(tokens) => Some(tokens),
            Err(reason) if wanted == ToolProtocol::Native => {
                return Err(AgentError::ToolProtocol(reason));
            }
            Err(reason) => {
                tracing::debug!(%reason, "the model calls tools by tags");
                None
            }
        },
    };
    let told = if native.is_some() { WHEN_TO_CALL } else { PROTOCOL };
    let system_prompt = with_tools(&options.system_prompt, told);
    Ok((Options { system_prompt, ..options }, native))
}

/// Has `encoder` tell of the tools beside `system_prompt`; returns the tokens that this takes in every
/// prompt, or why it doesn't.
fn tell<E: PromptEncoder>(
    encoder: &mut E,
    budget: &Budget,
    system_prompt: &str,
) -> Result<u32, ToolProtocolError> {
    let n_ctx = budget.n_ctx;
    let instructions = with_tools(system_prompt, WHEN_TO_CALL);
    let mut count = |text: &str| {
        let tokens = encoder.count(&Content::from(text), n_ctx as usize);
        tokens.map(|tokens| u32::try_from(tokens).unwrap_or(u32::MAX)).map_err(unencoded)
    };
    let words = count(WHEN_TO_CALL)?;
    let instructions = count(&instructions)?;
    let before = length(encoder, n_ctx)?;
    if !encoder.set_tools(&SPECS) {
        return Err(ToolProtocolError::Unknown);
    }
    let after = length(encoder, n_ctx)?;
    let tools = u32::try_from(after.saturating_sub(before)).unwrap_or(u32::MAX);
    let all = tools.saturating_add(words);
    if all > MAX_TOKENS && n_ctx < LARGE_WINDOW {
        encoder.set_tools(&[]);
        return Err(ToolProtocolError::TooLong {
            tokens: all,
            most: MAX_TOKENS,
            large_window: LARGE_WINDOW,
        });
    }
    let ceiling = budget.system_text();
    if tools.saturating_add(instructions) > ceiling {
        encoder.set_tools(&[]);
        return Err(ToolProtocolError::NoRoom { ceiling });
    }
    Ok(tools)
}

fn unencoded<E: std::error::Error + Send + Sync + 'static>(
    error: EncodeError<E>,
) -> ToolProtocolError {
    ToolProtocolError::Encoder(erased(error))
}

/// Returns the tokens of the shortest prompt.
fn length<E: PromptEncoder>(encoder: &mut E, n_ctx: u32) -> Result<usize, ToolProtocolError> {
    let mut tokens = vec![Token(0); n_ctx as usize];
    let mut run = TokenBuf::new(&mut tokens);
    let messages = [Message::new(Role::System, "x"), Message::new(Role::User, "x")];
    encoder.encode(&messages, &mut run, &mut []).map_err(unencoded)?;
    Ok(run.len())
}

/// Returns the instructions of a model that has tools: `system_prompt`, then how they are used. Small
/// models hold on to the end: that most messages need no tool.
fn with_tools(system_prompt: &str, told: &str) -> Arc<str> {
    match system_prompt {
        "" => told.into(),
        text => [text, "\n\n", told].concat().into(),
    }
}

/// Most tokens that telling of tools takes in a window under [`LARGE_WINDOW`].
const MAX_TOKENS: u32 = 450;
/// Tokens of a window in which that doesn't matter.
const LARGE_WINDOW: u32 = 32_768;

/// The instruction when to use tools, for a model that is told of them by its template.
const WHEN_TO_CALL: &str = "\
Everything said is stored. Only when the user asks for something from earlier that is not shown here, \
call a function. In all other cases just answer.";

/// The instruction how to use tools. Small models follow the examples more than the words, so each verb has one.
const PROTOCOL: &str = "\
Everything said is stored. Only when the user asks for something from earlier that is not shown here, \
reply with one of these tags alone, and the result comes in the next message:
<<garret-tool: lookup WORDS>> what was said or is known about something
<<garret-tool: grep WORDS>> where exactly these words were said
<<garret-tool: expand turn 12>> all words of a turn; expand s3: the turns under summary s3
<<garret-tool: timeline 5>> the newest turns
<<garret-tool: entity NAME>> facts about a person or thing
<<garret-tool: pinned>> pinned facts
In all other cases just answer.";
