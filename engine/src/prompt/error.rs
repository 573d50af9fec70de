//! The errors of making a prompt, without the type of the model's own error.

use std::error::Error;

use garret_core::assemble::AssembleError;

/// The error of assembling a prompt, or of counting a text.
pub type PromptError = AssembleError<EncoderError>;

/// The error of a model's template or tokenizer.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct EncoderError(Box<dyn Error + Send + Sync>);

/// Returns `error` without the type of the model's own error.
pub(crate) fn erased<E: Error + Send + Sync + 'static>(
    error: impl Into<AssembleError<E>>,
) -> PromptError {
    error.into().map_encoder(|error| EncoderError(Box::new(error)))
}
