//! The contract of every kernel of the library, in every example: each argument that is wrong in any way is refused
//! before the launch, and what is told is the kernel, the argument and what is wrong with it; what is right is
//! accepted.
//!
//! All arguments lie in one piece of memory, which nothing ever runs on.

use warpwright_dsl::{ArgDesc, Role};
use warpwright_kernels::catalogue;
use warpwright_ptx::ir::{Arch, Type};
use warpwright_runtime::{
    AnyBuffer, Buffer, CompiledKernel, Device, Kind, PreparedLaunch, RuntimeError, Stream, Violation,
    VmConfig,
};

/// What `rows`, `tokens`, `batch` and all other numbers are that lengths depend on.
const SIZE: u32 = 2;

/// Bytes that the arguments of an example may have: what every host can promise without touching it.
const MAX_BYTES: usize = 8 << 30;

/// What is given for an argument.
#[derive(Clone, Debug)]
enum Value {
    Buffer(AnyBuffer),
    Whole(u32),
    Float(f32),
    Signed(i32),
    Double(f64),
}

/// A kernel with memory for its arguments.
struct Subject {
    kernel: CompiledKernel,
    memory: Buffer<u8>,
    /// By argument: where it lies in the memory, and its size.
    places: Vec<(usize, usize)>,
    what: String,
}

impl Subject {
    /// `None` where the arguments are too large.
    fn new(device: &Device, kernel: CompiledKernel, what: String) -> Option<Self> {
        let mut places = Vec::new();
        let mut end = 0usize;
        for arg in kernel.args() {
            let bytes = if arg.role == Role::Scalar {
                0
            } else {
                let len = arg.len.evaluate(|_| Some(SIZE.into())).expect("a length");
                len as usize * arg.dtype.bytes() as usize
            };
            places.push((end, bytes));
            // With room for an element more.
            end = (end + bytes + 32).next_multiple_of(256);
        }
        if end > MAX_BYTES {
            return None;
        }
        let stream = device.default_stream();
        let memory = stream.alloc(end).unwrap_or_else(|error| panic!("{what}: {error}"));
        Some(Subject { kernel, memory, places, what })
    }

    fn args(&self) -> &[ArgDesc] {
        self.kernel.args()
    }

    /// A range of the memory, as elements of the argument's type.
    fn at(&self, arg: usize, start: usize, bytes: usize) -> Value {
        self.typed(self.args()[arg].dtype, start, bytes)
    }

    fn typed(&self, ty: Type, start: usize, bytes: usize) -> Value {
        let range = self.memory.as_any().slice(start..start + bytes).expect("inside");
        Value::Buffer(range.cast(ty).expect("elements"))
    }

    /// What is right.
    fn right(&self) -> Vec<(&'static str, Value)> {
        let value = |(i, arg): (usize, &ArgDesc)| {
            let (start, bytes) = self.places[i];
            let value = match (arg.role, arg.dtype) {
                (Role::Scalar, Type::F32) => Value::Float(0.5),
                (Role::Scalar, Type::U32) => Value::Whole(SIZE),
                (Role::Scalar, other) => panic!("{}: scalar of {}", self.what, other.name()),
                _ => self.at(i, start, bytes),
            };
            (arg.name, value)
        };
        self.args().iter().enumerate().map(value).collect()
    }

    fn bind(
        &self,
        values: &[(&'static str, Value)],
        dims: &[&'static str],
    ) -> warpwright_runtime::Binder<'_> {
        let bound = values.iter().fold(self.kernel.bind(), |bound, (name, value)| match value {
            Value::Buffer(buffer) => bound.buffer(name, buffer),
            Value::Whole(value) => bound.scalar(name, *value),
            Value::Float(value) => bound.scalar(name, *value),
            Value::Signed(value) => bound.scalar(name, *value),
            Value::Double(value) => bound.scalar(name, *value),
        });
        dims.iter().fold(bound, |bound, dim| bound.dim(dim, SIZE.into()))
    }

    fn prepare(&self, values: &[(&'static str, Value)]) -> Result<PreparedLaunch, RuntimeError> {
        self.prepare_with(values, self.kernel.dims())
    }

    fn prepare_with(
        &self,
        values: &[(&'static str, Value)],
        dims: &[&'static str],
    ) -> Result<PreparedLaunch, RuntimeError> {
        // SAFETY: nothing is launched.
        unsafe { self.bind(values, dims).prepare_unbounded() }
    }

    /// A launch with these arguments is refused for the argument of that name.
    fn refuse(
        &self,
        values: &[(&'static str, Value)],
        dims: &[&'static str],
        argument: &str,
        how: &str,
    ) -> Violation {
        match self.prepare_with(values, dims) {
            Err(RuntimeError::Contract(error)) => {
                assert_eq!(error.kernel, self.kernel.entry(), "{}: {how}", self.what);
                assert_eq!(error.argument(), Some(argument), "{}: {how}: {error}", self.what);
                error.violation.clone()
            }
            Err(other) => {
                panic!("{}: {how} of `{argument}` is refused by something else: {other}", self.what)
            }
            Ok(_) => panic!("{}: {how} of `{argument}` is not refused", self.what),
        }
    }

    /// The same where one argument is changed.
    fn refuse_changed(&self, arg: usize, value: Value, how: &str) -> Violation {
        let mut values = self.right();
        values[arg].1 = value;
        self.refuse(&values, self.kernel.dims(), self.args()[arg].name, how)
    }
}

/// Another type of the same size.
fn other_type(ty: Type) -> Type {
    match ty {
        Type::U8 => Type::S8,
        Type::S8 => Type::U8,
        Type::F16 => Type::BF16,
        Type::BF16 | Type::U16 => Type::F16,
        Type::U32 => Type::F32,
        _ => Type::U32,
    }
}

fn is_written(arg: &ArgDesc) -> bool {
    matches!(arg.role, Role::Out | Role::InOut)
}

/// Everything that can be wrong with one argument.
fn each_argument(subject: &Subject, elsewhere: &Stream) {
    for (i, arg) in subject.args().iter().enumerate() {
        let name = arg.name;
        let mut without = subject.right();
        without.remove(i);
        let given = subject.right()[i].clone();
        // A number that was not given may be one that lengths depend on.
        let violation = subject.refuse(&without, subject.kernel.dims(), name, "missing");
        assert!(
            matches!(violation, Violation::Missing { argument, .. } if argument == name),
            "{violation:?}"
        );
        let mut twice = subject.right();
        twice.push(given);
        let violation = subject.refuse(&twice, subject.kernel.dims(), name, "twice");
        assert_eq!(violation, Violation::Twice { argument: name });

        if arg.role == Role::Scalar {
            for value in [Value::Signed(1), Value::Double(1.0)] {
                let violation = subject.refuse_changed(i, value, "a number of the wrong type");
                assert!(matches!(violation, Violation::Type { .. }), "{violation:?}");
            }
            let violation =
                subject.refuse_changed(i, subject.typed(arg.dtype, 0, 4), "a buffer for a number");
            let (given, needed) = (Kind::Buffer(arg.dtype), Kind::Number(arg.dtype));
            assert_eq!(violation, Violation::Kind { argument: name, given, needed });
            continue;
        }
        let (start, bytes) = subject.places[i];
        let size = arg.dtype.bytes() as usize;
        let violation = subject.refuse_changed(i, Value::Whole(1), "a number for a buffer");
        assert!(matches!(violation, Violation::Kind { .. }), "{violation:?}");
        let violation = subject.refuse_changed(i, subject.at(i, start, bytes - size), "too short");
        let needed = (bytes / size) as u64;
        let extent = arg.len;
        assert_eq!(
            violation,
            Violation::TooShort { argument: name, given: needed - 1, needed, extent: extent.into() }
        );
        for shift in [size, 8] {
            let violation = subject.refuse_changed(i, subject.at(i, start + shift, bytes), "misaligned");
            assert!(matches!(violation, Violation::Misaligned { needed: 16, .. }), "{violation:?}");
        }
        let wrong = subject.typed(other_type(arg.dtype), start, bytes);
        let violation = subject.refuse_changed(i, wrong, "the wrong type");
        let (given, needed) = (Kind::Buffer(other_type(arg.dtype)), Kind::Buffer(arg.dtype));
        assert_eq!(violation, Violation::Type { argument: name, given, needed });
        let there =
            elsewhere.alloc::<u8>(bytes).expect("memory").into_any().cast(arg.dtype).expect("elements");
        let violation = subject.refuse_changed(i, Value::Buffer(there), "another device");
        assert!(matches!(violation, Violation::OtherDevice { .. }), "{violation:?}");
    }
}

/// Each two arguments of which one is written, over each other: at the same place, and by as little as can be.
fn each_overlap(subject: &Subject) -> usize {
    let args = subject.args();
    let mut shared = 0;
    for (i, written) in args.iter().enumerate().filter(|(_, arg)| is_written(arg)) {
        for (j, other) in args.iter().enumerate().filter(|(_, arg)| arg.role != Role::Scalar) {
            if i == j || is_written(other) && j > i {
                continue;
            }
            let ((_, bytes), (start, other_bytes)) = (subject.places[i], subject.places[j]);
            let last = (other_bytes - 1) / 16 * 16;
            for shift in [0, last] {
                // Where there is not enough room behind the other one, the memory goes on in any case.
                if start + shift + bytes > subject.memory.len() {
                    continue;
                }
                let mut values = subject.right();
                values[i].1 = subject.at(i, start + shift, bytes);
                // What lies between is not what this is about.
                let between = (0..args.len()).any(|k| {
                    let (begin, length) = subject.places[k];
                    let (from, to) = (start + shift, start + shift + bytes);
                    k != i && k != j && length > 0 && begin < to && from < begin + length
                });
                let exactly = shift == 0 && bytes == other_bytes;
                if exactly && written.shares.contains(&other.name) {
                    if !between {
                        let accepted = subject.prepare(&values);
                        assert!(accepted.is_ok(), "{}: {:?}", subject.what, accepted.err());
                        shared += 1;
                    }
                    continue;
                }
                let how = format!("over `{}`", other.name);
                let violation = subject.refuse(&values, subject.kernel.dims(), written.name, &how);
                let Violation::Overlap { argument, other: found, .. } = violation else {
                    panic!("{}: {violation:?}", subject.what)
                };
                assert_eq!(argument, written.name);
                assert!(between || found == other.name, "{}: `{found}`, not {how}", subject.what);
            }
        }
    }
    shared
}

/// Names that nothing has, and numbers that are not given.
fn each_name(subject: &Subject) {
    let (values, dims) = (subject.right(), subject.kernel.dims());
    let mut more = values.clone();
    more.push(("nobody", Value::Whole(1)));
    let violation = subject.refuse(&more, dims, "nobody", "a number without an argument");
    assert!(matches!(violation, Violation::Unknown { .. }), "{violation:?}");
    more.pop();
    more.push(("nobody", subject.typed(Type::U8, 0, 1)));
    let violation = subject.refuse(&more, dims, "nobody", "a buffer without an argument");
    assert!(matches!(violation, Violation::Unknown { .. }), "{violation:?}");
    let unknown: Vec<_> = dims.iter().copied().chain(["nothing"]).collect();
    let violation = subject.refuse(&values, &unknown, "nothing", "a dimension that is none");
    assert!(matches!(violation, Violation::Unknown { .. }), "{violation:?}");
    for (i, dim) in dims.iter().enumerate() {
        let mut others = dims.to_vec();
        others.remove(i);
        let violation = subject.refuse(&values, &others, dim, "a dimension is missing");
        assert!(matches!(violation, Violation::MissingDim { dim: found, .. } if found == *dim));
        others.extend([*dim; 2]);
        let violation = subject.refuse(&values, &others, dim, "a dimension is given twice");
        assert_eq!(violation, Violation::Twice { argument: dim });
    }
}

#[test]
fn every_kernel_refuses_what_is_wrong_and_accepts_what_is_right() {
    let device = warpwright_testing::device(VmConfig::default());
    let elsewhere = warpwright_testing::device(VmConfig::default());
    // What is large goes back at once.
    device.set_release_threshold(0);
    elsewhere.set_release_threshold(0);
    let mut too_large = Vec::new();
    let mut configurations = 0;
    let mut shared = 0;
    for entry in catalogue() {
        for example in entry.examples {
            let what = format!("{} {example}", entry.name);
            let kernel = entry.configure_text(example).unwrap_or_else(|error| panic!("{what}: {error}"));
            let kernel = device.kernel(&*kernel).unwrap_or_else(|error| panic!("{what}: {error}"));
            let Some(subject) = Subject::new(&device, kernel.into(), what.clone()) else {
                too_large.push(what);
                continue;
            };
            let accepted = subject.prepare(&subject.right());
            let accepted = accepted.unwrap_or_else(|error| panic!("{}: {error}", subject.what));
            assert_eq!(accepted.kernel(), subject.kernel.entry());
            each_argument(&subject, &elsewhere.default_stream());
            shared += each_overlap(&subject);
            each_name(&subject);
            configurations += 1;
        }
    }
    device.synchronize().expect("nothing failed");
    assert_eq!(device.statistics().launches, 0, "something was launched");
    let examples: usize = catalogue().iter().map(|entry| entry.examples.len()).sum();
    assert_eq!((configurations, too_large), (examples, Vec::new()));
    assert!(shared > 0, "some outputs may be an input's buffer");
}

/// What a kernel's launch rule says of the device is asked before the kernel is built, on every device.
#[test]
fn kernels_run_on_the_devices_that_they_claim_and_on_no_other() {
    let (mut refused, mut oldest) = (0, u16::MAX);
    for sm in [75, 80] {
        let mut config = VmConfig::default();
        config.device.arch = Arch::sm(sm);
        let device = warpwright_testing::device(config);
        // A CUDA device may be a later one.
        let given = device.properties().arch;
        oldest = oldest.min(given.sm);
        for entry in catalogue() {
            for example in entry.examples {
                let what = format!("{} {example} on {given}", entry.name);
                let kernel = entry.configure_text(example).unwrap_or_else(|error| panic!("{what}: {error}"));
                let needed = kernel.launch().min_sm;
                match device.kernel(&*kernel) {
                    Ok(compiled) => assert!(needed <= given.sm, "{what}: {compiled:?}"),
                    Err(RuntimeError::Contract(error)) => {
                        assert_eq!(error.kernel, kernel.entry());
                        assert_eq!(error.violation, Violation::Architecture { given, needed }, "{what}");
                        assert!(needed > given.sm, "{what}");
                        refused += 1;
                    }
                    Err(other) => panic!("{what}: {other}"),
                }
            }
        }
    }
    assert!(refused > 0 || oldest > 75, "some kernels need more than sm_75");
}
