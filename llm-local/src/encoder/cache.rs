//! Tokens of texts that were tokenised before.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;

use garret_core::token::Token;

/// Two generations of entries: what isn't asked for while one generation fills up is dropped with
/// the one before. A hit keeps an entry, a prompt's runs are all hit each turn, so a conversation
/// stays as long as it fits.
#[derive(Debug)]
pub(super) struct Cache {
    young: HashMap<Arc<str>, Arc<[Token]>>,
    old: HashMap<Arc<str>, Arc<[Token]>>,
    young_bytes: usize,
    /// Bytes one generation may hold; both together hold twice as much.
    limit: usize,
}

impl Cache {
    pub(super) fn new(limit: usize) -> Self {
        Self { young: HashMap::new(), old: HashMap::new(), young_bytes: 0, limit }
    }

    pub(super) fn get(&mut self, text: &str) -> Option<Arc<[Token]>> {
        if let Some(tokens) = self.young.get(text) {
            return Some(tokens.clone());
        }
        let (text, tokens) = self.old.remove_entry(text)?;
        self.put(text, tokens.clone());
        Some(tokens)
    }

    pub(super) fn insert(&mut self, text: &str, tokens: Arc<[Token]>) {
        self.put(text.into(), tokens);
    }

    fn put(&mut self, text: Arc<str>, tokens: Arc<[Token]>) {
        let bytes = text.len() + mem::size_of_val::<[Token]>(&tokens) + ENTRY_BYTES;
        if bytes > self.limit {
            return;
        }
        if self.young_bytes + bytes > self.limit {
            self.old = mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        if self.young.insert(text, tokens).is_none() {
            self.young_bytes += bytes;
        }
    }
}

/// Bytes that an entry costs beside its text and tokens, roughly.
const ENTRY_BYTES: usize = 96;

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(count: usize) -> Arc<[Token]> {
        vec![Token(1); count].into()
    }

    #[test]
    fn keeps_what_is_used_and_drops_what_is_not() {
        let mut cache = Cache::new(4 * (ENTRY_BYTES + 1 + 4));
        cache.insert("a", tokens(1));
        cache.insert("b", tokens(1));
        for text in ["c", "d", "e", "f", "g", "h", "i", "j", "k", "l"] {
            assert!(cache.get("a").is_some(), "dropped before {text}");
            cache.insert(text, tokens(1));
        }
        assert!(cache.get("b").is_none());
    }

    #[test]
    fn never_holds_more_than_two_generations() {
        let limit = 1_000;
        let mut cache = Cache::new(limit);
        for n in 0..500 {
            cache.insert(&n.to_string(), tokens(n % 50));
            let held: usize = cache
                .young
                .iter()
                .chain(&cache.old)
                .map(|(text, tokens)| text.len() + tokens.len() * 4 + ENTRY_BYTES)
                .sum();
            assert!(held <= 2 * limit, "{held} bytes after {n}");
        }
    }
}
