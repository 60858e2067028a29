//! Chat templates give what Hugging Face's renderer gives.
//!
//! `tests/chat` has templates that use what real ones use, each with conversations and the text that jinja2 makes
//! of them (`tests/chat/expected.py`). `WARPWRIGHT_CHAT_TEMPLATES=FOLDER` names another such folder.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use warpwright_llm::chat::{ChatError, ChatTemplate, Message, SpecialTokens};

/// The cases of a template that differ, as text.
fn differences(template: &Path) -> Vec<String> {
    let source = fs::read_to_string(template).expect("the template is readable");
    let cases = fs::read(template.with_extension("json")).expect("its cases are there");
    let cases: Vec<Value> = serde_json::from_slice(&cases).expect("the cases are JSON");
    let tokens = SpecialTokens { bos: "<s>".to_string(), eos: "</s>".to_string() };
    let compiled = ChatTemplate::new(&source, &tokens);
    let text = |value: &Value| value.as_str().expect("a string").to_string();
    let mut found = Vec::new();
    for (index, case) in cases.iter().enumerate() {
        let messages: Vec<Message> = case["messages"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|message| Message::new(text(&message["role"]), text(&message["content"])))
            .collect();
        let prompt = case["add_generation_prompt"].as_bool().expect("a choice");
        let rendered = compiled.as_ref().map_err(|error| error.to_string()).and_then(|template| {
            template.render(&messages, prompt).map_err(|error| match error {
                ChatError::Refused { message } => format!("TemplateError: {message}"),
                other => other.to_string(),
            })
        });
        let same = match (&rendered, case.get("text"), case.get("error")) {
            (Ok(text), Some(wanted), _) => wanted == text,
            // What a template says itself is the same word for word. Other errors of Python's have other words
            // here, or are none: `None` can be gone through, and is empty.
            (result, None, Some(wanted)) => {
                let wanted = wanted.as_str().expect("a string");
                !wanted.starts_with("TemplateError")
                    || result.as_ref().is_err_and(|message| message == wanted)
            }
            _ => false,
        };
        if !same {
            let wanted = case.get("text").or(case.get("error"));
            found.push(format!(
                "{} case {index}:\n  wanted {wanted:?}\n  made   {rendered:?}",
                template.display()
            ));
        }
    }
    found
}

#[test]
fn templates_give_what_the_renderer_that_they_were_written_for_gives() {
    let mut folders = vec![PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/chat")];
    folders.extend(std::env::var_os("WARPWRIGHT_CHAT_TEMPLATES").map(PathBuf::from));
    for folder in folders {
        let mut templates: Vec<PathBuf> = fs::read_dir(&folder)
            .expect("the folder is there")
            .map(|entry| entry.expect("readable").path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "jinja"))
            .collect();
        templates.sort();
        assert!(!templates.is_empty(), "{}", folder.display());
        let found: Vec<String> = templates.iter().flat_map(|template| differences(template)).collect();
        assert!(found.is_empty(), "{} differences\n{}", found.len(), found.join("\n"));
    }
}

fn template(source: &str) -> Result<ChatTemplate, ChatError> {
    ChatTemplate::new(source, &SpecialTokens::default())
}

fn failure(source: &str) -> ChatError {
    let template = template(source).expect("it is a template");
    template.render(&[Message::new("user", "hi")], true).expect_err("it has no text")
}

#[test]
fn what_is_no_template_names_the_line() {
    let error = template("{{ bos_token }}\n{% for m in messages %}\n{{ m.role }\n{% endfor %}")
        .expect_err("a brace lacks");
    assert!(matches!(error, ChatError::Syntax { line: Some(3), .. }), "{error:?}");
    let error = template("{% if x %}").expect_err("no end");
    assert!(matches!(error, ChatError::Syntax { .. }), "{error:?}");
}

#[test]
fn what_a_template_refuses_is_said_in_its_words() {
    let error =
        failure("{% macro m() %}{{ raise_exception('no ' ~ messages[0].role) }}{% endmacro %}{{ m() }}");
    assert!(matches!(&error, ChatError::Refused { message } if message == "no user"), "{error:?}");
}

#[test]
fn what_cannot_be_done_names_the_line() {
    for source in [
        "\n{{ messages[0].nothing.further }}",
        "\n{{ messages + 1 }}",
        "\n{{ messages[0].role.other() }}",
        "\n{{ nothing() }}",
        "\n{{ nothing | tojson }}",
        "\n{% include 'other' %}",
    ] {
        let error = failure(source);
        assert!(matches!(error, ChatError::Render { line: Some(2), .. }), "{source}: {error:?}");
    }
}

#[test]
fn a_template_that_never_ends_is_stopped() {
    let rounds = "{% for a in range(99999) %}{% for b in range(99999) %}{{ a }}{% endfor %}{% endfor %}";
    for source in [rounds, "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"] {
        let error = failure(source);
        assert!(matches!(error, ChatError::TooMuch { .. } | ChatError::Render { .. }), "{source}: {error:?}");
    }
}

#[test]
fn no_messages_are_no_conversation() {
    let error =
        template("{{ messages[0] }}").expect("a template").render(&[], true).expect_err("nothing to say");
    assert!(matches!(error, ChatError::NoMessages), "{error:?}");
}

/// Expressions give what they give in Python, or their template is refused before it is used. What is an error in Python is
/// one here.
///
/// `tests/chat/expressions.py` writes the table.
#[test]
fn expressions_mean_what_they_mean_in_python() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/chat/expressions.json");
    let table = fs::read(path).expect("the table is there");
    let table: Vec<(String, Option<String>)> = serde_json::from_slice(&table).expect("the table is JSON");
    let messages = [Message::new("user", "hi")];
    let (mut refused, mut wrong) = (Vec::new(), Vec::new());
    for (expression, wanted) in &table {
        let made = match template(&format!("{{{{ {expression} }}}}")) {
            Err(error) => {
                assert!(matches!(error, ChatError::Syntax { .. }), "{expression}: {error}");
                refused.extend(wanted.is_some().then_some(expression));
                continue;
            }
            Ok(template) => template.render(&messages, false),
        };
        if made.as_ref().ok() != wanted.as_ref() {
            wrong.push(format!("{expression}: {wanted:?} is {made:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}\n{}", wrong.len(), table.len(), wrong.join("\n"));
    assert!(
        refused.len() * 50 < table.len(),
        "{} of {} are refused: {refused:#?}",
        refused.len(),
        table.len()
    );
}

#[test]
fn variables_reach_the_template_and_messages_stay_what_they_are() {
    let mut template =
        template("{{ enable_thinking is false }} {{ messages | length }}").expect("a template");
    let messages = [Message::new("user", "hi")];
    assert_eq!(template.render(&messages, false).expect("text"), "False 1");
    template.set("enable_thinking", &false);
    template.set("messages", &[1, 2, 3]);
    assert_eq!(template.render(&messages, false).expect("text"), "True 1");
}

#[test]
fn lines_of_a_template_end_as_pythons_reader_ends_them() {
    let message = [Message::new("user", "one\r\ntwo")];
    let template = template("a\r\nb\rc\n{{ 'd\r\ne' }}{{ messages[0].content }}").expect("it is a template");
    // What comes from outside stays as it is.
    assert_eq!(template.render(&message, false).expect("a text"), "a\nb\nc\nd\neone\r\ntwo");
}

#[test]
fn keys_of_json_keep_their_order() {
    let mut template = template("{{ tools | tojson }}").expect("it is a template");
    let tools = r#"[{"type": "function", "function": {"name": "f", "a": 1}}]"#;
    template.set_json("tools", tools).expect("it is JSON");
    assert_eq!(template.render(&[Message::new("user", "x")], false).expect("a text"), tools);
    assert!(template.set_json("tools", "[").is_err());
}
