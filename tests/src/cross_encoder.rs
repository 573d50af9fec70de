//! A cross-encoder for tests: a BERT of one layer with a head that ranks, its weights drawn from a
//! seed. It knows nothing, but what it makes of a query and a text can be computed by hand, which
//! [`CrossEncoder::score`] does without llama.cpp.

use std::path::{Path, PathBuf};

/// Numbers of a token.
const WIDTH: usize = 32;
const INNER: usize = 64;
const HEADS: usize = 2;
/// Most tokens of a query, a text and what is around them.
pub const WINDOW: usize = 64;
/// Tokens that are no words: before a query, between it and a text, behind that.
pub const SPECIAL: usize = 3;

const UNKNOWN: usize = 1;
const CLS: usize = 2;
const SEP: usize = 3;
const MARKS: [&str; 5] = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];
/// All words that it tells apart; texts of tests are made of them.
pub const WORDS: [&str; 16] = [
    "when", "did", "the", "bees", "swarm", "hive", "honey", "oak", "garden", "rain", "lamp",
    "attic", "in", "to", "may", "queen",
];

/// A matrix as its rows, each of the weights of one number that comes out, and what is added to it.
struct Linear {
    rows: Vec<Vec<f32>>,
    bias: Vec<f32>,
}

/// The weights.
pub struct CrossEncoder {
    tokens: Vec<Vec<f32>>,
    positions: Vec<Vec<f32>>,
    segments: Vec<Vec<f32>>,
    query: Linear,
    key: Linear,
    value: Linear,
    output: Linear,
    up: Linear,
    down: Linear,
    /// Gain and bias behind the tokens, the attention and the layer.
    norms: [(Vec<f32>, Vec<f32>); 3],
    dense: Linear,
    head: Linear,
    header: Header,
}

/// Defects that a file may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Header {
    /// Nothing.
    #[default]
    Ranks,
    /// It has no head.
    Headless,
    /// Its head gives two numbers.
    TwoLabels,
    /// It wants a prompt of its own.
    Prompted,
}

impl CrossEncoder {
    /// One with weights from `seed`.
    pub fn new(seed: u64) -> Self {
        let mut draw = Draw(seed);
        let vocabulary = MARKS.len() + WORDS.len();
        let norm = |draw: &mut Draw| {
            (draw.numbers(WIDTH).iter().map(|x| 1.0 + 0.2 * x).collect(), draw.numbers(WIDTH))
        };
        Self {
            tokens: draw.rows(vocabulary, WIDTH),
            positions: draw.rows(WINDOW, WIDTH),
            segments: draw.rows(2, WIDTH),
            // What is read weighs more than where it is read.
            query: draw.linear(WIDTH, WIDTH).times(2.0),
            key: draw.linear(WIDTH, WIDTH),
            value: draw.linear(WIDTH, WIDTH).times(2.0),
            output: draw.linear(WIDTH, WIDTH).times(2.0),
            up: draw.linear(WIDTH, INNER),
            down: draw.linear(INNER, WIDTH),
            norms: std::array::from_fn(|_| norm(&mut draw)),
            dense: draw.linear(WIDTH, WIDTH),
            head: draw.linear(WIDTH, 1),
            header: Header::Ranks,
        }
    }

    /// The same in a file that is otherwise.
    #[must_use]
    pub fn with(self, header: Header) -> Self {
        Self { header, ..self }
    }

    /// Writes it as a GGUF file and gives its path.
    ///
    /// # Panics
    /// When it can't be written.
    pub fn write(&self, path: &Path) -> PathBuf {
        std::fs::write(path, self.gguf()).expect("a model file");
        path.to_owned()
    }

    /// The score of `query` and `text`, words parted by spaces, of which those that it doesn't
    /// know are all the same; as much of `text` as there is room for.
    pub fn score(&self, query: &str, text: &str) -> f64 {
        let mut ids = [vec![CLS], ids(query), vec![SEP]].concat();
        let mut text = ids_of_at_most(text, WINDOW - 1 - ids.len());
        ids.append(&mut text);
        ids.push(SEP);
        let mut states: Vec<Vec<f64>> = ids
            .iter()
            .enumerate()
            .map(|(place, id)| {
                let sum = add(&wide(&self.tokens[*id]), &wide(&self.positions[place]));
                self.normed(0, &add(&sum, &wide(&self.segments[0])))
            })
            .collect();
        let attended = self.attended(&states);
        states = states.iter().zip(attended).map(|(x, y)| self.normed(1, &add(x, &y))).collect();
        let first = &states[0];
        let inner: Vec<f64> = self.up.of(first).into_iter().map(gelu).collect();
        let first = self.normed(2, &add(first, &self.down.of(&inner)));
        let dense: Vec<f64> = self.dense.of(&first).into_iter().map(f64::tanh).collect();
        self.head.of(&dense)[0]
    }

    fn attended(&self, states: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let all = |by: &Linear| states.iter().map(|x| by.of(x)).collect::<Vec<_>>();
        let (queries, keys, values) = (all(&self.query), all(&self.key), all(&self.value));
        let width = WIDTH / HEADS;
        let one = |query: &Vec<f64>| {
            let mut sum = vec![0.0; WIDTH];
            for part in (0..HEADS).map(|head| head * width..(head + 1) * width) {
                let near = |key: &Vec<f64>| {
                    dot(&query[part.clone()], &key[part.clone()]) / (width as f64).sqrt()
                };
                let shares: Vec<f64> = keys.iter().map(|key| near(key).exp()).collect();
                let total: f64 = shares.iter().sum();
                for (share, value) in shares.iter().zip(&values) {
                    part.clone().for_each(|at| sum[at] += share / total * value[at]);
                }
            }
            self.output.of(&sum)
        };
        queries.iter().map(one).collect()
    }

    fn normed(&self, which: usize, x: &[f64]) -> Vec<f64> {
        let (gain, bias) = &self.norms[which];
        let mean = x.iter().sum::<f64>() / x.len() as f64;
        let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / x.len() as f64;
        let scaled = x.iter().map(|x| (x - mean) / (variance + EPSILON).sqrt());
        let scaled = scaled.zip(gain.iter().zip(bias));
        scaled.map(|(x, (gain, bias))| x * f64::from(*gain) + f64::from(*bias)).collect()
    }

    fn gguf(&self) -> Vec<u8> {
        let spelt = MARKS.iter().map(|mark| (*mark).to_owned());
        let spelt: Vec<_> = spelt.chain(WORDS.iter().map(|w| format!("\u{2581}{w}"))).collect();
        let kinds: Vec<u32> =
            (0..spelt.len()).map(|id| if id < MARKS.len() { CONTROL } else { NORMAL }).collect();
        let mut file = File::default();
        file.text("general.architecture", "bert");
        file.text("general.name", "Drawn");
        for (key, value) in [
            ("context_length", WINDOW),
            ("embedding_length", WIDTH),
            ("feed_forward_length", INNER),
            ("block_count", 1),
            ("attention.head_count", HEADS),
            ("pooling_type", if self.header == Header::Headless { MEAN } else { RANK }),
        ] {
            file.number(&format!("bert.{key}"), value);
        }
        file.pair("bert.attention.layer_norm_epsilon", 6, &(EPSILON as f32).to_le_bytes());
        file.pair("bert.attention.causal", 7, &[0]);
        file.text("tokenizer.ggml.model", "bert");
        file.texts("tokenizer.ggml.tokens", &spelt);
        file.numbers("tokenizer.ggml.token_type", &kinds);
        file.number("tokenizer.ggml.token_type_count", self.segments.len());
        for (name, id) in [("bos", CLS), ("unknown", UNKNOWN), ("seperator", SEP), ("padding", 0)] {
            file.number(&format!("tokenizer.ggml.{name}_token_id"), id);
        }
        match self.header {
            Header::Ranks | Header::Headless => {}
            Header::TwoLabels => {
                file.texts("bert.classifier.output_labels", &["no".into(), "yes".into()]);
            }
            Header::Prompted => {
                file.text("tokenizer.chat_template.rerank", "{query} {document}");
            }
        }
        self.tensors(&mut file);
        file.bytes()
    }

    fn tensors(&self, file: &mut File) {
        file.tensor("token_embd.weight", &self.tokens);
        file.tensor("position_embd.weight", &self.positions);
        file.tensor("token_types.weight", &self.segments);
        for (name, norm) in ["token_embd_norm", "blk.0.attn_output_norm", "blk.0.layer_output_norm"]
            .iter()
            .zip(&self.norms)
        {
            file.vector(&format!("{name}.weight"), &norm.0);
            file.vector(&format!("{name}.bias"), &norm.1);
        }
        let mut linear = |name: &str, linear: &Linear| {
            file.tensor(&format!("{name}.weight"), &linear.rows);
            file.vector(&format!("{name}.bias"), &linear.bias);
        };
        linear("blk.0.attn_q", &self.query);
        linear("blk.0.attn_k", &self.key);
        linear("blk.0.attn_v", &self.value);
        linear("blk.0.attn_output", &self.output);
        linear("blk.0.ffn_up", &self.up);
        linear("blk.0.ffn_down", &self.down);
        if self.header != Header::Headless {
            linear("cls", &self.dense);
            linear("cls.output", &self.head);
        }
    }
}

impl Linear {
    fn times(mut self, factor: f32) -> Self {
        self.rows.iter_mut().flatten().for_each(|x| *x *= factor);
        self
    }

    fn of(&self, x: &[f64]) -> Vec<f64> {
        let rows = self.rows.iter().zip(&self.bias);
        rows.map(|(row, bias)| dot(&wide(row), x) + f64::from(*bias)).collect()
    }
}

/// Numbers of a token each; unknown words are all the same.
fn ids(text: &str) -> Vec<usize> {
    let known = |word: &str| WORDS.iter().position(|known| *known == word);
    let id = |word: &str| known(word).map_or(UNKNOWN, |at| MARKS.len() + at);
    text.split_whitespace().map(id).collect()
}

fn ids_of_at_most(text: &str, most: usize) -> Vec<usize> {
    let mut ids = ids(text);
    ids.truncate(most);
    ids
}

fn wide(x: &[f32]) -> Vec<f64> {
    x.iter().map(|x| f64::from(*x)).collect()
}

fn add(x: &[f64], y: &[f64]) -> Vec<f64> {
    x.iter().zip(y).map(|(x, y)| x + y).collect()
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

fn gelu(x: f64) -> f64 {
    let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x.powi(3));
    0.5 * x * (1.0 + inner.tanh())
}

/// Numbers from a seed.
struct Draw(u64);

impl Draw {
    /// From -1 to 1.
    fn number(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
    }

    fn numbers(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.number()).collect()
    }

    fn rows(&mut self, rows: usize, width: usize) -> Vec<Vec<f32>> {
        (0..rows).map(|_| self.numbers(width)).collect()
    }

    fn linear(&mut self, from: usize, to: usize) -> Linear {
        let scale = 2.0 / (from as f32).sqrt();
        let mut rows = self.rows(to, from);
        rows.iter_mut().flatten().for_each(|x| *x *= scale);
        Linear { rows, bias: self.numbers(to) }
    }
}

/// A GGUF file in the making.
#[derive(Default)]
struct File {
    pairs: Vec<u8>,
    count: u64,
    tensors: Vec<(String, Vec<usize>, Vec<u8>)>,
}

impl File {
    fn pair(&mut self, key: &str, kind: u32, value: &[u8]) {
        self.pairs.extend([&spelt(key), &kind.to_le_bytes()[..], value].concat());
        self.count += 1;
    }

    fn text(&mut self, key: &str, value: &str) {
        self.pair(key, 8, &spelt(value));
    }

    fn number(&mut self, key: &str, value: usize) {
        self.pair(key, 4, &(value as u32).to_le_bytes());
    }

    fn texts(&mut self, key: &str, values: &[String]) {
        let all: Vec<u8> = values.iter().flat_map(|value| spelt(value)).collect();
        self.array(key, 8, values.len(), &all);
    }

    fn numbers(&mut self, key: &str, values: &[u32]) {
        let all: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.array(key, 5, values.len(), &all);
    }

    fn array(&mut self, key: &str, kind: u32, count: usize, values: &[u8]) {
        let head = [&kind.to_le_bytes()[..], &(count as u64).to_le_bytes()].concat();
        self.pair(key, 9, &[&head, values].concat());
    }

    fn tensor(&mut self, name: &str, rows: &[Vec<f32>]) {
        let shape = vec![rows.first().map_or(0, Vec::len), rows.len()];
        self.tensors.push((name.to_owned(), shape, bytes(rows.iter().flatten())));
    }

    fn vector(&mut self, name: &str, numbers: &[f32]) {
        self.tensors.push((name.to_owned(), vec![numbers.len()], bytes(numbers.iter())));
    }

    fn bytes(&self) -> Vec<u8> {
        let counts = [self.tensors.len() as u64, self.count];
        let mut out = [&b"GGUF"[..], &3_u32.to_le_bytes()].concat();
        out.extend(counts.iter().flat_map(|count| count.to_le_bytes()));
        out.extend(&self.pairs);
        let mut offset = 0_u64;
        for (name, shape, data) in &self.tensors {
            out.extend(spelt(name));
            out.extend((shape.len() as u32).to_le_bytes());
            out.extend(shape.iter().flat_map(|size| (*size as u64).to_le_bytes()));
            // F32.
            out.extend(0_u32.to_le_bytes());
            out.extend(offset.to_le_bytes());
            offset += data.len().next_multiple_of(ALIGNMENT) as u64;
        }
        for (_, _, data) in &self.tensors {
            out.resize(out.len().next_multiple_of(ALIGNMENT), 0);
            out.extend(data);
        }
        out.resize(out.len().next_multiple_of(ALIGNMENT), 0);
        out
    }
}

fn spelt(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat()
}

fn bytes<'a>(numbers: impl Iterator<Item = &'a f32>) -> Vec<u8> {
    numbers.flat_map(|number| number.to_le_bytes()).collect()
}

const EPSILON: f64 = 1e-12;
const ALIGNMENT: usize = 32;
/// llama.cpp's numbers for kinds of tokens.
const NORMAL: u32 = 1;
const CONTROL: u32 = 3;
/// And for ways of pooling.
const MEAN: usize = 1;
const RANK: usize = 4;
