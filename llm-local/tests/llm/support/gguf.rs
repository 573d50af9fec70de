//! Writes small GGUF files, sound or not.

use std::path::{Path, PathBuf};

/// A GGUF file in the making.
#[derive(Clone, Default)]
pub(crate) struct Writer {
    pairs: Vec<Vec<u8>>,
    tensors: Vec<(String, Vec<u64>, u32, u64)>,
}

impl Writer {
    /// A tiny chat model that passes every check.
    pub(crate) fn chat() -> Self {
        Self::default()
            .text("general.architecture", "llama")
            .text("general.name", "Tiny")
            .u32("llama.context_length", 2_048)
            .u32("llama.block_count", 2)
            .u32("llama.embedding_length", 64)
            .u32("llama.feed_forward_length", 128)
            .u32("llama.attention.head_count", 4)
            .u32("llama.attention.head_count_kv", 2)
            .texts("tokenizer.ggml.tokens", &["a", "b", "c"])
            .text("tokenizer.chat_template", "{{ messages[0]['content'] }}")
            .tensor("token_embd.weight", &[64, 3], 0, 64 * 3 * 4)
            .tensor("output_norm.weight", &[64], 0, 64 * 4)
    }

    /// A tiny embedding model that passes every check.
    pub(crate) fn embedder() -> Self {
        Self::default()
            .text("general.architecture", "bert")
            .u32("bert.context_length", 512)
            .u32("bert.embedding_length", 64)
            .u32("bert.block_count", 1)
            .u32("bert.pooling_type", 1)
            .texts("tokenizer.ggml.tokens", &["a"])
            .tensor("token_embd.weight", &[64, 1], 0, 64 * 4)
    }

    pub(crate) fn text(self, key: &str, value: &str) -> Self {
        self.pair(key, 8, &string(value))
    }

    pub(crate) fn u32(self, key: &str, value: u32) -> Self {
        self.pair(key, 4, &value.to_le_bytes())
    }

    pub(crate) fn texts(self, key: &str, values: &[&str]) -> Self {
        let mut body = array(8, values.len() as u64);
        values.iter().for_each(|value| body.extend(string(value)));
        self.pair(key, 9, &body)
    }

    pub(crate) fn u32s(self, key: &str, values: &[u32]) -> Self {
        let mut body = array(4, values.len() as u64);
        values.iter().for_each(|value| body.extend(value.to_le_bytes()));
        self.pair(key, 9, &body)
    }

    /// A pair of any type with any bytes; replaces an earlier one of the same key.
    pub(crate) fn pair(mut self, key: &str, kind: u32, body: &[u8]) -> Self {
        let start = string(key);
        self.pairs.retain(|pair| !pair.starts_with(&start));
        self.pairs.push([start.as_slice(), &kind.to_le_bytes(), body].concat());
        self
    }

    pub(crate) fn without(mut self, key: &str) -> Self {
        let start = string(key);
        self.pairs.retain(|pair| !pair.starts_with(&start));
        self
    }

    pub(crate) fn without_tensors(mut self) -> Self {
        self.tensors.clear();
        self
    }

    /// A tensor of `bytes` bytes after the ones before.
    pub(crate) fn tensor(mut self, name: &str, shape: &[u64], kind: u32, bytes: u64) -> Self {
        self.tensors.push((name.to_owned(), shape.to_vec(), kind, bytes));
        self
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut out = b"GGUF".to_vec();
        out.extend(3_u32.to_le_bytes());
        out.extend((self.tensors.len() as u64).to_le_bytes());
        out.extend((self.pairs.len() as u64).to_le_bytes());
        self.pairs.iter().for_each(|pair| out.extend(pair));
        let mut offset = 0_u64;
        for (name, shape, kind, bytes) in &self.tensors {
            out.extend(string(name));
            out.extend((shape.len() as u32).to_le_bytes());
            shape.iter().for_each(|size| out.extend(size.to_le_bytes()));
            out.extend(kind.to_le_bytes());
            out.extend(offset.to_le_bytes());
            offset = (offset + bytes).next_multiple_of(32);
        }
        if !self.tensors.is_empty() {
            out.resize(out.len().next_multiple_of(32) + offset as usize, 0);
        }
        out
    }

    pub(crate) fn write(&self, path: &Path) -> PathBuf {
        write(path, &self.bytes())
    }
}

pub(crate) fn write(path: &Path, bytes: &[u8]) -> PathBuf {
    std::fs::write(path, bytes).unwrap();
    path.to_owned()
}

pub(crate) fn string(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat()
}

pub(crate) fn array(kind: u32, len: u64) -> Vec<u8> {
    [kind.to_le_bytes().as_slice(), &len.to_le_bytes()].concat()
}

/// A model among the test models, or `None` with a loud word.
pub(crate) fn test_model(name: &str) -> Option<PathBuf> {
    let found = std::env::var_os("GARRET_TEST_MODELS").map(|dir| Path::new(&dir).join(name));
    match found {
        Some(path) if path.is_file() => Some(path),
        _ => {
            eprintln!("SKIPPED: no {name} in the directory GARRET_TEST_MODELS names");
            None
        }
    }
}
