//! What the command line asks for.

use super::model::{Call, MODELS, Model};
use std::fmt;
use warpwright_graph::{Arithmetic, PlanOptions};
use warpwright_kernels::CacheDtype;
use warpwright_ptx::ir::Arch;

pub(crate) const USAGE: &str = "\
Prints how a transformer layer is planned, before and after fusion.

usage: plan_layer [--json | --dot] [OPTION VALUE]...

  --model NAME        llama-3.2-1b, llama-3-8b, qwen2.5-1.5b, qwen3-0.6b or qwen3-8b (llama-3.2-1b)
  --batch N           sequences (1)
  --tokens N          new tokens of each sequence: 1 decodes, more are a prompt (1)
  --act exact|int8    how activations are multiplied (exact)
  --layers N          layers (1)
  --whole             the whole step: all layers of the model unless --layers says otherwise, with the embedding,
                      the logits, the next token, and counting up
  --max-seq-len N     positions that the cache has room for (2048)
  --cache TYPE        f32, f16, bf16 or q8_0 (f16)
  --sm N              the architecture: 75, 80, 90 (80)
  --sms N             multiprocessors of the device (108)
";

/// The form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Table,
    Json,
    Dot,
}

#[derive(Debug)]
pub(crate) struct Args {
    pub(crate) form: Form,
    pub(crate) model: &'static Model,
    pub(crate) call: Call,
    pub(crate) options: PlanOptions,
}

/// What the command line says wrong.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ArgError {
    Unknown(String),
    NoValue(&'static str),
    Value { option: &'static str, given: String, rule: String },
    Forms,
}

impl fmt::Display for ArgError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ArgError::Unknown(given) => write!(f, "`{given}` is no option: --help lists them"),
            ArgError::NoValue(option) => write!(f, "`{option}` has no value behind it"),
            ArgError::Value { option, given, rule } => write!(f, "`{option} {given}`: it must be {rule}"),
            ArgError::Forms => write!(f, "only one of --json and --dot can be printed"),
        }
    }
}

/// The value behind an option.
fn value(option: &'static str, rest: &mut dyn Iterator<Item = String>) -> Result<String, ArgError> {
    rest.next().ok_or(ArgError::NoValue(option))
}

fn number(option: &'static str, most: u32, rest: &mut dyn Iterator<Item = String>) -> Result<u32, ArgError> {
    let given = value(option, rest)?;
    match given.parse() {
        Ok(number) if (1..=most).contains(&number) => Ok(number),
        _ => Err(ArgError::Value { option, given, rule: format!("a number from 1 to {most}") }),
    }
}

fn named<T>(
    option: &'static str,
    rest: &mut dyn Iterator<Item = String>,
    all: impl IntoIterator<Item = (&'static str, T)>,
) -> Result<T, ArgError> {
    let given = value(option, rest)?;
    let mut names = Vec::new();
    for (name, value) in all {
        if name == given {
            return Ok(value);
        }
        names.push(name);
    }
    Err(ArgError::Value { option, given, rule: format!("one of {}", names.join(", ")) })
}

/// The arguments; `None` where help is asked for.
pub(crate) fn parse(args: impl Iterator<Item = String>) -> Result<Option<Args>, ArgError> {
    let mut form = None;
    let mut model = &MODELS[0];
    let mut call = Call::decode(1);
    let mut layers = None;
    let (mut arch, mut multiprocessors, mut arithmetic) = (80, 108, Arithmetic::Exact);
    let mut rest = args;
    while let Some(option) = rest.next() {
        let rest: &mut dyn Iterator<Item = String> = &mut rest;
        let new_form = match option.as_str() {
            "--help" | "-h" => return Ok(None),
            "--json" => Some(Form::Json),
            "--dot" => Some(Form::Dot),
            "--model" => {
                model = named("--model", rest, MODELS.iter().map(|model| (model.name, model)))?;
                None
            }
            "--batch" => {
                call.batch = number("--batch", 1 << 10, rest)?;
                None
            }
            "--tokens" => {
                call.tokens = number("--tokens", 1 << 16, rest)?;
                None
            }
            "--layers" => {
                layers = Some(number("--layers", 1 << 10, rest)?);
                None
            }
            "--max-seq-len" => {
                call.max_seq_len = number("--max-seq-len", 1 << 20, rest)?;
                None
            }
            "--act" => {
                let all = [Arithmetic::Exact, Arithmetic::Int8].map(|act| (act.name(), act));
                arithmetic = named("--act", rest, all)?;
                None
            }
            "--cache" => {
                let names = ["f32", "f16", "bf16", "q8_0"];
                let all = [CacheDtype::F32, CacheDtype::F16, CacheDtype::Bf16, CacheDtype::Q8_0];
                call.cache = named("--cache", rest, names.into_iter().zip(all))?;
                None
            }
            "--sm" => {
                let all =
                    [("75", 75), ("80", 80), ("86", 86), ("89", 89), ("90", 90), ("100", 100), ("120", 120)];
                arch = named("--sm", rest, all)?;
                None
            }
            "--sms" => {
                multiprocessors = number("--sms", 1 << 10, rest)?;
                None
            }
            "--whole" => {
                call.whole = true;
                None
            }
            _ => return Err(ArgError::Unknown(option)),
        };
        if let Some(new) = new_form
            && form.replace(new).is_some_and(|form| form != new)
        {
            return Err(ArgError::Forms);
        }
    }
    call.layers = layers.unwrap_or(if call.whole { model.layers } else { 1 });
    let mut options = PlanOptions::new(Arch::sm(arch), multiprocessors);
    options.arithmetic = arithmetic;
    Ok(Some(Args { form: form.unwrap_or(Form::Table), model, call, options }))
}
