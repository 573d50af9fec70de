//! The window of a model: the configured one, within what the model was trained for.

use garret_core::budget::Budget;

use super::error::AgentOpenError;
use crate::config::{Config, Origin};

/// Returns the window for a model that was trained for `trained` tokens: the configured one, or the
/// device's but no more than `trained`.
///
/// # Errors
/// [`AgentOpenError::ModelWindow`] for a model that no window suits, [`AgentOpenError::Window`] for
/// a window that doesn't suit the model.
pub fn window(config: &Config, trained: u32) -> Result<u32, AgentOpenError> {
    let trained = usable_window(trained)?;
    let wanted = config.window.value.unwrap_or(trained);
    let chosen = !matches!(config.window.origin, Origin::Device(_));
    if chosen && wanted > trained {
        return Err(AgentOpenError::Window { wanted, trained });
    }
    Ok(wanted.min(trained))
}

/// Returns `trained`, the window that a model was trained for, if one can be used at all.
pub(super) const fn usable_window(trained: u32) -> Result<u32, AgentOpenError> {
    if trained < Budget::MIN_WINDOW {
        return Err(AgentOpenError::ModelWindow { trained });
    }
    Ok(trained)
}
