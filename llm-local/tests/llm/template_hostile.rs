//! Templates made to hang, overflow the stack or fill memory end in an error.

use std::fmt::Write;

use garret_core::prompt::Role;
use garret_llm::template::{ChatTemplate, TemplateError};
use garret_llm::vocab::Specials;

use crate::support::template::{joined, turn};

fn refused(source: &str) -> TemplateError {
    let shown: String = source.chars().take(80).collect();
    match ChatTemplate::compile(source, &Specials::default()) {
        Err(error) => error,
        Ok(_) => panic!("compiled: {shown}"),
    }
}

#[test]
fn endless_work_runs_out_of_fuel() {
    let deep_loops = "{% for a in range(99999) %}".repeat(6) + "x" + &"{% endfor %}".repeat(6);
    for source in [
        deep_loops.as_str(),
        "{% for a in range(10**9) %}x{% endfor %}",
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{{ range(99999) | map('string') | join('x' * 10000) }}",
    ] {
        refused(source);
    }
}

#[test]
fn huge_output_is_never_made() {
    for source in [
        "{{ 'x' * 10**9 }}",
        "{{ 'x' * (2**62) }}",
        "{% set x = 'x' * 1000000 %}{{ (x * 1000) | length }}",
        "{% set ns = namespace(x='x') %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
        "{% set ns = namespace(x='x') %}{% for i in range(99) %}{% set ns.x = ns.x.replace('x', 'xxxxxxxxxx') %}{% endfor %}",
        "{{ ('%999999999d' | format(1)) }}",
        "{{ strftime_now('%A' * 100000000) }}",
        "{{ '{:>2000000000}'.format(1) | length }}",
        "{{ '{0:*^99999999999999999999}'.format(1) | length }}",
        "{{ '{:.1001f}'.format(1.5) | length }}",
        "{{ [[[[1]]]] | tojson(indent=500000000) | length }}",
        "{{ [[[[1]]]] | tojson(17) | length }}",
        "{% set ns = namespace(all=[]) %}{% for i in range(99999) %}{% set ns.all = ns.all + [range(99999) | list | tojson] %}{% endfor %}",
    ] {
        refused(source);
    }
}

#[test]
fn deep_recursion_ends() {
    let mut nested = String::new();
    for n in 0..2_000 {
        write!(nested, "{{% if {n} >= 0 %}}").unwrap();
    }
    nested.push_str(&"{% endif %}".repeat(2_000));
    let parens = format!("{{{{ {}1{} }}}}", "(".repeat(10_000), ")".repeat(10_000));
    let lists = format!("{{{{ {}1{} }}}}", "[".repeat(10_000), "]".repeat(10_000));
    let minus = format!("{{{{ {}'a' }}}}", "-".repeat(60_000));
    let not = format!("{{{{ {}1 }}}}", "not ".repeat(16_000));
    let sum = format!("{{{{ 1{} }}}}", "+1".repeat(32_000));
    let path = format!("{{{{ a{} }}}}", ".b".repeat(32_000));
    let filters = format!("{{{{ a{} }}}}", "|e".repeat(32_000));
    let ternary = format!("{{{{ 1{} }}}}", " if 0 else 1".repeat(5_000));
    let elif = format!("{{%if 0%}}{}{{%endif%}}", "{%elif 0%}".repeat(6_400));
    let power = format!("{{{{ 1{} }}}}", "**1".repeat(21_000));
    for source in [
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{% macro f(x) %}{{ g(x + 1) }}{% endmacro %}{% macro g(x) %}{{ f(x) }}{% endmacro %}{{ f(0) }}",
        "{% for x in [[[[]]]] recursive %}{{ loop([[x]]) }}{% endfor %}",
        &nested,
        &parens,
        &lists,
        &minus,
        &not,
        &sum,
        &path,
        &filters,
        &ternary,
        &elif,
        &power,
    ] {
        refused(source);
    }
}

#[test]
fn a_source_beyond_all_measure_is_refused() {
    let error = refused(&"x".repeat(2 << 20));
    assert!(matches!(error, TemplateError::Syntax { .. }), "{error}");
}

/// Time formats can ask for padding, which must not be believed either.
#[test]
fn padded_times_stay_small() {
    let source = "{{ strftime_now('%999999999Y') }}";
    refused(source);
}

#[test]
fn work_that_costs_no_fuel_is_given_up_on() {
    let doubled = "{% set ns = namespace(all=[0]) %}{% for i in range(70) %}\
                   {% set ns.all = ns.all + ns.all %}{% endfor %}{{ ns.all | length }}";
    let error = refused(doubled);
    assert!(error.to_string().contains("too long"), "{error}");
}

#[test]
fn formats_and_json_of_a_usual_size_are_made() {
    for (expression, expected) in [
        ("'{:>4}|{}-2024'.format(1, 2)", "   1|2-2024"),
        ("{'a': [1]} | tojson", r#"{"a": [1]}"#),
        ("[1] | tojson(indent=2)", "[\n  1\n]"),
        ("[1] | tojson(4)", "[\n    1\n]"),
        ("[1] | tojson(indent=none)", "[1]"),
    ] {
        let source = format!(
            "{{{{ {expression} }}}}{{% for m in messages %}}{{{{ m.content }}}}{{% endfor %}}"
        );
        let template = ChatTemplate::compile(&source, &Specials::default()).unwrap();
        let segments = template.render(&[turn(Role::User, "!")], true).unwrap();
        assert_eq!(joined(&segments), format!("{expected}!"));
    }
}
