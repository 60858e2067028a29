//! The table of all forms: `src/fidelity/forms.txt`, and `docs/fidelity.md` for people. Both are made of the files with
//! the forms of the ISA, which the virtual GPU loads, and of the tests that execute the forms. `BLESS=1` writes them.

#[path = "fidelity/page.rs"]
mod page;
#[path = "fidelity/shown.rs"]
mod shown;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use warpwright_ptx::ir::{Arch, Needs, Version};
use warpwright_ptx::op::Op;
use warpwright_ptx::print::form;
use warpwright_vm::fidelity::{Class, Fidelity, Targets, forms, read};
use warpwright_vm::{Arg, Device, DeviceConfig, DeviceError, LaunchConfig, Module, Options};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files of a folder and its folders that end so, in order.
fn files(folder: &Path, end: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let of = |path: PathBuf| match path.is_dir() {
        true => files(&path, end),
        false => Vec::from_iter(Some(path).filter(|path| path.to_string_lossy().ends_with(end))),
    };
    let mut found: Vec<PathBuf> = entries.flat_map(of).collect();
    found.sort();
    found
}

/// What is known of a form.
#[derive(Default)]
struct Known {
    opcode: &'static str,
    verdicts: BTreeMap<Fidelity, BTreeSet<Arch>>,
}

/// A module that is valid, on a device of its target.
fn load(text: &str) -> Option<Module> {
    let ir = warpwright_ptx::parse(text).ok()?;
    let info = warpwright_ptx::verify(&ir).ok()?;
    let mut config = DeviceConfig::default();
    (config.arch, config.workers) = (ir.target.arch, 1);
    match Device::new(config).unwrap().load(&ir, &info) {
        Ok(loaded) => Some(loaded),
        // It calls a function of another module, or has too much of something.
        Err(DeviceError::Load(_)) => None,
        Err(error) => panic!("{error}"),
    }
}

/// Every form, with its fidelity on every target that has it.
fn derive() -> BTreeMap<String, Known> {
    let mut table: BTreeMap<String, Known> = BTreeMap::new();
    for path in files(&root().join("tests/filetests"), ".ptx") {
        // What is refused is no form.
        let Some(module) = load(&fs::read_to_string(&path).unwrap()) else { continue };
        for arch in Arch::all() {
            for (instruction, fidelity) in module.fidelity(arch) {
                let mut needs = Needs::new();
                instruction.op.needs(&mut needs);
                if needs.unmet(Version::NEWEST, arch).next().is_none() {
                    let known = table.entry(form(&instruction.op)).or_default();
                    known.opcode = instruction.op.name();
                    known.verdicts.entry(fidelity).or_default().insert(arch);
                }
            }
        }
    }
    table
}

/// Forms that are alike, as patterns: each part of a form becomes a set of alternatives.
fn patterns(forms: &[&str]) -> Vec<String> {
    let parts = |form: &&str| form.split('.').map(|part| BTreeSet::from([part.to_owned()])).collect();
    let mut patterns: Vec<Vec<BTreeSet<String>>> = forms.iter().map(parts).collect();
    let longest = patterns.iter().map(Vec::len).max().unwrap_or(0);
    for at in (1..longest).rev() {
        let mut merged: BTreeMap<Vec<BTreeSet<String>>, BTreeSet<String>> = BTreeMap::new();
        for mut pattern in patterns {
            let part = pattern.get_mut(at).map(std::mem::take).unwrap_or_default();
            merged.entry(pattern).or_default().extend(part);
        }
        let restored = merged.into_iter().map(|(mut pattern, part)| {
            if let Some(place) = pattern.get_mut(at) {
                *place = part;
            }
            pattern
        });
        patterns = restored.collect();
    }
    let text = |pattern: &Vec<BTreeSet<String>>| {
        let part = |part: &BTreeSet<String>| {
            let all: Vec<&str> = part.iter().map(String::as_str).collect();
            if all.len() == 1 { all[0].to_owned() } else { format!("{{{}}}", all.join(",")) }
        };
        pattern.iter().map(part).collect::<Vec<_>>().join(".")
    };
    patterns.iter().map(text).collect()
}

/// The lines of the table.
fn table() -> String {
    let table = derive();
    let named: BTreeSet<&str> = table.values().map(|known| known.opcode).collect();
    let missing: Vec<&str> = Op::names().filter(|name| !named.contains(name)).collect();
    assert!(missing.is_empty(), "no file has a form of {missing:?}");

    let tests = shown::tests(&table.iter().map(|(form, known)| (&**form, known.opcode)).collect());
    let mut groups: BTreeMap<(&str, String, String), Vec<&str>> = BTreeMap::new();
    for (form, known) in &table {
        let verdict = |(fidelity, archs): (&Fidelity, &BTreeSet<Arch>)| {
            let targets: Targets = archs.iter().copied().collect();
            format!("{}|{targets}|{}", fidelity.class.name(), fidelity.detail)
        };
        let verdicts: Vec<String> = known.verdicts.iter().map(verdict).collect();
        let executed = known.verdicts.keys().any(|fidelity| fidelity.class != Class::Refused);
        let tests = tests.get(&**form).filter(|_| executed).cloned().unwrap_or_default();
        groups.entry((known.opcode, verdicts.join("\t"), tests)).or_default().push(form);
    }
    let lines = groups.iter().flat_map(|((_, verdicts, tests), forms)| {
        patterns(forms).into_iter().map(move |pattern| format!("{pattern}\t{tests}\t{verdicts}\n"))
    });
    let mut lines: Vec<String> = lines.collect();
    lines.sort();
    lines.concat()
}

/// Compares a file with what it is made of, or writes it.
fn keep(path: &str, text: &str) {
    let path = root().join(path);
    if std::env::var_os("BLESS").is_some() {
        return fs::write(&path, text).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    let differ = kept.lines().zip(text.lines()).find(|(kept, made)| kept != made);
    assert!(
        kept == text,
        "{}: BLESS=1 puts it right; it has {} lines, and would have {}; the first that differs: {differ:#?}",
        path.display(),
        kept.lines().count(),
        text.lines().count()
    );
}

#[test]
fn table_and_page_have_what_is_decoded() {
    let table: &'static str = table().leak();
    assert_eq!(read(table).count(), table.lines().count(), "each line is read");
    keep("docs/fidelity.md", &page::page(read(table)));
    keep("crates/warpwright-vm/src/fidelity/forms.txt", table);
}

#[test]
fn patterns_stand_for_their_forms() {
    let all = ["a.b.x", "a.b.y", "a.c.x", "a.c.y", "a.d.x", "a", "a.b"];
    assert_eq!(patterns(&all), ["a", "a.b", "a.d.x", "a.{b,c}.{x,y}"]);
    let each: Vec<String> = forms().flat_map(|forms| forms.each()).collect();
    let known: BTreeSet<&String> = each.iter().collect();
    assert_eq!(known.len(), each.len(), "each form is there once");
}

/// A kernel of one product, on a device of that architecture: what its launch has assumed.
fn assumed(arch: Arch, target: &str, product: &str, guard: bool) -> Vec<String> {
    let text = format!(
        ".version 8.8 .target {target} .address_size 64
        .visible .entry k(.param .u32 n)
        {{
            .reg .b32 %r<16>;
            .reg .f32 %f<9>;
            .reg .pred %p1;
            ld.param.u32 %r15, [n];
            setp.ne.u32 %p1, %r15, 0;
            @!%p1 bra $end;
            {product}
        $end:
            ret;
        }}"
    );
    let mut config = DeviceConfig::default();
    (config.arch, config.workers) = (arch, 1);
    let device = Device::new(config).unwrap();
    let module = device.load_ptx(&text).unwrap();
    let launch = LaunchConfig::new(1, 32);
    let report =
        device.launch(&module, "k", &launch, &[Arg::U32(guard.into())], &Options::default()).unwrap().wait();
    assert!(report.trap.is_none(), "{:?}", report.trap);
    report.assumptions.iter().map(ToString::to_string).collect()
}

#[test]
fn a_launch_tells_what_it_has_assumed() {
    let half = "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2}, {%r3}, {%f5, %f6, %f7, %f8};";
    let narrow = "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e3m2.f32 {%f1, %f2, %f3, %f4}, \
                  {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f5, %f6, %f7, %f8};";
    let none: [&str; 0] = [];
    assert_eq!(assumed(Arch::sm(90), "sm_75", half, true), none, "measured");
    assert_eq!(
        assumed(Arch::sm(75), "sm_75", half, true),
        ["`mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32`: as on V100"]
    );
    assert_eq!(assumed(Arch::specific(120), "sm_120a", narrow, false), none, "it is not executed");
    assert_eq!(
        assumed(Arch::specific(120), "sm_120a", &narrow.repeat(2), true),
        ["`mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e3m2.f32`: one rounding of the exact sum"]
    );
}
