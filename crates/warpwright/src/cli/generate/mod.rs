//! `warpwright generate`: continues a prompt.
//!
//! Standard output has the prompt and the text as it comes, or with `--json` one document and nothing else.

mod show;

pub(crate) use show::statistics;

use super::engine::interrupt::Interrupt;
use super::engine::sampling::SamplingArguments;
use super::engine::{
    Counters, EngineArguments, Loaded, Screen, Wanted, context_help, encode, failure, findings_json,
    show_findings,
};
use super::source::{self, STDIN};
use super::{Failure, Outcome, json};
use std::io::Write;
use warpwright_llm::generate::{Finish, GenerateOptions, Generation, generate};

/// Continue a prompt with a model
#[derive(clap::Args)]
#[command(after_help = "\
Exit status: 0 all is well, 1 the virtual GPU's checks found something, 2 it could not be done, 130 it was interrupted.")]
pub(crate) struct Arguments {
    /// The prompt
    #[arg(value_name = "PROMPT", conflicts_with_all = ["prompt", "file"])]
    text: Option<String>,
    /// The prompt; use this for texts that begin with `-`
    #[arg(short, long, value_name = "PROMPT", allow_hyphen_values = true, conflicts_with = "file")]
    prompt: Option<String>,
    /// A file with the prompt, `-` for standard input; a line break at its end is removed
    #[arg(short, long, value_name = "FILE")]
    file: Option<String>,
    /// Maximum number of tokens to generate; -1: until the model ends the text or the context is full
    #[arg(short, long = "predict", value_name = "N", default_value_t = 128, allow_negative_numbers = true,
        value_parser = clap::value_parser!(i64).range(-1..))]
    n: i64,
    /// Maximum number of tokens of prompt and text together [default: 4096, or the model's maximum if that is less]
    #[arg(short, long = "ctx", value_name = "TOKENS")]
    context: Option<u32>,
    /// Stop at this text; may be given several times
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    stop: Vec<String>,
    /// Compute this many prompt tokens at once
    #[arg(long, value_name = "TOKENS")]
    chunk: Option<u32>,
    /// Do not put a BOS token before the prompt
    #[arg(long)]
    no_bos: bool,
    /// Show control tokens
    #[arg(long)]
    special: bool,
    /// Continue after the model ends the text
    #[arg(long)]
    ignore_eos: bool,
    /// Print the text alone, without the prompt
    #[arg(long)]
    no_display_prompt: bool,
    /// Print times and the seed on standard error
    #[arg(long)]
    stats: bool,
    /// Print one JSON document at the end
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    sampling: SamplingArguments,
    #[command(flatten)]
    engine: EngineArguments,
}

impl Arguments {
    fn prompt(&self) -> Result<String, Failure> {
        let given = self.text.as_ref().or(self.prompt.as_ref());
        match (given, &self.file) {
            (Some(text), _) => Ok(text.clone()),
            // Editors and `echo` end the last line, and no prompt means that.
            (None, Some(file)) => source::read_text(file).map(|mut text| {
                let kept = text
                    .strip_suffix('\n')
                    .map_or(text.len(), |rest| rest.strip_suffix('\r').unwrap_or(rest).len());
                text.truncate(kept);
                text
            }),
            (None, None) => Err(Failure::Message(format!(
                "no prompt: give one as PROMPT, with `-p PROMPT`, or with `-f FILE` (`-f {STDIN}` reads standard input)"
            ))),
        }
    }
}

pub(crate) fn run(arguments: &Arguments, out: &mut impl Write) -> Result<Outcome, Failure> {
    let prompt = arguments.prompt()?;
    let interrupt = Interrupt::listen()?;
    let sampler = arguments.sampling.sampler();
    let wanted = Wanted { context: arguments.context, chunk: arguments.chunk, sampler };
    let file = arguments.engine.model.open()?;
    let tokenizer = file.tokenizer()?;
    let ids = encode(&tokenizer, &prompt, !arguments.no_bos)?;
    let mut loaded = arguments.engine.load(file, wanted)?;
    // Nothing is shown of what cannot go on.
    loaded.engine.check_prompt(&ids).map_err(|error| Failure::Message(error.to_string()))?;
    loaded.announce()?;

    let options = GenerateOptions {
        max_tokens: usize::try_from(arguments.n).ok(),
        stop: arguments.stop.clone(),
        special: arguments.special,
        ignore_end: arguments.ignore_eos,
    };
    let before = Counters::of(loaded.engine.device());
    let launched = loaded.engine.statistics().persistent;
    let shown = (!arguments.json).then_some(&mut *out);
    let echo = if arguments.no_display_prompt { "" } else { prompt.as_str() };
    let mut screen = Screen::new(shown, echo, &interrupt);
    interrupt.begin();
    let generation = generate(&mut loaded.engine, &tokenizer, &ids, &options, &mut screen);
    interrupt.end();
    let shown = screen.finish(generation.is_ok());
    let generation = generation.map_err(|error| failure(&loaded.engine, &error))?;
    shown?;
    loaded.note()?;
    let persistent = loaded.persistent(&launched);
    let counters = Counters::of(loaded.engine.device()).since(&before);
    let findings = loaded.findings();
    if arguments.json {
        let findings = findings_json(&findings);
        let done = json::object! { counters: counters, persistent: persistent, findings: findings };
        json::document(out, show::document(&loaded, &prompt, &ids, &generation, done))?;
    } else {
        if echo.is_empty() && generation.text.is_empty() {
            writeln!(out)?;
        }
        out.flush()?;
        show_findings(&findings)?;
    }
    if arguments.stats {
        show::statistics(&loaded, &generation, loaded.persistent(&launched))?;
    }
    out.flush()?;
    outcome(&loaded, arguments, &generation, !findings.is_empty())
}

fn outcome(
    loaded: &Loaded,
    arguments: &Arguments,
    generation: &Generation,
    found: bool,
) -> Result<Outcome, Failure> {
    match generation.finish {
        _ if found => Ok(Outcome::Found),
        Finish::Interrupted => Ok(Outcome::Interrupted),
        Finish::ContextFull if arguments.n >= 0 => {
            let context = loaded.engine.context();
            let made = generation.tokens.len();
            let prompt = generation.timings.prompt_tokens;
            Err(Failure::Message(format!(
                "{context} is full after a prompt of {prompt} and {made} of {} new tokens (`-n`), of which the last needs no \
                 place: ask for fewer; {}",
                arguments.n,
                context_help(&context)
            )))
        }
        _ => Ok(Outcome::Fine),
    }
}
