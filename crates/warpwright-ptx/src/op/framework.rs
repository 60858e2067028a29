//! The traits of instructions, and the macros that derive them.

use crate::ir::{Address, AddressBase, LabelId, Needs, Reg, Symbol};
use crate::op::Check;
use crate::op::uniformity::{Apart, Level, Operands};
use crate::print::Writer;

/// How an operand uses a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads it.
    Read,
    /// Writes it.
    Write,
    /// Reads it and writes it.
    ReadWrite,
}

/// Sees the operands of an instruction.
pub trait Visitor {
    /// A register.
    fn reg(&mut self, access: Access, reg: Reg);
    /// A symbol: as a value, an address base or a callee.
    fn symbol(&mut self, _symbol: &Symbol) {}
    /// A branch target, or the label of a table or prototype.
    fn label(&mut self, _label: LabelId) {}
    /// A special register.
    fn special(&mut self, _special: crate::ir::Special) {}
}

impl<F: FnMut(Access, Reg)> Visitor for F {
    fn reg(&mut self, access: Access, reg: Reg) {
        self(access, reg)
    }
}

/// Changes the operands of an instruction.
pub trait VisitorMut {
    /// A register.
    fn reg(&mut self, access: Access, reg: &mut Reg);
    /// A symbol.
    fn symbol(&mut self, _symbol: &mut Symbol) {}
    /// A label.
    fn label(&mut self, _label: &mut LabelId) {}
    /// A memory address: by default, its base.
    fn address(&mut self, address: &mut Address) {
        match &mut address.base {
            AddressBase::Reg(reg) => self.reg(Access::Read, reg),
            AddressBase::Symbol(symbol) => self.symbol(symbol),
            AddressBase::Element(element) => {
                self.symbol(&mut element.array);
                self.reg(Access::Read, &mut element.index);
            }
            AddressBase::Absolute => {}
        }
    }
}

impl<F: FnMut(Access, &mut Reg)> VisitorMut for F {
    fn reg(&mut self, access: Access, reg: &mut Reg) {
        self(access, reg)
    }
}

/// The threads that must reach an instruction together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Convergence {
    /// None: each thread executes it independently.
    None,
    /// All threads of the warp execute the same one.
    Warp,
    /// All threads of the four warps of a warpgroup execute the same one.
    Warpgroup,
    /// All threads of the block take part (a barrier): if they diverge, it hangs or is undefined.
    Block,
    /// All threads of the cluster take part.
    Cluster,
}

/// The instruction's use of the carry flag, which its text does not show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carry {
    /// Whether it adds the flag.
    pub reads: bool,
    /// Whether it sets the flag.
    pub writes: bool,
}

/// The code that the `instruction!` macro derives from a declaration, including its rules as data.
pub trait Instr: Sized {
    /// The opcode.
    const NAME: &'static str;

    /// Reads modifiers and operands. `None` after a diagnostic.
    fn read(reader: &mut super::InstrReader<'_>) -> Option<Self>;

    /// Prints opcode, modifiers and operands.
    fn print(&self, out: &mut Writer<'_>);

    /// Passes every operand to the visitor, in the order of the text.
    fn visit(&self, visitor: &mut dyn Visitor);

    /// Lets the visitor change every operand, in the order of the text.
    fn visit_mut(&mut self, visitor: &mut dyn VisitorMut);

    /// The uniformity level of the results, over threads that execute it under the same control flow.
    fn uniformity(&self, operands: &Operands<'_>) -> Level;

    /// The result whose uniformity level differs from that of the others, with its level.
    fn apart(&self, operands: &Operands<'_>) -> Option<Apart>;

    /// The PTX versions and targets that the instruction needs.
    fn needs(&self, needs: &mut Needs);

    /// The threads that must execute it together.
    fn convergence(&self) -> Convergence;

    /// Its use of the carry flag.
    fn carry(&self) -> Carry;

    /// Whether its result is a thread's index, as defined by [`Operands::is_thread_index`].
    fn is_thread_index(&self, operands: &Operands<'_>) -> bool;
}

/// A check of combinations that an instruction does not allow: modifiers, types, spaces, the declared types of its
/// operands.
pub trait Rule: Instr {
    /// Reports violations.
    fn check(&self, check: &mut Check<'_>);
}

/// Declares instructions, with their rules. See the [module documentation](super).
///
/// `"bar" [cta] "sync"` is an opcode `bar.sync` with a flag between its words: `bar{.cta}.sync`.
macro_rules! instruction {
    (@each [$([$($head:tt)*])+] $body:tt) => {
        $($crate::op::framework::instruction! { @one [$($head)*] $body })+
    };
    (@one
        [$(#[$doc:meta])* $name:ident ($opcode:literal $([$infix:ident] $rest:literal)?)]
        [{
            $($(#[$mdoc:meta])* $modifier:ident: $mty:ty $(= $word:literal)?),* $(,)?
        }($($(#[$adoc:meta])* $arg:ident: $aty:ty $(= $presence:expr)?),* $(,)?) -> $uniformity:expr
            $(, needs: $needs:expr)?
            $(, convergence: $convergence:expr)?
            $(, carry: $carry:expr)?
            $(, apart: $apart:expr)?
            $(, thread_index: $thread_index:expr)?
            $(, check: $check:expr)?]
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs, reason = "fields bear the names of the ISA")]
        pub struct $name {
            $(pub $infix: bool,)?
            $($(#[$mdoc])* pub $modifier: $mty,)*
            $($(#[$adoc])* pub $arg: $aty,)*
        }

        impl $name {
            /// The opcode as a feature, for declarations of several instructions.
            #[allow(dead_code, reason = "most name their features themselves")]
            const FEATURE: $crate::ir::Feature = concat!("`", $opcode $(, ".", $rest)?, "`");
        }

        impl $crate::op::Instr for $name {
            const NAME: &'static str = concat!($opcode $(, ".", $rest)?);

            fn read(reader: &mut $crate::op::InstrReader<'_>) -> Option<Self> {
                $(let $infix = reader.leading_flag(const { $crate::op::Keyword::new(stringify!($infix)) });)?
                $(let $modifier = $crate::op::framework::read_modifier!(reader, $mty $(, $word)?);)*
                reader.end_modifiers()?;
                $(let $arg: $aty = $crate::op::framework::read_arg!(reader, $arg $(, $presence)?);)*
                reader.end_args()?;
                Some($name { $($infix,)? $($modifier,)* $($arg,)* })
            }

            fn print(&self, out: &mut $crate::print::Writer<'_>) {
                out.opcode($opcode);
                $(
                    if self.$infix {
                        out.modifier(stringify!($infix));
                    }
                    out.modifier($rest);
                )?
                $($crate::op::framework::print_modifier!(out, self.$modifier $(, $word)?);)*
                $($crate::op::Arg::print(&self.$arg, out);)*
            }

            fn visit(&self, visitor: &mut dyn $crate::op::Visitor) {
                let _ = &visitor;
                $($crate::op::Arg::visit(&self.$arg, visitor);)*
            }

            fn visit_mut(&mut self, visitor: &mut dyn $crate::op::VisitorMut) {
                let _ = &visitor;
                $($crate::op::Arg::visit_mut(&mut self.$arg, visitor);)*
            }

            fn uniformity(&self, operands: &$crate::op::Operands<'_>) -> $crate::op::Level {
                // Where a declaration finds the rules that it names.
                #[allow(unused_imports)]
                use $crate::op::uniformity::{found, nothing, pointwise, unknown};
                let rule: fn(&Self, &$crate::op::Operands<'_>) -> $crate::op::Level = $uniformity;
                rule(self, operands)
            }

            fn needs(&self, needs: &mut $crate::ir::Needs) {
                let rule: fn(&Self, &mut $crate::ir::Needs) =
                    $crate::op::framework::given!(|_, _| {}; $($needs)?);
                rule(self, needs)
            }

            fn convergence(&self) -> $crate::op::Convergence {
                let rule: fn(&Self) -> $crate::op::Convergence =
                    $crate::op::framework::given!(|_| $crate::op::Convergence::None; $($convergence)?);
                rule(self)
            }

            fn carry(&self) -> $crate::op::Carry {
                let rule: fn(&Self) -> $crate::op::Carry =
                    $crate::op::framework::given!(|_| $crate::op::Carry::default(); $($carry)?);
                rule(self)
            }

            fn apart(&self, operands: &$crate::op::Operands<'_>) -> Option<$crate::op::Apart> {
                let rule: fn(&Self, &$crate::op::Operands<'_>) -> Option<$crate::op::Apart> =
                    $crate::op::framework::given!(|_, _| None; $($apart)?);
                rule(self, operands)
            }

            fn is_thread_index(&self, operands: &$crate::op::Operands<'_>) -> bool {
                let rule: fn(&Self, &$crate::op::Operands<'_>) -> bool =
                    $crate::op::framework::given!(|_, _| false; $($thread_index)?);
                rule(self, operands)
            }
        }

        $(
            impl $crate::op::Rule for $name {
                fn check(&self, check: &mut $crate::op::Check<'_>) {
                    let rule: fn(&Self, &mut $crate::op::Check<'_>) = $check;
                    rule(self, check)
                }
            }
        )?
    };
    ($(
        $($(#[$doc:meta])* pub struct $name:ident $opcode:tt)+ { $($fields:tt)* } $args:tt -> $uniformity:expr
            $(, needs: $needs:expr)?
            $(, convergence: $convergence:expr)?
            $(, carry: $carry:expr)?
            $(, apart: $apart:expr)?
            $(, thread_index: $thread_index:expr)?
            $(, check: $check:expr)?;
    )*) => {$(
        $crate::op::framework::instruction! {
            @each [$([$(#[$doc])* $name $opcode])+] [{ $($fields)* } $args -> $uniformity
                $(, needs: $needs)?
                $(, convergence: $convergence)?
                $(, carry: $carry)?
                $(, apart: $apart)?
                $(, thread_index: $thread_index)?
                $(, check: $check)?]
        }
    )*};
}
pub(crate) use instruction;

/// Expands to the given part of a declaration, or to the default if it is missing.
macro_rules! given {
    ($default:expr;) => {
        $default
    };
    ($default:expr; $given:expr) => {
        $given
    };
}
pub(crate) use given;

macro_rules! read_modifier {
    ($reader:ident, $ty:ty, $word:literal) => {
        $reader.flag(const { $crate::op::Keyword::new($word) })
    };
    ($reader:ident, $ty:ty) => {
        <$ty as $crate::op::ModifierField>::read($reader)?
    };
}
pub(crate) use read_modifier;

macro_rules! read_arg {
    ($reader:ident, $arg:ident, $presence:expr) => {
        $reader.arg_when(stringify!($arg), $presence.into())?
    };
    ($reader:ident, $arg:ident) => {
        $crate::op::Arg::read($reader, stringify!($arg))?
    };
}
pub(crate) use read_arg;

macro_rules! print_modifier {
    ($out:ident, $value:expr, $word:literal) => {
        if $value {
            $out.modifier($word);
        }
    };
    ($out:ident, $value:expr) => {
        $crate::op::ModifierField::print(&$value, $out)
    };
}
pub(crate) use print_modifier;

/// Declares [`Op`](super::Op), the sum of all instructions, from the families and their structs, and
/// [`Family`](super::family::Family), the same sum by families. Large instructions are declared `in Box`, so that the
/// others stay small.
macro_rules! ops {
    ($($(#[$doc:meta])* $group:ident of $family:ident { $($name:ident $(in $boxed:ident)?),* $(,)? })*) => {
        /// Any instruction.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Op {
            $($(#[doc = concat!("See [`", stringify!($name), "`](", stringify!($family), "::", stringify!($name), ").")] $name($crate::op::framework::payload!($family::$name $(, $boxed)?)),)*)*
        }

        /// Instructions by family: code that handles every instruction matches on a family, so it cannot omit any.
        pub mod family {
            /// An instruction with its family.
            #[derive(Clone, Copy, Debug)]
            pub enum Family<'a> {
                $($(#[$doc])* $group($group<'a>),)*
            }

            $($(#[$doc])*
            #[derive(Clone, Copy, Debug)]
            #[allow(missing_docs, reason = "variants bear the names of the instructions")]
            pub enum $group<'a> {
                $($name(&'a super::$family::$name),)*
            })*
        }

        impl Op {
            /// The instruction with its family.
            pub fn family(&self) -> family::Family<'_> {
                match self { $($(Op::$name(op) => family::Family::$group(family::$group::$name(op)),)*)* }
            }

            /// Every opcode with the function that reads it. An opcode of several words is found by its first; `read`
            /// picks the one with the most words present.
            pub(crate) const TABLE: &'static [OpcodeRow] = &[
                $($(OpcodeRow {
                    name: <$family::$name as Instr>::NAME,
                    read: |reader| <$family::$name as Instr>::read(reader).map(Op::from),
                },)*)*
            ];

            /// The opcodes of all instructions.
            pub fn names() -> impl Iterator<Item = &'static str> {
                Self::TABLE.iter().map(|row| row.name)
            }

            /// The opcode.
            pub fn name(&self) -> &'static str {
                match self { $($(Op::$name(_) => <$family::$name as Instr>::NAME,)*)* }
            }

            /// Prints opcode, modifiers and operands.
            pub fn print(&self, out: &mut crate::print::Writer<'_>) {
                match self { $($(Op::$name(op) => op.print(out),)*)* }
            }

            /// Passes every operand to the visitor, in the order of the text.
            pub fn visit(&self, visitor: &mut dyn Visitor) {
                match self { $($(Op::$name(op) => op.visit(visitor),)*)* }
            }

            /// Lets the visitor change every operand, in the order of the text.
            pub fn visit_mut(&mut self, visitor: &mut dyn VisitorMut) {
                match self { $($(Op::$name(op) => op.visit_mut(visitor),)*)* }
            }

            /// Reports combinations that the instruction does not allow.
            pub fn check(&self, check: &mut crate::op::Check<'_>) {
                match self { $($(Op::$name(op) => op.check(check),)*)* }
            }

            /// The PTX versions and targets that the instruction needs.
            pub fn needs(&self, needs: &mut crate::ir::Needs) {
                match self { $($(Op::$name(op) => op.needs(needs),)*)* }
            }

            /// The threads that must execute it together.
            pub fn convergence(&self) -> Convergence {
                match self { $($(Op::$name(op) => op.convergence(),)*)* }
            }

            /// The uniformity level of the results, over threads that execute it under the same control flow.
            pub fn uniformity(&self, operands: &Operands<'_>) -> Level {
                match self { $($(Op::$name(op) => op.uniformity(operands),)*)* }
            }

            /// The result whose uniformity level differs from that of the others, with its level.
            pub fn apart(&self, operands: &Operands<'_>) -> Option<Apart> {
                match self { $($(Op::$name(op) => op.apart(operands),)*)* }
            }

            /// Its use of the carry flag.
            pub fn carry(&self) -> Carry {
                match self { $($(Op::$name(op) => op.carry(),)*)* }
            }

            /// Whether its result is a thread's index, as defined by [`Operands::is_thread_index`].
            pub fn is_thread_index(&self, operands: &Operands<'_>) -> bool {
                match self { $($(Op::$name(op) => op.is_thread_index(operands),)*)* }
            }
        }

        $($(impl From<$family::$name> for Op {
            fn from(op: $family::$name) -> Self {
                // An identity, or into a box.
                #[allow(clippy::useless_conversion)]
                Op::$name(op.into())
            }
        })*)*
    };
}
pub(crate) use ops;

macro_rules! payload {
    ($name:ty) => { $name };
    ($name:ty, $boxed:ident) => { $boxed<$name> };
}
pub(crate) use payload;

/// A row of [`Op::TABLE`](super::Op).
pub(crate) struct OpcodeRow {
    pub(crate) name: &'static str,
    pub(crate) read: fn(&mut super::InstrReader<'_>) -> Option<super::Op>,
}
