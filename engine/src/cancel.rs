//! The request to end a reply early.

use std::convert::Infallible;

use smol::channel::{Receiver, Sender, bounded};

/// A flag that ends the reply being generated: once set it stays set, for all its clones.
///
/// ```
/// use garret::Cancel;
///
/// let cancel = Cancel::new();
/// let held_by_a_signal_handler = cancel.clone();
/// assert!(!cancel.is_cancelled());
/// held_by_a_signal_handler.cancel();
/// assert!(cancel.is_cancelled());
/// ```
#[derive(Clone, Debug)]
pub struct Cancel {
    // A channel that carries nothing: closing it wakes all that wait. A clone holds both of its ends,
    // so that it isn't closed by a clone that is dropped.
    open: Receiver<Infallible>,
    close: Sender<Infallible>,
}

impl Cancel {
    /// Creates a flag that isn't set.
    #[must_use]
    pub fn new() -> Self {
        let (close, open) = bounded(1);
        Self { open, close }
    }

    /// Sets the flag.
    pub fn cancel(&self) {
        self.close.close();
    }

    /// Returns whether the flag is set.
    pub fn is_cancelled(&self) -> bool {
        self.close.is_closed()
    }

    /// Waits until the flag is set.
    pub(crate) async fn cancelled(&self) {
        // Nothing is ever sent, so this ends when the channel is closed.
        let _ = self.open.recv().await;
    }
}

impl Default for Cancel {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use smol::future::{or, pending};

    use super::*;

    #[test]
    fn a_clone_that_is_dropped_cancels_nothing() {
        let cancel = Cancel::new();
        drop(cancel.clone());
        assert!(!cancel.is_cancelled());
    }

    #[test]
    fn whoever_waits_is_woken_whichever_clone_is_set() {
        let cancel = Cancel::new();
        let waiting = [cancel.clone(), cancel.clone()];
        std::thread::scope(|scope| {
            for waiting in &waiting {
                scope.spawn(|| smol::block_on(or(waiting.cancelled(), pending())));
            }
            cancel.clone().cancel();
        });
        assert!(waiting.iter().all(Cancel::is_cancelled));
    }
}
