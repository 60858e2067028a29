//! Chat templates: messages become the text that a model was trained to continue.
//!
//! A GGUF file carries its template as a Jinja program (`tokenizer.chat_template`), written for the renderer of Hugging
//! Face's `transformers`. This module runs it like that renderer: with the same white-space settings, the same
//! functions in addition to Jinja's own (`raise_exception`, `strftime_now`, `tojson` as Python writes JSON), Python's
//! methods of strings, lists and dicts, loop controls, and `{% generation %}` blocks.
//!
//! The module works on text, including the texts of special tokens. A template is part of an untrusted file, so it is
//! restricted: it can access only its variables, and its steps and its memory are limited.

mod bounds;
mod clock;
mod environment;
mod error;
mod filters;
mod json;
mod methods;
mod program;
mod repr;

pub use error::ChatError;

use crate::gguf::Gguf;
use crate::tokenizer::Tokenizer;
use minijinja::value::Serde;
use minijinja::{Environment, Value};
use program::Program;
use serde::Serialize;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Message {
    /// The speaker: `system`, `user`, `assistant`, or another role that the template supports.
    pub role: String,
    /// The text.
    pub content: String,
}

impl Message {
    /// A message.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Message {
        Message { role: role.into(), content: content.into() }
    }
}

/// Texts of the special tokens that templates use; empty if a model has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpecialTokens {
    /// `bos_token`: begins a text.
    pub bos: String,
    /// `eos_token`: ends a text, or a turn.
    pub eos: String,
}

impl SpecialTokens {
    /// The special tokens of a model.
    pub fn of(tokenizer: &Tokenizer) -> SpecialTokens {
        let text = |id: Option<u32>| {
            let bytes = id.and_then(|id| tokenizer.token_bytes(id)).unwrap_or_default();
            String::from_utf8_lossy(bytes).into_owned()
        };
        SpecialTokens { bos: text(tokenizer.bos()), eos: text(tokenizer.eos()) }
    }
}

/// A chat template, compiled.
pub struct ChatTemplate {
    source: String,
    environment: Environment<'static>,
    variables: BTreeMap<String, Value>,
}

impl std::fmt::Debug for ChatTemplate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChatTemplate").field("variables", &self.variables).finish_non_exhaustive()
    }
}

impl ChatTemplate {
    /// The template of a file (`tokenizer.chat_template`); `None` if the file has none.
    ///
    /// # Errors
    ///
    /// Those of [`ChatTemplate::new`], and [`ChatError::File`] if the key is not text.
    pub fn from_gguf(gguf: &Gguf, tokenizer: &Tokenizer) -> Result<Option<ChatTemplate>, ChatError> {
        let source = gguf.metadata().optional::<&str>("tokenizer.chat_template")?;
        source.map(|source| ChatTemplate::new(source, &SpecialTokens::of(tokenizer))).transpose()
    }

    /// Compiles a template.
    ///
    /// # Errors
    ///
    /// [`ChatError::Syntax`] if the template is invalid, or if its tags are chains of more operators and branches than
    /// any template needs.
    pub fn new(source: &str, tokens: &SpecialTokens) -> Result<ChatTemplate, ChatError> {
        // As Python's reader does, in texts of the template too.
        let source = source.replace("\r\n", "\n").replace('\r', "\n");
        let source = environment::generation_blocks(&source).into_owned();
        Program::new(&source).map_err(ChatError::syntax)?;
        let environment = environment::environment();
        let mut template = ChatTemplate { source, environment, variables: BTreeMap::new() };
        template.set("bos_token", &tokens.bos);
        template.set("eos_token", &tokens.eos);
        // What a caller of Hugging Face's renderer passes without naming it.
        template.set("tools", &());
        template.set("documents", &());
        Ok(template)
    }

    /// Sets a variable of the template; some templates have variables for a model's features: `enable_thinking`,
    /// `date_string`. `messages` and `add_generation_prompt` are always those of [`ChatTemplate::render`].
    pub fn set(&mut self, name: &str, value: &impl Serialize) {
        self.variables.insert(name.to_string(), Serde(value).into());
    }

    /// Sets a variable to the value of a JSON text. The keys of its objects keep their order.
    ///
    /// # Errors
    ///
    /// If the text is not JSON.
    pub fn set_json(&mut self, name: &str, json: &str) -> Result<(), serde_json::Error> {
        self.variables.insert(name.to_string(), serde_json::from_str(json)?);
        Ok(())
    }

    /// The text of a conversation; with `add_generation_prompt` also the beginning of the assistant's answer.
    ///
    /// # Errors
    ///
    /// [`ChatError::NoMessages`] if there are none, [`ChatError::Refused`] if the template rejects the conversation,
    /// [`ChatError::TooMuch`] if it takes more steps or memory than a conversation needs, [`ChatError::Render`] if it
    /// fails while it is rendered.
    pub fn render(&self, messages: &[Message], add_generation_prompt: bool) -> Result<String, ChatError> {
        if messages.is_empty() {
            return Err(ChatError::NoMessages);
        }
        let mut variables = self.variables.clone();
        variables.insert("messages".to_string(), Serde(messages).into());
        variables.insert("add_generation_prompt".to_string(), add_generation_prompt.into());
        let program = Program::new(&self.source).map_err(ChatError::syntax)?;
        let variables = Serde(variables).into();
        // A renderer of this size has mistakes, and templates come from anybody.
        let rendered = catch_unwind(AssertUnwindSafe(|| program.render(&self.environment, variables)));
        rendered.map_err(|_| ChatError::Renderer)?.map_err(ChatError::render)
    }
}
