//! Errors of planning a schedule, and faults of schedules.

use thiserror::Error;
use warpwright_dsl::BuildError;

/// Why a plan has no schedule. Such plans run with [`execute_graph`](crate::execute_graph), or as a captured graph.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// A step is not done by launches of the library.
    #[error("{step} of {} is done by the dispatcher, which a persistent kernel cannot ask: its launches must be the library's", names(.nodes))]
    Overridden {
        /// Names of the nodes whose work the step does.
        nodes: Vec<String>,
        /// What the step does.
        step: &'static str,
    },
    /// The plan is for more than one token.
    #[error("{} is for {tokens} tokens at a time: a persistent kernel decodes one sequence, token by token", names(.nodes))]
    Batch {
        /// Names of the nodes whose work the step does.
        nodes: Vec<String>,
        /// How many.
        tokens: u64,
    },
    /// The plan is for a prompt.
    #[error("{} attends to a prompt: a persistent kernel decodes one sequence, token by token", names(.nodes))]
    Prompt {
        /// Names of the nodes whose work the step does.
        nodes: Vec<String>,
    },
    /// A kernel cannot be called from a persistent kernel.
    #[error("`{kernel}`: {error}")]
    Op {
        /// The kernel.
        kernel: String,
        /// What stands against it.
        error: BuildError,
    },
    /// A copy that no kernel does.
    #[error(
        "no kernel copies `{from}` to `{to}`: a tensor that is copied lies in one piece, of the same size"
    )]
    Copy {
        /// What is copied.
        from: String,
        /// Where it is copied to.
        to: String,
    },
    /// A launch lacks an argument of its kernel.
    #[error("`{kernel}` is given no `{argument}`")]
    Missing {
        /// The kernel.
        kernel: String,
        /// Its argument.
        argument: &'static str,
    },
    /// A kernel's argument is constant, but another instance may write its operand while the decoder runs.
    #[error("`{argument}` of `{kernel}` is constant while the kernel runs: it must be a weight")]
    NotConstant {
        /// The kernel.
        kernel: String,
        /// Its argument.
        argument: &'static str,
    },
    /// The tiles of a launch cannot be counted.
    #[error("`{kernel}` has a grid of no tiles, of more than 2³², or of a number that is not known")]
    Grid {
        /// The kernel.
        kernel: String,
    },
    /// The decoder does not support this number of warps per block.
    #[error("blocks of {warps} warps: there must be 1, 2, 4 or 8")]
    BlockWarps {
        /// Warps of a block.
        warps: u32,
    },
    /// The number of blocks is zero or too large.
    #[error("a schedule for {blocks} blocks: there must be from 1 to 65535")]
    Blocks {
        /// How many.
        blocks: u32,
    },
}

fn names(nodes: &[String]) -> String {
    if nodes.is_empty() {
        return "a step of no node".into();
    }
    let names: Vec<String> = nodes.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

/// What is wrong with a schedule. Instances are named by index and by their kernels' entry names.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ScheduleFault {
    /// A launch of the plan is missing in the schedule, entirely or in part.
    #[error("action {action} of step {step} of the plan has {found} instances: there must be {needed}")]
    Instances {
        /// The step's place in the program.
        step: usize,
        /// The action's place in the step.
        action: usize,
        /// How many instances do its work.
        needed: usize,
        /// How many there are.
        found: usize,
    },
    /// An instance differs from the plan.
    #[error("instance {instance}, `{kernel}`, differs from the plan in its {what}")]
    NotThePlans {
        /// The instance.
        instance: usize,
        /// Its kernel.
        kernel: String,
        /// What differs: `kernel`, `code`, `grid`, `arguments`, or the name of one.
        what: String,
    },
    /// An instance is in no stage, or in several.
    #[error("instance {instance}, `{kernel}`, is in {stages} stages: it must be in one")]
    Placed {
        /// The instance.
        instance: usize,
        /// Its kernel.
        kernel: String,
        /// In how many stages it is.
        stages: usize,
    },
    /// A stage or a phase is empty, or refers to an instance that does not exist.
    #[error("stage {stage} of phase {phase} is empty, or names an instance that does not exist")]
    Stage {
        /// The phase.
        phase: usize,
        /// The stage.
        stage: usize,
    },
    /// The plan has no schedule.
    #[error("the plan has no schedule: {error}")]
    Plan {
        /// Why.
        error: String,
    },
    /// Instances are not in the order of the plan.
    #[error("instance {instance} is listed behind one that comes later in the plan")]
    InstanceOrder {
        /// The instance.
        instance: usize,
    },
    /// The lists do not hold all items.
    #[error("there must be {needed} lists, one behind the other, of all {items} items")]
    Lists {
        /// How many there must be.
        needed: usize,
        /// Items.
        items: usize,
    },
    /// An item refers to an instance or to tiles that do not exist, or has no tiles.
    #[error("item {item} is of instance {instance} and tiles {first}..{end}, which is nothing")]
    Item {
        /// The item.
        item: usize,
        /// The instance that it names.
        instance: usize,
        /// Its first tile.
        first: u32,
        /// The tile behind its last.
        end: u32,
    },
    /// An item is in the list of another phase than its instance.
    #[error("item {item} is in a list of phase {listed}, and its instance in phase {phase}")]
    ItemPhase {
        /// The item.
        item: usize,
        /// The phase of its list.
        listed: usize,
        /// The phase of its instance.
        phase: usize,
    },
    /// A tile is in no item.
    #[error("tile {tile} of instance {instance}, `{kernel}`, is in no item")]
    TileMissing {
        /// The instance.
        instance: usize,
        /// Its kernel.
        kernel: String,
        /// The tile.
        tile: u32,
    },
    /// A tile is in two items.
    #[error("tile {tile} of instance {instance}, `{kernel}`, is in two items")]
    TileTwice {
        /// The instance.
        instance: usize,
        /// Its kernel.
        kernel: String,
        /// The tile.
        tile: u32,
    },
    /// An item comes after one of a later stage in the same list.
    #[error(
        "item {item} of stage {stage} is listed behind an item of stage {before}: it might never be reached"
    )]
    ItemOrder {
        /// The item.
        item: usize,
        /// Its stage.
        stage: usize,
        /// The stage of the item before it.
        before: usize,
    },
    /// An item increments or waits for a counter that does not exist.
    #[error("item {item} names counter {counter}: those of items are from {heads} to {counters}")]
    Counter {
        /// The item.
        item: usize,
        /// The counter.
        counter: u32,
        /// The first one that is no head of a queue.
        heads: u32,
        /// How many there are.
        counters: u32,
    },
    /// An item waits for something that does not come before it.
    #[error(
        "item {item} of stage {stage} of phase {phase} waits for counter {counter}, which item {signaller} counts that is in no earlier stage of the phase"
    )]
    WaitOrder {
        /// The item.
        item: usize,
        /// Its phase.
        phase: usize,
        /// Its stage.
        stage: usize,
        /// The counter.
        counter: u32,
        /// An item that counts it.
        signaller: usize,
    },
    /// An item waits for another value than the final value of its counter.
    #[error("item {item} waits for {value} of counter {counter}, which {signallers} items count")]
    WaitValue {
        /// The item.
        item: usize,
        /// The counter.
        counter: u32,
        /// What it waits for.
        value: u32,
        /// What the counter has in the end.
        signallers: u32,
    },
    /// An instance may read before another has written.
    #[error(
        "instance {reader}, `{kernel}`, reads `{argument}`, and does not wait for instance {writer} that writes it"
    )]
    ReadEarly {
        /// The instance that reads.
        reader: usize,
        /// Its kernel.
        kernel: String,
        /// The argument that it reads.
        argument: String,
        /// The instance that writes.
        writer: usize,
    },
    /// An instance may overwrite what another has yet to read.
    #[error(
        "instance {writer}, `{kernel}`, writes `{argument}`, and does not wait for instance {reader} that reads what was there"
    )]
    WrittenWhileRead {
        /// The instance that writes.
        writer: usize,
        /// Its kernel.
        kernel: String,
        /// The argument that it writes.
        argument: String,
        /// The instance that reads.
        reader: usize,
    },
    /// Two instances may write the same bytes at the same time.
    #[error(
        "instance {second}, `{kernel}`, writes `{argument}`, and does not wait for instance {first} that writes it too"
    )]
    WrittenTwice {
        /// The instance that comes second in the plan.
        second: usize,
        /// Its kernel.
        kernel: String,
        /// The argument that it writes.
        argument: String,
        /// The instance that comes first in the plan.
        first: usize,
    },
}
