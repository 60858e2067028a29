//! Scratch tool: `dev roundtrip FILE…`; `dev check` reads modules from stdin separated by a line `====`
//! and prints OK or the first diagnostic for each.
use std::io::Read;
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args[0].as_str() {
        "roundtrip" => {
            let mut bad = 0;
            for file in &args[1..] {
                let text = std::fs::read_to_string(file).unwrap();
                match warpwright_ptx::parse(&text) {
                    Err(d) => {
                        bad += 1;
                        for d in d.iter().take(8) {
                            let line = match d.origin {
                                warpwright_ptx::ir::Origin::Text(s) => {
                                    text[..s.start as usize].matches('\n').count() + 1
                                }
                                _ => 0,
                            };
                            println!(
                                "{file}:{line}: {d}   | {}",
                                text.lines().nth(line.max(1) - 1).unwrap_or("")
                            );
                        }
                    }
                    Ok(m) => {
                        let printed = warpwright_ptx::print(&m);
                        match warpwright_ptx::parse(&printed) {
                            Err(d) => {
                                bad += 1;
                                println!("{file}: REPARSE {}", d.iter().next().unwrap());
                                std::fs::write("/tmp/x/reparse.ptx", &printed).unwrap();
                            }
                            Ok(m2) => {
                                let again = warpwright_ptx::print(&m2);
                                if m2 != m {
                                    bad += 1;
                                    println!("{file}: IR differs");
                                }
                                if again != printed {
                                    bad += 1;
                                    println!("{file}: text differs");
                                }
                            }
                        }
                        if let Err(d) = warpwright_ptx::verify(&m) {
                            bad += 1;
                            for d in d
                                .iter()
                                .filter(|d| d.severity() == warpwright_ptx::diag::Severity::Error)
                                .take(6)
                            {
                                let line = match d.origin {
                                    warpwright_ptx::ir::Origin::Text(s) => {
                                        text[..s.start as usize].matches('\n').count() + 1
                                    }
                                    _ => 0,
                                };
                                println!(
                                    "{file}:{line}: {d}   | {}",
                                    text.lines().nth(line.max(1) - 1).unwrap_or("")
                                );
                            }
                        }
                    }
                }
            }
            println!("{} files, {bad} bad", args.len() - 1);
        }
        "print" => {
            let text = std::fs::read_to_string(&args[1]).unwrap();
            match warpwright_ptx::parse(&text) {
                Ok(m) => print!("{}", warpwright_ptx::print(&m)),
                Err(d) => println!("{d}"),
            }
        }
        _ => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).unwrap();
            for module in text.split("\n====\n") {
                let r = warpwright_ptx::parse(module).and_then(|m| warpwright_ptx::verify(&m));
                match r {
                    Ok(_) => println!("OK"),
                    Err(d) => println!(
                        "BAD {}",
                        d.iter()
                            .find(|d| d.severity() == warpwright_ptx::diag::Severity::Error)
                            .map(|d| d.to_string().replace('\n', " "))
                            .unwrap_or_default()
                    ),
                }
            }
        }
    }
}
