//! Compares the verifier with `ptxas` on mutants of valid PTX: both should accept or reject the same.
//!
//! A mutant is a module in which one thing was changed. In an instruction: a modifier, an operand, a
//! literal, the guard, some of them so that the result is probably valid. In a module: the header, a
//! declaration, a label, a name, the order. The seeds are the forms of all instructions
//! (`tests/filetests/instructions`), the small kernels of the corpus, the catalogue's kernels and the
//! valid filetests. The same seed makes the same mutants.
//!
//! The run fails under 99% agreement. Disagreements that are understood stand in
//! `tests/mutants/understood.md`; others are shown and counted, and fail with `--strict` only, since any
//! change of the filetests makes other mutants. A mutant that breaks `ptxas` itself is not judged.

mod module;
mod mutate;
mod seeds;
mod understood;

use crate::random::Random;
use crate::run::parallel;
use crate::summary::{SuiteResult, Summary};
use crate::tools;
use seeds::Seeds;
use std::collections::HashSet;
use understood::Understood;
use warpwright_estimate::machine::{Ptxas, first_error};
use warpwright_ptx::diag::Severity;

/// Mutants of a run that does not say how many.
pub(crate) const DEFAULT_COUNT: u64 = 2000;

/// Of a hundred mutants, how many are of an instruction in its kernel, and how many of a whole module.
const KERNEL_SHARE: usize = 15;
const MODULE_SHARE: usize = 25;

/// Less agreement than this fails.
const LEAST_AGREEMENT: f64 = 99.0;

/// What to run.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// How many
    #[arg(long, default_value_t = DEFAULT_COUNT)]
    pub(crate) count: u64,
    /// Which
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Fail for each disagreement that tests/mutants/understood.md does not list
    #[arg(long)]
    pub(crate) strict: bool,
}

/// A changed module.
struct Mutant {
    text: String,
    /// Target, version and the changed instruction: what the list of understood disagreements matches.
    label: String,
    /// File and line of the seed.
    from: String,
}

/// The verdicts on a mutant.
struct Verdict {
    /// Our errors; none if we accept it.
    ours: Vec<(String, String)>,
    /// The first error of `ptxas`.
    ptxas: Result<(), String>,
}

pub(crate) fn run(options: &Options) -> Result<(), String> {
    let tools = tools::set_up()?;
    let ptxas = Ptxas::new(&tools.ptxas, &tools::scratch())?;
    let mut summary = Summary::begin();
    check(&ptxas, options, &mut summary);
    summary.finish()
}

/// Makes the mutants and compares the verdicts.
pub(crate) fn check(ptxas: &Ptxas, options: &Options, summary: &mut Summary) {
    let name = "mutants, ours against ptxas";
    let prepared = Seeds::load().and_then(|seeds| Ok((seeds, Understood::load()?)));
    let (seeds, understood) = match prepared {
        Ok(prepared) => prepared,
        Err(why) => return summary.add_failure(name, &why),
    };
    let mutants = make(&seeds, options);
    let verdicts = parallel(&mutants, |mutant| judge(ptxas, mutant));
    let verdicts = mutants.iter().zip(&verdicts);
    let verdicts = verdicts.filter_map(|(mutant, verdict)| Some((mutant, verdict.as_ref()?)));
    let (mut judged, mut accepted, mut disagreements, mut unknown) = (0usize, 0, 0, 0);
    for (mutant, verdict) in verdicts.take(options.count as usize) {
        judged += 1;
        accepted += usize::from(verdict.ptxas.is_ok());
        if verdict.ours.is_empty() == verdict.ptxas.is_ok() {
            continue;
        }
        disagreements += 1;
        let codes: Vec<&str> = verdict.ours.iter().map(|(code, _)| code.as_str()).collect();
        let explained = understood.explains(&mutant.label, &codes);
        unknown += usize::from(!explained);
        if !explained {
            show(mutant, verdict);
        }
    }
    let agreement = 100.0 * (1.0 - disagreements as f64 / judged.max(1) as f64);
    let remark = format!(
        "{agreement:.2}% of {judged} agree, {accepted} of them valid; {disagreements} disagreements, {unknown} not listed"
    );
    let failed = if agreement < LEAST_AGREEMENT {
        eprintln!(
            "the verifier agrees with ptxas on {agreement:.2}% of the mutants; the least is {LEAST_AGREEMENT}%"
        );
        disagreements
    } else if options.strict {
        unknown
    } else {
        0
    };
    summary.add(SuiteResult { name: name.to_string(), passed: judged - failed, failed, remark });
}

fn make(seeds: &Seeds, options: &Options) -> Vec<Mutant> {
    let mut random = Random::new(options.seed);
    let mut seen = HashSet::new();
    let mut mutants = Vec::new();
    // A seed that has few mutants must not keep this from ending.
    let mut attempts = options.count.saturating_mul(20);
    // Some break `ptxas` and are not judged.
    let wanted = options.count + options.count / 100 + 10;
    while (mutants.len() as u64) < wanted && attempts > 0 {
        attempts -= 1;
        let drawn = random.below(100);
        let mutant = if drawn < MODULE_SHARE {
            module::mutate(random.pick(&seeds.modules).as_ref(), &mut random)
        } else if drawn < MODULE_SHARE + KERNEL_SHARE {
            mutate::mutate(random.pick(&seeds.kernels), &mut random)
        } else {
            mutate::mutate(random.pick(&seeds.forms), &mut random)
        };
        if let Some(mutant) = mutant
            && seen.insert((mutant.from.clone(), mutant.label.clone()))
        {
            mutants.push(mutant);
        }
    }
    mutants
}

/// The verdicts; `None` if `ptxas` itself breaks on it.
fn judge(ptxas: &Ptxas, mutant: &Mutant) -> Option<Verdict> {
    let diagnostics = match warpwright_ptx::parse(&mutant.text) {
        Err(diagnostics) => diagnostics,
        Ok(module) => match warpwright_ptx::verify(&module) {
            Ok(info) => info.diagnostics,
            Err(diagnostics) => diagnostics,
        },
    };
    let ours = diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.severity() == Severity::Error)
        .map(|diagnostic| (diagnostic.code.to_string(), diagnostic.message.clone()))
        .collect();
    let ptxas = match ptxas.assemble(&mutant.text) {
        Ok(_) => Ok(()),
        Err(log) if log.contains("Internal compiler error") => return None,
        Err(log) if !log.contains("error") && !log.contains("fatal") => return None,
        Err(log) => Err(first_error(&log)),
    };
    Some(Verdict { ours, ptxas })
}

fn show(mutant: &Mutant, verdict: &Verdict) {
    let ours: Vec<_> = verdict.ours.iter().map(|(code, message)| format!("{code}: {message}")).collect();
    let ours = if ours.is_empty() { "accepted".to_string() } else { ours.join("\n         ") };
    let theirs = verdict.ptxas.as_ref().err().map_or("accepted", String::as_str);
    eprintln!("disagreement: {}\n  ours:  {ours}\n  ptxas: {theirs}\n  from {}", mutant.label, mutant.from);
}
