//! PTX versions, target architectures, and the requirements of instructions.

use std::fmt;
use std::str::FromStr;

/// A PTX ISA version, such as 8.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// The number before the dot.
    pub major: u8,
    /// The number after the dot.
    pub minor: u8,
}

impl Version {
    /// The oldest version that the parser reads: the first whose kernels list their parameters. Versions before 6.0
    /// are checked by the rules of 6.0, except where they were more generous.
    pub const OLDEST: Version = Version::new(1, 4);
    /// The newest version that this crate knows.
    pub const NEWEST: Version = Version::new(9, 5);

    /// `major.minor`.
    pub const fn new(major: u8, minor: u8) -> Self {
        Version { major, minor }
    }

    /// Whether NVIDIA published this PTX version.
    pub fn is_published(self) -> bool {
        let of_major = RELEASES.iter().find(|&&(major, _)| major == self.major);
        of_major.is_some_and(|&(_, minors)| usize::from(self.minor) < minors.len())
    }

    /// The first CUDA release whose compiler and driver accept this version, in the format of `cuDriverGetVersion`:
    /// 1000 · major + 10 · minor. `None` if the version was not published.
    pub fn cuda_release(self) -> Option<u32> {
        releases().find(|&(_, version)| version == self).map(|(release, _)| release)
    }

    /// The newest known version that a driver of that CUDA release accepts; it also accepts all earlier ones. `None`
    /// for drivers before CUDA 1.0.
    pub fn accepted_by(cuda_release: u32) -> Option<Version> {
        releases().take_while(|&(release, _)| release <= cuda_release).last().map(|(_, version)| version)
    }
}

/// By major PTX versions, the CUDA releases that introduced their minor versions, from 0 on (release history of the PTX
/// ISA). CUDA 12.6 introduced none, and CUDA 12.7 was a driver alone, as that of PTX 1.5 was.
const RELEASES: &[(u8, &[u32])] = &[
    (1, &[1000, 1010, 2000, 2010, 2020, 2030]),
    (2, &[3000, 3010, 3020, 4000]),
    (3, &[4010, 5000, 5050]),
    (4, &[6000, 6050, 7000, 7050]),
    (5, &[8000]),
    (6, &[9000, 9010, 9020, 10000, 10010, 10020]),
    (7, &[11000, 11010, 11020, 11030, 11040, 11050, 11060, 11070, 11080]),
    (8, &[12000, 12010, 12020, 12030, 12040, 12050, 12070, 12080, 12090]),
    (9, &[13000, 13010, 13020, 13030, 13040, 13050]),
];

/// The releases and their versions, in order.
fn releases() -> impl Iterator<Item = (u32, Version)> {
    RELEASES.iter().flat_map(|&(major, minors)| {
        (0..).zip(minors).map(move |(minor, &release)| (release, Version::new(major, minor)))
    })
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The portability of code for an architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ArchVariant {
    /// `sm_90`: runs on that architecture and later ones.
    Base,
    /// `sm_100f`: runs on the family.
    Family,
    /// `sm_90a`: runs only on that architecture.
    Specific,
}

/// A target architecture, such as `sm_80` or `sm_90a`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Arch {
    /// Compute capability times ten.
    pub sm: u16,
    /// Base, family (`f`) or architecture-specific (`a`).
    pub variant: ArchVariant,
}

/// Architectures and the PTX versions that introduced them: base, `a` form, `f` form.
const KNOWN: &[(u16, Version, Option<Version>, Option<Version>)] = {
    const fn v(major: u8, minor: u8) -> Version {
        Version::new(major, minor)
    }
    &[
        (10, v(1, 0), None, None),
        (11, v(1, 0), None, None),
        (12, v(1, 2), None, None),
        (13, v(1, 2), None, None),
        (20, v(2, 0), None, None),
        (21, v(2, 0), None, None),
        (30, v(3, 0), None, None),
        (32, v(4, 0), None, None),
        (35, v(3, 1), None, None),
        (37, v(4, 1), None, None),
        (50, v(4, 0), None, None),
        (52, v(4, 1), None, None),
        (53, v(4, 2), None, None),
        (60, v(5, 0), None, None),
        (61, v(5, 0), None, None),
        (62, v(5, 0), None, None),
        (70, v(6, 0), None, None),
        (72, v(6, 1), None, None),
        (75, v(6, 3), None, None),
        (80, v(7, 0), None, None),
        (86, v(7, 1), None, None),
        (87, v(7, 4), None, None),
        (88, v(9, 0), None, None),
        (89, v(7, 8), None, None),
        (90, v(7, 8), Some(v(8, 0)), None),
        (100, v(8, 6), Some(v(8, 6)), Some(v(8, 8))),
        (101, v(8, 6), Some(v(8, 6)), Some(v(8, 8))),
        (103, v(8, 8), Some(v(8, 8)), Some(v(8, 8))),
        (107, v(9, 4), Some(v(9, 4)), Some(v(9, 4))),
        (110, v(9, 0), Some(v(9, 0)), Some(v(9, 0))),
        (120, v(8, 7), Some(v(8, 7)), Some(v(8, 8))),
        (121, v(8, 8), Some(v(8, 8)), Some(v(8, 8))),
    ]
};

impl Arch {
    /// `sm_N`.
    pub const fn sm(sm: u16) -> Self {
        Arch { sm, variant: ArchVariant::Base }
    }

    /// `sm_Na`.
    pub const fn specific(sm: u16) -> Self {
        Arch { sm, variant: ArchVariant::Specific }
    }

    /// `sm_Nf`.
    pub const fn family(sm: u16) -> Self {
        Arch { sm, variant: ArchVariant::Family }
    }

    /// The PTX version that introduced the architecture; `None` if it is unknown.
    pub fn introduced(self) -> Option<Version> {
        let row = KNOWN.iter().find(|row| row.0 == self.sm)?;
        match self.variant {
            ArchVariant::Base => Some(row.1),
            ArchVariant::Specific => row.2,
            ArchVariant::Family => row.3,
        }
    }

    /// The architectures that code is made for, oldest first: from `sm_50` on.
    pub fn all() -> impl Iterator<Item = Arch> {
        let made = KNOWN.iter().filter(|row| row.0 >= OLDEST_MADE);
        made.flat_map(|&(sm, _, specific, family)| {
            [Some(Arch::sm(sm)), specific.map(|_| Arch::specific(sm)), family.map(|_| Arch::family(sm))]
                .into_iter()
                .flatten()
        })
    }

    /// The architecture that a `.target` names, `sm_N` or `compute_N`. Modules for those before `sm_50` are read too:
    /// every device runs them. They are checked by the rules of `sm_50`.
    pub fn of_module(name: &str) -> Result<Arch, UnknownArch> {
        let unknown = || UnknownArch(name.to_string());
        let number =
            name.strip_prefix("sm_").or_else(|| name.strip_prefix("compute_")).ok_or_else(unknown)?;
        let (digits, variant) = match number.as_bytes().last() {
            Some(b'a') => (&number[..number.len() - 1], ArchVariant::Specific),
            Some(b'f') => (&number[..number.len() - 1], ArchVariant::Family),
            _ => (number, ArchVariant::Base),
        };
        let canonical = digits.bytes().all(|b| b.is_ascii_digit()) && !digits.starts_with('0');
        let sm = digits.parse().ok().filter(|_| canonical).ok_or_else(unknown)?;
        let arch = Arch { sm, variant };
        arch.introduced().map(|_| arch).ok_or_else(unknown)
    }

    /// Whether every operation on `f32` flushes subnormal numbers to zero, as if it had `.ftz`.
    pub fn flushes(self) -> bool {
        self.sm < 20
    }
}

/// The oldest architecture that code is made for.
const OLDEST_MADE: u16 = 50;

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suffix = match self.variant {
            ArchVariant::Base => "",
            ArchVariant::Family => "f",
            ArchVariant::Specific => "a",
        };
        write!(f, "sm_{}{suffix}", self.sm)
    }
}

/// A text that does not name a known architecture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownArch(String);

impl fmt::Display for UnknownArch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = Arch::all().map(|arch| arch.to_string()).collect();
        write!(f, "`{}` is not a known target; the known ones are {}", self.0, names.join(", "))
    }
}

impl std::error::Error for UnknownArch {}

impl FromStr for Arch {
    type Err = UnknownArch;

    /// One that code is made for.
    fn from_str(text: &str) -> Result<Self, UnknownArch> {
        let made = |arch: &Arch| arch.sm >= OLDEST_MADE && text.starts_with("sm_");
        Arch::of_module(text).ok().filter(made).ok_or_else(|| UnknownArch(text.to_string()))
    }
}

/// Width of a generic address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum AddressSize {
    /// 32-bit addresses.
    Bits32,
    /// 64-bit addresses.
    #[default]
    Bits64,
}

/// The `.target` of a module.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// The architecture.
    pub arch: Arch,
    /// Further words of the directive, in order: `texmode_unified`, `texmode_independent`,
    /// `debug`, `map_f64_to_f32`.
    pub options: Vec<TargetOption>,
}

/// A platform option of `.target`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each variant is the PTX word of its name")]
pub enum TargetOption {
    TexmodeUnified,
    TexmodeIndependent,
    Debug,
    MapF64ToF32,
}

impl TargetOption {
    /// Every option.
    pub const ALL: [TargetOption; 4] =
        [Self::TexmodeUnified, Self::TexmodeIndependent, Self::Debug, Self::MapF64ToF32];

    /// The word as PTX writes it.
    pub fn name(self) -> &'static str {
        match self {
            TargetOption::TexmodeUnified => "texmode_unified",
            TargetOption::TexmodeIndependent => "texmode_independent",
            TargetOption::Debug => "debug",
            TargetOption::MapF64ToF32 => "map_f64_to_f32",
        }
    }
}

impl From<Arch> for Target {
    fn from(arch: Arch) -> Self {
        Target { arch, options: Vec::new() }
    }
}

/// A feature of an instruction that requires a version or a target, as named in messages.
///
/// `"`.bf16`"`, `"`ldmatrix`"`, `"`.cluster` scope"`.
pub type Feature = &'static str;

/// The targets that offer a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// This PTX version or a later one.
    Version(Version),
    /// This architecture or a later one, in any variant.
    Sm(u16),
    /// One of these architectures in its `a` form, or one of the second list's families in `f` (or
    /// `a`) form: a family `sm_100f` covers the later members 100..110 (by tens).
    Specific {
        /// `sm` numbers whose `a` form has the feature.
        specific: &'static [u16],
        /// `sm` numbers of families: `sm_Nf`, and every `a` or `f` target of the family from N on.
        family: &'static [u16],
    },
    /// Removed: not available to modules of this version or later for targets from `sm` on.
    RemovedFrom {
        /// First architecture without it.
        sm: u16,
        /// First PTX version in which it is refused there.
        version: Version,
    },
}

impl Requirement {
    /// Only the `a` forms of these architectures.
    pub const fn specific(specific: &'static [u16]) -> Self {
        Requirement::Specific { specific, family: &[] }
    }

    /// These families.
    pub const fn family(family: &'static [u16]) -> Self {
        Requirement::Specific { specific: &[], family }
    }

    /// Whether a module of that version for that architecture has the feature.
    pub fn is_met(self, version: Version, arch: Arch) -> bool {
        match self {
            Requirement::Version(needed) => version >= needed,
            Requirement::Sm(sm) => arch.sm >= sm,
            Requirement::Specific { specific, family } => match arch.variant {
                ArchVariant::Base => false,
                ArchVariant::Specific => {
                    specific.contains(&arch.sm) || family.iter().any(|&f| same_family(f, arch.sm))
                }
                ArchVariant::Family => family.iter().any(|&f| same_family(f, arch.sm)),
            },
            Requirement::RemovedFrom { sm, version: gone } => arch.sm < sm || version < gone,
        }
    }
}

/// Whether `sm` is `family` or a later member of its family.
fn same_family(family: u16, sm: u16) -> bool {
    // sm_101 was renamed sm_110: one family.
    let key = |n: u16| if n == 101 { 110 } else { n };
    let (family, sm) = (key(family), key(sm));
    family / 10 == sm / 10 && sm >= family
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Requirement::Version(version) => write!(f, "PTX {version} or later"),
            Requirement::Sm(sm) => write!(f, "sm_{sm} or later"),
            Requirement::Specific { specific, family } => {
                let names: Vec<_> = (specific.iter().map(|n| format!("sm_{n}a")))
                    .chain(family.iter().map(|n| format!("sm_{n}f")))
                    .collect();
                write!(f, "one of the targets {}", names.join(", "))
            }
            Requirement::RemovedFrom { sm, version } => {
                write!(f, "a target before sm_{sm}, or PTX before {version}")
            }
        }
    }
}

/// The collected requirements of a module's instructions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Needs {
    list: Vec<(Feature, Requirement)>,
}

impl Needs {
    /// An empty collection.
    pub fn new() -> Self {
        Needs::default()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Empties it.
    pub fn clear(&mut self) {
        self.list.clear();
    }

    /// Adds that `feature` needs PTX `major.minor`.
    pub fn version(&mut self, feature: Feature, major: u8, minor: u8) {
        // What 6.0 has holds for every module.
        if Version::new(major, minor) > Version::new(6, 0) {
            self.add(feature, Requirement::Version(Version::new(major, minor)));
        }
    }

    /// Adds that `feature` needs `sm_N` or later.
    pub fn sm(&mut self, feature: Feature, sm: u16) {
        if sm > OLDEST_MADE {
            self.add(feature, Requirement::Sm(sm));
        }
    }

    /// Adds that `feature` needs PTX `major.minor` and `sm_N` or later.
    pub fn both(&mut self, feature: Feature, (major, minor): (u8, u8), sm: u16) {
        self.version(feature, major, minor);
        self.sm(feature, sm);
    }

    /// Like [`Self::version`], if the feature is used.
    pub fn version_if(&mut self, used: bool, feature: Feature, major: u8, minor: u8) {
        if used {
            self.version(feature, major, minor);
        }
    }

    /// Like [`Self::sm`], if the feature is used.
    pub fn sm_if(&mut self, used: bool, feature: Feature, sm: u16) {
        if used {
            self.sm(feature, sm);
        }
    }

    /// Like [`Self::both`], if the feature is used.
    pub fn both_if(&mut self, used: bool, feature: Feature, version: (u8, u8), sm: u16) {
        if used {
            self.both(feature, version, sm);
        }
    }

    /// Adds that `feature` needs PTX `major.minor` and a target that meets this requirement.
    pub fn targets(&mut self, feature: Feature, (major, minor): (u8, u8), requirement: Requirement) {
        self.version(feature, major, minor);
        self.add(feature, requirement);
    }

    /// Adds a requirement of `feature`.
    pub fn add(&mut self, feature: Feature, requirement: Requirement) {
        self.list.push((feature, requirement));
    }

    /// The collected requirements.
    pub fn iter(&self) -> impl Iterator<Item = (Feature, Requirement)> + '_ {
        self.list.iter().copied()
    }

    /// The requirements that a module of that version for that architecture does not meet.
    pub fn unmet(&self, version: Version, arch: Arch) -> impl Iterator<Item = (Feature, Requirement)> + '_ {
        self.iter().filter(move |(_, need)| !need.is_met(version, arch))
    }
}
