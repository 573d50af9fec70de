//! llama.cpp itself, initialised once per process.

use std::sync::{Arc, Mutex, PoisonError};

use llama_cpp_2::llama_backend::LlamaBackend;

use crate::error::LoadError;
use crate::log;

/// Proof that llama.cpp is initialised and logs to `tracing`.
///
/// It is kept for the life of the process: llama.cpp can't be initialised a second time.
#[derive(Debug)]
pub struct Backend {
    llama: LlamaBackend,
}

impl Backend {
    /// Initialises llama.cpp, or returns the backend that is there already.
    ///
    /// # Errors
    /// [`LoadError::Backend`] when something else in this process initialised llama.cpp.
    ///
    /// ```
    /// let first = garret_llm::Backend::start()?;
    /// let second = garret_llm::Backend::start()?;
    /// assert!(std::sync::Arc::ptr_eq(&first, &second));
    /// # Ok::<(), garret_llm::LoadError>(())
    /// ```
    pub fn start() -> Result<Arc<Self>, LoadError> {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(backend) = shared.as_ref() {
            return Ok(Arc::clone(backend));
        }
        log::install();
        let llama = LlamaBackend::init().map_err(|error| LoadError::Backend(error.to_string()))?;
        let backend = Arc::new(Self { llama });
        *shared = Some(Arc::clone(&backend));
        Ok(backend)
    }

    /// Returns whether this build can move layers to a GPU that is present.
    pub fn gpu(&self) -> bool {
        self.llama.supports_gpu_offload()
    }

    /// Returns the proof of the bindings themselves, which what they load asks for.
    pub fn llama(&self) -> &LlamaBackend {
        &self.llama
    }
}

static SHARED: Mutex<Option<Arc<Backend>>> = Mutex::new(None);
