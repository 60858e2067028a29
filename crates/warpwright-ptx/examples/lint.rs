//! Reads PTX, says what is wrong with it, and prints it in canonical form.
//!
//! ```text
//! cargo run -p warpwright-ptx --example lint             # a text with a mistake
//! cargo run -p warpwright-ptx --example lint -- FILE.ptx
//! ```

use std::error::Error;
use warpwright_ptx::diag::render;
use warpwright_ptx::{parse, print, verify};

/// A store of a register that is too narrow, and a barrier that half of the warp skips.
const TEXT: &str = "\
.version 8.0
.target sm_80
.address_size 64
.visible .entry faulty(.param .u64 out)
{
    .reg .pred %p<2>;
    .reg .b16 %h<2>;
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    setp.lt.u32 %p1, %r1, 16;
    @%p1 bra $skip;
    bar.sync 0;
$skip:
    cvt.u16.u32 %h1, %r1;
    st.global.u32 [%rd1], %h1;
    ret;
}
";

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1);
    let (name, text) = match &path {
        Some(path) => (path.as_str(), std::fs::read_to_string(path)?),
        None => ("faulty.ptx", TEXT.to_owned()),
    };
    let module = match parse(&text) {
        Ok(module) => module,
        Err(diagnostics) => {
            println!("{}", render(&diagnostics, name, &text, false));
            return Ok(());
        }
    };
    match verify(&module) {
        Ok(info) => {
            println!("{}", print(&module));
            print!("{}", render(&info.diagnostics, name, &text, false));
        }
        Err(diagnostics) => println!("{}", render(&diagnostics, name, &text, false)),
    }
    Ok(())
}
