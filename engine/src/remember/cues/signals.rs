//! Turns of phrase that say how a message is meant.

use garret_language::sentences::{Text, Word, among, starts};

/// Returns whether a message asks for what is new.
pub(super) fn freshness(text: &Text<'_>) -> bool {
    let worded = text.sentences.iter().any(|sentence| {
        (0..sentence.words.len()).any(|at| {
            let words = sentence.words.get(at..).unwrap_or_default();
            starts(words, FRESH) && !starts(words, NOT_FRESH)
        })
    });
    worded || text.holds_any(FRESH_WIDE)
}

/// Returns the certainty that a message means something said before without naming it, 0 to 1.
pub(super) fn anaphora(text: &Text<'_>) -> f32 {
    let words: Vec<_> = text.words().collect();
    if text.holds_any(ANAPHORA_WIDE) {
        return 0.6;
    }
    let settled = words.first().is_some_and(|word| among(SETTLED, &word.text));
    if words.is_empty() || words.len() > FEW || settled {
        return 0.0;
    }
    if text.has_any(ELLIPSES) {
        return 0.8;
    }
    let points = text.sentences.iter().any(|sentence| {
        sentence.words.iter().enumerate().any(|(at, word)| {
            let rest = sentence.words.get(at + 1..).unwrap_or_default();
            among(POINTERS, &word.text) && !is_filler(word, rest)
        })
    });
    if points { 0.5 } else { 0.0 }
}

/// Returns whether a pointing word points at nothing: `it` of the weather and the clock, `this` of this
/// morning.
fn is_filler(word: &Word, rest: &[Word]) -> bool {
    let weather = &*word.text == "it" && starts(rest, EXPLETIVE);
    let time = rest.first().is_some_and(|next| among(TIMES, &next.text));
    weather || (matches!(&*word.text, "this" | "that" | "these" | "those") && time)
}

/// Returns the certainty that the user is unsure, 0 to 1.
pub(super) fn hedge(text: &Text<'_>) -> f32 {
    let torn = text.has_any(TORN);
    let hedged = text.has_any(HEDGES) || text.holds_any(HEDGES_WIDE);
    match (torn, hedged) {
        (true, _) => 1.0,
        (_, true) => 0.5,
        _ => 0.0,
    }
}

/// Returns the certainty that more is wanted than is said, 0 to 1: the user tells of trouble, or remarks
/// on what was answered, and asks for nothing.
pub(super) fn oblique(text: &Text<'_>, told: bool) -> f32 {
    let first = text.words().next();
    if asks(text) || first.is_none_or(|word| among(SETTLED, &word.text)) {
        return 0.0;
    }
    if text.has_any(TROUBLE) || text.holds_any(TROUBLE_WIDE) {
        return 1.0;
    }
    let few = text.words().count() < REMARK;
    if told || few || is_record(text) {
        return 0.0;
    }
    let turned = negation(text) || text.has_any(CONTRASTS) || text.whole.trim_end().ends_with("..");
    if turned { 1.0 } else { 0.75 }
}

/// Returns whether a message asks for something.
fn asks(text: &Text<'_>) -> bool {
    let requests = text.sentences.iter().any(|sentence| {
        let polite = |word: &&Word| !matches!(&*word.text, "please" | "so" | "now" | "then");
        let first = sentence.words.iter().find(polite);
        sentence.question || first.is_none_or(|word| among(REQUESTS, &word.text))
    });
    requests || text.has_any(ASKING) || text.holds_any(ASKING_WIDE)
}

/// Returns whether a message is something to be written down: a label before a colon, or many numbers.
fn is_record(text: &Text<'_>) -> bool {
    let label = text.whole.split(['\n', '.']).next().unwrap_or_default().contains(':');
    let numbers = text.words().filter(|word| word.text.starts_with(|c: char| c.is_ascii_digit()));
    label || numbers.count() > 1
}

/// Returns whether a message denies something or takes it back.
pub(super) fn negation(text: &Text<'_>) -> bool {
    let negates = |word: &Word| among(NEGATIONS, &word.text);
    text.words().any(negates) || text.holds_any(NEGATIONS_WIDE)
}

/// Words of a message that is too short to say what it is about.
const FEW: usize = 10;

const FRESH: &str = "latest, newest, currently, current, right now, at the moment, as of now, today, tonight, \
     tomorrow, this week, this weekend, this morning, this evening, news, still open, \
     up to date, recently, recent, these days, nowadays, lately, forecast, heute, aktuell, \
     aktuelle, aktuellen, neueste, neuesten, derzeit, zurzeit, momentan, gerade jetzt, \
     aujourd hui, actuel, actuelle, actuellement, maintenant, derni\u{e8}res nouvelles, \
     en ce moment, hoy, actual, actualmente, ahora mismo, \u{fa}ltimas noticias, \
     en este momento, esta semana";

/// Phrases of [`FRESH`] that speak of software, or of somebody's own time.
const NOT_FRESH: &str = "latest version, newest version, current version, current directory, current branch, \
     current line, recent version, latest release";

const FRESH_WIDE: &str = "\u{cd5c}\u{c2e0}, \u{c624}\u{b298}, \u{c9c0}\u{ae08}, \u{d604}\u{c7ac}, \u{c694}\u{c998}, \
     \u{cd5c}\u{adfc}, \u{6700}\u{65b0}, \u{4eca}\u{65e5}, \u{73fe}\u{5728}, \u{6700}\u{8fd1}, \
     \u{4eca}\u{9031}, \u{660e}\u{65e5}";

const ANAPHORA_WIDE: &str = "\u{adf8}\u{ac70}, \u{c774}\u{ac70}, \u{c800}\u{ac70}, \u{adf8}\u{ac83}, \u{adf8}\u{ac8c}, \
     \u{adf8}\u{b7fc}, \u{305d}\u{308c}, \u{3053}\u{308c}, \u{3042}\u{308c}, \
     \u{3055}\u{3063}\u{304d}\u{306e}";

/// A message that begins so answers or thanks, and points at nothing unclear.
const SETTLED: &str = "thanks, thank, thx, great, perfect, cool, nice, ok, okay, yes, yep, yeah, sure, awesome, \
     good, lovely, brilliant, danke, merci, gracias, wow, haha, excellent, wonderful, \
     hi, hello, hey, morning, bye, hallo, bonjour, hola, fine";

/// Openings that leave out what they are about.
const ELLIPSES: &str = "what about, how about, and the other, the other one, the first one, the second one, \
     the last one, same for, same thing, like before, as before, like last time, the usual, \
     you know what i mean, und was ist mit, et pour, y qu\u{e9} tal, which one";

const POINTERS: &str = "it, that, this, they, them, those, these, he, she, him, her, one, there, das, dies, dem, \
     \u{e7}a, cela, celui, celle, eso, esto, ese, esa";

const EXPLETIVE: &str = "is raining, is snowing, is cold, is hot, is possible, is time, is late, rains, take to, \
     possible, safe to, ok to, okay to, worth, mean to, is like";

const TIMES: &str = "week, weekend, morning, afternoon, evening, month, year, time, summer, winter, spring, \
     autumn, way, kind";

const HEDGES: &str = "maybe, perhaps, possibly, i guess, i suppose, not sure, i am unsure, kind of, sort of, \
     i think, i wonder, i was wondering, might, hmm, hm, not really, vielleicht, ich glaube, \
     wei\u{df} nicht, nicht sicher, eventuell, peut-\u{ea}tre, peut \u{ea}tre, je crois, \
     je sais pas, pas s\u{fb}r, quiz\u{e1}s, quiz\u{e1}, tal vez, creo que, no s\u{e9}, \
     no estoy seguro";

/// Torn between two things, or between asking and not.
const TORN: &str = "i do not know, i do not know what, not sure if, not sure whether, not sure about, no idea, \
     can not decide, having second thoughts, second thoughts, on the fence, be honest, \
     torn between, wondering if, wondering whether, feels off, feels wrong, \
     does not feel right, something is off, i should probably, is it weird, is it normal, \
     am i wrong, am i overreacting, not convinced";

const HEDGES_WIDE: &str = "\u{c544}\u{b9c8}, \u{ae00}\u{c384}, \u{ac83} \u{ac19}, \u{ac70} \u{ac19}, \
     \u{305f}\u{3076}\u{3093}, \u{304b}\u{3082}, \u{3068}\u{601d}\u{3046}, \
     \u{308f}\u{304b}\u{3089}\u{306a}\u{3044}";

/// First words of a request.
const REQUESTS: &str = "what, who, where, when, why, how, which, can, could, would, will, do, does, did, is, are, \
     should, tell, show, give, write, make, list, explain, help, find, remind, translate, \
     summarize, summarise, fix, add, remove, change, set, convert, calculate, compute, suggest, \
     recommend, describe, draft, create, plan, compare, check, define, name, let, rewrite, \
     shorten, sort, count, spell, read, repeat, continue, stop, turn, open, play, call, note, \
     remember, forget, save, delete, put, start, pick, imagine, pretend, act, was, wie, wo, \
     wann, quel, \
     imagine, and, next, again, more, log, use, export, rate, round, row, gib, erkl\u{e4}re, \
     donne, traduce, dame, \u{e9}cris, schreib, also";

/// A request in the middle of a sentence.
const ASKING: &str = "can you, could you, would you, please, help me, tell me, show me, give me, i need you to, \
     i want you to, kannst du, peux-tu, puedes, bitte";

const ASKING_WIDE: &str = "\u{c8fc}\u{c138}\u{c694}, \u{d574}\u{c918}, \u{c54c}\u{b824}, \
     \u{304f}\u{3060}\u{3055}\u{3044}, \u{6559}\u{3048}\u{3066}";

/// Words of a remark that sets something against what was said.
const CONTRASTS: &str = "but, though, although, still, just, only, already, too, anyway, well, everything, \
     everyone, nobody, differently, aber, trotzdem, mais, pourtant, pero, aunque, instead, feel";

/// Words below which a remark says too little to be read.
const REMARK: usize = 4;

const TROUBLE: &str = "died, broke, broken, broke down, stopped working, does not work, not working, \
     will not start, will not turn on, keeps, ran out, out of, lost, stolen, forgot, missed, \
     cancelled, canceled, late for, failed, rejected, fired, laid off, sick, hurts, pain, \
     fever, can not sleep, can not find, can not afford, can not focus, can not stop, \
     exhausted, tired of, so tired, stressed, worried, nervous, scared, anxious, overwhelmed, \
     stuck, lonely, upset, argument, had a fight, ghosted, behind, too expensive, overdue, \
     leaking, flooded, smells, crying, barely, ignored, did not reply, has not replied, \
     never replied, kaputt, vergessen, en panne, perdu, perd\u{ed}";

const TROUBLE_WIDE: &str = "\u{ace0}\u{c7a5}, \u{c544}\u{d30c}, \u{d53c}\u{ace4}, \u{58ca}\u{308c}, \u{75b2}\u{308c}, \
     \u{56f0}\u{3063}";

const NEGATIONS: &str = "not, no, never, none, nothing, nobody, without, neither, nor, nicht, kein, keine, keinen, \
     nie, pas, jamais, plus, rien, nunca, nada, tampoco";

const NEGATIONS_WIDE: &str =
    "\u{c548} , \u{c54a}, \u{c5c6}, \u{306a}\u{3044}, \u{307e}\u{305b}\u{3093}";
