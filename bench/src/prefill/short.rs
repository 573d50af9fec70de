//! A model whose companions are answered for: their prompts are decoded, their answers written by
//! rule.

use std::collections::VecDeque;
use std::task::{Context, Poll, ready};

use garret_core::model::{ChatModel, Event, Finish, ModelFacts, ModelRole, Reply, Request};
use garret_llm::{ChatError, LlamaChat, LlamaReply};

use crate::answers;

/// A model whose replies are short; see the module. Unless it `answers`, everything is passed on as
/// it is.
#[derive(Clone)]
pub(super) struct ShortModel {
    pub(super) model: LlamaChat,
    pub(super) answers: bool,
}

impl ChatModel for ShortModel {
    type Reply = ShortReply;
    type Error = ChatError;

    fn facts(&self) -> ModelFacts {
        self.model.facts()
    }

    fn start(&self, request: Request<'_>) -> Result<ShortReply, ChatError> {
        let companion = !matches!(request.role, ModelRole::Main | ModelRole::Rebase);
        if !(self.answers && companion) {
            return Ok(ShortReply { reply: self.model.start(request)?, answer: None });
        }
        let vocab = self.model.model();
        let text = answers::of_companion(vocab, &request);
        let tokens = answers::tokens(vocab, &text);
        let cut = tokens.len() > request.max_tokens as usize;
        let tokens = tokens.into_iter().take(request.max_tokens as usize);
        let pieces = tokens.map(|token| Event::Piece { token, bytes: vocab.piece(token) });
        let end = Event::Finished(if cut { Finish::Length } else { Finish::Stop });
        let answer = Some(pieces.chain([end]).collect());
        let reply = self.model.start(Request { max_tokens: 0, grammar: None, ..request })?;
        Ok(ShortReply { reply, answer })
    }
}

/// A reply of the model, or its account of the prompt and then the answer.
pub(super) struct ShortReply {
    reply: LlamaReply,
    answer: Option<VecDeque<Event<Vec<u8>>>>,
}

impl Reply for ShortReply {
    type Bytes = Vec<u8>;
    type Error = ChatError;

    fn poll_event(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Event<Vec<u8>>, ChatError>>> {
        let event = ready!(self.reply.poll_event(cx));
        let is_over = matches!(event, Some(Ok(Event::Finished(Finish::Length))) | None);
        Poll::Ready(match &mut self.answer {
            Some(answer) if is_over => answer.pop_front().map(Ok),
            _ => event,
        })
    }

    fn cancel(&self) {
        self.reply.cancel();
    }
}
