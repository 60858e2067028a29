//! Lengths and counts as formulas of numbers known at the launch.

use std::fmt;
use std::ops;

/// A length or count: a formula of numbers that are known at the launch. These are scalar arguments, or numbers that
/// the caller chooses (such as `rows`).
///
/// It has sums, products, quotients rounded up and rounding up to multiples, evaluated in the order in which they are
/// written:
///
/// ```
/// use warpwright_dsl::Extent;
///
/// let tiles = Extent::dim("m").per(64) * Extent::dim("n").per(128) + 1;
/// let known = |name: &str| Some(if name == "m" { 65 } else { 300 });
/// assert_eq!(tiles.evaluate(known), Some(2 * 3 + 1));
/// assert_eq!(tiles.to_string(), "(m/64)*(n/128) + 1");
/// assert_eq!(Extent::dim("n").round_up(128).evaluate(known), Some(384));
/// ```
///
/// In its text, `/` also rounds up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Extent {
    /// In postfix order; those from `len` on are [`Step::UNUSED`].
    steps: [Step; Extent::MAX_STEPS],
    len: u8,
}

/// A step of the evaluation, on a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    Number(u64),
    Dim(&'static str),
    /// Of the two numbers on top.
    Sum,
    Product,
    /// Of the number on top and a constant.
    Plus(u64),
    Times(u64),
    Per(u64),
    RoundUp(u64),
}

impl Step {
    const UNUSED: Step = Step::Number(0);

    /// The step that does the work of both.
    const fn after(self, before: Step) -> Option<Step> {
        match (before, self) {
            (Step::Plus(a), Step::Plus(b)) => match a.checked_add(b) {
                Some(sum) => Some(Step::Plus(sum)),
                None => None,
            },
            // What is multiplied by zero may have been too large before.
            (Step::Times(a), Step::Times(b)) if b != 0 => match a.checked_mul(b) {
                Some(product) => Some(Step::Times(product)),
                None => None,
            },
            (Step::Per(a), Step::Per(b)) => match a.checked_mul(b) {
                Some(product) => Some(Step::Per(product)),
                None => None,
            },
            (Step::Number(number), step) => match step.of(number) {
                Some(number) => Some(Step::Number(number)),
                None => None,
            },
            _ => None,
        }
    }

    /// The result for the number on top, where the step needs no more.
    const fn of(self, number: u64) -> Option<u64> {
        match self {
            Step::Plus(other) => number.checked_add(other),
            Step::Times(factor) => number.checked_mul(factor),
            Step::Per(0) | Step::RoundUp(0) => None,
            Step::Per(divisor) => Some(number.div_ceil(divisor)),
            Step::RoundUp(multiple) => number.checked_next_multiple_of(multiple),
            _ => None,
        }
    }
}

impl Extent {
    /// The maximum number of steps of a formula: numbers, names and operations; an operation with a constant counts
    /// as one. The build refuses longer formulas.
    pub const MAX_STEPS: usize = 8;

    /// Stands for a formula of more steps.
    const TOO_LONG: Extent = Extent { steps: [Step::UNUSED; Extent::MAX_STEPS], len: u8::MAX };

    const fn of(step: Step) -> Self {
        let mut steps = [Step::UNUSED; Extent::MAX_STEPS];
        steps[0] = step;
        Extent { steps, len: 1 }
    }

    /// A number fixed by the configuration.
    pub const fn new(count: u64) -> Self {
        Extent::of(Step::Number(count))
    }

    /// A number known at the launch.
    pub const fn dim(name: &'static str) -> Self {
        Extent::of(Step::Dim(name))
    }

    /// The product of two numbers known at the launch.
    pub const fn dims(a: &'static str, b: &'static str) -> Self {
        Extent::dim(a).with(Extent::dim(b)).then(Step::Product)
    }

    /// The extent times `factor`.
    pub const fn times(self, factor: u64) -> Self {
        if factor == 1 { self } else { self.then(Step::Times(factor)) }
    }

    /// The extent divided by `divisor`, rounded up.
    pub const fn per(self, divisor: u64) -> Self {
        if divisor == 1 { self } else { self.then(Step::Per(divisor)) }
    }

    /// The extent rounded up to a multiple.
    pub const fn round_up(self, multiple: u64) -> Self {
        if multiple == 1 { self } else { self.then(Step::RoundUp(multiple)) }
    }

    /// With a step more.
    const fn then(mut self, step: Step) -> Self {
        let len = self.len as usize;
        if len > Extent::MAX_STEPS {
            return self;
        }
        if let Some(step) = step.after(self.steps[len - 1]) {
            self.steps[len - 1] = step;
            return self;
        }
        if len == Extent::MAX_STEPS {
            return Extent::TOO_LONG;
        }
        self.steps[len] = step;
        self.len += 1;
        self
    }

    /// The steps of both: two numbers on the stack.
    const fn with(mut self, other: Extent) -> Self {
        let (mut len, mut i) = (self.len as usize, 0);
        if len + other.len as usize > Extent::MAX_STEPS {
            return Extent::TOO_LONG;
        }
        while i < other.len as usize {
            self.steps[len] = other.steps[i];
            (len, i) = (len + 1, i + 1);
        }
        self.len += other.len;
        self
    }

    /// The number, where no name is in it.
    const fn number(&self) -> Option<u64> {
        match self.steps[0] {
            Step::Number(number) if self.len == 1 => Some(number),
            _ => None,
        }
    }

    fn steps(&self) -> &[Step] {
        self.steps.get(..self.len.into()).unwrap_or(&[])
    }

    /// Whether it exceeds [`MAX_STEPS`](Self::MAX_STEPS); it then stands for no number.
    pub const fn is_too_long(&self) -> bool {
        self.len as usize > Extent::MAX_STEPS
    }

    /// The names that the formula uses.
    pub fn depends_on(self) -> impl Iterator<Item = &'static str> {
        let steps = self.steps.into_iter().take(self.len.into());
        steps.filter_map(|step| if let Step::Dim(name) = step { Some(name) } else { None })
    }

    /// The value; `None` if a name is unknown, an intermediate result is too large, or a divisor is zero.
    pub fn evaluate(self, known: impl Fn(&str) -> Option<u64>) -> Option<u64> {
        let mut stack = [0; Extent::MAX_STEPS];
        let mut top = 0;
        for &step in self.steps() {
            let number = match step {
                Step::Number(number) => number,
                Step::Dim(name) => known(name)?,
                Step::Sum | Step::Product => {
                    top -= 2;
                    let (a, b): (u64, u64) = (stack[top], stack[top + 1]);
                    if step == Step::Sum { a.checked_add(b)? } else { a.checked_mul(b)? }
                }
                step => {
                    top -= 1;
                    step.of(stack[top])?
                }
            };
            stack[top] = number;
            top += 1;
        }
        (top == 1).then_some(stack[0])
    }
}

impl From<u32> for Extent {
    fn from(count: u32) -> Self {
        Extent::new(count.into())
    }
}

impl ops::Add<u64> for Extent {
    type Output = Extent;
    fn add(self, count: u64) -> Extent {
        if count == 0 { self } else { self.then(Step::Plus(count)) }
    }
}

impl ops::Add for Extent {
    type Output = Extent;
    fn add(self, other: Extent) -> Extent {
        match (self.number(), other.number()) {
            (_, Some(count)) => self + count,
            (Some(count), _) => other + count,
            _ => self.with(other).then(Step::Sum),
        }
    }
}

impl ops::Mul for Extent {
    type Output = Extent;
    fn mul(self, other: Extent) -> Extent {
        match (self.number(), other.number()) {
            (_, Some(factor)) => self.times(factor),
            (Some(factor), _) => other.times(factor),
            _ => self.with(other).then(Step::Product),
        }
    }
}

/// How tightly a text holds together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Binding {
    Sum,
    Quotient,
    Product,
    Atom,
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut stack: Vec<(String, Binding)> = Vec::new();
        let within = |(text, binding): (String, Binding), least| {
            if binding < least { format!("({text})") } else { text }
        };
        for &step in self.steps() {
            let mut pop = || stack.pop().unwrap_or((String::new(), Binding::Atom));
            let text = match step {
                Step::Number(number) => (number.to_string(), Binding::Atom),
                Step::Dim(name) => (name.to_string(), Binding::Atom),
                Step::Sum => {
                    let (b, a) = (pop(), pop());
                    (format!("{} + {}", a.0, b.0), Binding::Sum)
                }
                Step::Plus(count) => (format!("{} + {count}", pop().0), Binding::Sum),
                Step::Product => {
                    let (b, a) = (pop(), pop());
                    let (a, b) = (within(a, Binding::Product), within(b, Binding::Product));
                    (format!("{a}*{b}"), Binding::Product)
                }
                Step::Times(factor) => {
                    (format!("{factor}*{}", within(pop(), Binding::Product)), Binding::Product)
                }
                Step::Per(divisor) => {
                    (format!("{}/{divisor}", within(pop(), Binding::Product)), Binding::Quotient)
                }
                Step::RoundUp(multiple) => (format!("round_up({}, {multiple})", pop().0), Binding::Atom),
            };
            stack.push(text);
        }
        match stack.pop() {
            Some((text, _)) if stack.is_empty() => f.write_str(&text),
            _ => write!(f, "a formula of more than {} steps", Extent::MAX_STEPS),
        }
    }
}
