//! Vectors of texts, made once and kept in a file between runs.
//!
//! The file is a list of records: 8 bytes of a hash of the embedder and the text, then the
//! vector's numbers, all little-endian. It is a cache: delete it at will.

use std::collections::{HashMap, HashSet};
use std::error::Error;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use garret_llm::{Backend, Embedder, PoolingOptions};

/// The vectors of many texts.
pub(crate) struct Vectors {
    model: String,
    known: HashMap<u64, Vec<f32>>,
}

impl Vectors {
    /// Embeds `texts` with the model at `path`, those aside that are in the file `cache`, and adds
    /// them to it.
    pub(crate) fn of<'a>(
        path: &Path,
        cache: Option<&PathBuf>,
        texts: impl Iterator<Item = &'a str>,
    ) -> Result<Self, Box<dyn Error>> {
        let embedder = Embedder::load(
            Backend::start()?,
            path,
            PoolingOptions { threads: 2, ..PoolingOptions::default() },
        )?;
        let model = format!("{} {}", fs::metadata(path)?.len(), path.display());
        let mut vectors = Self { model, known: HashMap::new() };
        if let Some(cache) = cache.filter(|cache| cache.exists()) {
            vectors.read(&fs::read(cache)?, embedder.dimensions());
        }
        let mut seen = HashSet::new();
        let missing = |text: &&str| !vectors.known.contains_key(&vectors.key(text));
        let missing: Vec<&str> = texts.filter(missing).filter(|text| seen.insert(*text)).collect();
        let mut file = cache
            .map(|cache| fs::OpenOptions::new().create(true).append(true).open(cache))
            .transpose()?;
        for (done, some) in missing.chunks(PER_CALL).enumerate() {
            eprint!("\r{} of {} texts embedded", done * PER_CALL, missing.len());
            for (text, vector) in some.iter().zip(embedder.embed(some)?) {
                let key = vectors.key(text);
                let bytes = vector.iter().flat_map(|number| number.to_le_bytes());
                let record: Vec<u8> = key.to_le_bytes().into_iter().chain(bytes).collect();
                file.iter_mut().try_for_each(|file| file.write_all(&record))?;
                vectors.known.insert(key, vector);
            }
        }
        if !missing.is_empty() {
            eprintln!();
        }
        Ok(vectors)
    }

    /// The cosine of two texts; NaN where one wasn't embedded.
    pub(crate) fn cosine(&self, one: &str, other: &str) -> f32 {
        let pair = self.known.get(&self.key(one)).zip(self.known.get(&self.key(other)));
        pair.map_or(f32::NAN, |(one, other)| one.iter().zip(other).map(|(a, b)| a * b).sum())
    }

    /// The vector of a text that was embedded.
    pub(crate) fn of_text(&self, text: &str) -> Option<&[f32]> {
        self.known.get(&self.key(text)).map(Vec::as_slice)
    }

    fn key(&self, text: &str) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&self.model, text).hash(&mut hasher);
        hasher.finish()
    }

    fn read(&mut self, bytes: &[u8], dimensions: usize) {
        for record in bytes.chunks_exact(8 + 4 * dimensions) {
            let (key, numbers) = record.split_at(8);
            let key = key.iter().rev().fold(0, |key, byte| key << 8 | u64::from(*byte));
            let number = |bytes: &[u8]| bytes.try_into().map_or(f32::NAN, f32::from_le_bytes);
            self.known.insert(key, numbers.chunks_exact(4).map(number).collect());
        }
    }
}

/// Texts in one call.
const PER_CALL: usize = 64;
