//! Vectors for what is remembered: while nobody types, stopped by who does, taken up again.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use garret::Cancel;
use garret::agent::{Agent, Options, Parts};
use garret::embed::{attach, embed_all};
use garret_core::gate::Mode;
use garret_core::id::SessionId;
use garret_core::medium::{Medium, MediumError};
use garret_core::model::PoolingError;
use garret_core::time::{Confidence, WallTime};
use garret_hal::clock::ManualClock;
use garret_hal::entropy::SeededEntropy;
use garret_hal::kernels;
use garret_hal::media::FileMedium;
use garret_storage::{NewFact, Store};
use garret_tests::bytes::ByteEncoder;
use garret_tests::models::{EMBEDDER, find};
use garret_tests::program::{Place, feed, garret, only, stderr, succeeded};
use garret_tests::scripted::{ScriptedEmbedder, ScriptedModel};
use garret_tests::wire::objects;
use serde_json::{Value, json};
use smol::future::or;

type TestAgent = Agent<ScriptedModel, ByteEncoder>;

const AT: WallTime = WallTime { unix_ms: 1_790_000_000_000, confidence: Confidence::Good };

fn open(data: &Path) -> Arc<Store> {
    let file = |path: &Path| -> Result<Box<dyn Medium>, MediumError> {
        Ok(Box::new(FileMedium::open(path)?))
    };
    Arc::new(Store::open(data, "n", file).unwrap())
}

fn agent(store: &Arc<Store>, embedder: &ScriptedEmbedder) -> TestAgent {
    attach(store, embedder, kernels::detect()).unwrap();
    let parts = Parts {
        model: ScriptedModel::new(8_192, []),
        encoder: ByteEncoder,
        store: Arc::clone(store),
        embedder: Some(Arc::new(embedder.clone())),
        clock: Arc::new(ManualClock::at_unix_ms(1_800_000_000_000)),
        entropy: Arc::new(SeededEntropy::new(1)),
    };
    let options =
        Options { system_prompt: "Be kind.".into(), companions: Mode::Off, ..Options::default() };
    Agent::new(parts, options).unwrap()
}

fn say(agent: &mut TestAgent, text: &str) {
    let session: SessionId = "now".parse().unwrap();
    let stop = Cancel::new();
    smol::block_on(agent.turn(&session, text, &stop, &mut |_| {})).unwrap();
}

fn idle(agent: &mut TestAgent) -> usize {
    smol::block_on(agent.idle(&"s".parse().unwrap())).embedded
}

fn lacking(store: &Store) -> usize {
    store.unembedded(1_000).unwrap().len()
}

#[test]
fn what_was_said_gets_vectors_while_nobody_types() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let mut agent = agent(&store, &ScriptedEmbedder::new(1, &[]));
    say(&mut agent, "My bees live behind the shed.");
    assert_eq!(lacking(&store), 2, "message and reply");
    assert_eq!(idle(&mut agent), 2);
    assert_eq!(lacking(&store), 0);
    assert_eq!(idle(&mut agent), 0, "nothing is embedded twice");
}

/// The next message waits for no more than the call of the model that runs, and the rest is done
/// after it.
#[test]
fn the_next_message_stops_the_work_and_nothing_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    for n in 0..40 {
        store.accept(&"before".parse().unwrap(), &format!("message {n}"), AT).unwrap();
    }
    let (began, begins) = mpsc::channel();
    let (go, gone) = mpsc::channel::<()>();
    let gone = Mutex::new(gone);
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let embedder = ScriptedEmbedder::new(1, &[]).on_embed(move |texts| {
        if texts.len() > 1 && counted.fetch_add(1, Ordering::SeqCst) == 0 {
            began.send(()).unwrap();
            gone.lock().unwrap().recv().unwrap();
        }
        Ok(())
    });
    let mut agent = agent(&store, &embedder);
    let session = "s".parse().unwrap();
    let message = smol::unblock(move || begins.recv().unwrap());
    let work = async {
        agent.idle(&session).await;
    };
    smol::block_on(or(work, message));
    say(&mut agent, "Hello.");
    assert_eq!(lacking(&store), 42, "the turn was over before a vector was stored");
    go.send(()).unwrap();
    assert_eq!(idle(&mut agent), 42);
    assert_eq!(lacking(&store), 0);
}

/// Where there are vectors, a message is looked for by its own; where there are none to compare it
/// with, none is made.
#[test]
fn a_message_is_looked_for_by_its_meaning() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    store.accept(&"kitchen".parse().unwrap(), "My bees live behind the shed.", AT).unwrap();
    let calls = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&calls);
    let embedder = ScriptedEmbedder::new(1, &[]).on_embed(move |texts| {
        noted.lock().unwrap().push(texts.join("|"));
        Ok(())
    });
    let mut agent = agent(&store, &embedder);
    say(&mut agent, "Hello.");
    assert_eq!(*calls.lock().unwrap(), [""; 0]);
    idle(&mut agent);
    calls.lock().unwrap().clear();
    say(&mut agent, "Where do the bees live?");
    assert_eq!(*calls.lock().unwrap(), ["Where do the bees live?"]);
}

/// Closing the program in the middle keeps what was done, and another embedder begins anew.
#[test]
fn the_work_goes_on_where_it_was_and_another_embedder_begins_anew() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    for n in 0..30 {
        let text = format!("fact {n}");
        store.add_fact(&NewFact { text: &text, ..NewFact::default() }, AT).unwrap();
    }
    let first = ScriptedEmbedder::new(1, &[]);
    attach(&store, &first, kernels::detect()).unwrap();
    assert_eq!(embed_all(&store, &first, &mut |done| done < 16).unwrap(), 16);
    drop(store);
    let store = open(folder.path());
    attach(&store, &first, kernels::detect()).unwrap();
    assert_eq!(embed_all(&store, &first, &mut |_| true).unwrap(), 14);
    let second = ScriptedEmbedder::new(2, &[]);
    attach(&store, &second, kernels::detect()).unwrap();
    assert_eq!(embed_all(&store, &second, &mut |_| true).unwrap(), 30);
}

/// A text that means nothing to the embedder holds up nothing, and an embedder that fails loses
/// nothing.
#[test]
fn what_can_not_be_embedded_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    for text in ["one", "?!", "two"] {
        store.accept(&"s".parse().unwrap(), text, AT).unwrap();
    }
    let failing =
        ScriptedEmbedder::new(1, &[]).on_embed(|_| Err(PoolingError::Other("the script says so")));
    attach(&store, &failing, kernels::detect()).unwrap();
    let error = embed_all(&store, &failing, &mut |_| true).unwrap_err();
    assert!(error.to_string().contains("the script says so"), "{error}");
    let working = ScriptedEmbedder::new(1, &[]);
    assert_eq!(embed_all(&store, &working, &mut |_| true).unwrap(), 2);
    let mut agent = agent(&store, &failing);
    say(&mut agent, "three");
    assert_eq!(idle(&mut agent), 0);
    say(&mut agent, "four");
}

/// The program with the real embedder: vectors come with an import and with a fact, and can be made
/// later.
#[test]
fn the_program_makes_vectors() {
    let Some(embedder) = find(EMBEDDER) else { return };
    let home = tempfile::tempdir().unwrap();
    let memory = |args: &[&str]| {
        let mut command = garret(home.path());
        command.env("GARRET_DATA", home.path().join("data")).env("GARRET_BATCH_THREADS", "1");
        command.arg("memory").args(args);
        command
    };
    let with = ["--embedder", embedder.to_str().unwrap()];
    let vectors = |args: &[&str]| -> Value {
        let output = memory(&[&["stats", "--json"], args].concat()).output().unwrap();
        only::<Value>(objects(&succeeded(&output)))["vectors"].take()
    };
    let lines: String = (0..5)
        .map(|n| format!("{{\"session\":\"s\",\"text\":\"The lamp is number {n}.\"}}\n"))
        .collect();
    succeeded(&feed(&mut memory(&["import", "-"]), lines.as_bytes()));
    assert_eq!(vectors(&[]), Value::Null);
    assert_eq!(vectors(&with), 0);
    let made = memory(&[&["embed", "--json"], &with[..]].concat()).output().unwrap();
    assert_eq!(only::<Value>(objects(&succeeded(&made))), json!({"embedded": 5, "vectors": 5}));
    let added = memory(&[&["add", "Ada has a lamp."], &with[..]].concat()).output().unwrap();
    assert_eq!(succeeded(&added), "f1\n");
    assert_eq!(vectors(&with), 6);
    let imported = &mut memory(&[&["import", "-"], &with[..]].concat());
    let more = lines.replace("lamp", "chair");
    succeeded(&feed(imported, more.as_bytes()));
    assert_eq!(vectors(&with), 11);
    let query = ["search", "seat", "--json"];
    let by = |args: &[&str]| -> Value {
        let output = memory(&[&query, args].concat()).output().unwrap();
        only(objects(&succeeded(&output)))
    };
    assert_eq!(by(&[])["hits"], json!([]), "no word is shared");
    let text = by(&with)["hits"][0]["text"].as_str().unwrap_or_default().to_owned();
    assert!(text.starts_with("The chair is number"), "{text}");
    let none = memory(&["embed"]).output().unwrap();
    assert!(stderr(&none).contains("--embedder FILE"), "{none:?}");
    assert_eq!(none.status.code(), Some(1));
}

/// A chat with the real models gives what was said its vectors before the second message.
#[test]
fn a_chat_makes_vectors() {
    let (Some(place), Some(embedder)) = (Place::new(), find(EMBEDDER)) else { return };
    let file = embedder.to_str().unwrap();
    let flags = [
        ("data", place.data().display().to_string()),
        ("models_dir", place.data().display().to_string()),
        ("model", place.model().display().to_string()),
        ("embedder", file.to_owned()),
        ("window", "2048".to_owned()),
        ("max_tokens", "4".to_owned()),
        ("threads", "1".to_owned()),
        ("batch_threads", "1".to_owned()),
    ];
    let home = garret::config::Home::from_environment(|_| None);
    let sources = garret::config::Sources { flags: flags.into(), home, ..Default::default() };
    let config = garret::config::Config::resolve(sources).unwrap();
    let mut agent = garret::open::agent(&config).unwrap();
    let stop = Cancel::new();
    let session: SessionId = "s".parse().unwrap();
    let text = "My bees live behind the shed.";
    smol::block_on(agent.turn(&session, text, &stop, &mut |_| {})).unwrap();
    assert_eq!(smol::block_on(agent.idle(&session)).embedded, 2);
    let real = garret::open::embedder(&config).unwrap().unwrap();
    let vectors = real.embed(&["Where are the bees?"]).unwrap();
    let found =
        agent.store().with_vectors(|store| store.search(&vectors[0], 2, &|_| true).unwrap());
    assert_eq!(found.unwrap().len(), 2);
}
