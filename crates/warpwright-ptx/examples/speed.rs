//! scratch
use std::time::Instant;
fn main() {
    let files: Vec<String> = std::env::args().skip(1).map(|f| std::fs::read_to_string(f).unwrap()).collect();
    let texts: Vec<&String> = files.iter().filter(|t| warpwright_ptx::parse(t).is_ok()).collect();
    let bytes: usize = texts.iter().map(|t| t.len()).sum();
    println!("{} files {} bytes", texts.len(), bytes);
    for _ in 0..3 {
        let t = Instant::now();
        let ms: Vec<_> = texts.iter().map(|t| warpwright_ptx::parse(t).unwrap()).collect();
        let p = t.elapsed();
        let t = Instant::now();
        for m in &ms {
            let _ = std::hint::black_box(warpwright_ptx::verify(m));
        }
        let v = t.elapsed();
        let t = Instant::now();
        let n: usize = ms.iter().map(|m| warpwright_ptx::print(m).len()).sum();
        let pr = t.elapsed();
        println!(
            "parse {:.1} MB/s verify {:.1} MB/s print {:.1} MB/s",
            bytes as f64 / p.as_secs_f64() / 1e6,
            bytes as f64 / v.as_secs_f64() / 1e6,
            n as f64 / pr.as_secs_f64() / 1e6
        );
    }
}
