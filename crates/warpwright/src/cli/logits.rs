//! `warpwright logits`: a model's logits as an array.

use super::engine::interrupt::Interrupt;
use super::engine::{EngineArguments, Wanted, failure, show_findings};
use super::npy::{self, Dtype, Kind};
use super::source::Replacement;
use super::{Failure, Outcome};
use std::io::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::str::FromStr;
use warpwright_llm::engine::{By, Context, EngineError, SamplerOptions};

/// Compute the logits after each token, and write them as a NumPy array
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The tokens: `1,2,3`, or `@FILE` with a JSON list
    #[arg(long, value_name = "IDS|@FILE")]
    tokens: Tokens,
    /// The file to write: float32, a row for each token, a column for each token of the vocabulary
    #[arg(short, long, value_name = "FILE.npy")]
    output: PathBuf,
    /// Compute this many tokens at once, like prompts [default: token by token, like generated text]
    #[arg(long, value_name = "TOKENS")]
    chunk: Option<u32>,
    #[command(flatten)]
    engine: EngineArguments,
}

/// Ids on the command line, or the file that has them.
#[derive(Clone)]
enum Tokens {
    Ids(Vec<u32>),
    File(PathBuf),
}

impl FromStr for Tokens {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix('@') {
            return Ok(Tokens::File(path.into()));
        }
        let id = |text: &str| {
            let text = text.trim();
            text.parse().map_err(|_| format!("`{text}` is no token: ids are whole numbers from 0 on"))
        };
        text.split(',').map(id).collect::<Result<_, _>>().map(Tokens::Ids)
    }
}

impl Tokens {
    fn ids(&self) -> Result<Vec<u32>, Failure> {
        let path = match self {
            Tokens::Ids(ids) => return Ok(ids.clone()),
            Tokens::File(path) => path,
        };
        let named = |error: &dyn std::fmt::Display| Failure::Message(format!("{}: {error}", path.display()));
        let bytes = std::fs::read(path).map_err(|error| named(&error))?;
        serde_json::from_slice(&bytes)
            .map_err(|error| named(&format_args!("it must be a JSON list of token ids: {error}")))
    }
}

pub(crate) fn run(arguments: &Arguments, out: &mut impl Write) -> Result<Outcome, Failure> {
    arguments.engine.must_not_decode("warpwright logits")?;
    let ids = arguments.tokens.ids()?;
    if ids.is_empty() {
        return Err(Failure::Message("`--tokens` has no tokens: give at least one".into()));
    }
    let interrupt = Interrupt::listen()?;
    let tokens = u32::try_from(ids.len()).unwrap_or(u32::MAX);
    let sampler = SamplerOptions::greedy();
    let file = arguments.engine.model.open()?;
    let longest = Context::of(&file.config()?);
    if tokens > longest.tokens {
        return Err(Failure::Message(format!(
            "`--tokens` has {tokens} tokens: they do not fit into {longest}"
        )));
    }
    let wanted = Wanted { context: Some(tokens), chunk: None, sampler };
    let mut loaded = arguments.engine.load(file, wanted)?;
    let vocab = loaded.engine.model().vocab();
    let mut file = Replacement::create(&arguments.output)?;
    let failed = |error| Failure::Message(format!("cannot write {}: {error}", arguments.output.display()));
    let shape = [u64::from(tokens), u64::from(vocab)];
    file.write_all(&npy::header(Dtype { kind: Kind::Float, size: 4 }, &shape)).map_err(failed)?;
    let by = arguments.chunk.map_or(By::Token, By::Chunk);
    let mut written = Ok(());
    // Interrupted, it leaves no part of a file.
    interrupt.begin();
    let mut bytes = Vec::with_capacity(vocab as usize * 4);
    let done: Result<_, EngineError> = loaded.engine.logits(&ids, by, |_, row| {
        bytes.clear();
        bytes.extend(row.iter().flat_map(|logit| logit.to_le_bytes()));
        written = file.write_all(&bytes);
        let go_on = written.is_ok() && !interrupt.pressed();
        if go_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    written.map_err(failed)?;
    let _ = done.map_err(|error| failure(&loaded.engine, &error))?;
    if interrupt.pressed() {
        return Ok(Outcome::Interrupted);
    }
    interrupt.end();
    file.finish()?;
    let findings = loaded.findings();
    show_findings(&findings)?;
    out.flush()?;
    Ok(if findings.is_empty() { Outcome::Fine } else { Outcome::Found })
}
