//! What a model is told of the tools it has: in its instructions, or in the form of its own template.

use std::fmt;
use std::sync::Arc;

use garret_core::budget::Budget;
use garret_core::prompt::{Content, Message, PromptEncoder, Role};
use garret_core::token::{Token, TokenBuf};

use super::{AgentError, Options};
use crate::tools::SPECS;

/// How a model is told of tools and calls them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolProtocol {
    /// In the form of its own template where that is known and short enough, else by tags.
    #[default]
    Auto,
    /// By tags: `<<garret-tool: lookup bees>>`.
    Tags,
    /// In the form of its own template: `<tool_call>` around JSON.
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
) -> Result<(Options, Option<u32>), AgentError>
where
    E::Error: 'static,
{
    if !options.tools {
        return Ok((options, None));
    }
    let native = match options.tool_protocol {
        ToolProtocol::Tags => Err(String::new()),
        _ => tell(encoder, budget, &options.system_prompt),
    };
    let (told, tokens) = match native {
        Ok(tokens) => (WHEN_TO_CALL, Some(tokens)),
        Err(reason) if options.tool_protocol == ToolProtocol::Native => {
            return Err(AgentError::ToolProtocol { reason });
        }
        Err(reason) => {
            tracing::debug!(reason, "the model calls tools by tags");
            (PROTOCOL, None)
        }
    };
    let system_prompt = with_tools(&options.system_prompt, told);
    Ok((Options { system_prompt, ..options }, tokens))
}

/// Has `encoder` tell of the tools beside `system_prompt`; what that takes in every prompt, or why it
/// doesn't.
fn tell<E: PromptEncoder>(
    encoder: &mut E,
    budget: &Budget,
    system_prompt: &str,
) -> Result<u32, String> {
    let n_ctx = budget.n_ctx;
    let instructions = with_tools(system_prompt, WHEN_TO_CALL);
    let mut count = |text: &str| {
        let tokens = encoder.count(&Content::from(text), n_ctx as usize);
        tokens.map(|tokens| u32::try_from(tokens).unwrap_or(u32::MAX)).map_err(|e| e.to_string())
    };
    let (words, instructions) = (count(WHEN_TO_CALL)?, count(&instructions)?);
    let before = length(encoder, n_ctx)?;
    if !encoder.set_tools(&SPECS) {
        return Err("its template has none, or none that is known".into());
    }
    let after = length(encoder, n_ctx)?;
    let tools = u32::try_from(after.saturating_sub(before)).unwrap_or(u32::MAX);
    let all = tools.saturating_add(words);
    if all > MOST_TOKENS && n_ctx < LARGE_WINDOW {
        encoder.set_tools(&[]);
        return Err(format!(
            "it takes {all} tokens, and {MOST_TOKENS} are the most in a window under {LARGE_WINDOW}"
        ));
    }
    let ceiling = budget.system_text();
    if tools.saturating_add(instructions) > ceiling {
        encoder.set_tools(&[]);
        return Err(format!(
            "with it, the system prompt has more than the {ceiling} tokens of this window"
        ));
    }
    Ok(tools)
}

/// Tokens of the shortest prompt that tells of tools.
fn length<E: PromptEncoder>(encoder: &mut E, n_ctx: u32) -> Result<usize, String> {
    let mut tokens = vec![Token(0); n_ctx as usize];
    let mut run = TokenBuf::new(&mut tokens);
    let messages = [Message::new(Role::System, "x"), Message::new(Role::User, "x")];
    encoder.encode(&messages, &mut run, &mut []).map_err(|error| error.to_string())?;
    Ok(run.len())
}

/// The instructions of a model that has tools: `system_prompt`, then how they are used. What comes
/// last is what small models hold on to: that most messages need no tool.
fn with_tools(system_prompt: &str, told: &str) -> Arc<str> {
    match system_prompt {
        "" => told.into(),
        text => [text, "\n\n", told].concat().into(),
    }
}

/// Most tokens that telling of tools takes in a window under [`LARGE_WINDOW`].
const MOST_TOKENS: u32 = 450;
/// Tokens of a window in which that doesn't matter.
const LARGE_WINDOW: u32 = 32_768;

/// When tools are used, for a model that is told of them by its template.
const WHEN_TO_CALL: &str = "\
Everything said is stored. Only when the user asks for something from earlier that is not shown here, \
call a function. In all other cases just answer.";

/// How tools are used. Small models follow the examples more than the words, so each verb has one.
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
