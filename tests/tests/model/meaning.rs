//! Notes that share no word with a question are remembered for their meaning, in a store of a few
//! notes too, and small talk remembers nothing: on the starter embedder.

use std::sync::Arc;

use garret::Cancel;
use garret::agent::{Agent, Options, Parts};
use garret::embed::{attach, embed_all};
use garret_core::medium::{Medium, MediumError};
use garret_core::time::{Confidence, WallTime};
use garret_hal::clock::ManualClock;
use garret_hal::entropy::SeededEntropy;
use garret_hal::kernels;
use garret_hal::media::FileMedium;
use garret_llm::{Backend, Embedder, PoolingOptions};
use garret_storage::Store;
use garret_tests::bytes::ByteEncoder;
use garret_tests::models::{EMBEDDER, find};
use garret_tests::scripted::ScriptedModel;

/// A note, and a question about it in other words.
const NOTES: [(&str, &str); 20] = [
    ("My sister Nora moved to Lisbon last spring.", "Where does my sibling live now?"),
    ("The boiler was repaired by Mr. Okafor on Tuesday.", "Who fixed the heating?"),
    ("I am allergic to shellfish.", ""),
    ("We adopted a grey cat called Pepper.", "What pet do we have?"),
    ("The car needs new winter tyres before November.", ""),
    ("Dad's birthday is on the ninth of June.", "What gift occasion is coming up for my father?"),
    ("I started learning the cello in September.", "Which musical instrument do I play?"),
    ("The wifi password is taped under the router.", "How do I get online at home?"),
    ("Our neighbours are building a greenhouse.", ""),
    ("I read forty pages of Middlemarch yesterday.", "Which novel am I busy with?"),
    ("The dentist says I should floss more.", ""),
    ("We planted tomatoes and basil on the balcony.", "What vegetables are we growing?"),
    ("My salary goes up by four percent in January.", "Will I earn more money next year?"),
    ("The children take the bus number 12 to school.", "How do the kids get to class?"),
    ("I lost my umbrella on the train to Leeds.", "What did I leave behind while travelling?"),
    ("Grandma makes her bread with rye and caraway.", ""),
    ("The landlord wants to sell the flat.", "Is our home at risk of being sold off?"),
    ("I run five kilometres every Sunday morning.", "What do I do for exercise?"),
    ("Our printer jams whenever it is humid.", ""),
    ("I would like to see the northern lights one day.", "Which natural wonder do I dream about?"),
];

/// Messages that no note has to do with.
const ELSE: [&str; 10] = [
    "zxqv flurble grommet",
    "What is the capital of Mongolia?",
    "asdkjh qwoeiu zmxncb",
    "How do I sort an array in Python?",
    "Explain the second law of thermodynamics.",
    "Who won the 1998 world cup?",
    "lorem ipsum dolor sit amet",
    "Thanks, that's great!",
    "What does a mitochondrion do?",
    "Please summarise the treaty of Westphalia.",
];

/// Ids of what is remembered for a message.
fn remembered(store: &Arc<Store>, embedder: &Arc<Embedder>, message: &str) -> Vec<String> {
    let parts = Parts {
        model: ScriptedModel::new(8_192, []),
        encoder: ByteEncoder,
        store: Arc::clone(store),
        embedder: Some(Arc::clone(embedder) as _),
        clock: Arc::new(ManualClock::at_unix_ms(1_800_000_000_000)),
        entropy: Arc::new(SeededEntropy::new(1)),
    };
    let mut agent = Agent::new(parts, Options::default()).unwrap();
    let session = "now".parse().unwrap();
    let stop = Cancel::new();
    let turn = smol::block_on(agent.turn(&session, message, &stop, &mut |_| {})).unwrap();
    drop(agent);
    store.delete(&session).unwrap();
    turn.memory
}

#[test]
fn a_few_notes_are_remembered_for_their_meaning_and_small_talk_remembers_nothing() {
    let Some(path) = find(EMBEDDER) else { return };
    let options = PoolingOptions { threads: 2, ..PoolingOptions::default() };
    let embedder = Embedder::load(Backend::start().unwrap(), &path, options).unwrap();
    let embedder = Arc::new(embedder.with_fingerprint([7; 32]));
    let folder = tempfile::tempdir().unwrap();
    let file = |path: &std::path::Path| -> Result<Box<dyn Medium>, MediumError> {
        Ok(Box::new(FileMedium::open(path)?))
    };
    let store = Arc::new(Store::open(folder.path(), "n", file).unwrap());
    attach(&store, &*embedder, kernels::detect()).unwrap();
    for (note, _) in NOTES {
        let at = WallTime { unix_ms: 1_790_000_000_000, confidence: Confidence::Good };
        store.accept(&"notes".parse().unwrap(), note, at).unwrap();
    }
    embed_all(&store, &*embedder, &mut |_| true).unwrap();
    let mut missed = Vec::new();
    let asked = (1..).zip(NOTES).filter(|(_, (_, question))| !question.is_empty());
    for (turn, (_, question)) in asked.clone() {
        let answer = format!("notes/{turn}/user");
        if !remembered(&store, &embedder, question).contains(&answer) {
            missed.push(question);
        }
    }
    assert!(missed.len() * 10 <= asked.count(), "{missed:?}");
    for message in ELSE {
        let found = remembered(&store, &embedder, message);
        assert!(found.is_empty(), "{message}: {found:?}");
    }
}
