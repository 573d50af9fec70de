//! Refusals by the program itself of whatever can't work: one clear sentence on stderr, a status
//! that isn't 0, nothing on stdout, nothing stored.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use garret_tests::models::{EMBEDDER, GEMMA, STARTER, find};
use garret_tests::program::{garret, stderr, stdout};

/// Runs one message through the program with these arguments.
fn chat(home: &Path, args: &[&str]) -> Output {
    let data = home.join("data");
    garret(home)
        .args(["chat", "--once", "hello", "--json", "--data"])
        .arg(data)
        .args(args)
        .output()
        .unwrap()
}

/// Asserts that the program refuses, says each of `words`, and does so without a crash.
fn refused(output: &Output, words: &[&str]) {
    let (out, err) = (stdout(output), stderr(output));
    let code = output.status.code().unwrap_or_else(|| panic!("killed by a signal: {err}"));
    assert!(code == 1 || code == 2, "status {code}: {err}");
    assert_eq!(out, "", "nothing goes to stdout");
    for word in words {
        assert!(err.contains(word), "`{word}` is missing in: {err}");
    }
    assert!(!err.contains("panicked"), "{err}");
    assert!(err.lines().count() <= 3, "one sentence, not: {err}");
}

fn refused_model(file: &Path, words: &[&str]) {
    let home = tempfile::tempdir().unwrap();
    let output = chat(home.path(), &["--model", file.to_str().unwrap()]);
    refused(&output, words);
    assert!(!home.path().join("data").exists(), "a refused model leaves no data folder");
}

fn with_file(name: &str, bytes: &[u8], test: impl FnOnce(&Path)) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    test(&path);
}

#[test]
fn no_model_at_all() {
    let home = tempfile::tempdir().unwrap();
    refused(&chat(home.path(), &[]), &["no chat model", "--model", "quickstart"]);
}

#[test]
fn a_missing_file() {
    refused_model("/nowhere/model.gguf".as_ref(), &["/nowhere/model.gguf", "no such file"]);
}

#[test]
fn a_directory() {
    let folder = tempfile::tempdir().unwrap();
    refused_model(folder.path(), &["directory"]);
}

#[test]
fn a_file_that_is_not_gguf() {
    with_file("m.gguf", b"once upon a time there was a text file", |path| {
        refused_model(path, &["m.gguf", "GGUF"]);
    });
    with_file("empty.gguf", b"", |path| refused_model(path, &["empty.gguf"]));
}

#[test]
fn a_truncated_model() {
    let Some(starter) = find(STARTER) else { return };
    let bytes = fs::read(starter).unwrap();
    for keep in [24, 1_000, 100_000, bytes.len() / 2, bytes.len() - 1] {
        with_file("cut.gguf", &bytes[..keep], |path| refused_model(path, &["cut.gguf"]));
    }
}

#[test]
fn an_embedder_as_chat_model() {
    let Some(embedder) = find(EMBEDDER) else { return };
    refused_model(&embedder, &["embedd"]);
}

#[test]
fn a_chat_model_as_embedder() {
    let Some(starter) = find(STARTER) else { return };
    let home = tempfile::tempdir().unwrap();
    let check = |role: &str, file: &Path| {
        garret(home.path()).args(["models", "check", "--role", role]).arg(file).output().unwrap()
    };
    refused(&check("embedder", &starter), &["embedd"]);
    assert!(check("chat", &starter).status.success());
    let Some(embedder) = find(EMBEDDER) else { return };
    refused(&check("chat", &embedder), &["embedd"]);
    assert!(check("embedder", &embedder).status.success());
}

#[test]
fn a_base_model_without_a_chat_template() {
    let Some(gemma) = find(GEMMA) else { return };
    refused_model(&gemma, &["chat template"]);
}

#[test]
fn a_vocabulary_without_weights() {
    let Some(starter) = find(STARTER) else { return };
    let bytes = vocabulary_only(&fs::read(starter).unwrap());
    with_file("vocab.gguf", &bytes, |path| refused_model(path, &["vocab"]));
}

#[test]
fn a_template_that_does_not_render() {
    let Some(starter) = find(STARTER) else { return };
    let mut bytes = fs::read(starter).unwrap();
    let (whole, broken) = (b"for message in messages", b"for message in nobody()");
    let at = find_bytes(&bytes, whole).expect("the starter's template");
    bytes[at..at + whole.len()].copy_from_slice(broken);
    with_file("broken.gguf", &bytes, |path| {
        let home = tempfile::tempdir().unwrap();
        let output = chat(home.path(), &["--model", path.to_str().unwrap()]);
        refused(&output, &["chat template", "nobody is unknown"]);
    });
}

#[test]
fn windows_that_can_not_be() {
    let Some(starter) = find(STARTER) else { return };
    let model = starter.to_str().unwrap();
    let home = tempfile::tempdir().unwrap();
    let window = |tokens: &str| chat(home.path(), &["--model", model, "--window", tokens]);
    refused(&window("2047"), &["window", "2048"]);
    refused(&window("100000"), &["100000", "8192"]);
    refused(&window("many"), &["window", "many"]);
    let long = ["--model", model, "--window", "2048", "--max-tokens", "2000"];
    refused(&chat(home.path(), &long), &["2000", "--max-tokens"]);
}

#[test]
fn a_model_that_no_window_suits() {
    let Some(starter) = find(STARTER) else { return };
    let mut bytes = fs::read(starter).unwrap();
    let at = find_bytes(&bytes, b"llama.context_length").expect("a llama model") + 20 + 4;
    bytes[at..at + 4].copy_from_slice(&1_024_u32.to_le_bytes());
    with_file("short.gguf", &bytes, |path| {
        refused_model(path, &["1024", "2048", "another model"]);
        let home = tempfile::tempdir().unwrap();
        let check = garret(home.path()).args(["models", "check"]).arg(path).output().unwrap();
        refused(&check, &["1024", "another model"]);
    });
}

#[test]
fn a_home_that_is_not_there() {
    let home = tempfile::tempdir().unwrap();
    let output = garret(home.path()).env_remove("HOME").args(["config", "show"]).output();
    refused(&output.unwrap(), &["HOME", "models_dir"]);
}

#[test]
fn a_machine_with_too_little_memory() {
    let Some(gguf) = find(STARTER).map(|path| huge(&fs::read(path).unwrap())) else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("huge.gguf");
    fs::write(&path, &gguf).unwrap();
    refused_model(&path, &["MiB", "free", "--window"]);
}

#[test]
fn a_system_prompt_longer_than_its_ceiling() {
    let Some(starter) = find(STARTER) else { return };
    let home = tempfile::tempdir().unwrap();
    let long = "word ".repeat(3_000);
    let args = ["--model", starter.to_str().unwrap(), "--window", "2048", "--system-prompt", &long];
    refused(&chat(home.path(), &args), &["system prompt", "256"]);
}

#[test]
fn an_empty_message() {
    let home = tempfile::tempdir().unwrap();
    let output = garret(home.path()).args(["chat", "--once", "  ", "--json"]).output().unwrap();
    refused(&output, &["empty"]);
}

#[test]
fn settings_that_do_not_exist() {
    let home = tempfile::tempdir().unwrap();
    let config: PathBuf = home.path().join("c.toml");
    fs::write(&config, "windw = 4096\n").unwrap();
    let output = garret(home.path()).args(["config", "show", "--config"]).arg(&config).output();
    refused(&output.unwrap(), &["windw", "did you mean `window`"]);
    let output = garret(home.path()).args(["config", "show"]).env("GARRET_MAX_TOKEN", "3").output();
    refused(&output.unwrap(), &["GARRET_MAX_TOKEN", "did you mean `GARRET_MAX_TOKENS`"]);
}

fn find_bytes(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

/// The header of a GGUF file with its number of tensors set to 0.
fn vocabulary_only(gguf: &[u8]) -> Vec<u8> {
    let mut bytes = gguf.to_vec();
    bytes[8..16].fill(0);
    bytes
}

/// The same file whose header claims 512 wide layers: no machine has memory for their cache.
fn huge(gguf: &[u8]) -> Vec<u8> {
    let mut bytes = gguf.to_vec();
    for (key, value) in [("llama.block_count", 512_u32), ("llama.embedding_length", 65_536)] {
        let at = find_bytes(&bytes, key.as_bytes()).expect("a llama model") + key.len() + 4;
        bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
    bytes
}
