//! Prints the PTX of a kernel: `emit sm_80 rms_norm d=4096 dtype=f16`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [target, name, fields @ ..] = &args[..] else {
        return Err("usage: emit TARGET KERNEL [field=value …]".into());
    };
    let kernel = warpwright_kernels::find(name)?.configure(fields.iter().map(String::as_str))?;
    print!("{}", kernel.ptx(target.parse()?)?);
    Ok(())
}
