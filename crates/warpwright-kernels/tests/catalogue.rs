//! The catalogue: defaults build, verify and read back; wrong fields are named.

use warpwright_dsl::Domain;
use warpwright_dsl::{BuildError, any::AnyKernel};
use warpwright_kernels::{ConfigureError, Entry, catalogue, find};
use warpwright_ptx::ir::Arch;
use warpwright_ptx::{parse, print, verify};

/// The kernel at its defaults and in its examples.
fn configurations(entry: &'static Entry) -> impl Iterator<Item = Box<dyn AnyKernel + Send + Sync>> {
    std::iter::once(&"").chain(entry.examples).map(|assignments| {
        let kernel = entry.configure_text(assignments);
        kernel.unwrap_or_else(|error| panic!("{} {assignments}: {error}", entry.name))
    })
}

/// It builds, verifies and reads back for every target that it claims.
fn holds(kernel: &dyn AnyKernel, targets: &[u16]) {
    for &sm in targets.iter().filter(|&&sm| sm >= kernel.launch().min_sm) {
        let built = kernel.build(Arch::sm(sm));
        let built = built.unwrap_or_else(|error| panic!("{} for sm_{sm}: {error}", kernel.entry()));
        verify(&built.module).unwrap_or_else(|error| panic!("{} for sm_{sm}: {error}", kernel.entry()));
        assert_eq!(parse(&print(&built.module)).expect("its own text"), built.module);
    }
}

#[test]
fn every_kernel_reads_back_in_every_example() {
    for entry in catalogue() {
        configurations(entry).for_each(|kernel| holds(&*kernel, &[75, 80, 86, 89, 90, 100, 120]));
    }
}

#[test]
fn entry_names_are_unique_to_the_configuration() {
    let mut names: Vec<_> =
        catalogue().iter().flat_map(configurations).map(|kernel| kernel.entry()).collect();
    for epsilon in ["epsilon=1e-4", "epsilon=1e-6"] {
        names.push(find("rms_norm").expect("known").configure_text(epsilon).expect("in the domain").entry());
    }
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count);
}

/// Numbers from 0 to `below`, the same every time.
struct Draw(u64);

impl Draw {
    fn below(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below.max(1)
    }

    /// A value of the domain: its ends more often than others, and small numbers more often than large.
    fn value(&mut self, domain: Domain) -> String {
        match domain {
            Domain::Int { from, to, multiple_of } => {
                let (from, to) = (from.div_ceil(multiple_of), to / multiple_of);
                let steps = to - from;
                let step = match self.below(8) {
                    0 => 0,
                    1 => steps,
                    2..=4 => self.below(steps.min(16) + 1),
                    _ => self.below(steps + 1),
                };
                ((from + step) * multiple_of).to_string()
            }
            Domain::Float { from, to } => {
                let part = self.below(1001) as f32 / 1000.0;
                (from + (to - from) * part).min(to).to_string()
            }
            Domain::Or { word, of } => match self.below(2) {
                0 => word.to_string(),
                _ => self.value(*of),
            },
            Domain::OneOf(names) => names[self.below(names.len() as u64) as usize].to_string(),
            Domain::List { of, max } => {
                let count = 1 + self.below(max.into());
                (0..count).map(|_| self.value(*of)).collect::<Vec<_>>().join("+")
            }
            _ => panic!("a domain that the test does not know"),
        }
    }

    /// A value that the domain does not have.
    fn outside(&mut self, domain: Domain) -> String {
        match domain {
            Domain::Int { from, to, multiple_of } => match self.below(4) {
                0 => (to + 1).to_string(),
                1 if multiple_of > 1 => (from + 1).to_string(),
                2 if from > 0 => (from - 1).to_string(),
                _ => "many".into(),
            },
            Domain::Float { from, to } => match self.below(3) {
                0 => (from - from.abs().max(1e-3)).to_string(),
                1 => (to * 2.0).to_string(),
                _ => "NaN".into(),
            },
            Domain::Or { of, .. } => self.outside(*of),
            Domain::OneOf(_) => "other".into(),
            Domain::List { of, max } => match self.below(2) {
                0 => vec![self.value(*of); max as usize + 1].join("+"),
                _ => format!("{}+{}", self.value(*of), self.outside(*of)),
            },
            _ => panic!("a domain that the test does not know"),
        }
    }
}

/// Draws, for each kernel, from what its fields may be: the kernel is built, or one of the fields is refused
/// with a reason.
#[test]
fn configurations_of_the_domain_are_built_or_refused_by_name() {
    let draws = if std::env::var_os("WARPWRIGHT_FULL").is_some() { 1000 } else { 24 };
    let mut draw = Draw(0x5eed);
    for entry in catalogue() {
        let mut built = 0;
        for _ in 0..draws {
            let assignments: Vec<_> = (entry.fields.iter())
                .filter_map(|field| {
                    let given = draw.below(3) > 0;
                    given.then(|| format!("{}={}", field.name, draw.value(field.domain)))
                })
                .collect();
            match entry.configure(assignments.iter().map(String::as_str)) {
                Ok(kernel) => {
                    let targets = [75, 80, 90, 120];
                    holds(&*kernel, &targets[draw.below(4) as usize..][..1]);
                    built += 1;
                }
                Err(ConfigureError::Build(BuildError::Field { rule, .. })) => assert!(!rule.is_empty()),
                Err(error) => panic!("{} {assignments:?}: {error}", entry.name),
            }
        }
        assert!(built > 0, "{}: no configuration was built", entry.name);
    }
}

/// One field at a time: where its value is another one the key is another one, and where keys are equal so is what is
/// built.
#[test]
fn every_field_is_in_the_key() {
    let mut draw = Draw(0x0e1d);
    // What has no key is told by what it is built to.
    let has_key = |entry: &&Entry| entry.configure_text("").expect("defaults").key().is_some();
    for entry in catalogue().iter().filter(has_key) {
        for field in entry.fields {
            let (mut changed, mut compared) = (false, 0);
            // Few numbers are the multiples that some fields must be.
            for draws in 0..20_000 {
                if changed && draws >= 40 {
                    break;
                }
                // Of a real configuration, or of the defaults.
                let all: Vec<_> = std::iter::once("").chain(entry.examples.iter().copied()).collect();
                let example = all[draw.below(all.len() as u64) as usize];
                let others =
                    example.split_whitespace().filter(|text| text.split('=').next() != Some(field.name));
                let value = format!("{}={}", field.name, draw.value(field.domain));
                let Ok(b) = entry.configure(others.chain([value.as_str()])) else { continue };
                let a = entry.configure_text(example).expect("an example");
                let (Some(key), Some(other)) = (a.key(), b.key()) else { continue };
                if key != other {
                    changed = true;
                } else if compared < 2 {
                    compared += 1;
                    let [a, b] = [a, b].map(|kernel| kernel.ptx(Arch::sm(90)).ok());
                    assert_eq!(a, b, "{} {}", entry.name, field.name);
                }
            }
            assert!(changed, "{}: `{}` is not in the key", entry.name, field.name);
        }
    }
}

#[test]
fn values_outside_of_the_domain_are_refused_by_the_name_of_their_field() {
    let mut draw = Draw(0xbad);
    for entry in catalogue() {
        for field in entry.fields {
            for _ in 0..4 {
                let value = draw.outside(field.domain);
                let refused = entry.configure([format!("{}={value}", field.name).as_str()]).map(|_| ());
                match refused.expect_err(field.name) {
                    ConfigureError::Build(BuildError::Field { field: named, value: given, rule }) => {
                        assert_eq!((named, given, rule), (field.name, value, field.domain.to_string()));
                    }
                    error => panic!("{} {}={value}: {error}", entry.name, field.name),
                }
            }
        }
    }
}

#[test]
fn wrong_assignments_are_named() {
    let norm = find("rms_norm").expect("a kernel");
    let error = |fields: &[&str]| norm.configure(fields.iter().copied()).map(|_| ()).expect_err("wrong");
    assert!(matches!(error(&["d"]), ConfigureError::Syntax(text) if text == "d"));
    assert!(matches!(error(&["d=1", "d=2"]), ConfigureError::Twice(field) if field == "d"));
    assert!(matches!(error(&["width=1"]), ConfigureError::UnknownField { kernel: "rms_norm", .. }));
    assert!(matches!(find("nothing"), Err(ConfigureError::UnknownKernel { name, .. }) if name == "nothing"));
}
