//! Something is forgotten or deleted, before or while companions work on it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use garret_core::model::ModelRole;
use garret_core::time::{Confidence, WallTime};
use garret_storage::{Fact, FactFilter, Selection, Store};
use garret_tests::disk::Disk;
use garret_tests::scripted::{Act, ScriptedModel};
use garret_tests::talk::{NOW_MS, session};

use crate::talk::{READING, Talk, WINDOW, options, remark, text};

const AT: WallTime = WallTime { unix_ms: NOW_MS, confidence: Confidence::Good };

fn forget(store: &Store, selection: &Selection<'_>) {
    store.erase(selection, AT, false).unwrap();
}

fn current(store: &Store) -> Vec<Fact> {
    store.facts(&FactFilter { latest: true, ..FactFilter::default() }).unwrap().facts
}

/// Turns that were summed up before a forgotten one and after it stay summed up, and what lies
/// between is summed up again.
#[test]
fn a_hole_that_a_forgotten_turn_leaves_is_closed() {
    for extra in 0..3 {
        let mut talk = Talk::new();
        talk.chat(60 + extra);
        let leaves: Vec<_> = talk.store().summaries(&session()).unwrap();
        let leaf = leaves.iter().filter(|s| s.depth == 0).nth(2).unwrap();
        let turn = (leaf.from + extra).min(leaf.to);
        forget(talk.store(), &Selection { turns: &[(session(), turn)], ..Selection::default() });
        talk.check();
        let broken = talk.store().frontier(&session()).unwrap();
        assert!(broken < leaf.to);
        for _ in 0..40 {
            talk.chat(1);
            talk.check();
        }
        let frontier = talk.store().frontier(&session()).unwrap();
        assert!(frontier > 60, "{frontier}, {:?}", talk.agent.last_summary_run(&session()));
    }
}

/// A whole leaf but one short message is forgotten: there is hardly anything left to be summed up.
#[test]
fn a_single_short_message_in_a_hole_is_closed_over() {
    let mut talk = Talk::new();
    talk.chat(20);
    talk.say("k");
    talk.chat(40);
    let leaves: Vec<_> = talk.store().summaries(&session()).unwrap();
    let leaf = leaves.iter().find(|s| s.depth == 0 && s.from <= 21 && s.to >= 21).unwrap();
    let others = (leaf.from..=leaf.to).filter(|turn| *turn != 21);
    let others: Vec<_> = others.map(|turn| (session(), turn)).collect();
    forget(talk.store(), &Selection { turns: &others, ..Selection::default() });
    talk.chat(20);
    talk.check();
    let frontier = talk.store().frontier(&session()).unwrap();
    assert!(frontier > 60, "{frontier}, {:?}", talk.agent.last_summary_run(&session()));
}

/// Of the turns between two summaries, those that can be read are summed up; those that can't be
/// are passed over, and the summary that stands for them says so.
#[test]
fn a_hole_of_turns_that_cannot_be_read_is_passed_over() {
    for (readable, broken) in [(0, 1), (0, 2), (1, 1)] {
        let mut talk = Talk::new();
        talk.chat(60);
        let leaves: Vec<_> = talk.store().summaries(&session()).unwrap();
        let leaf = leaves.iter().filter(|s| s.depth == 0).nth(2).unwrap();
        let first_broken = leaf.to + 1 - broken;
        let gone = leaf.from..first_broken - readable;
        let gone: Vec<_> = gone.map(|turn| (session(), turn)).collect();
        forget(talk.store(), &Selection { turns: &gone, ..Selection::default() });
        let mut talk = spoiled(&talk, first_broken..=leaf.to);
        let damaged = talk.store().damaged_turns(&session()).unwrap();
        let damaged: Vec<_> = damaged.iter().map(|turn| turn.seq).collect();
        assert_eq!(damaged, (first_broken..=leaf.to).collect::<Vec<_>>());
        talk.idle();
        let told = talk.agent.last_summary_run(&session()).unwrap().unwrap();
        talk.chat(20);
        let frontier = talk.store().frontier(&session()).unwrap();
        assert!(frontier > 60, "{frontier}, {told}");
        let roots = talk.store().summaries(&session()).unwrap();
        let over = roots.iter().find(|s| s.depth == 0 && s.to == leaf.to).unwrap();
        assert_eq!(over.text.contains("can't be read"), readable == 0, "{over:?}");
        assert_eq!(told.contains("can't be read"), readable == 0, "{told}");
    }
}

/// The same conversation on a device where a byte of each of some turns changed.
fn spoiled(talk: &Talk, turns: std::ops::RangeInclusive<u64>) -> Talk {
    talk.store().fold().unwrap();
    let mut images = talk.disk.images();
    for turn in turns {
        let words = remark(turn);
        for image in &mut images {
            let found = image.windows(words.len()).enumerate();
            let found = found.filter(|(_, window)| *window == words.as_bytes());
            for at in found.map(|(at, _)| at).collect::<Vec<_>>() {
                image[at] ^= 1;
            }
        }
    }
    Talk::on(Disk::of(images), crate::talk::model(WINDOW), options())
}

/// A fact that was forgotten isn't read again from the turn it was said in.
#[test]
fn a_forgotten_fact_does_not_come_back() {
    let mut talk = Talk::new();
    talk.say("I like tea and I live in Oslo.");
    talk.idle();
    let tea = current(talk.store()).into_iter().find(|fact| fact.predicate == "likes").unwrap();
    forget(talk.store(), &Selection { facts: &[tea.id], ..Selection::default() });
    for mut talk in [talk.killed(), talk] {
        talk.say("Good morning.");
        talk.idle();
        let facts = current(talk.store());
        assert!(facts.iter().all(|fact| fact.predicate != "likes"), "{facts:?}");
        let persona = facts.iter().find(|fact| fact.predicate == "persona");
        assert!(!persona.is_some_and(|persona| persona.text.contains("tea")), "{persona:?}");
    }
}

/// Forgetting one thing leaves all others as they were: nothing that was corrected comes back.
#[test]
fn what_was_corrected_stays_so_when_something_else_is_forgotten() {
    let mut talk = Talk::new();
    for said in [
        "I live in Oslo. I work at Acme.",
        "I moved to Bergen.",
        "I no longer work at Acme.",
        "Xyzzy.",
    ] {
        talk.say(said);
        talk.idle();
    }
    let before = talk.facts();
    forget(talk.store(), &Selection { pattern: Some("Xyzzy"), ..Selection::default() });
    for mut talk in [talk.killed(), talk] {
        talk.say("Good morning.");
        talk.idle();
        assert_eq!(talk.facts(), before);
    }
}

/// The description of the user ends with the last fact that it was made of.
#[test]
fn the_persona_ends_with_what_it_is_made_of() {
    let mut talk = Talk::new();
    talk.say("I work at Acme.");
    talk.idle();
    assert!(talk.facts().iter().any(|fact| fact.starts_with("persona")));
    talk.say("I no longer work at Acme.");
    talk.idle();
    talk.say("Hello.");
    let now: Vec<_> = current(talk.store());
    assert!(now.iter().all(|fact| !fact.holds_at(NOW_MS + 1)), "{now:?}");
}

/// While a companion reads some words they are forgotten: what it makes of them isn't stored, and
/// neither is a prompt that shows them.
#[test]
fn what_is_forgotten_under_a_companion_leaves_no_trace() {
    const SECRET: &str = "xylophone";
    for at in [ModelRole::Compactor, ModelRole::Inferrer, ModelRole::Rebase] {
        let disk = Disk::new();
        let store = disk.open();
        let (forgetful, done) = (Arc::clone(&store), Arc::new(AtomicBool::new(false)));
        let once = Arc::clone(&done);
        let model = ScriptedModel::new(WINDOW, []).companions(move |role, prompt| {
            let reads = role == at && text(prompt).contains(SECRET);
            if reads && !once.swap(true, Ordering::SeqCst) {
                let pattern = Some(SECRET);
                forget(&forgetful, &Selection { pattern, ..Selection::default() });
            }
            Act::Say(match role {
                ModelRole::Inferrer => READING.replace("garden", SECRET),
                _ => format!("- the {SECRET} by the fence was counted again\n"),
            })
        });
        let mut talk = Talk::with(store, disk, model, options());
        talk.say("The safe opens with the xylophone by the fence, it's so much work.");
        for _ in 0..60 {
            talk.idle();
            if done.load(Ordering::SeqCst) {
                break;
            }
            talk.chat(1);
        }
        assert!(done.load(Ordering::SeqCst), "{at:?} never read it");
        let found = talk.store().verify_erased(SECRET.as_bytes()).unwrap();
        assert!(found.is_empty(), "{at:?}: {found:?}");
        talk.check();
        talk.chat(3);
    }
}

/// A session that is deleted while its turns are summed up, and begun anew by the same name, has
/// nothing of the old one.
#[test]
fn a_session_that_is_begun_anew_under_a_companion_has_nothing_of_the_old_one() {
    let disk = Disk::new();
    let store = disk.open();
    let (other, done) = (Arc::clone(&store), Arc::new(AtomicBool::new(false)));
    let once = Arc::clone(&done);
    let model = ScriptedModel::new(WINDOW, []).companions(move |role, _| {
        if role == ModelRole::Compactor && !once.swap(true, Ordering::SeqCst) {
            other.delete(&session()).unwrap();
            for turn in 1..=40 {
                other.accept(&session(), &format!("New {turn}"), AT).unwrap();
            }
        }
        Act::Say("- the bees by the fence were counted again\n".into())
    });
    let mut talk = Talk::with(store, disk, model, options());
    while !done.load(Ordering::SeqCst) {
        talk.chat(1);
    }
    assert_eq!(talk.store().summaries(&session()).unwrap(), []);
    talk.say("And now?");
    assert!(!talk.prompt().contains("Remark"), "{}", talk.prompt());
    talk.idle();
    talk.check();
}
