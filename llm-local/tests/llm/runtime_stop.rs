//! When the owner thread ends by a panic, everybody who waits for it is told.
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use crate::support::runtime::*;
use garret_core::model::{ChatModel, ModelRole};
use garret_llm::ChatError;
use tracing::span::{Attributes, Id, Record};
use tracing::{Level, Metadata, Subscriber};

/// The owner thread's side of a gate that is closed for one decode.
type Held = Option<(SyncSender<()>, Receiver<()>)>;

/// Holds a decode until it is told to go on, and panics when a failure is logged.
#[derive(Clone, Default)]
struct Spoiler(Arc<Mutex<Held>>);

impl Subscriber for Spoiler {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "garret_llm::decode" || metadata.target() == "garret_llm::chat::worker"
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        assert_ne!(*event.metadata().level(), Level::WARN, "the panic this test is about");
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((arrived, go)) = held {
            arrived.send(()).unwrap();
            go.recv().unwrap();
        }
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// A panic outside of what is caught around a step: in a subscriber, while a failure is logged.
#[test]
fn a_dead_owner_thread_leaves_nobody_waiting() {
    let spoiler = Spoiler::default();
    let watched = || chat(512, 64);
    let Some(chat) = tracing::subscriber::with_default(spoiler.clone(), watched) else { return };
    let large = prose(chat.model(), "The main role was here first:", 400);
    run(&chat, request(ModelRole::Main, &large, 1)).unwrap();
    let (arrived, arrival) = sync_channel(0);
    let (go, going) = sync_channel(0);
    *spoiler.0.lock().unwrap() = Some((arrived, going));
    let other = prose(chat.model(), "A companion's own words, shared with nobody:", 300);
    let mut failing = chat.start(request(ModelRole::Inferrer, &other, 3)).unwrap();
    arrival.recv().unwrap();
    // The owner thread is in a decode: it won't see these before it fails for want of room.
    let mut waiting: Vec<_> = [ModelRole::Inferrer, ModelRole::Compactor]
        .map(|role| chat.start(request(role, &other, 3)).unwrap())
        .into();
    go.send(()).unwrap();
    assert_eq!(drain(&mut failing), Err(ChatError::Stopped));
    for reply in &mut waiting {
        assert_eq!(drain(reply), Err(ChatError::Stopped));
    }
    assert_eq!(run(&chat, request(ModelRole::Main, &large, 1)), Err(ChatError::Stopped));
    assert_eq!(chat.next_logits(ModelRole::Main, &large), Err(ChatError::Stopped));
}
