//! A model file in memory: weights, vocabulary and facts, shared by every context made from it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use garret_core::token::Token;
use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::context::params::LlamaContextParams;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;
use llama_cpp_2::token::LlamaToken;

use crate::backend::Backend;
use crate::error::LoadError;
use crate::log;

/// Options for loading a model file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelOptions {
    /// Layers to keep on the GPU; 0 keeps all on the CPU. More than there are means all.
    pub gpu_layers: u32,
    /// Map the file instead of reading it: loads faster and lets the system drop clean pages.
    pub use_mmap: bool,
}

impl Default for ModelOptions {
    fn default() -> Self {
        Self { gpu_layers: 0, use_mmap: true }
    }
}

/// A loaded model. Contexts borrow it, threads share it.
#[derive(Debug)]
pub struct Model {
    // Dropped before the backend it needs.
    llama: LlamaModel,
    facts: Facts,
    building: Mutex<()>,
    backend: Arc<Backend>,
}

/// Sliding-window attention of a model: most layers see only the latest tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlidingWindow {
    /// Tokens such a layer sees.
    pub tokens: u32,
}

#[derive(Clone, Debug)]
struct Facts {
    n_ctx_train: u32,
    n_vocab: i32,
    description: String,
    swa: Option<SlidingWindow>,
    recurrent: bool,
}

impl Model {
    /// Loads the GGUF file at `path`.
    ///
    /// This takes the file as it is: that it is a chat model or an embedder, unharmed and within
    /// the memory there is, must be checked before.
    ///
    /// # Errors
    /// When nothing is there, it isn't a file, or llama.cpp refuses it; the message carries
    /// llama.cpp's own reason.
    pub fn load(
        backend: Arc<Backend>,
        path: &Path,
        options: ModelOptions,
    ) -> Result<Arc<Self>, LoadError> {
        check_path(path)?;
        let params = LlamaModelParams::default()
            .with_n_gpu_layers(options.gpu_layers)
            .with_use_mmap(options.use_mmap);
        let unreadable =
            |reason: String| LoadError::Unreadable { path: path.to_path_buf(), reason };
        let (loaded, reason) = log::with_reason(|| {
            catch_unwind(AssertUnwindSafe(|| {
                let llama = LlamaModel::load_from_file(backend.llama(), path, &params).ok()?;
                let facts = Facts::read(&llama);
                Some((llama, facts))
            }))
        });
        let (llama, facts) = loaded
            .map_err(|_| unreadable("its metadata makes no sense".into()))?
            .ok_or_else(|| unreadable(reason))?;
        if facts.n_vocab < 1 {
            return Err(unreadable("it has no vocabulary".into()));
        }
        Ok(Arc::new(Self { llama, facts, building: Mutex::new(()), backend }))
    }

    /// Returns the model as llama-cpp-2 sees it.
    pub fn llama(&self) -> &LlamaModel {
        &self.llama
    }

    /// Returns the tokens of the longest window that the model was trained for.
    pub fn n_ctx_train(&self) -> u32 {
        self.facts.n_ctx_train
    }

    /// Returns the number of tokens in the vocabulary; ids run from 0 to one less.
    pub fn n_vocab(&self) -> i32 {
        self.facts.n_vocab
    }

    /// Returns name, architecture and number of parameters, for people.
    pub fn description(&self) -> &str {
        &self.facts.description
    }

    /// Returns the number of weights.
    pub fn parameters(&self) -> u64 {
        self.llama.n_params()
    }

    /// Returns the sliding window, when the file names one.
    pub fn swa(&self) -> Option<SlidingWindow> {
        self.facts.swa
    }

    /// Returns whether layers, all or some, keep a running state in place of keys and values. Such
    /// a state can't be taken back, so a changed prompt is decoded from its start, and a decode
    /// isn't interrupted.
    pub fn recurrent(&self) -> bool {
        self.facts.recurrent
    }

    /// Returns whether the vocabulary has this id.
    pub fn has_token(&self, token: Token) -> bool {
        (0..self.facts.n_vocab).contains(&token.0)
    }

    /// The bytes `token` stands for, perhaps part of a character; empty for a special token and
    /// for an id the vocabulary doesn't have.
    pub fn piece(&self, token: Token) -> Vec<u8> {
        if !self.has_token(token) {
            return Vec::new();
        }
        self.llama.vocab().token_to_piece(LlamaToken(token.0), false, None)
    }

    /// Returns whether the model ends its turn with `token`.
    pub fn is_end(&self, token: Token) -> bool {
        self.has_token(token) && self.llama.vocab().is_eog(LlamaToken(token.0))
    }

    /// Returns whether `token` is a control token, which stands for no text.
    pub(crate) fn is_control(&self, token: LlamaToken) -> bool {
        self.has_token(Token(token.0)) && self.llama.vocab().is_control(token)
    }

    /// A value of the file's metadata as text.
    pub(crate) fn metadata(&self, key: &str) -> Option<String> {
        self.llama.meta_val_str(key).ok()
    }

    /// `general.architecture`, the prefix of the architecture's own keys.
    pub(crate) fn architecture(&self) -> String {
        self.metadata("general.architecture").unwrap_or_default()
    }

    /// Makes a context; at most one at a time, since llama.cpp writes to the model meanwhile.
    pub(crate) fn new_context(
        &self,
        n_ctx: u32,
        params: LlamaContextParams,
    ) -> Result<LlamaContext<'_>, LoadError> {
        let _alone = self.building.lock().unwrap_or_else(PoisonError::into_inner);
        let (context, reason) =
            log::with_reason(|| self.llama.new_context(self.backend.llama(), params));
        context.map_err(|_| LoadError::Context { n_ctx, reason })
    }
}

impl Facts {
    fn read(llama: &LlamaModel) -> Self {
        let text = |key: &str| llama.meta_val_str(key).ok();
        let architecture = text("general.architecture").unwrap_or_default();
        let window = text(&format!("{architecture}.attention.sliding_window"))
            .and_then(|value| value.parse().ok())
            .filter(|tokens| *tokens > 0);
        let name = text("general.name").unwrap_or_else(|| "unnamed".into());
        let millions = llama.n_params().div_ceil(1_000_000);
        Self {
            n_ctx_train: llama.n_ctx_train(),
            n_vocab: llama.n_vocab(),
            description: format!("{name} ({architecture}, {millions} M parameters)"),
            swa: window.map(|tokens| SlidingWindow { tokens }),
            recurrent: llama.is_recurrent() || llama.is_hybrid(),
        }
    }
}

/// Refuses what llama.cpp would only assert on.
fn check_path(path: &Path) -> Result<(), LoadError> {
    let owned = || path.to_path_buf();
    match path.metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(LoadError::Missing { path: owned() });
        }
        Err(error) => {
            return Err(LoadError::Unreadable { path: owned(), reason: error.to_string() });
        }
        Ok(found) if !found.is_file() => return Err(LoadError::NotAFile { path: owned() }),
        Ok(_) => {}
    }
    match path.to_str() {
        Some(text) if !text.contains('\0') => Ok(()),
        _ => Err(LoadError::PathEncoding { path: owned() }),
    }
}
