//! The work of idle time, done on demand where scripts leave no idle time.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use garret::agent::{Agent, Chore, Options};
use garret_core::gate::Mode;
use garret_core::medium::{Medium, MediumError};
use garret_hal::media::{Faults, FaultyMedium, FileMedium, RamMedium};
use garret_storage::{FactFilter, Store};
use garret_tests::disk::fill;
use garret_tests::program::{Place, failed, stdout};
use garret_tests::scripted::{Act, ScriptedModel};
use garret_tests::talk::{TestAgent, parts, say, session};

fn agent(model: &ScriptedModel, store: &Arc<Store>) -> TestAgent {
    let options = Options { companions: Mode::ColdStart, compact_at: 80, ..Options::default() };
    Agent::new(parts(model, Arc::clone(store)), options).unwrap()
}

/// However many messages nobody was idle after: all of them are read, older ones are summed up, and
/// the model's cache is left alone.
#[test]
fn everything_that_is_due_is_done_at_once() {
    let store = Arc::new(Store::on_medium("test", Box::new(RamMedium::new())).unwrap());
    let model = ScriptedModel::new(8_192, []);
    let mut agent = self::agent(&model, &store);
    say(&mut agent, "My name is Ada.");
    for day in 0..100 {
        say(&mut agent, &format!("On day {day} the weather was what it was. ").repeat(3));
    }
    say(&mut agent, "I live in Oslo.");
    let mut later = self::agent(&model, &store);
    let done = smol::block_on(later.catch_up(&session()));
    assert_eq!(done.extracted, 2, "also what was said behind 64 unread messages");
    assert!(done.summaries.leaves > 0 && store.frontier(&session()).unwrap() > 0, "{done:?}");
    assert!(model.ahead().is_empty(), "no prompt was brought into the cache");
    let again = smol::block_on(later.catch_up(&session()));
    assert_eq!((again.extracted, again.summaries.leaves), (0, 0));
    let facts = store.facts(&FactFilter { latest: true, ..FactFilter::default() }).unwrap().facts;
    let has = |value: &str| facts.iter().any(|fact| fact.object.as_deref() == Some(value));
    assert!(has("Ada") && has("Oslo"), "{facts:?}");
}

/// A disk that is full, a companion that fails: each is told, what doesn't need them is done, and
/// what wasn't is done once they work.
#[test]
fn what_fails_is_told_and_done_later() {
    let medium = FaultyMedium::new(Faults::default());
    let store = Arc::new(Store::on_medium("test", Box::new(medium.clone())).unwrap());
    let works = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&works);
    let model = ScriptedModel::new(8_192, []).companions(move |_, _| {
        let works = flag.load(Ordering::SeqCst);
        if works { Act::Say("- noted\n".into()) } else { Act::Refuse }
    });
    let mut agent = self::agent(&model, &store);
    say(&mut agent, "My name is Ada. I work at Acme with my sister and her dogs on big projects.");
    for day in 0..28 {
        say(&mut agent, &format!("On day {day} the weather was what it was. ").repeat(3));
    }
    let mut later = self::agent(&model, &store);
    let done = smol::block_on(later.catch_up(&session()));
    let chores: Vec<_> = done.failed.iter().map(|failure| failure.chore).collect();
    assert_eq!(chores, [Chore::Facts, Chore::Summaries], "{done:?}");
    assert!(done.failed.iter().all(|it| it.why.contains("the script says so")), "{done:?}");
    assert_eq!(done.extracted, 2, "the rules do without the companion");
    let again = smol::block_on(later.catch_up(&session()));
    assert_eq!(again.failed.len(), 1, "{again:?}");
    assert!(again.failed[0].why.contains("left alone"), "nothing was due? {again:?}");

    works.store(true, Ordering::SeqCst);
    say(&mut agent, "I live in Oslo.");
    let capacity = Some(medium.image().len() as u64);
    medium.set_faults(Faults { capacity, ..Faults::default() });
    fill(&store);
    let mut later = self::agent(&model, &store);
    let done = smol::block_on(later.catch_up(&session()));
    let facts = done.failed.iter().find(|failure| failure.chore == Chore::Facts);
    assert!(facts.is_some_and(|failure| failure.why.contains("no space")), "{done:?}");
    medium.set_faults(Faults::default());
    assert_eq!(smol::block_on(later.catch_up(&session())).extracted, 1);
}

/// A script that goes by the exit status hears of a conversation that can't be read.
#[test]
fn a_conversation_that_cannot_be_read_fails_the_command() {
    let Some(place) = Place::new() else { return };
    place.once("My name is Ada.", &["--session", "home"]);
    place.once("Hello.", &["--session", "other"]);
    place.run(&["session", "catch-up"]);
    let open = |path: &Path| -> Result<Box<dyn Medium>, MediumError> {
        Ok(Box::new(FileMedium::open(path)?))
    };
    let store = Store::open(&place.data(), "default", open).unwrap();
    store.set_title(&"other".parse().unwrap(), "To be spoiled").unwrap();
    store.fold().unwrap();
    let file = store.path().unwrap().to_owned();
    drop(store);
    let mut image = std::fs::read(&file).unwrap();
    let words = b"To be spoiled";
    let found = image.windows(words.len()).enumerate().filter(|(_, window)| window == words);
    for at in found.map(|(at, _)| at).collect::<Vec<_>>() {
        image[at] ^= 1;
    }
    std::fs::write(&file, image).unwrap();
    let output = place.garret(&["session", "catch-up"]).output().unwrap();
    let told = stdout(&output);
    assert!(told.contains("home: nothing was due\n"), "{told}");
    assert!(told.contains("other: its record is damaged"), "{told}");
    assert_eq!(output.status.code(), Some(1), "{told}");
}

/// A script runs it after each of its messages.
#[test]
fn a_script_catches_up_with_what_it_said() {
    let Some(place) = Place::new() else { return };
    place.once("My name is Ada and I live in Oslo.", &["--session", "home"]);
    place.once("Hello.", &["--session", "other"]);
    assert!(!place.run(&["memory", "list"]).contains("Oslo"), "nobody was idle");
    let caught_up = place.run(&["session", "catch-up"]);
    assert!(caught_up.contains("home: 2 new facts\n"), "{caught_up}");
    assert!(caught_up.contains("other: nothing was due\n"), "{caught_up}");
    assert!(place.run(&["memory", "list"]).contains("Oslo"));
    assert_eq!(place.run(&["session", "catch-up", "home"]), "home: nothing was due\n");
    // The name of before this one: scripts of then still run.
    assert_eq!(place.run(&["session", "settle", "home"]), "home: nothing was due\n");
    assert!(!place.run(&["session", "--help"]).contains("settle"));
    let unknown = failed(&place.garret(&["session", "catch-up", "nobody"]).output().unwrap(), 1);
    assert!(unknown.contains("there is no conversation `nobody`"), "{unknown}");
}
