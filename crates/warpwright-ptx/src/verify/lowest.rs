//! The PTX version and the target that a module needs.

use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::ir::*;
use std::fmt;

/// The version that what needs nothing is taken to need.
const BASE: Version = Version::new(6, 0);

/// The lowest `.version` and `.target` that provide everything a module uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lowest {
    /// The version: at least the one that introduced the target.
    pub version: Version,
    /// The target.
    pub arch: Arch,
}

/// No single target provides everything that a module uses; these features conflict.
#[derive(Clone, Debug, PartialEq)]
pub struct NoTarget {
    /// Each feature with its requirement.
    pub features: Vec<(Feature, Requirement)>,
}

impl fmt::Display for NoTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no target offers everything that the module uses:")?;
        for (i, (feature, requirement)) in self.features.iter().enumerate() {
            let separator = if i == 0 { "" } else { ";" };
            write!(f, "{separator} {feature} needs {requirement}")?;
        }
        Ok(())
    }
}

impl std::error::Error for NoTarget {}

/// The lowest version and target that provide a module's instructions, special registers, directives and types. The
/// module's own header is ignored.
pub fn lowest(module: &Module) -> Result<Lowest, NoTarget> {
    let mut requirements = Requirements::default();
    let mut needs = Needs::new();
    item_needs(module, &mut |_, needed| requirements.add(needed), &mut needs);
    for function in module.functions() {
        let uses = super::uses::Uses::new(function);
        for instruction in function.instructions() {
            needs.clear();
            instruction.op.needs(&mut needs);
            requirements.add(&needs);
        }
        needs.clear();
        uses.specials.iter().for_each(|(_, special)| special_needs(special.register, &mut needs));
        requirements.add(&needs);
    }
    requirements.lowest()
}

/// Everything that a module needs, with repetitions left out.
#[derive(Clone, Debug)]
pub(super) struct Requirements {
    version: Version,
    sm: u16,
    /// What is not just "that version or later".
    special: Vec<(Feature, Requirement)>,
    /// What asks for the version and the architecture above.
    newest: [Option<(Feature, Requirement)>; 2],
}

impl Default for Requirements {
    fn default() -> Self {
        Requirements { version: BASE, sm: 0, special: Vec::new(), newest: [None; 2] }
    }
}

impl Requirements {
    pub(super) fn add(&mut self, needs: &Needs) {
        for (feature, requirement) in needs.iter() {
            match requirement {
                Requirement::Version(version) if version > self.version => {
                    self.version = version;
                    self.newest[0] = Some((feature, requirement));
                }
                Requirement::Sm(sm) if sm > self.sm => {
                    self.sm = sm;
                    self.newest[1] = Some((feature, requirement));
                }
                Requirement::Version(_) | Requirement::Sm(_) => {}
                _ if self.special.iter().any(|(_, known)| *known == requirement) => {}
                _ => self.special.push((feature, requirement)),
            }
        }
    }

    /// The lowest version that has the features used and the target, and the feature that requires it; `None` if the
    /// target does, or nothing in particular.
    pub(super) fn version(&self, arch: Arch) -> (Version, Option<Feature>) {
        let introduced = arch.introduced().unwrap_or(BASE);
        if introduced >= self.version {
            return (introduced, None);
        }
        (self.version, self.newest[0].map(|(feature, _)| feature))
    }

    pub(super) fn lowest(&self) -> Result<Lowest, NoTarget> {
        // The plain form of an architecture runs in more places than the others.
        let mut archs: Vec<Arch> = Arch::all().filter(|arch| arch.sm >= self.sm).collect();
        archs.sort_by_key(|arch| (arch.variant, arch.sm));
        let fits = |arch: Arch| {
            let version = arch.introduced()?.max(self.version);
            let fits = self.special.iter().all(|(_, requirement)| requirement.is_met(version, arch));
            fits.then_some(Lowest { version, arch })
        };
        archs.into_iter().find_map(fits).ok_or_else(|| NoTarget {
            features: self.newest.iter().flatten().chain(&self.special).copied().collect(),
        })
    }
}

/// Holds what is used against the header of the module, and remembers it.
pub(super) struct Gate {
    version: Version,
    arch: Arch,
    pub(super) requirements: Requirements,
}

impl Gate {
    pub(super) fn new(module: &Module) -> Self {
        Gate { version: module.version, arch: module.target.arch, requirements: Requirements::default() }
    }

    /// Reports what the module does not have, each feature once.
    pub(super) fn check(&mut self, needs: &Needs, origin: Origin, out: &mut Diagnostics) {
        self.requirements.add(needs);
        for (i, (feature, need)) in needs.iter().enumerate() {
            if need.is_met(self.version, self.arch)
                || needs.iter().take(i).any(|before| before == (feature, need))
            {
                continue;
            }
            self.report(feature, need, origin, out);
        }
    }

    #[cold]
    fn report(&self, feature: Feature, need: Requirement, origin: Origin, out: &mut Diagnostics) {
        let (code, what) = match need {
            Requirement::Version(_) => (Code::NeedsVersion, format!("the module says {}", self.version)),
            _ => (Code::NeedsTarget, format!("the module is for {}", self.arch)),
        };
        out.push(Diagnostic::new(code, origin, format!("{feature} needs {need}; {what}")));
    }
}

/// What a special register needs.
pub(super) fn special_needs(register: SpecialRegister, needs: &mut Needs) {
    let (version, sm) = register.introduced();
    needs.both(register.name(), version, sm);
}

/// The requirements of declarations and directives, each with its origin.
pub(super) fn item_needs(module: &Module, visit: &mut dyn FnMut(Origin, &Needs), needs: &mut Needs) {
    for item in &module.items {
        needs.clear();
        match &item.kind {
            ItemKind::Variable(variable) => variable_needs(variable, needs),
            ItemKind::Function(function) => function_needs(function, needs),
            ItemKind::Alias { .. } => needs.version("`.alias`", 6, 3),
            _ => {}
        }
        visit(item.origin, needs);
    }
}

fn type_needs(ty: Type, needs: &mut Needs) {
    needs.both_if(ty == Type::B128, "a `.b128` variable", (8, 3), 70);
}

fn attribute_needs(attributes: &[Attribute], needs: &mut Needs) {
    let unified = attributes.iter().any(|attribute| matches!(attribute, Attribute::Unified(..)));
    needs.both_if(unified, "`.unified`", (8, 0), 90);
}

fn variable_needs(variable: &Variable, needs: &mut Needs) {
    type_needs(variable.ty, needs);
    attribute_needs(&variable.attributes, needs);
}

fn function_needs(function: &Function, needs: &mut Needs) {
    attribute_needs(&function.attributes, needs);
    function.variables.iter().for_each(|variable| variable_needs(variable, needs));
    function.registers.iter().for_each(|range| type_needs(range.ty, needs));
    for directive in &function.directives {
        match directive {
            FunctionDirective::ReqNCtaPerCluster(_) => needs.both("`.reqnctapercluster`", (7, 8), 90),
            FunctionDirective::MaxClusterRank(_) => needs.both("`.maxclusterrank`", (7, 8), 90),
            FunctionDirective::ExplicitCluster => needs.both("`.explicitcluster`", (7, 8), 90),
            FunctionDirective::BlocksAreClusters => needs.both("`.blocksareclusters`", (9, 0), 90),
            FunctionDirective::NoReturn => needs.version("`.noreturn`", 6, 4),
            FunctionDirective::AbiPreserve(_) => abi_needs(needs, true, false),
            FunctionDirective::AbiPreserveControl(_) => abi_needs(needs, false, true),
            _ => {}
        }
    }
    for statement in function.statements() {
        if let StatementKind::CallPrototype { prototype, .. } = &statement.kind {
            abi_needs(needs, prototype.abi_preserve.is_some(), prototype.abi_preserve_control.is_some());
        }
    }
}

fn abi_needs(needs: &mut Needs, preserve: bool, control: bool) {
    needs.both_if(preserve, "`.abi_preserve`", (9, 0), 80);
    needs.both_if(control, "`.abi_preserve_control`", (9, 0), 80);
}
