//! Machine code: made by `ptxas`, read from what `nvdisasm` prints.
//!
//! Both are NVIDIA's programs, which run as processes and are no part of this project.

mod code;
mod disassembler;
mod ptxas;
mod resources;

pub use code::{Code, Control, Instruction};
pub use disassembler::Disassembler;
pub use ptxas::{Assembled, Ptxas, first_error};
pub use resources::Resources;
