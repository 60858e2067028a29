//! Options of a persistent kernel.

use warpwright_kernels::persistent::Assignment;

/// How a plan is bound as a persistent kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct PersistentOptions {
    /// Blocks of the launch. By default as many as can be resident at once; on a virtual device at most as many as it
    /// has host threads, since more would only wait.
    pub blocks: Option<u32>,
    /// Warps of a block: 1, 2, 4 or 8.
    pub warps: u32,
    /// How items are assigned to blocks.
    pub assignment: Assignment,
    /// Maximum number of tokens of a launch; the ring has room for as many unread tokens.
    pub tokens: u32,
    /// Maximum number of ids that end a text.
    pub ends: u32,
    /// Polls of a word before a waiting block gives up. The default takes seconds; it is much higher on a virtual
    /// device, where a token of a large model takes that long.
    pub budget: Option<u32>,
    /// The output of the plan that holds the token.
    pub token: String,
}

/// Polls on a device, of about a tenth of a microsecond each at least.
const BUDGET: u32 = 1 << 25;

/// Polls on a virtual device.
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
