//! Extents: random formulas against the same in 128 bits, and what their texts say.

use warpwright_dsl::any::AnyKernel;
use warpwright_dsl::*;
use warpwright_ptx::diag::Code;
use warpwright_ptx::ir::Arch;

/// Splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, count: usize) -> usize {
        (self.next() % count as u64) as usize
    }

    /// Small, at an edge, or of any size.
    fn number(&mut self) -> u64 {
        match self.below(8) {
            0 => 0,
            1 => 1,
            2 => u64::MAX - self.next() % 3,
            3 => 1 << self.below(64),
            4 => self.next() >> self.below(64),
            _ => self.next() % 1000,
        }
    }
}

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// A number of 64 bits: `None` where it is too large, or has no value.
fn fits(value: u128) -> Option<u128> {
    (value <= u64::MAX.into()).then_some(value)
}

/// A formula, and its value by the definition.
fn formula(random: &mut Random, known: [u64; 4], depth: u32) -> (Extent, Option<u128>) {
    let what = if depth == 0 { random.below(2) } else { random.below(9) };
    if what == 0 {
        let number = random.number();
        return (Extent::new(number), Some(number.into()));
    }
    if what == 1 {
        let name = random.below(4);
        return (Extent::dim(NAMES[name]), Some(known[name].into()));
    }
    let (a, x) = formula(random, known, depth - 1);
    let n = random.number();
    let wide = u128::from(n);
    match what {
        2 => (a + n, x.and_then(|x| fits(x + wide))),
        3 => (a.times(n), x.and_then(|x| fits(x * wide))),
        4 => (a.per(n), x.filter(|_| n > 0).map(|x| x.div_ceil(wide))),
        5 => (a.round_up(n), x.filter(|_| n > 0).and_then(|x| fits(x.div_ceil(wide) * wide))),
        6 | 7 => {
            let (b, y) = formula(random, known, depth - 1);
            let values = x.zip(y);
            if what == 6 {
                (a + b, values.and_then(|(x, y)| fits(x + y)))
            } else {
                (a * b, values.and_then(|(x, y)| fits(x * y)))
            }
        }
        _ => {
            let (i, j) = (random.below(4), random.below(4));
            let product = fits(u128::from(known[i]) * u128::from(known[j]));
            (Extent::dims(NAMES[i], NAMES[j]), product)
        }
    }
}

#[test]
fn formulas_have_the_values_of_wide_arithmetic() {
    let mut random = Random(1);
    let (mut values, mut without, mut long) = (0, 0, 0);
    for _ in 0..200_000 {
        let known = [(); 4].map(|()| random.number());
        let (extent, expected) = formula(&mut random, known, 4);
        if extent.is_too_long() {
            assert_eq!(extent.evaluate(|_| Some(0)), None);
            long += 1;
            continue;
        }
        let value = extent.evaluate(|name| {
            let at = NAMES.iter().position(|known| *known == name)?;
            Some(known[at])
        });
        assert_eq!(value.map(u128::from), expected, "{extent} with {known:?}");
        let missing = extent.depends_on().next();
        if let Some(missing) = missing {
            assert_eq!(extent.evaluate(|name| (name != missing).then_some(1)), None, "{extent}");
        }
        *(if expected.is_some() { &mut values } else { &mut without }) += 1;
    }
    assert!(values > 50_000 && without > 20_000 && long > 1000, "{values}, {without}, {long}");
}

#[test]
fn texts_are_read_as_they_are_evaluated() {
    let (m, n) = (Extent::dim("m"), Extent::dim("n"));
    for (extent, text) in [
        (Extent::new(7), "7"),
        (Extent::new(7).per(2), "4"),
        (n, "n"),
        (n.times(3).per(256), "3*n/256"),
        (n.times(3).times(2), "6*n"),
        (n.per(4).times(3), "3*(n/4)"),
        (Extent::dims("m", "n").times(2), "2*m*n"),
        (n + 1, "n + 1"),
        ((n + 1).times(2), "2*(n + 1)"),
        ((m + n + 1).per(8), "(m + n + 1)/8"),
        (n.per(8) + m.per(4), "n/8 + m/4"),
        (m.per(64) * n.per(64), "(m/64)*(n/64)"),
        (n.round_up(128).times(2), "2*round_up(n, 128)"),
        ((n + 1).round_up(4), "round_up(n + 1, 4)"),
        (Extent::from(3) * n, "3*n"),
    ] {
        assert_eq!(extent.to_string(), text);
    }
}

#[test]
fn what_is_the_same_formula_is_equal() {
    let n = Extent::dim("n");
    assert_eq!(n.times(6), n.times(2).times(3));
    assert_eq!(n + 3, n + 1 + 2);
    assert_eq!(n.per(6), n.per(2).per(3).times(1).round_up(1) + 0);
    assert_ne!(n + 1, n + 2);
}

#[test]
fn a_formula_that_is_too_long_is_refused() {
    struct Long;
    impl AnyKernel for Long {
        fn entry(&self) -> String {
            "long".into()
        }
        fn args(&self) -> Vec<ArgDesc> {
            let sum = NAMES.map(Extent::dim).into_iter().reduce(|a, b| a + b).expect("a sum");
            vec![ArgDesc::output::<u32>("y", sum.times(2) + 1)]
        }
        fn launch(&self) -> LaunchRule {
            LaunchRule::new(32)
        }
        fn body(&self, k: K<'_>) {
            k.ptr_mut::<u32>("y").st(0, 1);
        }
    }
    let Err(BuildError::Mistakes(mistakes)) = Long.build(Arch::sm(80)) else { panic!("it was built") };
    assert_eq!(mistakes.iter().map(|mistake| mistake.code).collect::<Vec<_>>(), [Code::TooLarge]);
}

#[test]
fn extents_are_rounded_up() {
    let blocks = Extent::dim("n").times(3).per(256);
    assert_eq!(blocks.evaluate(|name| (name == "n").then_some(1000)), Some(12));
    assert_eq!(blocks.evaluate(|_| None), None);
    assert_eq!(Extent::new(7).per(2).evaluate(|_| None), Some(4));
    let elements = Extent::dims("rows", "columns").times(2);
    let known = |name: &str| [("rows", 3), ("columns", 5)].into_iter().find(|d| d.0 == name).map(|d| d.1);
    assert_eq!(elements.evaluate(known), Some(30));
    assert_eq!(elements.evaluate(|name| (name == "rows").then_some(3)), None);
    assert_eq!(elements.evaluate(|_| Some(u64::MAX)), None);
    assert_eq!(elements.times(u64::MAX).evaluate(known), None);
    assert_eq!(elements.per(0).evaluate(known), None);
    assert_eq!(elements.to_string(), "2*rows*columns");
}
