//! Checks of a model file before it is loaded, so that a wrong one gets a sentence, not a crash.
//!
//! llama.cpp loads an embedding model as a chat model and answers with zeros, ranks with a model
//! that has no head for it, and says little about a file that isn't a model. These checks read the
//! header only, which takes milliseconds.
//!
//! ```no_run
//! let info = garret_llm::check::check_chat("model.gguf".as_ref())?;
//! println!("{}: up to {} tokens", info.architecture, info.context_length);
//! # Ok::<(), garret_llm::check::CheckError>(())
//! ```
//!
//! Limits: weights that were changed in place are not noticed here; compare [`sha256_file`] with
//! the publisher's figure. Whether a chat template renders is for
//! [`ChatTemplate::compile`](crate::template::ChatTemplate::compile) to say.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::gguf::{Gguf, GgufError};

mod figures;

/// Facts about a usable chat model, as its file says.
#[derive(Clone, Debug)]
pub struct ChatModelInfo {
    /// Header of the file, for [`MemoryEstimate`](crate::estimate::MemoryEstimate).
    pub gguf: Gguf,
    /// Architecture, for example `llama`.
    pub architecture: String,
    /// Name of the model, or else of the file.
    pub name: String,
    /// Tokens it was trained for.
    pub context_length: u32,
    /// Entries of its vocabulary.
    pub vocabulary_size: u64,
    /// Chat template of the model, in Jinja.
    pub chat_template: String,
}

/// Facts about a usable embedding model, as its file says.
#[derive(Clone, Debug)]
pub struct EmbedderInfo {
    /// Header of the file.
    pub gguf: Gguf,
    /// Architecture, for example `bert`.
    pub architecture: String,
    /// Name of the model, or else of the file.
    pub name: String,
    /// Tokens of the longest text it reads at once.
    pub context_length: u32,
    /// Numbers in one vector.
    pub dimensions: u32,
    /// Pooling of the model, if it names one.
    pub pooling: Option<Pooling>,
}

/// Pooling: how the vectors of tokens become the vector of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pooling {
    /// Their average.
    Mean,
    /// The first token's.
    First,
    /// The last token's.
    Last,
}

/// Facts about a usable reranker, as its file says.
#[derive(Clone, Debug)]
pub struct RerankerInfo {
    /// Header of the file.
    pub gguf: Gguf,
    /// Architecture, for example `bert`.
    pub architecture: String,
    /// Name of the model, or else of the file.
    pub name: String,
    /// Tokens of the longest pair it reads at once.
    pub context_length: u32,
}

/// Reason why a file can't be used as asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// No such file.
    #[error("{}: no such file; check the path or fetch the model first", path.display())]
    Missing {
        /// The path given.
        path: PathBuf,
    },
    /// A directory.
    #[error("{}: is a directory; give the path of the .gguf file in it", path.display())]
    Directory {
        /// The path given.
        path: PathBuf,
    },
    /// A file that can't be read as GGUF: another one, a truncated or a damaged one.
    #[error(transparent)]
    Gguf(#[from] GgufError),
    /// A file with a vocabulary and no weights.
    #[error("{}: holds a vocabulary without weights; get the full model", path.display())]
    VocabularyOnly {
        /// The file.
        path: PathBuf,
    },
    /// A part of a model in several files.
    #[error(
        "{}: is one of {parts} parts; join them first with llama.cpp's `llama-gguf-split --merge`",
        path.display()
    )]
    Split {
        /// The file.
        path: PathBuf,
        /// Number of parts.
        parts: u32,
    },
    /// A file that is no language model: a projector, an adapter, an importance matrix, a draft
    /// head.
    #[error("{}: is {what}, not a language model; give the model it belongs to", path.display())]
    NotAModel {
        /// The file.
        path: PathBuf,
        /// Kind of the file.
        what: &'static str,
    },
    /// A file that names no architecture, or lacks a figure that every model of its kind has.
    #[error("{}: its header lacks `{key}`; convert or download the model again", path.display())]
    Lacks {
        /// The file.
        path: PathBuf,
        /// The key.
        key: String,
    },
    /// A file with a figure that llama.cpp doesn't take, and for which it would end the process.
    #[error("{}: {what}, which llama.cpp can't run; get another file of the model", path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// Figure that is wrong.
        what: String,
    },
    /// A model whose vocabulary can't spell every text.
    #[error(
        "{}: its vocabulary has no token for the byte {byte:#04x}; convert the model again",
        path.display()
    )]
    ByteMissing {
        /// The file.
        path: PathBuf,
        /// The first byte without a token.
        byte: u8,
    },
    /// An embedding model was given for chat.
    #[error(
        "{}: is an embedding model ({architecture}); give a chat model here and this one as the \
         embedder",
        path.display()
    )]
    EmbedderAsChat {
        /// The file.
        path: PathBuf,
        /// Architecture of the model.
        architecture: String,
    },
    /// A chat model was given as an embedder.
    #[error(
        "{}: is not an embedding model ({architecture} without pooling); give one such as \
         all-MiniLM-L6-v2",
        path.display()
    )]
    ChatAsEmbedder {
        /// The file.
        path: PathBuf,
        /// Architecture of the model.
        architecture: String,
    },
    /// A model that ranks documents was given.
    #[error(
        "{}: is a ranking model, good for neither chat nor embedding; give it as the reranker",
        path.display()
    )]
    Ranker {
        /// The file.
        path: PathBuf,
    },
    /// A model was given as a reranker that isn't one, or can't be used as one here.
    #[error(
        "{}: can't rank texts here ({reason}); give a cross-encoder such as bge-reranker-v2-m3",
        path.display()
    )]
    NotAReranker {
        /// The file.
        path: PathBuf,
        /// Property that the file lacks, or has too much of.
        reason: String,
    },
    /// A model whose architecture doesn't generate text from left to right.
    #[error("{}: {architecture} models can't chat here; give a decoder-only model", path.display())]
    NotADecoder {
        /// The file.
        path: PathBuf,
        /// Architecture of the model.
        architecture: String,
    },
    /// A model without a chat template.
    #[error(
        "{}: has no chat template, so it is a base model; give an instruction-tuned one",
        path.display()
    )]
    NoChatTemplate {
        /// The file.
        path: PathBuf,
    },
}

/// Checks that `path` is a chat model that can be loaded.
///
/// # Errors
/// See [`CheckError`].
pub fn check_chat(path: &Path) -> Result<ChatModelInfo, CheckError> {
    let gguf = open_model(path)?;
    let architecture = architecture(&gguf)?.to_owned();
    let path = path.to_owned();
    if NOT_DECODERS.contains(&architecture.as_str()) {
        return Err(CheckError::NotADecoder { path, architecture });
    }
    match gguf.pooling_type() {
        Some(RANKING) => return Err(CheckError::Ranker { path }),
        pooling if pooling.is_some_and(is_pooled) || is_encoder(&architecture) => {
            return Err(CheckError::EmbedderAsChat { path, architecture });
        }
        _ => {}
    }
    let Some(chat_template) = gguf.chat_template().map(str::to_owned) else {
        return Err(CheckError::NoChatTemplate { path });
    };
    let context_length = required(&gguf, "context_length", Gguf::context_length)?;
    required(&gguf, "block_count", Gguf::block_count)?;
    required(&gguf, "embedding_length", Gguf::embedding_length)?;
    let vocabulary_size =
        gguf.vocabulary_size().ok_or_else(|| lacks(&gguf, "tokenizer.ggml.tokens"))?;
    let name = display_name(&gguf);
    Ok(ChatModelInfo { architecture, name, context_length, vocabulary_size, chat_template, gguf })
}

/// Checks that `path` is an embedding model that can be loaded.
///
/// # Errors
/// See [`CheckError`].
pub fn check_embedder(path: &Path) -> Result<EmbedderInfo, CheckError> {
    let gguf = open_model(path)?;
    let architecture = architecture(&gguf)?.to_owned();
    let pooling_type = gguf.pooling_type();
    if pooling_type == Some(RANKING) {
        return Err(CheckError::Ranker { path: path.to_owned() });
    }
    if !pooling_type.is_some_and(is_pooled) && !is_encoder(&architecture) {
        return Err(CheckError::ChatAsEmbedder { path: path.to_owned(), architecture });
    }
    Ok(EmbedderInfo {
        name: display_name(&gguf),
        context_length: required(&gguf, "context_length", Gguf::context_length)?,
        dimensions: match gguf.arch_u32("embedding_length_out") {
            Some(width) => width,
            None => required(&gguf, "embedding_length", Gguf::embedding_length)?,
        },
        pooling: pooling_type.and_then(pooling_of),
        architecture,
        gguf,
    })
}

/// Checks that `path` is a model that ranks texts, with a head that gives one number for a pair.
///
/// # Errors
/// See [`CheckError`].
pub fn check_reranker(path: &Path) -> Result<RerankerInfo, CheckError> {
    let gguf = open_model(path)?;
    let architecture = architecture(&gguf)?.to_owned();
    let not_one = |reason: String| CheckError::NotAReranker { path: path.to_owned(), reason };
    if !gguf.has_head() {
        return Err(not_one(format!("{architecture} without a head that ranks")));
    }
    match gguf.head_outputs() {
        1 => {}
        outputs => return Err(not_one(format!("its head gives {outputs} numbers, not one"))),
    }
    if gguf.str(RERANK_PROMPT).is_some() {
        return Err(not_one("it wants a prompt of its own around query and text".to_owned()));
    }
    Ok(RerankerInfo {
        name: display_name(&gguf),
        context_length: required(&gguf, "context_length", Gguf::context_length)?,
        architecture,
        gguf,
    })
}

/// SHA-256 of the file at `path`. `progress` is called with the bytes done and the bytes in all,
/// about once per 4 MiB, and once at the end.
///
/// The hash is the fingerprint of a model: flipped weights load without complaint and answer with
/// nonsense, so nothing less than the whole file tells two models apart.
///
/// # Errors
/// When the file can't be read.
pub fn sha256_file(path: &Path, mut progress: impl FnMut(u64, u64)) -> io::Result<[u8; 32]> {
    let mut file = File::open(path)?;
    let total = file.metadata()?.len();
    let mut buffer = vec![0; HASH_BUFFER_BYTES];
    let mut hasher = Sha256::new();
    let mut done = 0;
    loop {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(len) => {
                hasher.update(buffer.get(..len).unwrap_or_default());
                done += len as u64;
                progress(done, total.max(done));
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    progress(done, done);
    Ok(hasher.finalize().into())
}

/// Opens a file and checks what chat models and embedders have in common.
fn open_model(path: &Path) -> Result<Gguf, CheckError> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(CheckError::Missing { path: path.to_owned() });
        }
        Ok(meta) if meta.is_dir() => {
            return Err(CheckError::Directory { path: path.to_owned() });
        }
        _ => {}
    }
    let gguf = Gguf::open(path)?;
    match gguf.u32("split.count") {
        Some(parts) if parts > 1 => {
            return Err(CheckError::Split { path: path.to_owned(), parts });
        }
        _ => {}
    }
    if let Some(what) = other_kind(&gguf) {
        return Err(CheckError::NotAModel { path: path.to_owned(), what });
    }
    if gguf.tensor_count() == 0 || !gguf.has_token_embedding() {
        return Err(CheckError::VocabularyOnly { path: path.to_owned() });
    }
    if let Some(what) = figures::unsupported(&gguf) {
        return Err(CheckError::Unsupported { path: path.to_owned(), what });
    }
    match gguf.byte_without_token() {
        Some(byte) if gguf.str(TOKENIZER).is_some_and(|name| BYTE_TOKENIZERS.contains(&name)) => {
            Err(CheckError::ByteMissing { path: path.to_owned(), byte })
        }
        _ => Ok(gguf),
    }
}

/// Returns the kind of a GGUF file that belongs to a model without being one.
fn other_kind(gguf: &Gguf) -> Option<&'static str> {
    match (gguf.str("general.type"), gguf.architecture()) {
        (Some("mmproj"), _) | (_, Some("clip")) => Some("an image or audio projector"),
        (Some("adapter"), _) => Some("an adapter (LoRA or control vector)"),
        (Some("imatrix"), _) => Some("an importance matrix"),
        (_, Some("eagle3" | "dflash" | "gemma4-assistant")) => Some("a draft head"),
        _ => None,
    }
}

fn architecture(gguf: &Gguf) -> Result<&str, CheckError> {
    gguf.architecture().ok_or_else(|| lacks(gguf, "general.architecture"))
}

fn required(gguf: &Gguf, key: &str, get: impl Fn(&Gguf) -> Option<u32>) -> Result<u32, CheckError> {
    get(gguf)
        .filter(|value| *value > 0)
        .ok_or_else(|| lacks(gguf, &format!("{}.{key}", gguf.architecture().unwrap_or_default())))
}

fn lacks(gguf: &Gguf, key: &str) -> CheckError {
    CheckError::Lacks { path: gguf.path().to_owned(), key: key.to_owned() }
}

fn display_name(gguf: &Gguf) -> String {
    let file = || gguf.path().file_stem().map(|stem| stem.to_string_lossy().into_owned());
    gguf.name().map(str::to_owned).or_else(file).unwrap_or_default()
}

fn pooling_of(pooling_type: u32) -> Option<Pooling> {
    match pooling_type {
        1 => Some(Pooling::Mean),
        2 => Some(Pooling::First),
        3 => Some(Pooling::Last),
        _ => None,
    }
}

fn is_pooled(pooling_type: u32) -> bool {
    pooling_of(pooling_type).is_some()
}

fn is_encoder(architecture: &str) -> bool {
    ENCODERS.contains(&architecture)
}

const TOKENIZER: &str = "tokenizer.ggml.model";
/// Tokenizers of llama.cpp that spell unknown characters in bytes, and end the process when one
/// has no token.
const BYTE_TOKENIZERS: [&str; 2] = ["llama", "plamo2"];
/// The key of the prompt that some rankers want.
const RERANK_PROMPT: &str = "tokenizer.chat_template.rerank";
/// llama.cpp's number for models that rank instead of embedding.
const RANKING: u32 = 4;

/// Architectures that only embed, pooled or not.
const ENCODERS: [&str; 11] = [
    "bert",
    "modern-bert",
    "nomic-bert",
    "nomic-bert-moe",
    "neo-bert",
    "jina-bert-v2",
    "jina-bert-v3",
    "eurobert",
    "t5encoder",
    "gemma-embedding",
    "llama-embed",
];

/// Architectures that generate in another way than token after token from a prompt.
const NOT_DECODERS: [&str; 6] = ["t5", "dream", "llada", "llada-moe", "rnd1", "wavtokenizer-dec"];

/// Bytes read at once: large enough to keep the disk busy, small beside any model.
const HASH_BUFFER_BYTES: usize = 4 << 20;
