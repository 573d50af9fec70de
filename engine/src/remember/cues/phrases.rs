//! Phrases in which people say something of themselves.

use super::phrases::Value::{Age, Any, Name, Place, Thing, Trait};

/// The kinds of value that may follow a phrase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// Words to the end of the clause.
    Any,
    /// A thing or doing, without pronouns.
    Thing,
    /// A name: a capital, or a script without capitals.
    Name,
    /// A place, up to a preposition.
    Place,
    /// A number of years.
    Age,
    /// A word of [`TRAITS`].
    Trait,
}

/// A way to say something: words to stand one after another, `|` between choices, and what follows.
pub(super) struct Phrase {
    pub(super) words: &'static str,
    pub(super) relation: &'static str,
    pub(super) value: Value,
    /// The phrase denies, or says that something is no more.
    pub(super) ended: bool,
}

const fn says(words: &'static str, relation: &'static str, value: Value) -> Phrase {
    Phrase { words, relation, value, ended: false }
}

const fn ends(words: &'static str, relation: &'static str, value: Value) -> Phrase {
    Phrase { words, relation, value, ended: true }
}

/// All phrases; the first that fits at a word counts.
pub(super) const PHRASES: &[Phrase] = &[
    says("i|we live|living in", "lives_in", Place),
    says("i|we am|are living|based|located in", "lives_in", Place),
    says("i|we moved|relocated to", "lives_in", Place),
    says("i|we have moved|relocated to", "lives_in", Place),
    says("i|we am|are moving to", "plans", Place),
    ends("i|we moved away from", "lives_in", Place),
    ends("i|we moved out of", "lives_in", Place),
    says("i work|working at|for", "works_at", Any),
    says("i am working at|for", "works_at", Any),
    says("i got a job at", "works_at", Any),
    says("i work|working as", "occupation", Any),
    ends("i quit|left", "works_at", Name),
    says("my name is", "name", Name),
    says("i am called", "name", Name),
    says("call me", "name", Name),
    says("i am from", "from", Place),
    says("i come from", "from", Place),
    says("i was born in", "born_in", Any),
    says("i was born on", "birthday", Any),
    says("i am allergic to", "allergic_to", Thing),
    says("i am afraid|scared of", "afraid_of", Thing),
    says("i am married|engaged to", "partner", Name),
    says("i am learning", "learning", Thing),
    says("i am studying", "studies", Thing),
    says("i study", "studies", Thing),
    says("i am a|an", "is_a", Thing),
    says("i am", "about", Trait),
    says("i am", "age", Age),
    says("i turned", "age", Age),
    says("i like|love|enjoy|adore", "likes", Thing),
    says("i am fond of", "likes", Thing),
    says("i am into", "likes", Thing),
    says("i hate|dislike|despise|loathe", "dislikes", Thing),
    says("i can not stand", "dislikes", Thing),
    says("i prefer", "prefers", Thing),
    says("i speak", "speaks", Thing),
    says("i drive", "drives", Thing),
    says("i use", "uses", Thing),
    says("i play", "plays", Thing),
    says("i own", "owns", Thing),
    says("i have a|an|two|three|four|five", "has", Thing),
    says("i go to", "goes_to", Name),
    says("ich wohne|lebe in", "lives_in", Place),
    says("ich hei\u{df}e|heisse", "name", Name),
    says("mein name ist", "name", Name),
    says("ich arbeite bei|f\u{fc}r", "works_at", Any),
    says("ich arbeite als", "occupation", Any),
    says("ich komme aus", "from", Place),
    says("ich bin allergisch gegen", "allergic_to", Thing),
    says("ich bin", "age", Age),
    says("ich bin", "about", Trait),
    says("ich mag|liebe", "likes", Thing),
    says("ich hasse", "dislikes", Thing),
    says("ich spreche", "speaks", Thing),
    says("j|je habite \u{e0}|en|au|dans", "lives_in", Place),
    says("je vis \u{e0}|en|au", "lives_in", Place),
    says("je m appelle", "name", Name),
    says("mon nom est", "name", Name),
    says("je travaille chez|pour", "works_at", Any),
    says("je suis allergique \u{e0}|au|aux", "allergic_to", Thing),
    says("je viens de", "from", Place),
    says("j|je ai", "age", Age),
    says("j|je aime|adore", "likes", Thing),
    says("je d\u{e9}teste", "dislikes", Thing),
    says("je parle", "speaks", Thing),
    says("vivo en", "lives_in", Place),
    says("me llamo", "name", Name),
    says("mi nombre es", "name", Name),
    says("trabajo en|para", "works_at", Any),
    says("trabajo como|de", "occupation", Any),
    says("tengo", "age", Age),
    says("me gusta|gustan|encanta|encantan", "likes", Thing),
    says("odio", "dislikes", Thing),
    says("soy al\u{e9}rgico|al\u{e9}rgica a|al", "allergic_to", Thing),
    says("soy de", "from", Place),
    says("hablo", "speaks", Thing),
];

/// A way to say something in a script without spaces: what stands before the value, and after it.
pub(super) struct Wide {
    pub(super) before: &'static [&'static str],
    pub(super) after: &'static str,
    pub(super) relation: &'static str,
}

/// All phrases of scripts without spaces.
pub(super) const WIDE: &[Wide] = &[
    // Korean: "in X live", "my name is X", "X is liked", "at X work".
    Wide { before: &[" "], after: "\u{c5d0} \u{c0b4}", relation: "lives_in" },
    Wide { before: &[" "], after: "\u{c5d0}\u{c11c} \u{c0b4}", relation: "lives_in" },
    Wide { before: &[" "], after: "\u{c5d0}\u{c11c} \u{c77c}\u{d574}", relation: "works_at" },
    Wide { before: &[" "], after: "\u{c744} \u{c88b}\u{c544}", relation: "likes" },
    Wide { before: &[" "], after: "\u{b97c} \u{c88b}\u{c544}", relation: "likes" },
    Wide {
        before: &["\u{c774}\u{b984}\u{c740} "],
        after: "\u{c785}\u{b2c8}\u{b2e4}",
        relation: "name",
    },
    Wide {
        before: &["\u{c774}\u{b984}\u{c740} "],
        after: "\u{c774}\u{c5d0}\u{c694}",
        relation: "name",
    },
    Wide { before: &["\u{c774}\u{b984}\u{c740} "], after: "\u{c608}\u{c694}", relation: "name" },
    // Japanese: "X in live", "name is X", "X is liked", "X at work".
    Wide { before: &["\u{306f}", "\u{3001}"], after: "\u{306b}\u{4f4f}", relation: "lives_in" },
    Wide { before: &["\u{306f}", "\u{3001}"], after: "\u{3067}\u{50cd}", relation: "works_at" },
    Wide {
        before: &["\u{306f}", "\u{3001}"],
        after: "\u{304c}\u{597d}\u{304d}",
        relation: "likes",
    },
    Wide {
        before: &["\u{306f}", "\u{3001}"],
        after: "\u{304c}\u{5acc}\u{3044}",
        relation: "dislikes",
    },
    Wide { before: &["\u{540d}\u{524d}\u{306f}"], after: "\u{3067}\u{3059}", relation: "name" },
];

/// Words that say what somebody is.
pub(super) const TRAITS: &str = "vegetarian, vegan, pescatarian, diabetic, coeliac, celiac, epileptic, asthmatic, pregnant, \
     retired, unemployed, single, married, divorced, widowed, engaged, left-handed, deaf, \
     blind, colour-blind, color-blind, dyslexic, autistic, gluten-free, vegetarier, \
     vegetarierin, veganer, schwanger, rentner, rentnerin";

/// Words that may stand between those of a phrase.
pub(super) const ADVERBS: &str = "now, currently, actually, also, really, just, still, recently, always, usually, both, \
     mostly, only, do, did, already, absolutely, currently, auch, noch, ja, aktuell, aussi, \
     vraiment";

/// Words between those of a phrase that turn it round.
pub(super) const TURNS: &str =
    "not, never, no, longer, anymore, nicht, kein, keine, mehr, n, ne, pas, plus, ya";

/// Words before a phrase that make it nobody's own statement.
pub(super) const NOT_SAID: &str = "if, wish, whether, imagine, suppose, pretend, say, said, says, unless, wenn, ob, si, as, \
     do, did, should, would, could, can, where, am";

/// Words that end a value.
pub(super) const STOPS: &str = "and, but, because, since, so, which, who, while, although, though, when, if, then, now, \
     anymore, currently, too, until, where, that, instead, however, please, these, right, at, \
     for, with, after, before, as, or, by, on, und, aber, weil, denn, seit, et, mais, parce, \
     depuis, y, pero, porque, desde, lately, again, today, already, sometimes, jetzt, gezogen, \
     maintenant, ahora, except, whenever, \
     any";

/// Words of those that end a value that may be a part of it unless it is a place.
pub(super) const JOINS: &str = "at, for, with, on, as, by, right";

/// Words that no thing begins with.
pub(super) const NO_THING: &str = "it, that, this, them, these, those, you, him, her, how, what, when, to, your, bit, little, \
     lot, few, the, way, idea, question, problem, feeling, hard, while, meeting, kind, few, \
     not, so, if, couple, fan, mess, big, huge, friend, doubt, look, thing, headache, cold, \
     request, plan, point, hunch, favor, favour, chance, good, bad, new, das, es, dich, \
     \u{e7}a, te, eso, in, of, sure, quick";

/// Words that, as X of `my X is Y`, are nothing lasting of the user's.
pub(super) const NO_TRAIT: &str = "question, point, idea, problem, guess, understanding, bad, head, concern, issue, opinion, \
     view, answer, thought, plan, fault, mistake, worry, experience, feeling, suggestion, \
     request, life, day, brain, back, stomach, throat, code, function, script, program, \
     computer, laptop, phone, hope, only, fear, heart, mind";

/// Endings of what people do for a living.
pub(super) const TRADES: &str = "nurse, chef, pilot, clerk, cook, er, or, ist, ian, ant, smith, yst, eer, maid, judge, \
     midwife";
