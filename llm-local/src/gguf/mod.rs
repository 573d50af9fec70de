//! Reader of GGUF headers: what a model file says about itself, without loading it.
//!
//! Reads versions 2 and 3 (little endian): every key that a decision here needs, and the sizes of
//! all tensors. Weights are never read. The reader trusts nothing: lengths are compared with what
//! is left of the file before anything is allocated, long arrays are skipped, and what is kept is
//! bounded by [`MAX_KEPT_BYTES`].
//!
//! ```no_run
//! let gguf = garret_llm::gguf::Gguf::open("model.gguf".as_ref())?;
//! println!("{:?}, trained for {:?} tokens", gguf.architecture(), gguf.context_length());
//! # Ok::<(), garret_llm::gguf::GgufError>(())
//! ```
//!
//! Limits: version 1 and big-endian files are refused, as llama.cpp refuses them; elements of
//! arrays of strings are counted, not kept, and so are the bytes of very long strings.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

mod bytes;
mod tensor;

use bytes::ByteTokens;
use tensor::Layout;

/// Most bytes of keys and values that are kept of one file.
pub const MAX_KEPT_BYTES: u64 = 16 << 20;

/// Longest key in bytes.
const MAX_KEY_BYTES: u64 = 65_535;
/// Longest string value that is kept, in bytes; chat templates are the longest that matter.
const MAX_STRING_BYTES: u64 = 4 << 20;
/// Longest array of numbers that is kept; longer ones are counted and skipped.
const MAX_KEPT_ELEMENTS: u64 = 4_096;
/// Most layers that are looked at one by one.
pub(crate) const MAX_LAYERS: u32 = 4_096;
/// Most key/value pairs.
const MAX_PAIRS: u64 = 65_536;
/// Most tensors.
const MAX_TENSORS: u64 = 1 << 20;

/// The metadata of one GGUF file.
#[derive(Clone, Debug)]
pub struct Gguf {
    path: PathBuf,
    version: u32,
    values: BTreeMap<String, Value>,
    byte_tokens: ByteTokens,
    tensors: Layout,
    data_offset: u64,
    file_bytes: u64,
}

/// A metadata value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Any unsigned integer.
    Unsigned(u64),
    /// Any signed integer.
    Signed(i64),
    /// Any floating-point number.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// A string; bytes that are not UTF-8 were replaced.
    Text(String),
    /// A string too long to be kept: its length in bytes.
    LongText(u64),
    /// A short array of integers or truth values (0 and 1); negative ones are kept as 0.
    Integers(Vec<u64>),
    /// Any other array: its number of elements.
    Skipped(u64),
}

/// Reason why a file couldn't be read as GGUF.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GgufError {
    /// Opening or reading failed.
    #[error("{}: can't be read: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The first four bytes aren't `GGUF`.
    #[error("{}: is not a GGUF file; give a model in GGUF format", path.display())]
    NotGguf {
        /// The file.
        path: PathBuf,
    },
    /// A version that isn't read.
    #[error("{}: is GGUF version {version}; only versions 2 and 3 are read, convert the model again", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Version of the format.
        version: u32,
    },
    /// The file is of the other byte order.
    #[error("{}: is a big-endian GGUF; get the little-endian one", path.display())]
    BigEndian {
        /// The file.
        path: PathBuf,
    },
    /// The file ends before what its header announces.
    #[error("{}: is truncated: {needed} bytes announced, {present} present; download it again", path.display())]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Bytes the header calls for; a lower bound when the header itself is cut.
        needed: u64,
        /// Bytes the file has.
        present: u64,
    },
    /// A tensor is of a type that was taken out of the format.
    #[error("{}: uses an old quantisation (type {kind}) that llama.cpp no longer reads; get a newer file of the model or convert it again", path.display())]
    OldQuantisation {
        /// The file.
        path: PathBuf,
        /// ggml's number of the type.
        kind: u32,
    },
    /// The header contradicts itself or exceeds a limit.
    #[error("{}: has a damaged header ({what}); download it again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Part that is wrong.
        what: String,
    },
}

impl Gguf {
    /// Reads the header of the file at `path` and checks that the file is as long as it says.
    ///
    /// # Errors
    /// See [`GgufError`]; no input makes it panic or allocate more than [`MAX_KEPT_BYTES`] and some
    /// change.
    pub fn open(path: &Path) -> Result<Self, GgufError> {
        let reader = Reader::open(path).map_err(|fault| fault.at(path, 0))?;
        let file_bytes = reader.file_bytes;
        reader.read_all(path).map_err(|fault| fault.at(path, file_bytes))
    }

    /// The file that was read.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Version of the format, 2 or 3.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Size of the file in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// The value of `key`.
    pub fn value(&self, key: &str) -> Option<&Value> {
        self.values.get(key)
    }

    /// An integer that fits into 32 bits.
    pub fn u32(&self, key: &str) -> Option<u32> {
        self.u64(key).and_then(|value| u32::try_from(value).ok())
    }

    /// A non-negative integer of any stored width.
    pub fn u64(&self, key: &str) -> Option<u64> {
        match *self.value(key)? {
            Value::Unsigned(value) => Some(value),
            Value::Signed(value) => u64::try_from(value).ok(),
            _ => None,
        }
    }

    /// A string.
    pub fn str(&self, key: &str) -> Option<&str> {
        match self.value(key)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A truth value.
    pub fn bool(&self, key: &str) -> Option<bool> {
        match *self.value(key)? {
            Value::Bool(value) => Some(value),
            _ => None,
        }
    }

    /// Number of elements of an array.
    pub fn array_len(&self, key: &str) -> Option<u64> {
        match self.value(key)? {
            Value::Skipped(len) => Some(*len),
            Value::Integers(values) => Some(values.len() as u64),
            _ => None,
        }
    }

    /// `general.architecture`, for example `llama`.
    pub fn architecture(&self) -> Option<&str> {
        self.str("general.architecture")
    }

    /// `general.name`.
    pub fn name(&self) -> Option<&str> {
        self.str("general.name")
    }

    /// The model's own chat template, in Jinja. Of several with names, the one called `default`,
    /// or else the first that isn't for tools or for retrieved documents.
    pub fn chat_template(&self) -> Option<&str> {
        let unnamed = self.str(CHAT_TEMPLATE);
        let default = || self.str(&format!("{CHAT_TEMPLATE}.default"));
        let present = |source: &&str| !source.trim().is_empty();
        unnamed.filter(present).or_else(|| default().filter(present)).or_else(|| {
            let named = self.values.iter().filter_map(|(key, value)| match value {
                Value::Text(source) => Some((key.strip_prefix(CHAT_TEMPLATE)?, source.as_str())),
                _ => None,
            });
            let usable = |(name, source): &(&str, &str)| {
                name.starts_with('.') && ![".tool_use", ".rag"].contains(name) && present(source)
            };
            named.into_iter().find(usable).map(|(_, source)| source)
        })
    }

    /// The first byte that the vocabulary has no token for, as vocabularies of SentencePiece
    /// spell them: `<0x41>`, or the byte itself.
    pub fn byte_without_token(&self) -> Option<u8> {
        self.byte_tokens.first_missing()
    }

    /// The integer under `KEY` of this architecture, for example `context_length`.
    pub fn arch_u32(&self, key: &str) -> Option<u32> {
        self.u32(&self.arch_key(key)?)
    }

    /// Tokens the model was trained for.
    pub fn context_length(&self) -> Option<u32> {
        self.arch_u32("context_length")
    }

    /// Width of the model's hidden state.
    pub fn embedding_length(&self) -> Option<u32> {
        self.arch_u32("embedding_length")
    }

    /// Number of layers.
    pub fn block_count(&self) -> Option<u32> {
        self.arch_u32("block_count")
    }

    /// Returns the pooling of token vectors, as llama.cpp numbers it: 0 none, 1 mean, 2 first
    /// token, 3 last token, 4 ranking.
    pub fn pooling_type(&self) -> Option<u32> {
        self.arch_u32("pooling_type")
    }

    /// Attention heads of `layer`.
    pub fn head_count(&self, layer: u32) -> Option<u64> {
        self.per_layer("attention.head_count", layer)
    }

    /// Key/value heads of `layer`; equals [`head_count`](Self::head_count) when not given.
    pub fn head_count_kv(&self, layer: u32) -> Option<u64> {
        self.per_layer("attention.head_count_kv", layer).or_else(|| self.head_count(layer))
    }

    /// The integer under `key` of this architecture for `layer`: either one for all layers or an
    /// array with one for each.
    pub fn per_layer(&self, key: &str, layer: u32) -> Option<u64> {
        match self.value(&self.arch_key(key)?)? {
            Value::Unsigned(value) => Some(*value),
            Value::Signed(value) => u64::try_from(*value).ok(),
            Value::Integers(values) => values.get(usize::try_from(layer).ok()?).copied(),
            _ => None,
        }
    }

    /// Width of one key head.
    pub fn key_length(&self) -> Option<u64> {
        self.head_width("attention.key_length")
    }

    /// Width of one value head.
    pub fn value_length(&self) -> Option<u64> {
        self.head_width("attention.value_length")
    }

    /// Entries of the vocabulary.
    pub fn vocabulary_size(&self) -> Option<u64> {
        self.array_len("tokenizer.ggml.tokens")
            .or_else(|| self.arch_u32("vocab_size").map(u64::from))
    }

    /// Number of tensors.
    pub fn tensor_count(&self) -> u64 {
        self.tensors.count
    }

    /// Bytes of all tensors together.
    pub fn tensor_bytes(&self) -> u64 {
        self.tensors.bytes
    }

    /// Returns whether there is a token embedding, which every text model has.
    pub fn has_token_embedding(&self) -> bool {
        self.tensors.has_token_embedding
    }

    /// Returns whether there is a head that makes numbers of its own of a text, as models that rank
    /// or classify have.
    pub fn has_head(&self) -> bool {
        let [dense, output] = self.tensors.has_head;
        // Of this one the dense layer is all of it.
        output || (dense && self.architecture() == Some("jina-bert-v2"))
    }

    /// Numbers that such a head makes of a text.
    pub fn head_outputs(&self) -> u64 {
        let labels =
            self.arch_key("classifier.output_labels").and_then(|key| self.values.get(&key));
        match labels {
            Some(Value::Skipped(labels)) => *labels,
            Some(Value::Integers(labels)) => labels.len() as u64,
            _ => 1,
        }
    }

    /// Returns where tensor data begins, in bytes from the start of the file.
    pub fn data_offset(&self) -> u64 {
        self.data_offset
    }

    fn arch_key(&self, key: &str) -> Option<String> {
        Some(format!("{}.{key}", self.architecture()?))
    }

    fn head_width(&self, key: &str) -> Option<u64> {
        self.arch_u32(key).map(u64::from).or_else(|| {
            let layers = 0..self.block_count()?.min(MAX_LAYERS);
            let heads = layers.filter_map(|layer| self.head_count(layer)).max()?;
            u64::from(self.embedding_length()?).checked_div(heads)
        })
    }
}

/// A fault whose file isn't known yet.
enum Fault {
    Io(io::Error),
    NotGguf,
    Version(u32),
    BigEndian,
    Truncated { needed: u64 },
    OldQuantisation(u32),
    Damaged(String),
}

impl Fault {
    fn damaged(what: impl Into<String>) -> Self {
        Self::Damaged(what.into())
    }

    fn at(self, path: &Path, present: u64) -> GgufError {
        let path = path.to_owned();
        match self {
            Self::Io(source) => GgufError::Io { path, source },
            Self::NotGguf => GgufError::NotGguf { path },
            Self::Version(version) => GgufError::Version { path, version },
            Self::BigEndian => GgufError::BigEndian { path },
            Self::Truncated { needed } => GgufError::Truncated { path, needed, present },
            Self::OldQuantisation(kind) => GgufError::OldQuantisation { path, kind },
            Self::Damaged(what) => GgufError::Damaged { path, what },
        }
    }
}

/// Reads forward and knows how much of the file is left.
struct Reader {
    input: BufReader<File>,
    file_bytes: u64,
    position: u64,
    kept: u64,
    byte_tokens: ByteTokens,
}

impl Reader {
    fn open(path: &Path) -> Result<Self, Fault> {
        let file = File::open(path).map_err(Fault::Io)?;
        let meta = file.metadata().map_err(Fault::Io)?;
        if meta.is_dir() {
            return Err(Fault::Io(io::ErrorKind::IsADirectory.into()));
        }
        let input = BufReader::with_capacity(1 << 16, file);
        let byte_tokens = ByteTokens::default();
        Ok(Self { input, file_bytes: meta.len(), position: 0, kept: 0, byte_tokens })
    }

    fn read_all(mut self, path: &Path) -> Result<Gguf, Fault> {
        let version = self.version()?;
        let tensor_count = self.count(MAX_TENSORS, "tensors")?;
        let pair_count = self.count(MAX_PAIRS, "keys")?;
        let values = self.pairs(pair_count)?;
        let alignment = alignment(&values)?;
        let tensors = Layout::read(&mut self, tensor_count, alignment)?;
        let data_offset = match tensors.count {
            0 => self.position,
            _ => tensor::pad(self.position, alignment)?,
        };
        let needed = data_offset
            .checked_add(tensors.end)
            .ok_or_else(|| Fault::damaged("tensor sizes overflow"))?;
        if needed > self.file_bytes {
            return Err(Fault::Truncated { needed });
        }
        let file_bytes = self.file_bytes;
        let byte_tokens = self.byte_tokens;
        let path = path.to_owned();
        Ok(Gguf { path, version, values, byte_tokens, tensors, data_offset, file_bytes })
    }

    fn version(&mut self) -> Result<u32, Fault> {
        let mut magic = [0; 4];
        if self.file_bytes < 4 {
            return Err(Fault::NotGguf);
        }
        self.fill(&mut magic)?;
        if &magic != b"GGUF" {
            return Err(Fault::NotGguf);
        }
        match self.u32()? {
            version @ (2 | 3) => Ok(version),
            version if version != 0 && version.trailing_zeros() >= 16 => Err(Fault::BigEndian),
            version => Err(Fault::Version(version)),
        }
    }

    fn count(&mut self, most: u64, of_what: &str) -> Result<u64, Fault> {
        let count = self.u64()?;
        match count <= most {
            true => Ok(count),
            false => Err(Fault::damaged(format!("{count} {of_what}"))),
        }
    }

    fn pairs(&mut self, count: u64) -> Result<BTreeMap<String, Value>, Fault> {
        let mut values = BTreeMap::new();
        for _ in 0..count {
            let key = self.string(MAX_KEY_BYTES)?;
            let kind = self.u32()?;
            let value = match kind {
                ARRAY => self.array(key == TOKENS)?,
                TEXT => self.text()?,
                _ => self.scalar(kind)?,
            };
            if key.is_empty() || values.insert(key.clone(), value).is_some() {
                return Err(Fault::damaged(format!("key {key:?} is empty or given twice")));
            }
        }
        Ok(values)
    }

    fn text(&mut self) -> Result<Value, Fault> {
        let len = self.u64()?;
        match len <= MAX_STRING_BYTES {
            true => self.string_of(len).map(Value::Text),
            false => self.skip(len).map(|()| Value::LongText(len)),
        }
    }

    fn scalar(&mut self, kind: u32) -> Result<Value, Fault> {
        Ok(match kind {
            0 => Value::Unsigned(self.bytes::<1>()?[0].into()),
            1 => Value::Signed(i8::from_le_bytes(self.bytes()?).into()),
            2 => Value::Unsigned(u16::from_le_bytes(self.bytes()?).into()),
            3 => Value::Signed(i16::from_le_bytes(self.bytes()?).into()),
            4 => Value::Unsigned(self.u32()?.into()),
            5 => Value::Signed(i32::from_le_bytes(self.bytes()?).into()),
            6 => Value::Float(f32::from_le_bytes(self.bytes()?).into()),
            BOOL => Value::Bool(self.bytes::<1>()?[0] != 0),
            10 => Value::Unsigned(self.u64()?),
            11 => Value::Signed(i64::from_le_bytes(self.bytes()?)),
            12 => Value::Float(f64::from_le_bytes(self.bytes()?)),
            _ => return Err(Fault::damaged(format!("unknown value type {kind}"))),
        })
    }

    fn array(&mut self, is_vocabulary: bool) -> Result<Value, Fault> {
        let kind = self.u32()?;
        let len = self.u64()?;
        match width(kind) {
            Some(width) if is_integer(kind) && len <= MAX_KEPT_ELEMENTS => {
                self.keep(len.saturating_mul(8))?;
                self.need(len.saturating_mul(width))?;
                (0..len)
                    .map(|_| self.scalar(kind).map(as_integer))
                    .collect::<Result<_, _>>()
                    .map(Value::Integers)
            }
            Some(width) => {
                self.skip(len.saturating_mul(width))?;
                Ok(Value::Skipped(len))
            }
            None if kind == TEXT => {
                self.need(len.saturating_mul(8))?;
                for _ in 0..len {
                    let bytes = self.u64()?;
                    match bytes <= bytes::LONGEST && is_vocabulary {
                        true => self.token(bytes)?,
                        false => self.skip(bytes)?,
                    }
                }
                Ok(Value::Skipped(len))
            }
            None => Err(Fault::damaged(format!("unknown array type {kind}"))),
        }
    }

    /// Notes a token that may stand for a byte.
    fn token(&mut self, len: u64) -> Result<(), Fault> {
        let mut buffer = [0; bytes::LONGEST as usize];
        let token = usize::try_from(len).ok().and_then(|len| buffer.get_mut(..len));
        let token = token.ok_or_else(|| Fault::damaged("a token too long"))?;
        self.fill(token)?;
        self.byte_tokens.note(token);
        Ok(())
    }

    fn string(&mut self, most: u64) -> Result<String, Fault> {
        let len = self.u64()?;
        match len <= most {
            true => self.string_of(len),
            false => Err(Fault::damaged(format!("a name of {len} bytes"))),
        }
    }

    fn string_of(&mut self, len: u64) -> Result<String, Fault> {
        self.need(len)?;
        self.keep(len)?;
        let len = usize::try_from(len).map_err(|_| Fault::damaged("a string too long"))?;
        let mut bytes = vec![0; len];
        self.fill(&mut bytes)?;
        Ok(String::from_utf8(bytes)
            .unwrap_or_else(|bad| String::from_utf8_lossy(bad.as_bytes()).into_owned()))
    }

    fn u32(&mut self) -> Result<u32, Fault> {
        Ok(u32::from_le_bytes(self.bytes()?))
    }

    fn u64(&mut self) -> Result<u64, Fault> {
        Ok(u64::from_le_bytes(self.bytes()?))
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), Fault> {
        self.need(bytes.len() as u64)?;
        self.input.read_exact(bytes).map_err(Fault::Io)?;
        self.position += bytes.len() as u64;
        Ok(())
    }

    fn skip(&mut self, bytes: u64) -> Result<(), Fault> {
        self.need(bytes)?;
        let offset = i64::try_from(bytes).map_err(|_| Fault::damaged("a value too long"))?;
        self.input.seek_relative(offset).map_err(Fault::Io)?;
        self.position += bytes;
        Ok(())
    }

    /// Refuses to go on unless `bytes` more are in the file.
    fn need(&self, bytes: u64) -> Result<(), Fault> {
        let needed = self.position.saturating_add(bytes);
        match needed <= self.file_bytes {
            true => Ok(()),
            false => Err(Fault::Truncated { needed }),
        }
    }

    /// Accounts for `bytes` that are going to stay in memory.
    fn keep(&mut self, bytes: u64) -> Result<(), Fault> {
        self.kept = self.kept.saturating_add(bytes);
        match self.kept <= MAX_KEPT_BYTES {
            true => Ok(()),
            false => Err(Fault::damaged("more metadata than any model has")),
        }
    }
}

fn alignment(values: &BTreeMap<String, Value>) -> Result<u64, Fault> {
    match values.get("general.alignment") {
        None => Ok(DEFAULT_ALIGNMENT),
        Some(Value::Unsigned(value)) if value.is_power_of_two() => Ok(*value),
        Some(other) => Err(Fault::damaged(format!("alignment {other:?}"))),
    }
}

/// Bytes of one array element of a fixed width.
fn width(kind: u32) -> Option<u64> {
    match kind {
        0 | 1 | BOOL => Some(1),
        2 | 3 => Some(2),
        4..=6 => Some(4),
        10..=12 => Some(8),
        _ => None,
    }
}

fn is_integer(kind: u32) -> bool {
    !matches!(kind, 6 | 12)
}

fn as_integer(value: Value) -> u64 {
    match value {
        Value::Unsigned(value) => value,
        Value::Signed(value) => u64::try_from(value).unwrap_or(0),
        Value::Bool(value) => u64::from(value),
        _ => 0,
    }
}

const CHAT_TEMPLATE: &str = "tokenizer.chat_template";
const TOKENS: &str = "tokenizer.ggml.tokens";
const BOOL: u32 = 7;
const TEXT: u32 = 8;
const ARRAY: u32 = 9;
const DEFAULT_ALIGNMENT: u64 = 32;
