//! How a plan is made to stay.

use warpwright_kernels::persistent::Assignment;

/// How a plan is made to stay on a device.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct PersistentOptions {
    /// Blocks of the launch. By default as many as can be resident at once; on a virtual device as many of them as it has
    /// host threads, since more would only wait.
    pub blocks: Option<u32>,
    /// Warps of a block: 1, 2, 4 or 8.
    pub warps: u32,
    /// How items come to blocks.
    pub assignment: Assignment,
    /// Tokens of a launch at most: there is room for as many that the host has not read.
    pub tokens: u32,
    /// Ids that end a text, at most.
    pub ends: u32,
    /// Looks at a word before a block that waits for it gives up. By default so many that seconds pass; on a virtual
    /// device, where a token of a large model takes that long, many more.
    pub budget: Option<u32>,
    /// The output of the plan that is the token.
    pub token: String,
}

/// Looks on a device, of about a tenth of a microsecond each at least.
const BUDGET: u32 = 1 << 25;

/// Looks on a virtual device.
const VIRTUAL_BUDGET: u32 = 1 << 30;

impl PersistentOptions {
    /// The budget, on a device that is virtual or not.
    pub(super) fn budget(&self, is_virtual: bool) -> u32 {
        self.budget.unwrap_or(if is_virtual { VIRTUAL_BUDGET } else { BUDGET })
    }
}

impl Default for PersistentOptions {
    /// All blocks that can be resident, of eight warps with lists of their own; 128 tokens a launch, up to 32 ids that
    /// end a text; the output `tokens`.
    fn default() -> Self {
        PersistentOptions {
            blocks: None,
            warps: 8,
            assignment: Assignment::Static,
            tokens: 128,
            ends: 32,
            budget: None,
            token: "tokens".into(),
        }
    }
}
