//! The errors of the turn loop. All are `Send + Sync`, and say in their own words what caused them.

use std::error::Error;

use garret_core::assemble::AssembleError;
use garret_core::budget::BudgetError;
use garret_core::id::TurnSeq;
use garret_storage::{ReadError, WriteError};

use crate::prompt::error::{EncoderError, PromptError, erased};

/// The error of a turn that wasn't answered. A message that was accepted is stored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TurnError {
    /// The message is nothing but white space.
    #[error("the message is empty: say something")]
    Empty,
    /// The model can't be shown the message, so it isn't accepted.
    #[error("the message was not accepted: {0}")]
    NotShowable(PromptError),
    /// The message couldn't be made durable, so the model never saw it.
    #[error("the message was not accepted: {0}")]
    NotAccepted(WriteError),
    /// The history can't be read.
    #[error("turn {turn} is stored but its history can't be read: {reason}")]
    History {
        /// The turn.
        turn: TurnSeq,
        /// The store's error.
        reason: ReadError,
    },
    /// No prompt could be assembled.
    #[error("turn {turn} is stored but can't be put into a prompt: {reason}")]
    Prompt {
        /// The turn.
        turn: TurnSeq,
        /// The cause.
        reason: PromptError,
    },
    /// The model failed; the reply up to there is stored.
    #[error("turn {turn} is stored but the model failed: {reason}")]
    Model {
        /// The turn.
        turn: TurnSeq,
        /// The model's error.
        reason: Box<dyn Error + Send + Sync>,
    },
    /// The reply was given but couldn't be made durable.
    #[error("turn {turn}: the reply was given but could not be stored: {reason}")]
    ReplyNotStored {
        /// The turn.
        turn: TurnSeq,
        /// The store's error.
        reason: WriteError,
    },
}

/// The error of making an agent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The window can't be divided as asked.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// The system prompt doesn't fit.
    #[error(transparent)]
    Prompt(PromptError),
    /// The form of tool calls that was asked for can't be used.
    #[error(
        "the model's own form of tool calls can't be used: {0}; set tool_protocol to auto or tags"
    )]
    ToolProtocol(ToolProtocolError),
    /// The chat template fails.
    #[error("the model's chat template can't be used: {0}")]
    Template(EncoderError),
}

/// The reason for which a model isn't told of tools in the form of its own template.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolProtocolError {
    /// The template has no form that is known.
    #[error("its template has none, or none that is known")]
    Unknown,
    /// The form takes more of a small window than it is worth.
    #[error("it takes {tokens} tokens, and {most} are the most in a window under {large_window}")]
    TooLong {
        /// Tokens that the form takes in every prompt.
        tokens: u32,
        /// Tokens that it may take.
        most: u32,
        /// Tokens of a window in which it may take more.
        large_window: u32,
    },
    /// The system prompt leaves no room for the form.
    #[error("with it, the system prompt has more than the {ceiling} tokens of this window")]
    NoRoom {
        /// Tokens that a system prompt may have.
        ceiling: u32,
    },
    /// The template or the tokenizer fails.
    #[error(transparent)]
    Encoder(PromptError),
}

impl<E: Error + Send + Sync + 'static> From<AssembleError<E>> for AgentError {
    fn from(error: AssembleError<E>) -> Self {
        match erased(error) {
            AssembleError::Encoder(error) => Self::Template(error),
            other => Self::Prompt(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn crosses_threads<T: Error + Send + Sync + 'static>() {}

    /// Compiling this is the test: an error of the public face fits `anyhow` and a thread's result.
    const _: () = {
        crosses_threads::<TurnError>();
        crosses_threads::<AgentError>();
        crosses_threads::<ToolProtocolError>();
        crosses_threads::<PromptError>();
        crosses_threads::<EncoderError>();
        crosses_threads::<crate::config::ConfigError>();
        crosses_threads::<crate::companion::form::FormError>();
        crosses_threads::<crate::embed::WorkError>();
        crosses_threads::<crate::export::ExportError>();
        crosses_threads::<crate::remember::extract::KeepError>();
        crosses_threads::<crate::open::AgentOpenError>();
        crosses_threads::<crate::open::NoStore>();
        crosses_threads::<crate::tools::CallError>();
        crosses_threads::<crate::tools::ToolError>();
    };
}
