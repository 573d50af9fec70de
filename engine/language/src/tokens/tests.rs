use proptest::prelude::*;

use super::*;

/// The terms that a text of a language is indexed under.
fn indexed(text: &str, language: Language) -> Vec<String> {
    let mut found = Vec::new();
    tokens(text, &mut |token| {
        terms(&token, language, &mut |term| found.push(term.to_owned()));
    });
    found
}

fn english(text: &str) -> Vec<String> {
    indexed(text, Language::English)
}

/// Whether every term of `query` is among those of `text`.
fn finds(query: &str, text: &str, language: Language) -> bool {
    let (query, text) = (indexed(query, language), indexed(text, language));
    !query.is_empty() && query.iter().all(|term| text.contains(term))
}

#[test]
fn words_are_folded_stemmed_and_rid_of_the_commonest() {
    assert_eq!(english("The bees were SWARMING over Caf\u{e9}s."), ["bee", "swarm", "cafe"]);
    assert_eq!(english("Ada's hives don't"), ["ada", "hive"]);
    assert_eq!(english("the of and"), [""; 0]);
}

#[test]
fn forms_of_a_word_find_each_other_in_many_languages() {
    for (language, one, other) in [
        (Language::English, "running", "runs"),
        (Language::German, "H\u{e4}user", "Haus"),
        (Language::French, "mangera", "manger"),
        (Language::Spanish, "canciones", "canci\u{f3}n"),
        (Language::Italian, "gatti", "gatto"),
        (Language::Portuguese, "livros", "livro"),
        (Language::Dutch, "boeken", "boek"),
        (Language::Danish, "bilerne", "biler"),
        (Language::Swedish, "bilar", "bilen"),
        (Language::Norwegian, "husene", "huset"),
        (Language::Finnish, "taloissa", "talossa"),
        (Language::Hungarian, "h\u{e1}zban", "h\u{e1}z"),
        (Language::Romanian, "copiilor", "copii"),
        (Language::Turkish, "kitaplar", "kitap"),
        (
            Language::Russian,
            "\u{43f}\u{447}\u{435}\u{43b}\u{44b}",
            "\u{43f}\u{447}\u{435}\u{43b}\u{430}",
        ),
        (
            Language::Greek,
            "\u{3b4}\u{3c1}\u{3cc}\u{3bc}\u{3bf}\u{3b9}",
            "\u{3b4}\u{3c1}\u{3cc}\u{3bc}\u{3bf}\u{3c2}",
        ),
        (
            Language::Arabic,
            "\u{627}\u{644}\u{643}\u{62a}\u{627}\u{628}",
            "\u{643}\u{62a}\u{627}\u{628}",
        ),
    ] {
        assert!(finds(one, other, language), "{language:?}: {one}, {other}");
    }
}

#[test]
fn accents_may_be_left_out() {
    for (language, written, typed) in [
        (Language::French, "\u{e9}t\u{e9} \u{e0} la plage", "plage ete"),
        (Language::Spanish, "la canci\u{f3}n", "cancion"),
        (Language::German, "M\u{fc}nchen", "munchen"),
        (Language::Turkish, "karde\u{15f}", "kardes"),
        (Language::Russian, "\u{451}\u{436}", "\u{435}\u{436}"),
    ] {
        let language_hit = indexed(typed, language);
        let text = indexed(written, language);
        assert!(language_hit.iter().all(|term| text.contains(term)), "{written}: {text:?}");
    }
}

#[test]
fn a_word_is_stemmed_by_its_script_in_any_text() {
    let russian = "\u{43f}\u{447}\u{435}\u{43b}\u{44b}";
    assert_eq!(english(russian), indexed(russian, Language::Russian));
    assert_eq!(indexed("running", Language::Russian), ["run"]);
}

#[test]
fn what_is_looked_for_letter_by_letter_is_a_term() {
    for exact in [
        "C++",
        "C#",
        "F#",
        "a-b",
        "/etc/hosts",
        "~/bees.txt",
        ".bashrc",
        "C:\\Temp\\x",
        "ada@example.org",
        "https://example.org/a?b=c#d",
        "2023-05-08",
        "5/8/2023",
        "8.5.2023",
        "3.14",
        "3,000",
        "-40",
        "50%",
        "$12.50",
        "+49-30-1234",
        "10:30",
        "v1.2.3",
        "R2-D2",
        "snake_case",
        "std::fmt",
        "--flag",
        "192.168.0.1",
        "#bees",
        "\u{1f41d}",
        "x^2",
        "AT&T",
    ] {
        let term = format!("={}", casefold(exact));
        for text in [
            exact.to_owned(),
            format!("I mean ({exact}), mostly."),
            format!("\"{exact}\"!"),
            format!("say **{exact}**"),
        ] {
            assert!(english(&text).contains(&term), "{text}: {:?}", english(&text));
        }
    }
    assert!(finds("example.org", "write to ada@example.org", Language::English));
    assert!(finds("3000", "3,000 bees", Language::English));
    assert_eq!(english("day.Then bees"), ["=day.then", "day", "bee"]);
    assert_eq!(english("C++"), ["=c++"], "not the letter");
}

#[test]
fn scripts_without_spaces_become_pairs() {
    let text = "\u{6211}\u{559c}\u{6b22}\u{871c}\u{8702}\u{3002}";
    assert!(finds("\u{871c}\u{8702}", text, Language::English));
    assert!(finds("\u{8702}", text, Language::English), "one character");
    assert!(!finds("\u{8702}\u{871c}", text, Language::English), "in another order");
    // Hangul with a particle, kana with kanji, Thai.
    assert!(finds(
        "\u{d559}\u{ad50}",
        "\u{d559}\u{ad50}\u{c5d0} \u{ac14}\u{b2e4}",
        Language::English
    ));
    assert!(finds(
        "\u{98df}\u{3079}",
        "\u{5bff}\u{53f8}\u{3092}\u{98df}\u{3079}\u{305f}",
        Language::English
    ));
    assert!(finds(
        "\u{e1c}\u{e36}\u{e49}\u{e07}",
        "\u{e1c}\u{e36}\u{e49}\u{e07}\u{e1a}\u{e34}\u{e19}",
        Language::English
    ));
    // Half-width kana.
    assert!(finds("\u{ff76}\u{ff9e}\u{ff75}", "\u{30ac}\u{30aa}", Language::English));
    // Devanagari has spaces and vowel signs.
    let bee = "\u{92e}\u{927}\u{941}\u{92e}\u{915}\u{94d}\u{916}\u{940}";
    assert_eq!(english(bee), [bee]);
}

/// Words with up to two signs before and after them, whatever signs.
#[test]
fn a_plain_word_is_what_it_is_by_unicode() {
    let signs: Vec<char> = ('!'..='~').filter(char::is_ascii_punctuation).collect();
    let one = signs.iter().map(char::to_string);
    let two = signs.iter().flat_map(|a| signs.iter().map(move |b| format!("{a}{b}")));
    let around: Vec<String> = [String::new()].into_iter().chain(one).chain(two).collect();
    let long = "Ab7".repeat(60);
    let mut plain_ones = 0;
    for (word, before, after) in [("a", 3, 1), ("7", 1, 3), ("Ab", 1, 1), (&*long, 1, 1)]
        .into_iter()
        .flat_map(|(word, before, after)| {
            let [before, after] = [before, after].map(|step| around.iter().step_by(step));
            before.flat_map(move |b| after.clone().map(move |a| (word, b, a)))
        })
    {
        let text = [before, word, after].concat();
        let chunk = Piece { text: &text, start: 7 };
        let Some(word) = plain(chunk) else { continue };
        plain_ones += 1;
        let mut found = Vec::new();
        tokens_by_unicode(chunk, &mut |token| found.push(token));
        assert_eq!(found, [word.token(TokenKind::Word)], "{text}");
    }
    assert!(plain_ones > 10_000, "{plain_ones}");
}

proptest! {
    #[test]
    fn any_text_has_terms_and_they_lie_in_it(text in any::<String>()) {
        check(&text)?;
    }

    #[test]
    fn any_mixture_of_scripts_and_signs_has_terms(
        text in "([a-zA-Z'\u{2019}.,:_/@+#-]|[0-9]|[\u{c0}-\u{24f}]|[\u{4e00}-\u{4e20}]|[\u{300}-\u{310}]|[\u{e01}-\u{e4e}]|[\u{ac00}-\u{ac10}]|[\u{430}-\u{44f}]|[\u{621}-\u{652}]| |\u{1f41d}|\u{200d}){0,40}"
    ) {
        check(&text)?;
    }

    #[test]
    fn every_word_of_a_text_finds_it(words in prop::collection::vec("[b-z]{4,9}", 1..6)) {
        let text = words.join(" ");
        for word in &words {
            prop_assert!(finds(word, &text, Language::Other));
        }
    }
}

fn check(text: &str) -> Result<(), TestCaseError> {
    let language = Language::detect(text);
    let mut all = Vec::new();
    tokens(text, &mut |token| all.push(token));
    for token in all {
        prop_assert_eq!(&text[token.start..][..token.text.len()], token.text);
        for language in Language::ALL.iter().copied().chain([language]) {
            let mut empty = false;
            terms(&token, language, &mut |term| empty |= term.is_empty());
            prop_assert!(!empty, "an empty term from {:?}", token);
        }
    }
    Ok(())
}
