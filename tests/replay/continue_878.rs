//! continue#878: tokens of a Llama model were counted with the tokenizer of another one, 30 % too few,
//! so that prompts that were thought to fit did not.
//!
//! What the receipt counts is what the model decodes, token for token, in any script.

use garret_tests::talk::say;

use crate::real;

const TEXTS: [&str; 5] = [
    "fn main() { let x = [0u8; 4]; println!(\"{x:?}\"); } // \t\t done",
    "\u{6211}\u{7684}\u{871c}\u{8702}\u{4f4f}\u{5728}\u{5c4b}\u{540e}",
    "\u{b0b4} \u{bc8c}\u{c740} \u{d5db}\u{ac04} \u{b4a4}\u{c5d0} \u{c0b0}\u{b2e4}",
    "\u{1f41d}\u{1f3e1}\u{1f469}\u{200d}\u{1f4bb}\u{1f3fd} 1234567890 \u{fb01}\u{301}",
    "Antidisestablishmentarianism; <|im_end|> \r\n\r\n   and so on",
];

#[test]
fn what_is_counted_is_what_is_decoded() {
    let folder = tempfile::tempdir().unwrap();
    let settings = [("window", "2048"), ("companions", "off")];
    let Some(mut agent) = real(folder.path(), &settings) else { return };
    for text in TEXTS {
        let receipt = say(&mut agent, text).receipt;
        let counted: u32 = receipt.blocks.iter().map(|block| block.tokens).sum();
        let decoded = receipt.reused_tokens + receipt.prefilled_tokens;
        assert_eq!((counted, decoded), (receipt.prompt_tokens, receipt.prompt_tokens), "{text}");
    }
}
