//! The observer of a prompt: copies what a trace needs while the prompt is made, and works out how its
//! texts were put together once the reply is there, when nobody waits for a first word any more.

use garret_core::assemble::{self, Input, Turn};
use garret_core::id::TurnSeq;
use garret_core::prompt::{Message, PromptEncoder, Role};
use garret_core::shorten::ShownText;
use garret_core::token::{Token, TokenBuf};

use super::{Cut, Dated, Frames, Shape, find};

/// An assembled prompt as it was observed.
#[derive(Clone, Debug, Default)]
pub(crate) struct ObservedPrompt {
    tokens: Vec<Token>,
    /// End of each message in the tokens.
    ends: Vec<usize>,
    /// Role and text of each message.
    messages: Vec<(Role, String)>,
    /// Everything that is known without the tokens.
    shape: Shape,
}

impl ObservedPrompt {
    /// Copies the prompt of `tokens` that was made of `input` for the turn `turn` and shows turns from
    /// `from` on. Its messages end at `ends`, and the parts of its volatile block have `volatile` bytes.
    pub(crate) fn new(
        input: &Input<'_>,
        turn: TurnSeq,
        from: Option<TurnSeq>,
        tokens: &[Token],
        ends: Vec<usize>,
        volatile: Vec<usize>,
    ) -> Self {
        let from = from.unwrap_or(TurnSeq::MAX);
        let history = input.history.partition_point(|turn| turn.seq < from);
        let history = input.history.get(history..).unwrap_or_default();
        let messages = assemble::messages(input, history);
        let messages = messages.map(|it| (it.role, it.content.parts().collect()));
        let cut = |turn, shown: &ShownText<'_>| {
            shown.cut_bytes().map(|(head, tail)| Cut { turn, head, tail })
        };
        let newest = cut(turn, input.message);
        let older = history.iter().filter_map(|turn| cut(turn.seq, turn.user));
        let shape = Shape {
            instructions: input.system.text.len(),
            volatile,
            days: dated(history),
            cuts: older.chain(newest).collect(),
            ..Shape::default()
        };
        Self { tokens: tokens.to_vec(), ends, messages: messages.collect(), shape }
    }

    /// Works out what the template of `encoder`, which encoded the prompt, wrote around its texts.
    pub(crate) fn shape<E: PromptEncoder>(self, encoder: &mut E) -> Shape {
        let (prompt, starts) = detokenized(encoder, &self.tokens);
        let ends: Vec<_> = self.ends.iter().filter_map(|end| starts.get(*end).copied()).collect();
        let texts: Vec<&str> = self.messages.iter().map(|(_, text)| text.as_str()).collect();
        let roles = self.messages.iter().map(|(role, _)| *role);
        let gaps = || gaps(encoder, roles, self.tokens.len());
        Shape { frames: Frames::between(&prompt, &ends, &texts, gaps), ..self.shape }
    }
}

/// Returns the days of a history, each with the turn before which it stands.
fn dated(history: &[Turn<'_>]) -> Vec<Dated> {
    let marks = history.iter().zip(assemble::marks(history)).filter(|(_, day)| !day.is_empty());
    marks.map(|(turn, day)| Dated { turn: turn.seq, day: day.to_owned() }).collect()
}

/// Returns what the template writes before, between and after messages of these roles, which take at
/// most `length` tokens besides the marks; `None` where that isn't the same for every text.
fn gaps<E: PromptEncoder>(
    encoder: &mut E,
    roles: impl Iterator<Item = Role>,
    length: usize,
) -> Option<Vec<Vec<u8>>> {
    let messages: Vec<_> = roles.map(|role| Message::new(role, MARK)).collect();
    let mut tokens = vec![Token(0); length + messages.len() * MARK.len()];
    let mut run = TokenBuf::new(&mut tokens);
    encoder.encode(&messages, &mut run, &mut []).ok()?;
    let length = run.len();
    let (text, _) = detokenized(encoder, tokens.get(..length)?);
    let mut gaps = Vec::with_capacity(messages.len() + 1);
    let mut rest = &*text;
    while let Some(at) = find(rest, MARK.as_bytes()) {
        gaps.push(rest.get(..at)?.to_vec());
        rest = rest.get(at + MARK.len()..)?;
    }
    gaps.push(rest.to_vec());
    (gaps.len() == messages.len() + 1).then_some(gaps)
}

/// Returns the text of a run, and where in it each of its tokens begins, and the last one ends.
pub(crate) fn detokenized<E: PromptEncoder>(
    encoder: &E,
    tokens: &[Token],
) -> (Vec<u8>, Vec<usize>) {
    let mut text = Vec::new();
    let mut starts = vec![0];
    for token in tokens {
        encoder.detokenize(*token, &mut |bytes| text.extend_from_slice(bytes));
        starts.push(text.len());
    }
    (text, starts)
}

/// Stands for a text where only what is around it counts. No template writes it.
const MARK: &str = "~q7Zx~";
