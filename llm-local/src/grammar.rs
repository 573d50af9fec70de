//! Bounds on a GBNF grammar before it reaches llama.cpp, whose parser recurses.
//!
//! A grammar within these bounds is parsed or refused without ending the process. It is meant to
//! come from the program, not from its users: a grammar can still be written so that following it
//! takes very long.

/// Most bytes of a grammar.
pub const MAX_BYTES: usize = 64 << 10;
/// Deepest nesting of parentheses.
pub const MAX_DEPTH: usize = 64;
/// Largest sum of all repetition counts (`{m,n}` counts as the larger number).
pub const MAX_REPETITIONS: usize = 10_000;

/// Reason why a grammar is refused unseen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GrammarBounds {
    /// More than [`MAX_BYTES`].
    #[error("it has more than {MAX_BYTES} bytes")]
    Bytes,
    /// Parentheses nested deeper than [`MAX_DEPTH`].
    #[error("its parentheses nest deeper than {MAX_DEPTH}")]
    Depth,
    /// Repetitions that add up to more than [`MAX_REPETITIONS`].
    #[error("its repetitions add up to more than {MAX_REPETITIONS}")]
    Repetitions,
    /// A NUL character, at which C strings end.
    #[error("it contains a NUL character")]
    Nul,
}

/// Checks `grammar` against the bounds, not its syntax.
///
/// # Errors
/// When a bound is exceeded. Text in quotes, classes and comments counts only by its bytes.
///
/// ```
/// use garret_llm::grammar::{GrammarBounds, check};
/// assert_eq!(check(r#"root ::= ("yes" | "no") [ ("]{0,3} # (((("#), Ok(()));
/// assert_eq!(check(&"(".repeat(1_000)), Err(GrammarBounds::Depth));
/// ```
pub fn check(grammar: &str) -> Result<(), GrammarBounds> {
    if grammar.len() > MAX_BYTES {
        return Err(GrammarBounds::Bytes);
    }
    if grammar.contains('\0') {
        return Err(GrammarBounds::Nul);
    }
    let mut depth = 0_usize;
    let mut repetitions = 0_usize;
    let mut rest = grammar.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = match byte {
            b'"' => skip_quoted(after, b'"'),
            b'[' => skip_quoted(after, b']'),
            b'#' => skip_line(after),
            b'{' => {
                let (count, after) = count(after);
                repetitions = repetitions.saturating_add(count);
                after
            }
            b'(' => {
                depth += 1;
                after
            }
            b')' => {
                depth = depth.saturating_sub(1);
                after
            }
            _ => after,
        };
        if depth > MAX_DEPTH {
            return Err(GrammarBounds::Depth);
        }
        if repetitions > MAX_REPETITIONS {
            return Err(GrammarBounds::Repetitions);
        }
    }
    Ok(())
}

/// Returns what follows the unescaped `end`.
fn skip_quoted(mut rest: &[u8], end: u8) -> &[u8] {
    while let Some((byte, after)) = rest.split_first() {
        rest = match byte {
            b'\\' => after.get(1..).unwrap_or_default(),
            _ => after,
        };
        if *byte == end {
            break;
        }
    }
    rest
}

fn skip_line(rest: &[u8]) -> &[u8] {
    let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
    end.map_or(&[], |end| &rest[end..])
}

/// Returns the larger number of a `{m,n}` whose brace was read, and what follows.
fn count(rest: &[u8]) -> (usize, &[u8]) {
    let end = rest.iter().position(|byte| *byte == b'}').unwrap_or(rest.len());
    let (inside, after) = rest.split_at(end);
    let numbers = inside.split(|byte| !byte.is_ascii_digit()).filter(|digits| !digits.is_empty());
    let largest = numbers.map(number).max().unwrap_or(0);
    (largest, after)
}

fn number(digits: &[u8]) -> usize {
    digits.iter().fold(0, |sum: usize, digit| {
        sum.saturating_mul(10).saturating_add(usize::from(digit - b'0'))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bounds_are_exact() {
        let nested = |depth| format!("root ::= {}\"x\"{}", "(".repeat(depth), ")".repeat(depth));
        assert_eq!(check(&nested(MAX_DEPTH)), Ok(()));
        assert_eq!(check(&nested(MAX_DEPTH + 1)), Err(GrammarBounds::Depth));
        let repeated = |count| format!("root ::= [a]{{1,{count}}}");
        assert_eq!(check(&repeated(MAX_REPETITIONS)), Ok(()));
        assert_eq!(check(&repeated(MAX_REPETITIONS + 1)), Err(GrammarBounds::Repetitions));
        assert_eq!(check(&" ".repeat(MAX_BYTES)), Ok(()));
        assert_eq!(check(&" ".repeat(MAX_BYTES + 1)), Err(GrammarBounds::Bytes));
        assert_eq!(check("root ::= \"\0\""), Err(GrammarBounds::Nul));
    }

    #[test]
    fn siblings_are_no_nesting() {
        let many = format!("root ::= {}", "(\"a\") ".repeat(MAX_DEPTH * 3));
        assert_eq!(check(&many), Ok(()));
    }

    #[test]
    fn quoted_braces_count_for_nothing() {
        let text = format!(r#"root ::= "\"{{99999}}{}" [\]{{99999}}(]"#, "(".repeat(500));
        assert_eq!(check(&text), Ok(()));
    }

    proptest! {
        #[test]
        fn any_text_gets_an_answer(text in "[(){}\\[\\]\"\\\\#\n0-9a-z,:=|\u{e9}]{0,200}") {
            let _ = check(&text);
        }

        #[test]
        fn depth_outside_quotes_is_found(before in "[a-z =:]{0,40}", depth in 65_usize..500) {
            let text = format!("{before}{}", "(".repeat(depth));
            prop_assert_eq!(check(&text), Err(GrammarBounds::Depth));
        }
    }
}
