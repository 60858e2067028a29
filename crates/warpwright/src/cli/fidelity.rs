//! `warpwright fidelity`: how what the virtual GPU computes compares with hardware, for every form of an instruction.

use super::virtual_gpu::compute_capability;
use super::{Failure, Outcome, json};
use std::io::Write;
use warpwright_ptx::ir::Arch;
use warpwright_vm::fidelity::{Class, Fidelity, Forms, Targets, forms};

/// Show for every form of an instruction whether its results are exact, measured, bounded, assumed or refused, and the tests
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Arguments {
    /// Only forms that begin so: mma, cp.async.bulk, ex2.approx.f16
    #[arg(value_name = "FORM")]
    forms: Vec<String>,
    /// Only this target, such as 90a
    #[arg(long, value_name = "SM", value_parser = compute_capability)]
    sm: Option<Arch>,
    /// Only this class: exact, measured, bounded, assumed or refused
    #[arg(long, value_name = "CLASS", value_parser = class)]
    class: Option<Class>,
    /// Print every form as JSON
    #[arg(long)]
    json: bool,
}

/// The part of `--help` on what is shown.
const HELP: &str = "\
Classes: exact, the ISA defines every bit; measured, the bits are those of the hardware named; bounded, hardware and the \
virtual GPU stay within the bound named; assumed, neither the ISA nor a measurement says it; refused, it is not executed.

In a pattern, one of the words in braces stands for them. sm_80+ are all targets from sm_80 on.";

fn class(name: &str) -> Result<Class, String> {
    Class::named(name).ok_or_else(|| "there are exact, measured, bounded, assumed and refused".to_owned())
}

impl Arguments {
    /// Whether a form is asked for: it begins with one of the words.
    fn asks_for(&self, form: &str) -> bool {
        let begins = |word: &String| {
            form.strip_prefix(word.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        self.forms.is_empty() || self.forms.iter().any(begins)
    }

    /// The verdicts that are asked for, on the targets that are.
    fn verdicts<'a>(&self, forms: &'a Forms) -> Vec<(&'a Fidelity, Targets)> {
        let of_class = forms
            .verdicts
            .iter()
            .filter(|(fidelity, _)| self.class.is_none_or(|class| fidelity.class == class));
        let on =
            |targets: &Targets| targets.iter().filter(|&arch| self.sm.is_none_or(|sm| sm == arch)).collect();
        let verdicts = of_class.map(|(fidelity, targets)| (fidelity, on(targets)));
        verdicts.filter(|(_, targets): &(_, Targets)| targets.iter().next().is_some()).collect()
    }
}

pub(crate) fn run(arguments: &Arguments, out: &mut impl Write) -> Result<Outcome, Failure> {
    let mut found = Vec::new();
    let mut known = 0;
    for forms in forms() {
        let verdicts = arguments.verdicts(&forms);
        let asked: Vec<String> = forms.each().into_iter().filter(|form| arguments.asks_for(form)).collect();
        known += asked.len();
        if asked.is_empty() || verdicts.is_empty() {
            continue;
        }
        if arguments.json {
            let verdicts: Vec<_> = verdicts
                .iter()
                .map(|(fidelity, targets)| {
                    json::object! {
                        class: fidelity.class.name(),
                        detail: &fidelity.detail,
                        targets: targets.iter().map(|arch| arch.to_string()).collect::<Vec<_>>(),
                    }
                })
                .collect();
            let verdicts = serde_json::to_value(verdicts).map_err(std::io::Error::from)?;
            let tests = &forms.tests;
            found.extend(
                asked
                    .into_iter()
                    .map(|form| serde_json::json!({ "form": form, "verdicts": verdicts, "tests": tests })),
            );
            continue;
        }
        // All of them as one, or those that are asked for.
        let all = asked.len() == forms.each().len();
        let shown = if all { vec![forms.pattern.to_owned()] } else { asked };
        shown.iter().try_for_each(|form| writeln!(out, "{form}"))?;
        for (fidelity, targets) in verdicts {
            writeln!(out, "    {targets}: {fidelity}")?;
        }
        if !forms.tests.is_empty() {
            writeln!(out, "    tests: {}", forms.tests.join(", "))?;
        }
        found.push(serde_json::Value::Null);
    }
    if known == 0 {
        return Err(Failure::Message(format!(
            "no form of an instruction begins with {}",
            arguments.forms.join(" or ")
        )));
    }
    if arguments.json {
        json::document(out, json::object! { forms: found })?;
    } else if found.is_empty() {
        let class = arguments.class.map_or("there", Class::name);
        let sm = arguments.sm.map_or("any target".to_owned(), |sm| sm.to_string());
        writeln!(out, "none of these {known} forms is {class} on {sm}")?;
    }
    Ok(Outcome::Fine)
}
