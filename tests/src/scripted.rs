//! A model that says what it is told to, on the port that llama.cpp stands behind.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use garret::embed::Embed;
use garret_core::model::{
    ChatModel, Event, Finish, ModelFacts, ModelRole, PoolingError, Reply, Request, Resumable,
};
use garret_core::token::Token;
use smol::channel::{Receiver, Sender};

/// An act of the model for one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Says this and ends its turn.
    Say(String),
    /// Says these bytes, which may be no text, and ends its turn.
    Bytes(Vec<u8>),
    /// Says this and then waits until it is cancelled.
    SayAndWait(String),
    /// Says this and then fails.
    Fail(String),
    /// Refuses the request.
    Refuse,
}

/// Why a scripted model fails: because it was told to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told;

impl std::fmt::Display for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the script says so")
    }
}

impl std::error::Error for Told {}

/// A model that acts a script out. Clones share the script. Whoever asks for more than fits into
/// the window, in whatever role, has made a mistake and hears so by a panic.
#[derive(Clone)]
pub struct ScriptedModel {
    facts: ModelFacts,
    silence: Arc<Silence>,
    shared: Arc<Mutex<Shared>>,
    on_start: Arc<dyn Fn() + Send + Sync>,
    companion: Arc<OnCompanion>,
}

/// The act of a companion that is asked a prompt in a role.
type OnCompanion = dyn Fn(ModelRole, &[Token]) -> Act + Send + Sync;

/// A prompt of a companion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// In which role.
    pub role: ModelRole,
    /// The prompt.
    pub prompt: Vec<Token>,
    /// The number of its tokens that the conversation's cache held.
    pub reused: usize,
    /// The grammar of the answer.
    pub grammar: Option<String>,
}

#[derive(Default)]
struct Shared {
    script: VecDeque<Act>,
    prompts: Vec<Vec<Token>>,
    limits: Vec<u32>,
    grammars: Vec<Option<String>>,
    ahead: Vec<Vec<Token>>,
    asked: Vec<Asked>,
    cache: Vec<Token>,
}

impl ScriptedModel {
    /// A model with a window of `n_ctx` tokens that acts `script` out, and then says "ok"; as a
    /// companion it says "- noted".
    pub fn new(n_ctx: u32, script: impl IntoIterator<Item = Act>) -> Self {
        let shared = Shared { script: script.into_iter().collect(), ..Shared::default() };
        let companion = Arc::new(|_: ModelRole, _: &[Token]| Act::Say("- noted\n".into()));
        let shared = Arc::new(Mutex::new(shared));
        let facts = ModelFacts { n_ctx, fingerprint: [7; 32], parameters: None };
        let silence = Arc::new(Silence { events_left: usize::MAX.into(), begun: Mutex::default() });
        Self { facts, silence, shared, on_start: Arc::new(|| ()), companion }
    }

    /// Has as many parameters.
    #[must_use]
    pub fn with_parameters(self, parameters: u64) -> Self {
        Self { facts: ModelFacts { parameters: Some(parameters), ..self.facts }, ..self }
    }

    /// Is known by this fingerprint.
    #[must_use]
    pub fn with_fingerprint(self, fingerprint: [u8; 32]) -> Self {
        Self { facts: ModelFacts { fingerprint, ..self.facts }, ..self }
    }

    /// Has the model fall silent for good after so many more events of whatever it is asked: what
    /// it does then ends when it is dropped. Hears when that begins.
    pub fn silent_after(&self, events: usize) -> Receiver<()> {
        let (begins, begun) = smol::channel::unbounded();
        *self.silence.begun.lock().expect("no panics with the lock") = Some(begins);
        self.silence.events_left.store(events, Ordering::SeqCst);
        begun
    }

    /// Calls `hook` whenever the model is asked for a reply, before anything else.
    #[must_use]
    pub fn on_start(self, hook: impl Fn() + Send + Sync + 'static) -> Self {
        Self { on_start: Arc::new(hook), ..self }
    }

    /// Has companions do what `act` says.
    #[must_use]
    pub fn companions(
        self,
        act: impl Fn(ModelRole, &[Token]) -> Act + Send + Sync + 'static,
    ) -> Self {
        Self { companion: Arc::new(act), ..self }
    }

    /// Every prompt of a companion so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.shared.lock().expect("no test thread panics with the lock").asked.clone()
    }

    /// Every prompt so far.
    pub fn prompts(&self) -> Vec<Vec<Token>> {
        self.shared.lock().expect("no test thread panics with the lock").prompts.clone()
    }

    /// For each of these prompts, most tokens that were to follow it.
    pub fn limits(&self) -> Vec<u32> {
        self.shared.lock().expect("no test thread panics with the lock").limits.clone()
    }

    /// For each of these prompts, the grammar that the reply had to follow.
    pub fn grammars(&self) -> Vec<Option<String>> {
        self.shared.lock().expect("no test thread panics with the lock").grammars.clone()
    }

    /// Every prompt that was only to be brought into the cache.
    pub fn ahead(&self) -> Vec<Vec<Token>> {
        self.shared.lock().expect("no test thread panics with the lock").ahead.clone()
    }

    /// Appends to the script.
    pub fn then(&self, act: Act) {
        self.shared.lock().expect("no test thread panics with the lock").script.push_back(act);
    }
}

impl ChatModel for ScriptedModel {
    type Reply = ScriptedReply;
    type Error = Told;

    fn facts(&self) -> ModelFacts {
        self.facts
    }

    fn start(&self, request: Request<'_>) -> Result<ScriptedReply, Told> {
        (self.on_start)();
        let most = request.prompt.len().saturating_add(request.max_tokens as usize);
        assert!(most <= self.facts.n_ctx as usize, "{most} tokens in a window of {:?}", self.facts);
        let companion = request.role != ModelRole::Main;
        let acted = companion.then(|| (self.companion)(request.role, request.prompt));
        let mut shared = self.shared.lock().expect("no test thread panics with the lock");
        let reused = shared.cache.iter().zip(request.prompt).take_while(|(a, b)| a == b).count();
        let act = if let Some(act) = acted {
            let (role, prompt) = (request.role, request.prompt.to_vec());
            let grammar = request.grammar.map(str::to_owned);
            shared.asked.push(Asked { role, prompt, reused, grammar });
            act
        } else if request.max_tokens == 0 {
            shared.ahead.push(request.prompt.to_vec());
            Act::Say("nothing, since no token is asked for".into())
        } else {
            shared.prompts.push(request.prompt.to_vec());
            shared.limits.push(request.max_tokens);
            shared.grammars.push(request.grammar.map(str::to_owned));
            shared.script.pop_front().unwrap_or(Act::Say("ok".into()))
        };
        let (mut said, end) = match act {
            Act::Say(text) => (text.into_bytes(), End::Stop),
            Act::Bytes(bytes) => (bytes, End::Stop),
            Act::SayAndWait(text) => (text.into_bytes(), End::Wait),
            Act::Fail(text) => (text.into_bytes(), End::Fail),
            Act::Refuse => return Err(Told),
        };
        let most = request.max_tokens as usize;
        let end = if said.len() > most { End::Length } else { end };
        said.truncate(most);
        if !companion {
            shared.cache = request.prompt.to_vec();
            shared.cache.extend(said.iter().map(|byte| Token((*byte).into())));
        }
        let prefilled = Event::Prefilled {
            reused: reused as u32,
            prefilled: (request.prompt.len() - reused) as u32,
        };
        let pieces =
            said.into_iter().map(|byte| Event::Piece { token: Token(byte.into()), bytes: [byte] });
        let events = std::iter::once(prefilled).chain(pieces).collect();
        let silence = Arc::clone(&self.silence);
        Ok(ScriptedReply { events, end: Some(end), silence, cancel: Arc::default() })
    }
}

impl Resumable for ScriptedModel {
    type State = Vec<u8>;

    fn state_fingerprint(&self) -> [u8; 32] {
        self.facts.fingerprint
    }

    fn save(&self, prompt: &[Token], most: u64) -> Result<Option<Vec<u8>>, Told> {
        let cache = &mut self.shared.lock().expect("no test thread panics with the lock").cache;
        let held = cache.iter().zip(prompt).take_while(|(a, b)| a == b).count();
        cache.truncate(held);
        let state: Vec<u8> = cache.iter().flat_map(|token| token.0.to_le_bytes()).collect();
        Ok(Some(state).filter(|state| !state.is_empty() && state.len() as u64 <= most))
    }

    fn restore(&self, state: &[u8]) -> Result<u32, Told> {
        let tokens = state.chunks_exact(4).map(|id| id.try_into().expect("chunks of four"));
        let cache: Vec<_> = tokens.map(|id| Token(i32::from_le_bytes(id))).collect();
        let held = cache.len() as u32;
        self.shared.lock().expect("no test thread panics with the lock").cache = cache;
        Ok(held)
    }
}

/// A reply of a [`ScriptedModel`].
pub struct ScriptedReply {
    events: VecDeque<Event<[u8; 1]>>,
    end: Option<End>,
    silence: Arc<Silence>,
    cancel: Arc<Cancel>,
}

/// When a model says nothing any more.
struct Silence {
    events_left: AtomicUsize,
    begun: Mutex<Option<Sender<()>>>,
}

impl Silence {
    /// Counts one event and says whether silence is there.
    fn has_begun(&self) -> bool {
        let left = |left: usize| left.checked_sub(1);
        let events_left = &self.events_left;
        let begun = events_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, left).is_err();
        if begun && let Some(begins) = &*self.begun.lock().expect("no panics with the lock") {
            // Nobody need listen.
            let _ = begins.try_send(());
        }
        begun
    }
}

#[derive(Default)]
struct Cancel {
    asked: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

#[derive(Clone, Copy)]
enum End {
    Stop,
    Length,
    Wait,
    Fail,
}

impl Reply for ScriptedReply {
    type Bytes = [u8; 1];
    type Error = Told;

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Event<[u8; 1]>, Told>>> {
        if self.silence.has_begun() {
            return Poll::Pending;
        }
        if let Some(event) = self.events.pop_front() {
            return Poll::Ready(Some(Ok(event)));
        }
        let Some(end) = self.end else { return Poll::Ready(None) };
        let event = match end {
            End::Stop => Ok(Event::Finished(Finish::Stop)),
            End::Length => Ok(Event::Finished(Finish::Length)),
            End::Fail => Err(Told),
            End::Wait => {
                *self.cancel.waker.lock().expect("no panics with the lock") =
                    Some(cx.waker().clone());
                if !self.cancel.asked.load(Ordering::SeqCst) {
                    return Poll::Pending;
                }
                Ok(Event::Finished(Finish::Cancelled))
            }
        };
        self.end = None;
        Poll::Ready(Some(event))
    }

    fn cancel(&self) {
        self.cancel.asked.store(true, Ordering::SeqCst);
        if let Some(waker) = self.cancel.waker.lock().expect("no panics with the lock").take() {
            waker.wake();
        }
    }
}

/// An embedder of words: each has a direction of its own, and a text the sum of its words'. Pairs
/// of words that were declared the same share one.
#[derive(Clone)]
pub struct ScriptedEmbedder {
    fingerprint: u8,
    same: Vec<(&'static str, &'static str)>,
    on_embed: Arc<OnEmbed>,
}

/// A hook that is called with the texts.
type OnEmbed = dyn Fn(&[&str]) -> Result<(), PoolingError> + Send + Sync;

impl ScriptedEmbedder {
    /// Numbers in a vector.
    pub const DIMENSIONS: usize = 64;

    /// An embedder by this mark, for which the words of each pair mean the same.
    pub fn new(fingerprint: u8, same: &[(&'static str, &'static str)]) -> Self {
        Self { fingerprint, same: same.to_vec(), on_embed: Arc::new(|_| Ok(())) }
    }

    /// Calls `hook` with the texts whenever it is used; an error is its own.
    #[must_use]
    pub fn on_embed(
        self,
        hook: impl Fn(&[&str]) -> Result<(), PoolingError> + Send + Sync + 'static,
    ) -> Self {
        Self { on_embed: Arc::new(hook), ..self }
    }

    fn vector(&self, text: &str) -> Vec<f32> {
        let mut sum = vec![0.0_f32; Self::DIMENSIONS];
        for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
            let word = word.to_lowercase();
            let same = self.same.iter().find(|(_, other)| *other == word);
            let word = same.map_or(word.as_str(), |(word, _)| word);
            // Pseudo-random signs: in as many dimensions, those of two words hardly agree.
            let mut state = word.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
            for place in &mut sum {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                *place += if state >> 63 == 0 { 1.0 } else { -1.0 };
            }
        }
        let length = sum.iter().map(|x| x * x).sum::<f32>().sqrt();
        if length > 0.0 {
            sum.iter_mut().for_each(|x| *x /= length);
        }
        sum
    }
}

impl std::fmt::Debug for ScriptedEmbedder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScriptedEmbedder").field("fingerprint", &self.fingerprint).finish()
    }
}

impl Embed for ScriptedEmbedder {
    fn fingerprint(&self) -> [u8; 32] {
        [self.fingerprint; 32]
    }

    fn dimensions(&self) -> usize {
        Self::DIMENSIONS
    }

    fn embed_into(&self, texts: &[&str], vectors: &mut [f32]) -> Result<(), PoolingError> {
        (self.on_embed)(texts)?;
        for (text, vector) in texts.iter().zip(vectors.chunks_mut(Self::DIMENSIONS)) {
            vector.copy_from_slice(&self.vector(text));
        }
        Ok(())
    }
}
