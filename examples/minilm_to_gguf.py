#!/usr/bin/env python3
"""Writes the all-MiniLM-L6-v2 sentence encoder as a GGUF file that llama.cpp loads.

    python3 minilm_to_gguf.py MODEL_DIR OUT.gguf

MODEL_DIR holds config.json, tokenizer.json, model.safetensors and, optionally,
1_Pooling/config.json, as sentence-transformers publishes them. Only Python's standard library
is used: both formats are simple, a small board needs no compiler or wheel for numpy, and the
same input gives the same bytes whatever is installed, so the result's checksum can be pinned.

Matrices become f16 (rounded to nearest even); biases, norms, positions and token types stay
f32, since llama.cpp adds them element by element. Limits: BERT encoders with a WordPiece
vocabulary, erf GELU, f32 weights and mean or [CLS] pooling; anything else is refused.
"""
import json
import mmap
import pathlib
import struct
import sys

ALIGNMENT = 32
GGUF_VERSION = 3
U32, I32, F32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9
TENSOR_F32, TENSOR_F16 = 0, 1
FILE_TYPE_MOSTLY_F16 = 1
QUANTIZATION_VERSION = 2
POOLING_MEAN, POOLING_CLS = 1, 2
TOKEN_NORMAL, TOKEN_CONTROL, TOKEN_UNUSED = 1, 3, 5
WORD_START = "\u2581"

SCALARS = {U32: "<I", I32: "<i", F32: "<f", BOOL: "<?"}
STAYS_F32 = {"position_embd", "token_types"}
STEM = [
    ("embeddings.word_embeddings", "token_embd"),
    ("embeddings.position_embeddings", "position_embd"),
    ("embeddings.token_type_embeddings", "token_types"),
    ("embeddings.LayerNorm", "token_embd_norm"),
]
LAYER = [
    ("attention.self.query", "attn_q"),
    ("attention.self.key", "attn_k"),
    ("attention.self.value", "attn_v"),
    ("attention.output.dense", "attn_output"),
    ("attention.output.LayerNorm", "attn_output_norm"),
    ("intermediate.dense", "ffn_up"),
    ("output.dense", "ffn_down"),
    ("output.LayerNorm", "layer_output_norm"),
]


class Unsupported(Exception):
    """The model isn't of the kind that this converter knows."""


def require(condition, what):
    if not condition:
        raise Unsupported(f"this model can't be converted: {what}")


def text(value):
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def value_of(kind, value):
    return text(value) if kind == STRING else struct.pack(SCALARS[kind], value)


def entry(key, kind, value):
    """One key of the header; a list becomes an array of `kind`."""
    if isinstance(value, list):
        body = b"".join(value_of(kind, item) for item in value)
        return text(key) + struct.pack("<IIQ", ARRAY, kind, len(value)) + body
    return text(key) + struct.pack("<I", kind) + value_of(kind, value)


def padding(length):
    return b"\0" * (-length % ALIGNMENT)


def pooling(model_dir):
    path = model_dir / "1_Pooling" / "config.json"
    if not path.exists():
        return POOLING_MEAN
    modes = json.loads(path.read_text())
    if modes.get("pooling_mode_cls_token"):
        return POOLING_CLS
    require(modes.get("pooling_mode_mean_tokens"), "its pooling is neither mean nor [CLS]")
    return POOLING_MEAN


def vocabulary(tokenizer, size):
    """Tokens, their kinds and the special ids; llama.cpp marks word starts, not continuations."""
    special = {t["content"]: t["id"] for t in tokenizer["added_tokens"] if t.get("special")}
    tokens = [f"[PAD{i}]" for i in range(size)]
    kinds = [TOKEN_UNUSED] * size
    for word, i in tokenizer["model"]["vocab"].items():
        if word in special:
            tokens[i], kinds[i] = word, TOKEN_CONTROL
        else:
            tokens[i] = word[2:] if word.startswith("##") else WORD_START + word
            kinds[i] = TOKEN_NORMAL
    return tokens, kinds, special


def header(model_dir, config):
    tokenizer = json.loads((model_dir / "tokenizer.json").read_text(encoding="utf-8"))
    rules = tokenizer.get("normalizer") or {}
    require(config["model_type"] == "bert", "it isn't a BERT encoder")
    require(config["hidden_act"] == "gelu", "its activation isn't GELU")
    require(rules.get("type") == "BertNormalizer", "its tokenizer isn't BERT's WordPiece")
    tokens, kinds, special = vocabulary(tokenizer, config["vocab_size"])
    lowercase = rules.get("lowercase", True)
    strip = rules.get("strip_accents")
    return [
        ("general.architecture", STRING, "bert"),
        ("general.type", STRING, "model"),
        ("general.name", STRING, "all-MiniLM-L6-v2"),
        ("general.organization", STRING, "sentence-transformers"),
        ("general.license", STRING, "apache-2.0"),
        ("general.languages", STRING, ["en"]),
        ("general.tags", STRING,
         ["sentence-transformers", "feature-extraction", "sentence-similarity"]),
        ("bert.context_length", U32, config["max_position_embeddings"]),
        ("bert.embedding_length", U32, config["hidden_size"]),
        ("bert.feed_forward_length", U32, config["intermediate_size"]),
        ("bert.block_count", U32, config["num_hidden_layers"]),
        ("bert.attention.head_count", U32, config["num_attention_heads"]),
        ("bert.attention.layer_norm_epsilon", F32, config["layer_norm_eps"]),
        ("bert.attention.causal", BOOL, False),
        ("bert.pooling_type", U32, pooling(model_dir)),
        ("general.file_type", U32, FILE_TYPE_MOSTLY_F16),
        ("general.quantization_version", U32, QUANTIZATION_VERSION),
        ("tokenizer.ggml.token_type_count", U32, config.get("type_vocab_size", 2)),
        ("tokenizer.ggml.model", STRING, "bert"),
        ("tokenizer.ggml.pre", STRING, "default"),
        ("tokenizer.ggml.tokens", STRING, tokens),
        ("tokenizer.ggml.token_type", I32, kinds),
        # [CLS] is put first as "bos", [SEP] last; a WordPiece model has no "eos".
        ("tokenizer.ggml.bos_token_id", U32, special["[CLS]"]),
        ("tokenizer.ggml.unknown_token_id", U32, special["[UNK]"]),
        # llama.cpp's own spelling of this key.
        ("tokenizer.ggml.seperator_token_id", U32, special["[SEP]"]),
        ("tokenizer.ggml.padding_token_id", U32, special["[PAD]"]),
        ("tokenizer.ggml.mask_token_id", U32, special["[MASK]"]),
        ("tokenizer.ggml.add_bos_token", BOOL, True),
        ("tokenizer.ggml.add_sep_token", BOOL, True),
        ("tokenizer.ggml.normalizer.lowercase", BOOL, lowercase),
        ("tokenizer.ggml.normalizer.strip_accents", BOOL, lowercase if strip is None else strip),
    ]


class Weights:
    """The tensors of a safetensors file: a length, a JSON directory, then raw bytes."""

    def __init__(self, path):
        self.file = open(path, "rb")
        self.data = mmap.mmap(self.file.fileno(), 0, access=mmap.ACCESS_READ)
        length = struct.unpack_from("<Q", self.data)[0]
        self.start = 8 + length
        directory = json.loads(self.data[8:self.start])
        self.entries = {k: v for k, v in directory.items() if k != "__metadata__"}

    def close(self):
        self.data.close()
        self.file.close()

    def read(self, name, begin, end):
        offset = self.start + self.entries[name]["data_offsets"][0]
        return self.data[offset + begin:offset + end]


class Tensor:
    """Where one tensor comes from and what it becomes."""

    def __init__(self, source, name, weights):
        self.source, self.name, self.weights = source, name, weights
        entry_of = weights.entries[source]
        require(entry_of["dtype"] == "F32", f"{source} isn't f32")
        self.shape = entry_of["shape"]
        matrix = len(self.shape) > 1 and name.rsplit(".", 1)[0] not in STAYS_F32
        self.kind = TENSOR_F16 if matrix else TENSOR_F32
        self.count = 1
        for side in self.shape:
            self.count *= side

    def size(self):
        return self.count * (2 if self.kind == TENSOR_F16 else 4)

    def info(self, offset):
        sides = self.shape[::-1]
        return (text(self.name) + struct.pack("<I", len(sides))
                + struct.pack(f"<{len(sides)}Q", *sides) + struct.pack("<IQ", self.kind, offset))

    def write(self, out, block=1 << 16):
        for first in range(0, self.count, block):
            n = min(block, self.count - first)
            raw = self.weights.read(self.source, 4 * first, 4 * (first + n))
            if self.kind == TENSOR_F16:
                raw = struct.pack(f"<{n}e", *struct.unpack(f"<{n}f", raw))
            out.write(raw)
        out.write(padding(self.size()))


def tensors(weights, layers):
    names = STEM + [(f"encoder.layer.{i}.{source}", f"blk.{i}.{name}")
                    for i in range(layers) for source, name in LAYER]
    found = [Tensor(f"{source}.{part}", f"{name}.{part}", weights)
             for source, name in names for part in ("weight", "bias")
             if f"{source}.{part}" in weights.entries]
    # The pooler serves BERT's classification head; position ids only count upwards.
    known = {t.source for t in found} | {"pooler.dense.weight", "pooler.dense.bias",
                                         "embeddings.position_ids"}
    left = sorted(set(weights.entries) - known)
    require(not left, f"it has weights of unknown use: {', '.join(left)}")
    return found


def convert(model_dir, out_path):
    """Converts the model in `model_dir`; writes `out_path` in one pass."""
    config = json.loads((model_dir / "config.json").read_text())
    keys = header(model_dir, config)
    weights = Weights(model_dir / "model.safetensors")
    try:
        every = tensors(weights, config["num_hidden_layers"])
        head = b"GGUF" + struct.pack("<IQQ", GGUF_VERSION, len(every), len(keys))
        head += b"".join(entry(*key) for key in keys)
        offset = 0
        for tensor in every:
            head += tensor.info(offset)
            offset += tensor.size() + len(padding(tensor.size()))
        with open(out_path, "wb") as out:
            out.write(head + padding(len(head)))
            for tensor in every:
                tensor.write(out)
    finally:
        weights.close()


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: minilm_to_gguf.py MODEL_DIR OUT.gguf")
    try:
        convert(pathlib.Path(sys.argv[1]), sys.argv[2])
    except Unsupported as error:
        sys.exit(f"minilm_to_gguf.py: {error}")


if __name__ == "__main__":
    main()
