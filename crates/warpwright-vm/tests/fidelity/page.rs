//! `docs/fidelity.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use warpwright_vm::fidelity::{Class, Forms};

const BEGINNING: &str = "\
# Fidelity

How what the virtual GPU computes compares with what hardware computes, for every form of every instruction, by target.
`cargo test -p warpwright-vm --test fidelity` derives this page from the files with all forms, `tests/filetests`, and
compares it; with `BLESS=1` it writes it. `warpwright fidelity` shows the same, with `--sm` for one target,
and `--json` for programs: `forms`, a list of objects with the `form`, its `verdicts` (`class`, `detail`, `targets`) and
its `tests`.

| class | what it says |
| --- | --- |
| exact | the ISA defines every bit, and these are the bits |
| measured | the ISA leaves bits open; these are the ones that the hardware named was measured to compute |
| bounded | hardware stays within the documented bound named, and so does the virtual GPU; bits may differ |
| assumed | neither the ISA nor a measurement says it: hardware may compute something else |
| refused | it is not executed: a kernel that reaches it ends with a trap that names it |

Whether a form is refused is what its decoding says. How an executed one is known, the tables beside the arithmetic say:
the bounds of `crates/warpwright-vm/src/num/approx.rs`, and `crates/warpwright-vm/src/tensor/evidence.rs`.

Not told by forms: a special register that tells the time or the place of a thread (`%clock`, `%smid`) has a value of the
virtual GPU; what an order of threads decides is decided by the order of the run; which lane holds which element of a
`wmma` fragment is ours. A target of `+` stands for all later ones too, `a..b` for all between.

In a pattern, one of the words in braces stands for them. Tests: `filetests/NAME` are `tests/filetests/vm/NAME.ptx`, others
are targets of `cargo test -p warpwright-vm`. Those with `~` have other forms of the opcode, or make the text of forms while
they run.
";

pub(super) fn page(forms: impl Iterator<Item = Forms>) -> String {
    let mut page = BEGINNING.to_owned();
    let mut counts: BTreeMap<Class, usize> = BTreeMap::new();
    let mut by_opcode: BTreeMap<&str, Vec<Forms>> = BTreeMap::new();
    for forms in forms {
        let count = forms.each().len();
        for class in BTreeSet::from_iter(forms.verdicts.iter().map(|(fidelity, _)| fidelity.class)) {
            *counts.entry(class).or_default() += count;
        }
        by_opcode.entry(forms.pattern.split('.').next().unwrap_or_default()).or_default().push(forms);
    }
    page.push_str("\n| class | forms, on some target |\n| --- | --- |\n");
    for (class, count) in &counts {
        writeln!(page, "| {} | {count} |", class.name()).unwrap();
    }
    for (opcode, forms) in &by_opcode {
        write!(page, "\n## {opcode}\n\n| forms | fidelity | tests |\n| --- | --- | --- |\n").unwrap();
        forms.iter().for_each(|forms| row(&mut page, forms));
    }
    page
}

fn row(page: &mut String, forms: &Forms) {
    let verdicts: Vec<String> =
        forms.verdicts.iter().map(|(fidelity, targets)| format!("{targets}: {fidelity}")).collect();
    let tests = if forms.tests.is_empty() { "-".to_owned() } else { forms.tests.join(", ") };
    let verdicts = verdicts.join("<br>").replace('|', "\\|");
    writeln!(page, "| `{}` | {verdicts} | {tests} |", forms.pattern).unwrap();
}
