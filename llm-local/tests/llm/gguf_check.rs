//! Each wrong file is refused in words that name it and say what to do.

use std::path::Path;

use garret_llm::check::{CheckError, Pooling, check_chat, check_embedder, sha256_file};
use garret_llm::gguf::GgufError;

use crate::support::gguf::{Writer, test_model, write};

/// Checks a file for chat and gives the refusal, whose message must name the file.
fn refused_as_chat(file: &Writer) -> CheckError {
    let dir = tempfile::tempdir().unwrap();
    let error = check_chat(&file.write(&dir.path().join("m.gguf"))).unwrap_err();
    assert!(error.to_string().contains("m.gguf: "), "{error}");
    error
}

#[test]
fn a_chat_model_passes() {
    let dir = tempfile::tempdir().unwrap();
    let info = check_chat(&Writer::chat().write(&dir.path().join("m.gguf"))).unwrap();
    assert_eq!((info.architecture.as_str(), info.name.as_str()), ("llama", "Tiny"));
    assert_eq!((info.context_length, info.vocabulary_size), (2_048, 3));
    assert_eq!(info.chat_template, "{{ messages[0]['content'] }}");
}

#[test]
fn an_embedder_passes() {
    let dir = tempfile::tempdir().unwrap();
    let info = check_embedder(&Writer::embedder().write(&dir.path().join("e.gguf"))).unwrap();
    assert_eq!((info.name.as_str(), info.dimensions, info.context_length), ("e", 64, 512));
    assert_eq!(info.pooling, Some(Pooling::Mean));
}

#[test]
fn what_is_no_gguf_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let missing = check_chat(&dir.path().join("none.gguf")).unwrap_err();
    assert!(matches!(missing, CheckError::Missing { .. }), "{missing}");
    let directory = check_embedder(dir.path()).unwrap_err();
    assert!(matches!(directory, CheckError::Directory { .. }), "{directory}");
    let text = write(&dir.path().join("readme"), b"# hello");
    let error = check_chat(&text).unwrap_err();
    assert!(matches!(error, CheckError::Gguf(GgufError::NotGguf { .. })), "{error}");
    let bytes = Writer::chat().bytes();
    let cut = write(&dir.path().join("cut.gguf"), &bytes[..bytes.len() - 100]);
    let error = check_chat(&cut).unwrap_err();
    assert!(matches!(error, CheckError::Gguf(GgufError::Truncated { .. })), "{error}");
    assert!(error.to_string().contains("download it again"), "{error}");
}

#[test]
fn what_is_a_gguf_but_no_chat_model() {
    let vocabulary = refused_as_chat(&Writer::chat().without_tensors());
    assert!(matches!(vocabulary, CheckError::VocabularyOnly { .. }), "{vocabulary}");
    let base = refused_as_chat(&Writer::chat().without("tokenizer.chat_template"));
    assert!(matches!(base, CheckError::NoChatTemplate { .. }), "{base}");
    let part = refused_as_chat(&Writer::chat().u32("split.count", 3));
    assert!(matches!(part, CheckError::Split { parts: 3, .. }), "{part}");
    for (key, value) in [
        ("general.architecture", "clip"),
        ("general.type", "mmproj"),
        ("general.type", "adapter"),
        ("general.type", "imatrix"),
    ] {
        let other = refused_as_chat(&Writer::chat().text(key, value));
        assert!(matches!(other, CheckError::NotAModel { .. }), "{value}: {other}");
    }
    let nameless = refused_as_chat(&Writer::chat().without("general.architecture"));
    assert!(matches!(nameless, CheckError::Lacks { .. }), "{nameless}");
    let windowless = refused_as_chat(&Writer::chat().without("llama.context_length"));
    assert!(windowless.to_string().contains("llama.context_length"), "{windowless}");
    let seq2seq = refused_as_chat(&Writer::chat().text("general.architecture", "t5"));
    assert!(matches!(seq2seq, CheckError::NotADecoder { .. }), "{seq2seq}");
}

/// llama.cpp ends the process for each of these.
#[test]
fn figures_that_llama_cpp_asserts_are_refused() {
    let chat = Writer::chat;
    let experts =
        |count, used| chat().u32("llama.expert_count", count).u32("llama.expert_used_count", used);
    let groups = |count, used| {
        experts(8, 2)
            .u32("llama.expert_group_count", count)
            .u32("llama.expert_group_used_count", used)
    };
    for (case, file) in [
        ("600 layers", chat().u32("llama.block_count", 600)),
        ("0 layers", chat().u32("llama.block_count", 0)),
        ("3 of its 2", chat().u32("llama.nextn_predict_layers", 3)),
        ("dynamic", chat().text("llama.rope.scaling.type", "dynamic")),
        ("2 of 0 experts", chat().u32("llama.expert_used_count", 2)),
        ("9 of 8 experts", experts(8, 9)),
        ("9 of 8 experts", experts(8, 2).u32s("llama.expert_used_count", &[2, 9])),
        ("0 of 8 experts", experts(8, 0)),
        ("2 of 1025 experts", experts(1_025, 2)),
        ("8 groups", groups(8, 2)),
        ("3 groups", groups(3, 2)),
        ("0 of 4 groups", groups(4, 0)),
        ("4 of 4 groups", groups(4, 4)),
        ("of 2 groups", chat().u32("llama.expert_group_count", 2)),
    ] {
        let error = refused_as_chat(&file);
        assert!(matches!(error, CheckError::Unsupported { .. }), "{case}: {error}");
        assert!(error.to_string().contains(case), "{case}: {error}");
    }
    let dir = tempfile::tempdir().unwrap();
    for file in [
        experts(8, 2),
        experts(8, 2).u32s("llama.expert_used_count", &[1, 8]),
        experts(0, 0),
        groups(1, 0),
        groups(4, 2),
        chat().text("llama.rope.scaling.type", "yarn"),
        chat().u32("llama.block_count", 512),
    ] {
        check_chat(&file.write(&dir.path().join("m.gguf"))).unwrap();
    }
    let one_is_none = chat()
        .text("general.architecture", "hunyuan-dense")
        .u32("hunyuan-dense.context_length", 64)
        .u32("hunyuan-dense.block_count", 1)
        .u32("hunyuan-dense.embedding_length", 64)
        .u32("hunyuan-dense.expert_count", 1)
        .u32("hunyuan-dense.expert_used_count", 2);
    check_chat(&one_is_none.write(&dir.path().join("m.gguf"))).unwrap();
    let deep = Writer::embedder().u32("bert.block_count", 600);
    let error = check_embedder(&deep.write(&dir.path().join("e.gguf"))).unwrap_err();
    assert!(matches!(error, CheckError::Unsupported { .. }), "{error}");
}

/// llama.cpp's tokenizer ends the process at the first unknown character that needs the byte.
#[test]
fn a_vocabulary_without_all_bytes_is_refused() {
    let all: Vec<String> = (0..=255_u8).map(|byte| format!("<0x{byte:02X}>")).collect();
    let with = |tokenizer: &str, tokens: &[&str]| {
        let file = Writer::chat().text("tokenizer.ggml.model", tokenizer);
        file.texts("tokenizer.ggml.tokens", tokens)
    };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.gguf");
    for without in [0, 0x41, 0xff] {
        let mut tokens: Vec<&str> = ["<s>", "a long token"].to_vec();
        tokens.extend(all.iter().enumerate().filter(|(at, _)| *at != without).map(|(_, t)| &**t));
        for tokenizer in ["llama", "plamo2"] {
            let error = refused_as_chat(&with(tokenizer, &tokens));
            let CheckError::ByteMissing { byte, .. } = error else { panic!("{error}") };
            assert_eq!(usize::from(byte), without);
        }
        check_chat(&with("gpt2", &tokens).write(&path)).unwrap();
        tokens.push(if without == 0x41 { "A" } else { &all[without] });
        check_chat(&with("llama", &tokens).write(&path)).unwrap();
    }
    let small: Vec<String> = all.iter().map(|token| token.to_lowercase()).collect();
    let small: Vec<&str> = small.iter().map(String::as_str).collect();
    assert!(matches!(refused_as_chat(&with("llama", &small)), CheckError::ByteMissing { .. }));
}

#[test]
fn embedders_and_chat_models_are_not_mixed_up() {
    for pooling in 1..=3 {
        let error = refused_as_chat(&Writer::chat().u32("llama.pooling_type", pooling));
        assert!(matches!(error, CheckError::EmbedderAsChat { .. }), "{error}");
    }
    for encoder in ["bert", "nomic-bert", "jina-bert-v2", "t5encoder", "modern-bert"] {
        let error = refused_as_chat(&Writer::chat().text("general.architecture", encoder));
        assert!(matches!(error, CheckError::EmbedderAsChat { .. }), "{encoder}: {error}");
    }
    let dir = tempfile::tempdir().unwrap();
    let chat = Writer::chat().write(&dir.path().join("m.gguf"));
    let error = check_embedder(&chat).unwrap_err();
    assert!(matches!(error, CheckError::ChatAsEmbedder { .. }), "{error}");
    let last = Writer::chat().u32("llama.pooling_type", 3).write(&dir.path().join("l.gguf"));
    assert_eq!(check_embedder(&last).unwrap().pooling, Some(Pooling::Last));
    let ranker = Writer::chat().u32("llama.pooling_type", 4).write(&dir.path().join("r.gguf"));
    assert!(matches!(check_embedder(&ranker), Err(CheckError::Ranker { .. })));
    assert!(matches!(check_chat(&ranker), Err(CheckError::Ranker { .. })));
}

#[test]
fn real_models_are_told_apart() {
    let chat = "SmolLM2-135M-Instruct-Q4_1.gguf";
    if let Some(path) = test_model(chat) {
        let info = check_chat(&path).unwrap();
        assert!(info.chat_template.contains("<|im_start|>"));
        assert!(matches!(check_embedder(&path), Err(CheckError::ChatAsEmbedder { .. })));
    }
    if let Some(path) = test_model("all-MiniLM-L6-v2-f16.gguf") {
        let info = check_embedder(&path).unwrap();
        assert_eq!((info.dimensions, info.pooling), (384, Some(Pooling::Mean)));
        assert!(matches!(check_chat(&path), Err(CheckError::EmbedderAsChat { .. })));
    }
    if let Some(path) = test_model("gemma-3-270m-Q4_K_M.gguf") {
        assert!(matches!(check_chat(&path), Err(CheckError::NoChatTemplate { .. })));
    }
}

#[test]
fn the_fingerprint_is_the_files_hash_and_tells_its_progress() {
    let dir = tempfile::tempdir().unwrap();
    let abc = write(&dir.path().join("abc"), b"abc");
    let hex: String =
        sha256_file(&abc, |_, _| {}).unwrap().iter().map(|byte| format!("{byte:02x}")).collect();
    // The example of FIPS 180-2, appendix B.1.
    assert_eq!(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    let large = vec![7; 9 << 20];
    let path = write(&dir.path().join("large"), &large);
    let mut seen = Vec::new();
    let before = sha256_file(&path, |done, total| seen.push((done, total))).unwrap();
    assert!(seen.len() >= 3 && seen.is_sorted());
    assert_eq!(seen.last(), Some(&(9 << 20, 9 << 20)));
    let mut flipped = large;
    flipped[5 << 20] ^= 1;
    write(&path, &flipped);
    assert_ne!(sha256_file(&path, |_, _| {}).unwrap(), before);
    assert!(sha256_file(Path::new("/no/such/file"), |_, _| {}).is_err());
}
