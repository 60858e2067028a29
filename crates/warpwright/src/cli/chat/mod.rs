//! `warpwright chat`: a conversation, message by message.
//!
//! A line of standard input is a message, or on a terminal what was typed or pasted; the answer goes to standard output as it
//! comes, everything else to standard error. The template writes the conversation anew for every message; what the cache holds of it already, the tokens
//! up to the first that differs, is not computed again.

mod command;
mod input;

use super::engine::interrupt::Interrupt;
use super::engine::sampling::SamplingArguments;
use super::engine::{EngineArguments, Loaded, Screen, Wanted, context_help, failure, show_findings};
use super::model::ModelFile;
use super::{Failure, Outcome, source};
use command::Line;
use input::Input;
use std::io::{self, Write};
use std::path::PathBuf;
use warpwright_llm::chat::{ChatTemplate, Message, SpecialTokens};
use warpwright_llm::engine::EngineError;
use warpwright_llm::generate::{Finish, GenerateOptions, Generation, generate};
use warpwright_llm::tokenizer::{Encode, Tokenizer};

/// Talk with a model
#[derive(clap::Args)]
#[command(after_help = "\
Each line is a message, or on a terminal what is typed or pasted. `/help` lists commands, `/reset` begins anew, `/exit` or
Ctrl-D leaves, Ctrl-C stops an answer.

Exit status: 0 all is well, 1 the virtual GPU's checks found something, 2 it could not be done, or messages that did not come
from a terminal were refused, 130 it was interrupted.")]
pub(crate) struct Arguments {
    /// The system prompt: instructions to the model before the conversation
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    system: Option<String>,
    /// A Jinja template for the conversation [default: the model's own; with the built-in model, each message begins a
    /// story]
    #[arg(long, value_name = "FILE")]
    template: Option<PathBuf>,
    /// Set a variable of the template, such as enable_thinking=false; the value is JSON, otherwise text
    #[arg(long = "set", value_name = "NAME=VALUE")]
    variables: Vec<String>,
    /// Maximum number of tokens of an answer; -1: until the model ends it or the context is full
    #[arg(short, long = "predict", value_name = "N", default_value_t = -1, allow_negative_numbers = true,
        value_parser = clap::value_parser!(i64).range(-1..))]
    n: i64,
    /// Maximum number of tokens of the whole conversation [default: 4096, or the model's maximum if that is less]
    #[arg(short, long = "ctx", value_name = "TOKENS")]
    context: Option<u32>,
    /// Stop an answer at this text; may be given several times
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    stop: Vec<String>,
    /// Print the model's input for each message on standard error: the conversation as the template writes it
    #[arg(long)]
    show_prompt: bool,
    /// Print the time of each answer on standard error
    #[arg(long)]
    stats: bool,
    #[command(flatten)]
    sampling: SamplingArguments,
    #[command(flatten)]
    engine: EngineArguments,
}

fn template(arguments: &Arguments, file: &ModelFile, tokenizer: &Tokenizer) -> Result<ChatTemplate, Failure> {
    let tokens = SpecialTokens::of(tokenizer);
    let (name, made) = match &arguments.template {
        Some(path) => {
            let path = path.display().to_string();
            let made = ChatTemplate::new(&source::read_text(&path)?, &tokens).map(Some);
            (path, made)
        }
        None => {
            let made = ChatTemplate::from_gguf(&file.gguf, tokenizer);
            let built_in = arguments.engine.model.template().map(|source| ChatTemplate::new(source, &tokens));
            (file.name.clone(), made.and_then(|own| own.map(Ok).or(built_in).transpose()))
        }
    };
    let made = made.map_err(|error| Failure::Message(format!("{name}: {error}")))?;
    let mut template = made.ok_or_else(|| {
        Failure::Message(format!(
            "{name}: the model has no chat template: give one with `--template FILE`, or use `warpwright generate`"
        ))
    })?;
    for variable in &arguments.variables {
        let (name, value) = variable
            .split_once('=')
            .ok_or_else(|| Failure::Message(format!("`--set {variable}`: what is set is NAME=VALUE")))?;
        if template.set_json(name, value).is_err() {
            template.set(name, &value);
        }
    }
    Ok(template)
}

/// A conversation and what it is held with.
struct Conversation<'a> {
    arguments: &'a Arguments,
    loaded: Loaded,
    tokenizer: Tokenizer,
    template: ChatTemplate,
    system: Option<String>,
    messages: Vec<Message>,
}

/// What comes of a message.
enum Answer {
    Given(Generation),
    /// It could not be given; the conversation is as it was.
    Refused(String),
}

impl Conversation<'_> {
    fn reset(&mut self) {
        let system = self.system.iter();
        self.messages = system.map(|system| Message::new("system", system.as_str())).collect();
        self.loaded.engine.reset();
    }

    /// The conversation so far, up to where the answer begins.
    fn text(&self) -> Result<String, String> {
        self.template.render(&self.messages, true).map_err(|error| error.to_string())
    }

    /// The tokens of that.
    fn tokens(&self, text: &str) -> Result<Vec<u32>, String> {
        let tokenizer = &self.tokenizer;
        // Many templates write BOS themselves.
        let bos = SpecialTokens::of(tokenizer).bos;
        let begun = !bos.is_empty() && text.starts_with(&bos);
        let bos = tokenizer.bos().filter(|_| tokenizer.adds_bos() && !begun);
        let options = Encode { add_special: false, parse_special: true };
        let ids = tokenizer.encode(text, options).map_err(|error| error.to_string())?;
        let ids: Vec<u32> = bos.into_iter().chain(ids).collect();
        if ids.is_empty() { Err("the template gives no text".into()) } else { Ok(ids) }
    }

    /// Answers what was said.
    fn answer(&mut self, said: &str, screen: &mut Screen<'_, impl Write>) -> Result<Answer, Failure> {
        self.messages.push(Message::new("user", said));
        let text = self.text();
        if let (Ok(text), true) = (&text, self.arguments.show_prompt) {
            writeln!(io::stderr(), "{}", printable(text))?;
        }
        let ids = match text.and_then(|text| self.tokens(&text)) {
            Ok(ids) => ids,
            Err(why) => {
                self.messages.pop();
                return Ok(Answer::Refused(why));
            }
        };
        let engine = &mut self.loaded.engine;
        let known = ids.iter().zip(engine.tokens()).take_while(|(id, known)| id == known).count();
        let options = GenerateOptions {
            max_tokens: usize::try_from(self.arguments.n).ok(),
            stop: self.arguments.stop.clone(),
            ..GenerateOptions::default()
        };
        let made = engine
            .truncate(known)
            .and_then(|()| generate(engine, &self.tokenizer, &ids[known..], &options, screen));
        match made {
            // Of a message that was taken back before there was a word of an answer nothing is left.
            Ok(generation) if generation.finish == Finish::Interrupted && generation.text.is_empty() => {
                self.messages.pop();
                Ok(Answer::Given(generation))
            }
            Ok(generation) => {
                self.messages.push(Message::new("assistant", generation.text.as_str()));
                Ok(Answer::Given(generation))
            }
            Err(error @ EngineError::Overflow { .. }) => {
                self.messages.pop();
                Ok(Answer::Refused(format!("{error}; `/reset` begins a new conversation")))
            }
            Err(error) => Err(failure(engine, &error)),
        }
    }
}

/// A text with what a terminal would act on escaped, but for the ends of lines and tabs.
fn printable(text: &str) -> String {
    let escaped = |c: char| match c {
        '\n' | '\t' => c.to_string(),
        c if c.is_control() => c.escape_default().to_string(),
        c => c.to_string(),
    };
    text.chars().map(escaped).collect()
}

pub(crate) fn run(arguments: &Arguments, out: &mut impl Write) -> Result<Outcome, Failure> {
    let interrupt = Interrupt::listen()?;
    let wanted = Wanted { context: arguments.context, chunk: None, sampler: arguments.sampling.sampler() };
    let file = arguments.engine.model.open()?;
    let tokenizer = file.tokenizer()?;
    let template = template(arguments, &file, &tokenizer)?;
    let mut loaded = arguments.engine.load(file, wanted)?;
    loaded.announce()?;
    let system = arguments.system.clone();
    let mut conversation =
        Conversation { arguments, loaded, tokenizer, template, system, messages: Vec::new() };
    conversation.reset();
    let mut input = Input::new()?;
    let watched = input.is_watched();
    if watched && arguments.engine.model.is_built_in() {
        writeln!(io::stderr(), "this model tells stories: begin one; `/help` lists commands")?;
    }
    let (mut found, mut refused) = (false, false);
    while let Some(line) = input.next()? {
        let said = match command::line(&line) {
            Line::Nothing => continue,
            Line::Exit => break,
            Line::Help => {
                write!(io::stderr(), "{}", command::HELP)?;
                continue;
            }
            Line::Reset => {
                conversation.reset();
                continue;
            }
            Line::System(text) => {
                conversation.system = (!text.is_empty()).then(|| text.to_string());
                conversation.reset();
                continue;
            }
            Line::Unknown(command) => {
                let why = "is no command: `/help` lists them; with a space before it, it is a message";
                writeln!(io::stderr(), "error: `{command}` {why}")?;
                refused = true;
                continue;
            }
            Line::Message(said) => said,
        };
        let launched = conversation.loaded.engine.statistics().persistent;
        let mut screen = Screen::new(Some(&mut *out), "", &interrupt);
        interrupt.begin();
        let answer = conversation.answer(said, &mut screen);
        interrupt.end();
        screen.finish(answer.is_ok())?;
        conversation.loaded.note()?;
        match answer? {
            Answer::Refused(why) => {
                writeln!(io::stderr(), "error: {why}")?;
                refused = true;
            }
            Answer::Given(generation) => {
                if generation.text.is_empty() {
                    writeln!(out)?;
                }
                out.flush()?;
                if generation.finish == Finish::ContextFull {
                    let context = conversation.loaded.engine.context();
                    let help = context_help(&context);
                    writeln!(io::stderr(), "{context} is full: `/reset` begins a new conversation; {help}")?;
                }
                if arguments.stats {
                    let persistent = conversation.loaded.persistent(&launched);
                    super::generate::statistics(&conversation.loaded, &generation, persistent)?;
                }
            }
        }
        let findings = conversation.loaded.findings();
        show_findings(&findings)?;
        found |= !findings.is_empty();
        // Who is not there does not see that it goes on.
        if !watched && interrupt.pressed() {
            return Ok(Outcome::Interrupted);
        }
    }
    match (found, refused && !watched) {
        (true, _) => Ok(Outcome::Found),
        (false, true) => Err(Failure::Message("a message was refused".into())),
        (false, false) => Ok(Outcome::Fine),
    }
}
