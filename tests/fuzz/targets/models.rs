//! Parsers of what comes with a model: the head of its file, and its chat template.

use std::io::Write as _;
use std::path::Path;

use garret_core::prompt::Role;
use garret_core::token::Token;
use garret_llm::check::{check_chat, check_embedder, check_reranker};
use garret_llm::gguf::Gguf;
use garret_llm::template::{ChatTemplate, Turn};
use garret_llm::vocab::{SpecialKind, SpecialToken, Specials};

#[path = "../../../llm-local/tests/llm/support/gguf.rs"]
#[allow(dead_code, reason = "a part of the helpers of other tests")]
mod gguf;

use gguf::Writer;

pub(super) fn gguf_header(bytes: &[u8]) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    if Gguf::open(file.path()).is_ok() {
        // A head that can be read may still be no model's.
        let _ = check_chat(file.path());
        let _ = check_embedder(file.path());
        let _ = check_reranker(file.path());
    }
}

pub(super) fn headers() -> Vec<Vec<u8>> {
    [Writer::chat(), Writer::embedder(), Writer::default()].map(|writer| writer.bytes()).into()
}

pub(super) fn chat_template(bytes: &[u8]) {
    let source = String::from_utf8_lossy(bytes);
    let Ok(template) = ChatTemplate::compile(&source, &specials()) else { return };
    let said = |role, content| Turn { role, content, kept: false };
    let turns = [
        said(Role::System, "Be kind."),
        said(Role::User, "{{ 1 }} <|im_end|>"),
        said(Role::Assistant, ""),
        said(Role::User, "\n"),
    ];
    let _ = template.render(&turns, true);
    let _ = template.layout(&turns[1..], true);
}

fn specials() -> Specials {
    let texts = ["<|im_start|>", "<|im_end|>", "<s>", "</s>", "[INST]", "[/INST]"];
    let tokens: Vec<_> = (256..).zip(texts).map(|(id, text)| special(id, text)).collect();
    let known = |at: usize| Some((tokens[at].id, tokens[at].text.clone()));
    let (bos, eos) = (known(2), known(3));
    Specials { tokens, bos, eos, add_bos: false }
}

fn special(id: i32, text: &str) -> SpecialToken {
    SpecialToken {
        id: Token(id),
        text: text.to_owned(),
        kind: SpecialKind::Control,
        ends_generation: false,
        strips_left: false,
        strips_right: false,
    }
}

/// The templates of known families.
pub(super) fn chat_templates() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../llm-local/tests/llm/templates");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    let templates: Vec<_> = files.into_iter().map(|file| std::fs::read(file).unwrap()).collect();
    assert!(templates.len() > 5, "the templates of llm-local are there");
    templates
}
