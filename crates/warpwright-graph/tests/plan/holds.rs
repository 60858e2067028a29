//! What holds of every plan.
//!
//! Each launch is held against what its kernel says of its arguments, and the memory of the whole plan against a
//! machine that has nothing but names: it notes at which bytes which tensor was written, and finds every read of
//! what was overwritten.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use warpwright_dsl::{Block, Role};
use warpwright_graph::{
    Action, ArgSource, Element, Location, Plan, PlannedLaunch, Role as TensorRole, Scratch, Tensor,
    TensorType, WeightLayout, planes,
};
use warpwright_kernels::weights::Planes;
use warpwright_ptx::ir::Type;

/// The largest grid of CUDA.
const MAX_BLOCKS: [u64; 3] = [(1 << 31) - 1, 65_535, 65_535];

/// Holds a plan to everything.
pub(crate) fn check(plan: &Plan) {
    plan.program().check().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(plan.steps().len(), plan.program().steps().len());
    for (_, launch) in plan.launches() {
        arguments(plan, launch);
    }
    operands(plan);
    memory(plan);
    zeroed(plan);
}

/// Bytes of a tensor, by its type alone.
pub(crate) fn bytes(ty: TensorType) -> u64 {
    planes(ty).last().map_or(0, |plane| plane.offset + plane.len * u64::from(plane.dtype.bytes()))
}

/// The elements that an argument has, and their type.
fn given(plan: &Plan, source: ArgSource, needed: Type) -> (Type, u64) {
    let ty = |tensor: Tensor| plan.program().ty(tensor);
    match source {
        ArgSource::Tensor { tensor, plane, at, len } => {
            let plane = planes(ty(tensor))[plane];
            let size = u64::from(needed.bytes());
            assert!(
                (at + len) * size <= plane.len * u64::from(plane.dtype.bytes()),
                "{source:?} is too long"
            );
            assert!((plane.offset + at * size).is_multiple_of(16), "{source:?} is not aligned to 16 bytes");
            // Anything may be read as bytes.
            (if needed == Type::U8 { needed } else { plane.dtype }, len)
        }
        ArgSource::Weights { tensor, layout } => {
            let TensorType { element: Element::Weights(format), shape } = ty(tensor) else {
                panic!("`{}` has no layout", plan.program().info(tensor).name);
            };
            let [n, k] = shape.dims()[..] else { panic!("weights of {shape}") };
            let bytes = match layout {
                WeightLayout::Rows => format.matrix_bytes(n.into(), k),
                _ => Planes::new(format, n, k).bytes(),
            };
            assert!(bytes.is_multiple_of(needed.bytes().into()));
            (needed, bytes / u64::from(needed.bytes()))
        }
        ArgSource::Scratch(id) => {
            let Scratch { dtype, len, .. } = plan.scratch()[id.index()];
            (dtype, len)
        }
        ArgSource::U32(_) => (Type::U32, 1),
        ArgSource::F32(_) => (Type::F32, 1),
        other => panic!("{other:?}"),
    }
}

/// A launch is given what its kernel takes.
fn arguments(plan: &Plan, launch: &PlannedLaunch) {
    let kernel = launch.kernel.kernel();
    let entry = kernel.entry();
    assert_eq!(launch.kernel.entry(), entry);
    kernel.check().unwrap_or_else(|error| panic!("{entry}: {error}"));
    let rule = kernel.launch();
    assert!(rule.min_sm <= plan.options().arch().sm, "{entry}");
    let known = |name: &str| {
        let scalar = launch.args.iter().find_map(|&(arg, source)| match source {
            ArgSource::U32(value) if arg == name => Some(u64::from(value)),
            _ => None,
        });
        let dim = launch.dims.iter().find_map(|&(dim, value)| (dim == name).then_some(value));
        assert!(scalar.is_none() || dim.is_none(), "{entry}: `{name}` is given twice");
        scalar.or(dim)
    };

    let args = kernel.args();
    assert_eq!(
        launch.args.iter().map(|&(name, _)| name).collect::<Vec<_>>(),
        args.iter().map(|arg| arg.name).collect::<Vec<_>>(),
        "{entry}"
    );
    let mut max_bytes = 0;
    for (arg, &(_, source)) in args.iter().zip(&launch.args) {
        let scalar = matches!(source, ArgSource::U32(_) | ArgSource::F32(_));
        assert_eq!(arg.role == Role::Scalar, scalar, "{entry}: `{}`", arg.name);
        let needed =
            arg.len.evaluate(known).unwrap_or_else(|| panic!("{entry}: no length of `{}`", arg.name));
        assert_eq!(given(plan, source, arg.dtype), (arg.dtype, needed), "{entry}: `{}`", arg.name);
        if let ArgSource::Scratch(id) = source {
            // What is zeroed must be left as it was; what is not may have anything in it.
            let counts = ["arrivals", "best", "arrived"].contains(&arg.name);
            assert_eq!(plan.scratch()[id.index()].zeroed, counts, "{entry}: `{}`", arg.name);
        }
        let times = match arg.role {
            Role::Scalar => 0,
            Role::In | Role::Out => 1,
            Role::InOut => 2,
        };
        max_bytes += times * needed * u64::from(arg.dtype.bytes());
    }
    assert!(launch.bytes > 0 && launch.bytes <= max_bytes, "{entry}: {} of {max_bytes}", launch.bytes);

    for ((extent, given), most) in rule.grid.iter().zip(launch.grid).zip(MAX_BLOCKS) {
        let blocks = extent.evaluate(known).unwrap_or_else(|| panic!("{entry}: no grid"));
        assert_eq!(u64::from(given), blocks, "{entry}");
        assert!((1..=most).contains(&blocks), "{entry}: a grid of {:?}", launch.grid);
    }
    let (Block::Exactly(block) | Block::AtMost(block)) = rule.block;
    assert_eq!(launch.block, block, "{entry}");
}

/// Launches read what their step reads, and write what it makes: nothing is left out, and nothing else touched.
fn operands(plan: &Plan) {
    for (step, planned) in plan.program().steps().iter().zip(plan.steps()) {
        if planned.overridden {
            assert!(planned.actions.is_empty());
            continue;
        }
        let program = plan.program();
        let (mut read, mut written) = (HashSet::new(), HashSet::new());
        // What a copy of the step has made, launches may change in place.
        let mut copied = HashSet::new();
        for action in &planned.actions {
            match action {
                Action::Copy { from, to } => {
                    assert_eq!(program.ty(*from), program.ty(*to));
                    read.insert(program.root(*from));
                    written.insert(program.root(*to));
                    copied.insert(program.root(*to));
                }
                Action::Launch(launch) => {
                    for (arg, &(_, source)) in launch.kernel.args().iter().zip(&launch.args) {
                        let (ArgSource::Tensor { tensor, .. } | ArgSource::Weights { tensor, .. }) = source
                        else {
                            continue;
                        };
                        let tensor = program.root(tensor);
                        if arg.role != Role::Out && !copied.contains(&tensor) {
                            read.insert(tensor);
                        }
                        if arg.role != Role::In {
                            written.insert(tensor);
                        }
                    }
                }
            }
        }
        let roots = |tensors: &mut dyn Iterator<Item = Tensor>| -> HashSet<Tensor> {
            tensors.map(|tensor| program.root(tensor)).collect()
        };
        assert_eq!(written, roots(&mut step.op.writes()), "{}", step.op.name());
        // A state that is changed in part or overwritten is an operand, but no launch reads it.
        let changed = roots(&mut step.op.changes().into_iter().map(|(before, _)| before));
        let reads: HashSet<Tensor> = roots(&mut step.op.reads()).difference(&changed).copied().collect();
        assert_eq!(read.difference(&changed).copied().collect::<HashSet<_>>(), reads, "{}", step.op.name());
    }
}

/// Scratch that kernels leave zero is shared by steps, and apart within one.
fn zeroed(plan: &Plan) {
    let mut of_steps: HashMap<usize, Vec<Range<u64>>> = HashMap::new();
    for (step, launch) in plan.launches() {
        for &(_, source) in &launch.args {
            let ArgSource::Scratch(id) = source else { continue };
            let piece = plan.scratch()[id.index()];
            assert_eq!(piece.step, step, "scratch is its step's");
            let Some(Location::Zeroed(offset)) = plan.scratch_location(id) else {
                assert!(!piece.zeroed);
                continue;
            };
            assert!(piece.zeroed && offset.is_multiple_of(256));
            let range = offset..offset + piece.bytes();
            assert!(range.end <= plan.memory().zeroed_bytes);
            let others = of_steps.entry(step).or_default();
            assert!(others.iter().all(|other| other.end <= range.start || range.end <= other.start));
            others.push(range);
        }
    }
}

/// What lies at some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Owner {
    Tensor(Tensor),
    Scratch(usize),
}

/// The memory of a plan while it runs, by names.
struct Machine<'a> {
    plan: &'a Plan,
    /// Where each range of bytes begins and ends, and what was written there last.
    written: Vec<(Range<u64>, Owner)>,
}

impl Machine<'_> {
    fn range(&self, owner: Owner) -> Option<Range<u64>> {
        let (location, bytes) = match owner {
            Owner::Tensor(tensor) => (self.plan.location(tensor), bytes(self.plan.program().ty(tensor))),
            Owner::Scratch(i) => {
                let piece = self.plan.scratch()[i];
                let id =
                    self.plan.launches().flat_map(|(_, launch)| &launch.args).find_map(
                        |&(_, arg)| match arg {
                            ArgSource::Scratch(id) if id.index() == i => Some(id),
                            _ => None,
                        },
                    );
                (self.plan.scratch_location(id?), piece.len * u64::from(piece.dtype.bytes()))
            }
        };
        match location {
            Some(Location::Arena(offset)) => {
                assert!(offset.is_multiple_of(256), "{owner:?} is at {offset}");
                assert!(offset + bytes <= self.plan.memory().arena_bytes, "{owner:?} is beyond the end");
                Some(offset..offset + bytes)
            }
            Some(_) => None,
            None => panic!("{owner:?} is nowhere"),
        }
    }

    /// Whatever was there is gone.
    fn write(&mut self, owner: Owner) {
        let Some(range) = self.range(owner) else { return };
        self.written.retain(|(other, _)| other.end <= range.start || range.end <= other.start);
        self.written.push((range, owner));
    }

    fn read(&self, owner: Owner, by: &str) {
        let Some(range) = self.range(owner) else { return };
        let name = match owner {
            Owner::Tensor(tensor) => self.plan.program().info(tensor).name.clone(),
            Owner::Scratch(i) => format!("scratch {i}"),
        };
        assert!(self.written.contains(&(range, owner)), "{by} reads `{name}`, which was overwritten");
    }
}

/// Every read finds what was written; what a launch writes is apart from what it is given besides, but where its kernel
/// says otherwise; what the host writes and reads is there before and after all launches.
fn memory(plan: &Plan) {
    let mut machine = Machine { plan, written: Vec::new() };
    let inputs: Vec<Tensor> = plan.tensors(TensorRole::Input).collect();
    inputs.iter().for_each(|&input| machine.write(Owner::Tensor(input)));
    let mut in_place = HashMap::new();
    for (step, planned) in plan.program().steps().iter().zip(plan.steps()) {
        if planned.overridden {
            step.op.reads().for_each(|tensor| machine.read(Owner::Tensor(tensor), step.op.name()));
            step.op.writes().for_each(|tensor| machine.write(Owner::Tensor(tensor)));
        }
        let made: Vec<Tensor> = step.op.writes().collect();
        let mut begun = HashSet::new();
        for action in &planned.actions {
            match action {
                Action::Copy { from, to } => {
                    machine.read(Owner::Tensor(*from), "a copy");
                    machine.write(Owner::Tensor(*to));
                }
                Action::Launch(launch) => {
                    launch_in(&mut machine, launch, &mut begun, &mut in_place);
                }
            }
        }
        // What a step makes is whole when it ends.
        for tensor in made {
            machine.write(Owner::Tensor(tensor));
        }
    }
    for tensor in inputs.into_iter().chain(plan.tensors(TensorRole::Output)) {
        machine.read(Owner::Tensor(tensor), "the host");
    }
    let in_place: HashSet<(Tensor, Tensor)> = in_place.into_iter().collect();
    let said: HashSet<(Tensor, Tensor)> = plan.memory().in_place().iter().copied().collect();
    assert_eq!(in_place, said, "what is said to be in place is what is");
}

fn launch_in(
    machine: &mut Machine<'_>,
    launch: &PlannedLaunch,
    begun: &mut HashSet<Owner>,
    in_place: &mut HashMap<Tensor, Tensor>,
) {
    let entry = launch.kernel.entry();
    let owner = |source| match source {
        ArgSource::Tensor { tensor, .. } => Some(Owner::Tensor(tensor)),
        ArgSource::Scratch(id) => Some(Owner::Scratch(id.index())),
        _ => None,
    };
    // Bytes of an argument in the arena.
    let range = |machine: &Machine<'_>, ty: Type, source| match source {
        ArgSource::Tensor { tensor, plane, at, len } => {
            let whole = machine.range(Owner::Tensor(tensor))?;
            let begin = whole.start + planes(machine.plan.program().ty(tensor))[plane].offset;
            let size = u64::from(ty.bytes());
            Some(begin + at * size..begin + (at + len) * size)
        }
        ArgSource::Scratch(id) => machine.range(Owner::Scratch(id.index())),
        _ => None,
    };
    let args: Vec<_> = launch.kernel.args().iter().zip(&launch.args).collect();
    for &(arg, &(_, source)) in &args {
        let Some(owner) = owner(source) else { continue };
        let is_state = matches!(owner, Owner::Tensor(tensor)
            if machine.plan.program().info(tensor).role == TensorRole::State);
        // Scratch that is read and written has nothing in it at first.
        let first = matches!(owner, Owner::Scratch(_)) && !begun.contains(&owner);
        if arg.role == Role::In && !is_state && !first {
            machine.read(owner, entry);
        }
    }
    for (i, &(arg, &(_, source))) in args.iter().enumerate() {
        if !matches!(arg.role, Role::Out | Role::InOut) {
            continue;
        }
        let Some(own) = range(machine, arg.dtype, source) else { continue };
        for (j, &(other, &(name, beside))) in args.iter().enumerate() {
            let Some(there) = range(machine, other.dtype, beside) else { continue };
            if i == j || there.end <= own.start || own.end <= there.start {
                continue;
            }
            assert!(arg.shares.contains(&name) && own == there, "{entry}: `{}` overlaps `{name}`", arg.name);
            if let (ArgSource::Tensor { tensor, .. }, ArgSource::Tensor { tensor: operand, .. }) =
                (source, beside)
            {
                in_place.insert(tensor, operand);
            }
        }
        if let Some(owner) = owner(source) {
            // Other launches of the step may still read the rest of an operand whose place the result has.
            let replaces = matches!(owner, Owner::Tensor(tensor) if in_place.contains_key(&tensor));
            if begun.insert(owner) && !replaces {
                machine.write(owner);
            }
        }
    }
}
