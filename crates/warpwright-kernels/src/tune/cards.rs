//! Cards by name, with how fast their parts are.

use super::{DeviceModel, Speed};
use warpwright_ptx::ir::Arch;

/// A card, in the units in which such figures are published.
struct Card {
    name: &'static str,
    /// Memory, in GB.
    memory_size: u16,
    sm: u16,
    multiprocessors: u32,
    /// GB/s of the data sheet.
    bandwidth: u64,
    /// MiB.
    l2: u64,
    /// GHz under load: without the tensor cores, and with them.
    clock: [f64; 2],
    /// GB/s of reading, and of a copy.
    memory: [f64; 2],
    /// GB/s of the L2 cache.
    l2_rate: f64,
    /// Cycles until data are there: of the first-level cache, the L2 cache, memory, shared memory.
    latency: [f64; 4],
    /// Cycles of a quarter of a multiprocessor for 16 × 8 × 16 halves.
    mma: f64,
    /// Nanoseconds from one empty kernel of a graph to the next.
    launch: u32,
}

const CARDS: &[Card] = &[
    Card {
        name: "A100-40GB",
        memory_size: 40,
        sm: 80,
        multiprocessors: 108,
        bandwidth: 1555,
        l2: 40,
        clock: [1.41, 1.41],
        memory: [1450.0, 1375.0],
        l2_rate: 5400.0,
        latency: [36.0, 215.0, 570.0, 23.0],
        mma: 8.0,
        launch: 1350,
    },
    Card {
        name: "A100",
        memory_size: 80,
        sm: 80,
        multiprocessors: 108,
        bandwidth: 2039,
        l2: 40,
        clock: [1.41, 1.41],
        memory: [1770.0, 1730.0],
        l2_rate: 5400.0,
        latency: [36.0, 211.0, 565.0, 23.0],
        mma: 8.0,
        launch: 1350,
    },
    Card {
        name: "H100",
        memory_size: 80,
        sm: 90,
        multiprocessors: 132,
        bandwidth: 3350,
        l2: 50,
        clock: [1.98, 1.7],
        memory: [3200.0, 3000.0],
        l2_rate: 9300.0,
        latency: [36.0, 265.0, 660.0, 29.0],
        mma: 6.26,
        launch: 1300,
    },
    Card {
        name: "H200",
        memory_size: 141,
        sm: 90,
        multiprocessors: 132,
        bandwidth: 4800,
        l2: 50,
        clock: [1.98, 1.7],
        memory: [4350.0, 4100.0],
        l2_rate: 9800.0,
        latency: [36.0, 275.0, 680.0, 29.0],
        mma: 6.26,
        launch: 1270,
    },
    Card {
        name: "B200",
        memory_size: 180,
        sm: 100,
        multiprocessors: 148,
        bandwidth: 8000,
        l2: 126,
        clock: [1.9, 1.9],
        memory: [6690.0, 6500.0],
        l2_rate: 16900.0,
        latency: [40.0, 295.0, 860.0, 29.0],
        mma: 8.2,
        launch: 800,
    },
    Card {
        name: "RTX 3090",
        memory_size: 24,
        sm: 86,
        multiprocessors: 82,
        bandwidth: 936,
        l2: 6,
        clock: [1.75, 1.75],
        memory: [880.0, 850.0],
        l2_rate: 2350.0,
        latency: [33.0, 225.0, 530.0, 23.0],
        mma: 32.0,
        launch: 1100,
    },
    Card {
        name: "RTX A6000",
        memory_size: 48,
        sm: 86,
        multiprocessors: 84,
        bandwidth: 768,
        l2: 6,
        clock: [1.74, 1.74],
        memory: [735.0, 720.0],
        l2_rate: 2400.0,
        latency: [33.0, 225.0, 520.0, 23.0],
        mma: 16.0,
        launch: 1100,
    },
    Card {
        name: "RTX 4090",
        memory_size: 24,
        sm: 89,
        multiprocessors: 128,
        bandwidth: 1008,
        l2: 72,
        clock: [2.52, 2.52],
        memory: [945.0, 921.0],
        l2_rate: 5160.0,
        latency: [36.0, 285.0, 590.0, 29.0],
        mma: 32.0,
        launch: 950,
    },
    Card {
        name: "RTX 5090",
        memory_size: 32,
        sm: 120,
        multiprocessors: 170,
        bandwidth: 1792,
        l2: 96,
        clock: [2.85, 2.85],
        memory: [1650.0, 1500.0],
        l2_rate: 8500.0,
        latency: [44.0, 360.0, 930.0, 33.0],
        mma: 32.0,
        launch: 840,
    },
];

impl DeviceModel {
    /// The names of the cards whose speeds are known.
    pub fn names() -> Vec<&'static str> {
        CARDS.iter().map(|card| card.name).collect()
    }

    /// A card by its name, in letters of any case and with or without spaces and hyphens, as in [`names`](Self::names) or
    /// as drivers and shops have it: `NVIDIA H100 80GB HBM3`, `A100-SXM4-40GB`, `GeForce 4090`. Other forms of a card, such as
    /// those for PCIe or laptops, are other cards.
    pub fn named(name: &str) -> Option<Self> {
        let plain = |name: &str| {
            let letters: String =
                name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
            ["nvidia", "geforce", "rtx", "sxm4", "sxm5", "sxm6", "sxm", "hbm2e", "hbm3e", "hbm3"]
                .iter()
                .fold(letters, |name, word| name.replacen(word, "", 1))
        };
        let wanted = plain(name);
        let is = |card: &&Card| {
            let memory = format!("{}gb", card.memory_size);
            plain(card.name) == wanted || Some(&*plain(card.name)) == wanted.strip_suffix(&memory)
        };
        let card = CARDS.iter().find(is)?;
        let [l1_latency, l2_latency, dram_latency, shared_latency] = card.latency;
        let mut model = DeviceModel::typical(Arch::sm(card.sm));
        model.name = card.name.into();
        model.multiprocessors = card.multiprocessors;
        model.bandwidth = card.bandwidth * 1_000_000_000;
        model.l2 = card.l2 << 20;
        model.launch = card.launch;
        model.speed = Some(Speed {
            clock: card.clock[0] * 1e9,
            tensor_clock: card.clock[1] * 1e9,
            read: card.memory[0] * 1e9,
            copy: card.memory[1] * 1e9,
            l2: card.l2_rate * 1e9,
            l1_latency,
            l2_latency,
            dram_latency,
            shared_latency,
            mma_cycles: card.mma,
        });
        Some(model)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_has_one_name_in_many_spellings() {
        for (spelling, name) in [
            ("A100", Some("A100")),
            ("a100", Some("A100")),
            ("A100-40GB", Some("A100-40GB")),
            ("a100 40gb", Some("A100-40GB")),
            ("A10040GB", Some("A100-40GB")),
            (" H100 ", Some("H100")),
            ("RTX 4090", Some("RTX 4090")),
            ("rtx4090", Some("RTX 4090")),
            ("RTX-4090", Some("RTX 4090")),
            ("4090", Some("RTX 4090")),
            ("A6000", Some("RTX A6000")),
            ("rtx_a6000", Some("RTX A6000")),
            // A name has to be whole.
            ("", None),
            ("RTX", None),
            ("A10", None),
            ("a100-16gb", None),
            ("H100 PCIe", None),
            ("A100 80GB PCIe", None),
            ("NVIDIA A100-PCIE-40GB", None),
            ("H100 NVL", None),
            ("RTX 4080", None),
            ("RTX 4090 Laptop", None),
            ("NVIDIA", None),
            ("80GB", None),
            // As drivers and shops have them.
            ("A100-80GB", Some("A100")),
            ("A100 80 GB", Some("A100")),
            ("NVIDIA A100-SXM4-80GB", Some("A100")),
            ("NVIDIA A100-SXM4-40GB", Some("A100-40GB")),
            ("H100 SXM", Some("H100")),
            ("H100-SXM5-80GB", Some("H100")),
            ("NVIDIA H100 80GB HBM3", Some("H100")),
            ("NVIDIA H200", Some("H200")),
            ("B200 SXM", Some("B200")),
            ("geforce 4090", Some("RTX 4090")),
            ("NVIDIA GeForce RTX 5090", Some("RTX 5090")),
            ("NVIDIA RTX A6000", Some("RTX A6000")),
        ] {
            let found = DeviceModel::named(spelling).map(|device| device.name);
            assert_eq!(found.as_deref(), name, "{spelling:?}");
        }
    }

    #[test]
    fn every_card_is_found_with_figures_that_fit_together() {
        for name in DeviceModel::names() {
            let device = DeviceModel::named(name).expect("it is in the table");
            assert_eq!(device.name, name);
            let speed = device.speed.expect("its speeds are known");
            assert!(speed.copy <= speed.read && speed.read <= device.bandwidth as f64, "{name}: memory");
            assert!(speed.read < speed.l2, "{name}: a cache is faster than memory");
            assert!(speed.tensor_clock <= speed.clock, "{name}: clocks");
            let latencies = [speed.shared_latency, speed.l1_latency, speed.l2_latency, speed.dram_latency];
            assert!(latencies.is_sorted(), "{name}: {latencies:?}");
        }
    }

    #[test]
    fn figures_come_in_their_units() {
        let device = DeviceModel::named("A100").expect("it is in the table");
        assert_eq!((device.arch, device.multiprocessors), (Arch::sm(80), 108));
        assert_eq!((device.bandwidth, device.l2), (2_039_000_000_000, 40 << 20));
        // Limits of residency are those of the architecture.
        let limits = |device: &DeviceModel| (device.shared, device.warps, device.blocks);
        assert_eq!(limits(&device), (164 << 10, 64, 32));
        let speed = device.speed.expect("its speeds are known");
        assert_eq!((speed.clock, speed.read, speed.l2), (1.41e9, 1.77e12, 5.4e12));
        assert_eq!((speed.l1_latency, speed.dram_latency, speed.mma_cycles), (36.0, 565.0, 8.0));
        let game = DeviceModel::named("RTX 4090").expect("it is in the table");
        assert_eq!(limits(&game), (100 << 10, 48, 24));
    }
}
