//! A chat template comes with a model, from anybody: whatever it does, it ends, and fills no memory.

#[path = "common/counting.rs"]
mod counting;

use counting::peak_allocated;
use warpwright_llm::chat::{ChatError, ChatTemplate, Message, SpecialTokens};

/// Bytes that no rendering of these tests may hold at once: what a whole one may make, and one value on the way.
const MAX_BYTES: usize = (512 + 128) << 20;

fn render(source: &str) -> Result<String, ChatError> {
    let messages = [Message::new("user", "hello"), Message::new("assistant", "hi")];
    let (result, peak) = peak_allocated(|| {
        let template = ChatTemplate::new(source, &SpecialTokens::default())?;
        template.render(&messages, true)
    });
    assert!(peak < MAX_BYTES, "{peak} bytes for {} of a template: {source:.80}", source.len());
    result
}

fn too_much(source: &str) {
    let result = render(source);
    assert!(
        matches!(result, Err(ChatError::TooMuch { line: Some(_), .. })),
        "{source:.200}: {:.200?}",
        result.map(|text| text.len())
    );
}

/// Does `step` with `x` sixty times, in a namespace.
fn doubling(begin: &str, step: &str) -> String {
    format!(
        "{{% set ns = namespace(x={begin}) %}}{{% for i in range(60) %}}{{% set ns.x = {step} %}}{{% endfor %}}{{{{ ns.x }}}}"
    )
}

#[test]
fn operators_do_not_double_without_end() {
    for (begin, step) in [
        ("'ab'", "ns.x ~ ns.x"),
        ("'ab'", "ns.x + ns.x"),
        ("'ab'", "ns.x * 2"),
        ("[1]", "ns.x + ns.x"),
        ("[1]", "ns.x * 2"),
        ("[1]", "[ns.x, ns.x]"),
        ("[1]", "{'a': ns.x, 'b': ns.x}"),
        ("[1]", "dict(a=ns.x, b=ns.x)"),
        ("[1]", "ns.x | chain(ns.x)"),
        ("[1]", "ns.x | zip(ns.x) | list"),
        ("'ab'", "ns.x | replace('a', ns.x)"),
        ("'ab'", "ns.x.replace('a', ns.x)"),
        ("'ab'", "ns.x.join(ns.x)"),
        ("'ab'", "ns.x | join(ns.x)"),
        ("'ab'", "'%s%s' | format(ns.x, ns.x)"),
        ("'ab'", "'{0}{0}'.format(ns.x)"),
        ("'ab'", "[ns.x, ns.x] | tojson"),
        ("'ab'", "[ns.x, ns.x] | string"),
    ] {
        too_much(&doubling(begin, step));
    }
}

#[test]
fn straight_text_does_not_either() {
    too_much(&format!("{{% set x = 'ab' %}}{}{{{{ x }}}}", "{% set x = x ~ x %}".repeat(60)));
    too_much(&format!(
        "{{% set x = 'ab' %}}{}{{{{ x }}}}",
        "{% set x %}{{ x }}{{ x }}{% endset %}".repeat(60)
    ));
    // The compiler of the renderer computes what is constant.
    too_much(&format!("{{{{ {} }}}}", ["'a' * 90000000"; 40].join(" ~ ")));
    let parts = ["x ~ x"; 100].join(" ~ ");
    too_much(&format!("{{% set x = 'a' * 9000000 %}}{{{{ {parts} }}}}"));
}

#[test]
fn neither_do_macros_blocks_and_calls() {
    too_much("{% macro m(x, n) %}{% if n %}{{ m(x ~ x, n - 1) }}{% endif %}{% endmacro %}{{ m('ab', 60) }}");
    let many = "{% for a in range(99999) %}";
    let text = "some text that stands between tags ".repeat(100);
    too_much(&format!("{{% set x %}}{many}{text}{{% endfor %}}{{% endset %}}"));
    too_much(&format!("{{% macro m() %}}{many}{text}{{% endfor %}}{{% endmacro %}}{{{{ m() }}}}"));
    too_much(&format!("{{% filter upper %}}{many}{text}{{% endfor %}}{{% endfilter %}}"));
    too_much(&format!("{many}{text}{{% endfor %}}"));
    too_much(&format!(
        "{{% set ns = namespace(l=[]) %}}{many}{{% set ns.l = ns.l + ['{text}'[1:] ~ a] %}}{{% endfor %}}"
    ));
    too_much(&format!(
        "{{% set ns = namespace(l=[]) %}}{many}{{% set ns.l = [ns.l] %}}{{% endfor %}}{{{{ ns.l }}}}"
    ));
}

#[test]
fn numbers_ask_for_no_memory() {
    for expression in [
        "'a' | indent(10 ** 10)",
        r"'a\nb' | indent(width=10 ** 10)",
        "'a' * 10 ** 8",
        "([1] * 10 ** 9) | list",
        "[1] * 10 ** 9",
        "[1, 2] * 2 ** 63",
        "[1] | batch(10 ** 12)",
        "[1] | batch(10 ** 12, 'x')",
        "[1] | slice(10 ** 12)",
        "'%1000000000d' | format(1)",
        "'%*d' | format(1000000000, 1)",
        "'%.1000000000f' | format(1)",
        "'{:1000000000}'.format(1)",
        "'{:>{}}'.format('a', 1000000000)",
        "('a' * 10 ** 7) | list",
        "('a ' * 10 ** 6).split()",
        "('a,' * 10 ** 6) | split(',')",
        "('a' * 10 ** 6).replace('', 'some words that are longer')",
    ] {
        let source = format!("\n{{{{ {expression} }}}}");
        let result = render(&source);
        assert!(
            matches!(
                result,
                Err(ChatError::TooMuch { line: Some(2), .. }
                    | ChatError::Render { line: Some(2), .. }
                    | ChatError::Renderer)
            ),
            "{expression}: {:?}",
            result.map(|text| text.len())
        );
    }
}

#[test]
fn indents_of_deep_values_are_counted() {
    let deep =
        "{% set ns = namespace(x=[1] * 100000) %}{% for i in range(60) %}{% set ns.x = [ns.x] %}{% endfor %}";
    too_much(&format!("{deep}{{{{ ns.x | tojson(indent=64) }}}}"));
}

#[test]
fn a_value_that_is_a_part_of_itself_is_refused() {
    too_much("{% set ns = namespace() %}{% set ns.x = ns %}{{ ns ~ '' }}");
    too_much("{% set ns = namespace() %}{% set ns.x = [ns] %}{{ ns == ns }}");
    too_much("{% set ns = namespace() %}{% set a, ns.x = 1, ns %}{{ ns | tojson }}");
    // There is no other way to give a namespace an attribute.
    for source in [
        "{% set ns = namespace() %}{% for ns.x in [ns] %}{{ ns }}{% endfor %}",
        "{% set ns = namespace() %}{% with ns.x = ns %}{{ ns }}{% endwith %}",
        "{% macro m(ns.x) %}{% endmacro %}",
    ] {
        let result = render(source);
        assert!(matches!(result, Err(ChatError::Syntax { .. })), "{source}: {result:?}");
    }
}

#[test]
fn long_chains_are_refused_before_anything_recurses() {
    let refused = |source: String| {
        let result = render(&source);
        assert!(matches!(result, Err(ChatError::Syntax { .. })), "{source:.80}: {result:?}");
    };
    const LONG: usize = 20_000;
    refused(format!("{{{{ {} }}}}", ["a"; LONG].join(" ~ ")));
    refused(format!("{{{{ a{} }}}}", ".b".repeat(LONG)));
    refused(format!("{{{{ a{} }}}}", "|upper".repeat(LONG)));
    refused(format!("{{{{ a{} }}}}", "[0]".repeat(LONG)));
    refused(format!("{{{{ a{} }}}}", "()".repeat(LONG)));
    refused(format!("{{{{ {}a }}}}", "not ".repeat(LONG)));
    refused(format!("{{{{ {}a }}}}", "-".repeat(LONG)));
    refused(format!("{{{{ {}1 }}}}", "(".repeat(LONG)));
    refused(format!("{{{{ {}1 }}}}", "[".repeat(LONG)));
    refused(format!("{{{{ {}1 }}}}", "{1:".repeat(LONG)));
    refused(format!("{{{{ {}1 }}}}", "1 if 1 else ".repeat(LONG)));
    refused(format!("{{{{ {}1 }}}}", "a and ".repeat(LONG)));
    refused(format!("{{% if a %}}{}{{% endif %}}", "{% elif a %}".repeat(LONG)));
    refused("{% if a %}".repeat(LONG));
    refused("{% for a in b %}".repeat(LONG));
    refused("{{ a }}".repeat(100_000));
}

#[test]
fn what_conversations_need_is_enough() {
    // Chains within the limits, and a long conversation that is put together in a variable.
    let chain = format!("{{{{ {} }}}}", ["'a'"; 250].join(" ~ "));
    assert_eq!(render(&chain).expect("a text").len(), 250);
    let source = "{% set ns = namespace(text='', last=[]) %}{% for m in messages %}\
                  {% set ns.text = ns.text ~ m.role ~ ': ' ~ m.content ~ '\n' %}\
                  {% set ns.last = ns.last + [m] %}{% endfor %}{{ ns.text }}{{ ns.last | length }}";
    let template = ChatTemplate::new(source, &SpecialTokens::default()).expect("a template");
    let messages: Vec<Message> = (0..500).map(|_| Message::new("user", "word ".repeat(200))).collect();
    let text = template.render(&messages, true).expect("a text");
    assert_eq!(text.len(), 500 * ("user: \n".len() + 1000) + "500".len());
}
