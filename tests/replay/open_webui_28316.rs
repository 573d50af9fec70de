//! open-webui#28316: after a change of the embedder, whose vectors have another length, every look
//! into memory failed until all of it was deleted.
//!
//! Vectors of another embedder are made anew while nobody waits. Until then words alone are looked
//! for, and every message is answered.

use std::path::Path;
use std::sync::Arc;

use garret::agent::{Agent, Options, Parts};
use garret::embed::attach;
use garret_core::gate::Mode;
use garret_core::medium::Medium;
use garret_hal::kernels;
use garret_hal::media::FileMedium;
use garret_storage::Store;
use garret_tests::scripted::{ScriptedEmbedder, ScriptedModel};
use garret_tests::talk::{TestAgent, parts, say, session, tell};

use crate::AT;

fn agent(store: &Arc<Store>, embedder: ScriptedEmbedder) -> TestAgent {
    attach(store, &embedder, kernels::detect()).unwrap();
    let model = ScriptedModel::new(8_192, []);
    let parts = Parts { embedder: Some(Arc::new(embedder)), ..parts(&model, Arc::clone(store)) };
    Agent::new(parts, Options { companions: Mode::Off, ..Options::default() }).unwrap()
}

#[test]
fn memory_goes_on_with_another_embedder() {
    let folder = tempfile::tempdir().unwrap();
    let file = |path: &Path| Ok(Box::new(FileMedium::open(path)?) as Box<dyn Medium>);
    let store = Arc::new(Store::open(folder.path(), "home", file).unwrap());
    let kitchen = "kitchen".parse().unwrap();
    tell(&store, &kitchen, "The bicycle stands in the cellar.", "I see.", AT);
    let same = [("bicycle", "velocipede"), ("cellar", "basement")];
    let mut first = agent(&store, ScriptedEmbedder::new(1, &same));
    smol::block_on(first.idle(&session()));
    assert_eq!(store.unembedded(9).unwrap().len(), 0);
    drop(first);
    let mut second = agent(&store, ScriptedEmbedder::new(2, &same));
    let by_words = say(&mut second, "Where does the bicycle stand in the cellar?");
    assert_eq!(by_words.memory.first().map(String::as_str), Some("kitchen/1/user"));
    smol::block_on(second.idle(&session()));
    assert_eq!(store.unembedded(9).unwrap().len(), 0, "all of it has vectors again");
    let by_meaning = say(&mut second, "The velocipede stands in the basement, or where?");
    assert_eq!(by_meaning.memory.first().map(String::as_str), Some("kitchen/1/user"));
}
