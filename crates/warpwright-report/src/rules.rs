//! What kinds of problems there are, in words.

use crate::Severity;

/// A kind of problem.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    pub(crate) tool: &'static str,
    pub(crate) kind: &'static str,
    /// The usual severity.
    pub(crate) severity: Severity,
    pub(crate) title: &'static str,
    pub(crate) help: &'static str,
}

macro_rules! rules {
    ($($tool:literal { $($kind:literal $severity:ident $title:literal $help:literal)* })*) => {
        &[$($(Rule {
            tool: $tool,
            kind: $kind,
            severity: Severity::$severity,
            title: $title,
            help: $help,
        },)*)*]
    };
}

/// All of them.
pub(crate) const RULES: &[Rule] = rules! {
    "memcheck" {
        "out-of-bounds" Error "Access outside of an allocation"
            "No allocation or variable has all bytes of the access. Compare the index with the number of elements before \
             the access, and the sizes of the launch with those of the arrays."
        "misaligned" Error "Access that is not aligned to its size"
            "An access of N bytes needs an address that N divides. Vector types need arrays that are aligned to them."
        "use-after-free" Error "Access to memory that was given back"
            "The allocation was freed before the kernel accessed it. Free memory after the last launch that uses it is over."
        "null" Error "Access through a null pointer"
            "The pointer, or the one it was computed from, is null: look at the arguments of the launch."
        "wrong-space" Error "Access to an address of another state space"
            "The instruction names a state space, and the address belongs to another one or to none."
        "exited-block" Error "Access to shared memory of a block that may have exited"
            "Shared memory is there as long as its block. Let the blocks of a cluster meet at `barrier.cluster` before they \
             exit."
        "read-only" Error "Write to memory that cannot be written"
            "The memory was lent or mapped for reading alone."
        "unmapped" Error "Access to reserved addresses without memory"
            "The addresses are reserved, and no memory is mapped there: map it before the launch."
        "no-access" Error "Access that the device was not granted"
            "Memory is mapped there, and the device was given no access to it."
        "multimem-address" Error "Access to a multimem address by an ordinary instruction"
            "A multimem address stands for memory of a multicast object, and `multimem` instructions alone may access it. Others \
             take the address where the memory itself is mapped."
        "no-multimem-address" Error "`multimem` instruction at an address that is no multimem address"
            "The address must be where a multicast object is mapped (`cuMulticastCreate`, `cuMemMap`), not that of its memory."
        "bad-handle" Error "Texture or surface handle that does not exist"
            "The handle is that of no texture or surface of this device, or of one that was destroyed."
        "tensor-memory-leak" Error "Tensor memory that is not freed"
            "Whatever `tcgen05.alloc` gives a block must be given back with `tcgen05.dealloc` before the block ends: who \
             comes next on the multiprocessor waits for it."
        "other-lanes" Warning "Access to lanes of tensor memory of another warp"
            "A warp reaches 32 of the 128 lanes: those of its number in the warpgroup. The address names others; GPUs access the \
             warp's own."
        "constant-memory" Warning "Generic access to constant memory"
            "PTX leaves undefined what a generic address of constant memory reads; existing devices read the constant."
    }
    "racecheck" {
        "race" Error "Accesses without an order between them"
            "Two threads access the same bytes, one of them writes, and nothing orders the two: a barrier, a fence with a \
             flag, or an atomic operation is missing. Which one comes first differs between runs and devices."
        "non-coherent" Error "Non-coherent read of memory that is written"
            "What is read with `.nc`, through `__ldg` or a texture must not be written while the launch is in flight."
        "proxy-fence" Error "Access through another proxy without a proxy fence"
            "Bulk copies and matrix operands access memory by the asynchronous proxy. What threads wrote reaches it only \
             behind `fence.proxy.async`, executed by the threads that wrote or by the one that issues the access. Tensor \
             maps are read by the tensormap proxy, which needs `fence.proxy.tensormap::generic.release` by the one and \
             `.acquire` by the other."
        "register-in-flight" Error "Register that a product of a warpgroup may still be using"
            "`wgmma.mma_async` reads and writes its registers until its group has been waited for by `wgmma.wait_group`."
        "unfenced-register" Error "Product of a warpgroup with registers that are not fenced"
            "`wgmma.fence` stands between what writes the registers of a `wgmma.mma_async` and that, and in front of the \
             first one."
        "tensor-memory-in-flight" Error "Access to tensor memory that is in use"
            "Products, copies and shifts of tensor memory are complete when an mbarrier has been waited for at which a later \
             `tcgen05.commit` of the same thread arrives; stores and loads, when their warp has executed `tcgen05.wait`."
        "unstarted-block" Error "Access to shared memory of a block that may not have begun"
            "Shared memory is there from the beginning of its block on. Let the blocks of a cluster meet at \
             `barrier.cluster` before the first access to another one's memory."
    }
    "initcheck" {
        "uninitialized" Error "Use of a value that was never written"
            "Neither the host nor a kernel has written the memory or the register. A read alone is no problem: a value is \
             reported when an address, a branch or a store depends on it."
        "unwritten-output" Error "Output that is not written in full"
            "The kernel has left elements of an output as they were: a mask, a guard or the grid leaves them out."
    }
    "synccheck" {
        "divergent-barrier" Error "Barrier that a part of a warp reaches alone"
            "Every thread of the warp must reach the barrier together: move it out of the branch."
        "exited-lanes" Warning "Barrier for whole warps without exited threads"
            "Threads of the warp have ended before the barrier. Existing devices count them as arrived; PTX does not promise it."
        "missing-lane" Error "Collective operation that lacks a thread"
            "The mask of a warp's operation must name exactly the threads that execute it together."
        "barrier-count" Error "Barrier with disagreeing thread counts"
            "All threads that take part in a barrier must give it the same number of threads."
    }
    "trap" {
        "instruction" Error "The kernel executes a trap"
            "A `trap` instruction was reached: `__trap()`, or a panic of Rust."
        "assertion" Error "An assertion of the kernel fails"
            "The condition of an `assert` in the kernel is false."
        "deadlock" Error "Threads wait for something that never comes"
            "All threads wait, at barriers that others never reach or for values that nobody writes."
        "budget" Error "The kernel does not end"
            "The limit of instructions was reached. If the kernel needs more, raise the limit."
        "unsupported" Error "Instruction that the virtual GPU does not execute"
            "The instruction is not supported for this architecture; the message names what to use instead."
        "stack-overflow" Error "Stack overflow"
            "Calls are nested too deeply, or local variables are too large."
        "bad-branch" Error "Indirect branch to no target"
            "The index of `brx.idx` is not below the number of its targets."
        "bad-call" Error "Indirect call of no function"
            "The address that is called is that of no function with this prototype."
        "bad-atomic" Error "Atomic operation that the memory does not have"
            "PTX has no atomic operations on this memory."
        "bad-barrier" Error "Use of a wrong mbarrier"
            "What is used as an mbarrier was not initialised as one, or is used beyond its limits."
        "bad-operand" Error "Operand that PTX forbids"
            "The value of an operand is outside of what PTX allows."
        "surface-bounds" Error "Surface access out of bounds"
            "The coordinates are outside of the surface, and the instruction says `.trap`."
        "bad-free" Error "Free of what was not allocated"
            "`free` in a kernel has an address that `malloc` did not return, or one that was freed before."
        "out-of-memory" Error "The virtual GPU is out of memory"
            "The blocks that are resident need more memory than there is."
        "internal" Error "The virtual GPU failed"
            "This is a bug in the virtual GPU, not in the kernel: please report it."
    }
    "api" {
        "error" Error "CUDA call that returns an error"
            "The program made a call that failed. The message has the reason if it is known."
        "leak" Error "Object that was never given back"
            "The program ended, or destroyed the context, with the object alive."
        "condition" Error "Conditional node without a value"
            "The value of a conditional node of a graph is none that its kind allows."
    }
};
