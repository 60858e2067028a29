//! Random programs on the VM against a scalar evaluator.

mod conversion;
mod evaluate;
mod float;
mod forms;
mod generate;
mod integer;
mod lower;
mod operate;
mod random;

#[test]
fn generated_programs_are_fine() {
    use evaluate::*;
    let start = std::time::Instant::now();
    let mut random = random::Random::new(1);
    for seed in 0..200 {
        let trees: Vec<_> = (0..10).map(|_| generate::program(&mut random)).collect();
        let text = generate::module(&trees);
        if seed == 0 {
            std::fs::write("/tmp/diff0.ptx", &text).unwrap();
        }
        let module = match warpwright_ptx::parse(&text) {
            Ok(m) => m,
            Err(d) => {
                panic!("{text}\n{d:?}")
            }
        };
        if let Err(d) = warpwright_ptx::verify(&module) {
            println!("{d:?}");
            continue;
        }
        let program = Program::new(&module);
        for i in 0..10 {
            for t in 0..64 {
                let mut record = generate::record(&mut random);
                program.run(
                    &format!("p{i}"),
                    Place { block: 0, thread: t, threads_of_block: 64 },
                    &mut record,
                );
            }
        }
    }
    println!("{:?}", start.elapsed());
}
