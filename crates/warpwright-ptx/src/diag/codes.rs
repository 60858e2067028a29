//! The codes of diagnostics. A code never changes its meaning, and is never reused.

use std::fmt;

/// The severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// For information.
    Note,
    /// Suspicious or undecided: the module is accepted.
    Warning,
    /// Provably wrong, or refused by `ptxas`: the module is not accepted.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        })
    }
}

macro_rules! codes {
    ($($variant:ident $code:literal $severity:ident $title:literal;)*) => {
        /// The rule that a diagnostic reports.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code { $(#[doc = concat!($code, ": ", $title)] $variant),* }

        impl Code {
            /// Every code.
            pub const ALL: &'static [Code] = &[$(Code::$variant),*];

            /// The stable text, such as `E0007`.
            pub const fn text(self) -> &'static str {
                match self { $(Code::$variant => $code),* }
            }

            /// The rule in a few words.
            pub const fn title(self) -> &'static str {
                match self { $(Code::$variant => $title),* }
            }

            /// The severity of a violation.
            pub const fn severity(self) -> Severity {
                match self { $(Code::$variant => Severity::$severity),* }
            }
        }
    };
}

codes! {
    Syntax "E0001" Error "the text is not PTX";
    UnknownInstruction "E0002" Error "no instruction has this name";
    UnknownModifier "E0003" Error "the instruction has no such modifier";
    MissingModifier "E0004" Error "the instruction needs a modifier";
    OperandCount "E0005" Error "too few or too many operands";
    OperandForm "E0006" Error "an operand is not of the form that stands there";
    Undeclared "E0007" Error "a name is used without being declared";
    Redeclared "E0008" Error "a name is declared twice in one scope";
    Literal "E0009" Error "a number is malformed or too large";
    ConstantExpression "E0010" Error "a constant expression has no value";
    Header "E0011" Error "the module's header is missing or malformed";
    OperandType "E0012" Error "an operand's type does not fit the instruction";
    ModifierCombination "E0013" Error "modifiers that do not go together";
    StateSpace "E0014" Error "the state space does not fit";
    ImmediateRange "E0015" Error "an immediate is out of range";
    VectorShape "E0016" Error "a vector has the wrong number of elements";
    NeedsVersion "E0017" Error "a feature needs a later PTX version";
    NeedsTarget "E0018" Error "a feature needs another target";
    Alignment "E0019" Error "an access is not aligned";
    CallSignature "E0020" Error "a call does not match its callee";
    Parameter "E0021" Error "a parameter is misused";
    Label "E0022" Error "a label is not defined, or defined twice";
    Unassigned "E0023" Error "a register is read that nothing ever writes";
    DivergentBarrier "E0024" Error "a barrier that some threads of the block cannot reach";
    SharedMemory "E0025" Error "more shared memory than there is";
    Linkage "E0026" Error "linkage that does not fit";
    GuardType "E0027" Error "a guard must be a predicate";
    Directive "E0028" Error "a directive is malformed or misplaced";
    Initialiser "E0029" Error "an initial value does not fit its variable";
    SpecialRegister "E0030" Error "a special register is misused";
    TooLarge "E0031" Error "the input exceeds a limit";
    Nesting "E0032" Error "constructs are nested too deeply";
    TileOrder "E0033" Error "a shared tile is used out of turn";
    MaybeUnassigned "W0001" Warning "a register may be read before it is written";
    MaybeDivergent "W0002" Warning "a barrier or collective may be reached by some threads only";
    Unreachable "W0003" Warning "code that nothing reaches";
    AddressWidth "W0005" Warning "an address register of the other width";
    WithoutEffect "W0006" Warning "a directive that has no effect";
    DivisionByZero "W0007" Warning "an integer is divided by zero";
    Undecided "N0001" Note "what could not be decided";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}
