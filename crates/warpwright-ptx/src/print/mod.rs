//! The printer: a module as PTX text.
//!
//! The text is canonical: parsing it returns the module, and printing that returns the same text. Instructions are
//! indented by four spaces per scope, opcodes and operands are aligned in columns, and labels are at the margin.

mod module;
mod writer;

pub use module::{Options, print, print_with};
pub use writer::Writer;

/// The form of an instruction: its opcode with its modifiers, as the canonical text has them.
///
/// ```
/// let text = ".version 8.0\n.target sm_80\n.address_size 64\n.entry k() { .reg .f32 f; ex2.approx.ftz.f32 f, f; ret; }";
/// let module = warpwright_ptx::parse(text).expect("it is well-formed");
/// let forms = module.functions().flat_map(|function| function.instructions());
/// let forms: Vec<String> = forms.map(|instruction| warpwright_ptx::print::form(&instruction.op)).collect();
/// assert_eq!(forms, ["ex2.approx.ftz.f32", "ret"]);
/// ```
pub fn form(op: &crate::op::Op) -> String {
    let mut out = Writer::with_capacity(64);
    op.print(&mut out);
    let end = out.out.find(char::is_whitespace).unwrap_or(out.out.len());
    out.out.truncate(end);
    out.out
}
