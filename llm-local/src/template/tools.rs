//! Tools in a template: what it says of them, and whether it has a form of its own for them.

use std::sync::Arc;

use garret_core::prompt::{Role, ToolSpec};
use minijinja::value::{Enumerator, Object, ObjectRepr, Value};

use super::{ChatTemplate, Segment, TemplateError, Turn};
use crate::vocab::{SpecialKind, Specials};

/// The tools a template shows.
#[derive(Debug)]
pub(super) struct Tools {
    /// Value that the template sees; none while there are no tools.
    value: Value,
    none: Value,
    /// True if calls can be told from the source and the vocabulary.
    known: bool,
}

impl Tools {
    pub(super) fn new(source: &str, specials: &Specials) -> Self {
        let is_call = |text: &str| MARKS.contains(&text);
        // A control token stands for no text: what the model calls could not be read.
        let hidden = specials
            .tokens
            .iter()
            .any(|token| token.kind == SpecialKind::Control && is_call(&token.text));
        let known = !hidden && MARKS.iter().all(|mark| source.contains(mark));
        Self { value: Value::from(()), none: Value::from(()), known }
    }

    /// Returns what the template sees with `turns`: tools stand in a system message.
    pub(super) fn shown(&self, turns: &[Turn<'_>]) -> &Value {
        let has_system = turns.first().is_some_and(|turn| turn.role == Role::System);
        if has_system { &self.value } else { &self.none }
    }
}

impl ChatTemplate {
    /// Sets the tools that conversations which begin with a system message tell of, or none.
    /// Returns false, and sets none, where the template has no form of its own for them that is
    /// known.
    pub fn set_tools(&mut self, tools: &[ToolSpec<'_>]) -> bool {
        self.tools.value = if tools.is_empty() { Value::from(()) } else { value(tools) };
        let works = tools.is_empty() || (self.tools.known && self.shows(tools));
        if !works {
            self.tools.value = Value::from(());
        }
        // What follows a system message isn't the same with tools and without.
        let learned = self.learn_trailers();
        works && learned.is_ok()
    }

    /// Returns whether the template names all tools and how they are called, and shows their
    /// answers.
    fn shows(&self, tools: &[ToolSpec<'_>]) -> bool {
        use Role::{Assistant, System, Tool, User};
        let scaffold = |roles: &[Role]| self.scaffold_of(roles).unwrap_or_default();
        let told = scaffold(&[System, User]);
        let named = |spec: &ToolSpec<'_>| told.contains(&format!("\"{}\"", spec.name));
        let names_all = tools.iter().all(named) && MARKS.iter().all(|mark| told.contains(mark));
        let called = scaffold(&[System, User, Assistant]);
        let answered = scaffold(&[System, User, Assistant, Tool]);
        names_all && !called.is_empty() && answered.starts_with(&called) && answered != called
    }

    /// Returns what the template writes around contents of these roles; an error where it refuses
    /// or drops one, or changes their order.
    fn scaffold_of(&self, roles: &[Role]) -> Result<String, TemplateError> {
        let turns: Vec<_> =
            roles.iter().map(|role| Turn { role: *role, content: "x", kept: false }).collect();
        let mut scaffold = String::new();
        let mut order = 0;
        for segment in self.render(&turns, false)? {
            match segment {
                Segment::Scaffold(text) => scaffold.push_str(&text),
                Segment::Content(index, _) if index == order => order += 1,
                Segment::Content(index, _) => return Err(TemplateError::Dropped { index }),
            }
        }
        Ok(scaffold)
    }
}

/// The list that a template shows.
fn value(tools: &[ToolSpec<'_>]) -> Value {
    let tool = |spec: &ToolSpec<'_>| {
        let properties = spec.parameters.iter().map(|parameter| {
            let kind = Value::from(parameter.kind.as_str());
            (parameter.name, Ordered::value([("type", kind)]))
        });
        let required = spec.parameters.iter().map(|parameter| Value::from(parameter.name));
        let parameters = Ordered::value([
            ("type", Value::from("object")),
            ("properties", Ordered::value(properties)),
            ("required", required.collect()),
        ]);
        let function = Ordered::value([
            ("name", Value::from(spec.name)),
            ("description", Value::from(spec.description)),
            ("parameters", parameters),
        ]);
        Ordered::value([("type", Value::from("function")), ("function", function)])
    };
    Value::from(tools.iter().map(tool).collect::<Vec<_>>())
}

/// An object whose keys stay in the order in which models know them.
#[derive(Debug)]
struct Ordered(Vec<(Value, Value)>);

impl Ordered {
    fn value<'k>(pairs: impl IntoIterator<Item = (&'k str, Value)>) -> Value {
        let pairs = pairs.into_iter().map(|(key, value)| (Value::from(key), value));
        Value::from_object(Self(pairs.collect()))
    }
}

impl Object for Ordered {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Map
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.0.iter().find(|(known, _)| known == key).map(|(_, value)| value.clone())
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.0.iter().map(|(key, _)| key.clone()).collect())
    }
}

/// Around a call.
const MARKS: [&str; 2] = ["<tool_call>", "</tool_call>"];
