//! Reports a token to the host, and decides whether another decode step follows.

use warpwright_dsl::*;
use warpwright_ptx::ir::Scope;

/// Hands the token of a step to the host while the kernel that made it continues, and decides whether another step
/// follows: one launch for many tokens.
///
/// - `tokens`: the token, a `u32`.
/// - `ends`: ids that end a text, a `u32` each; the first [`ends`](Self::ends) count, and the buffer has at least one.
/// - `ring`: [`capacity`](Self::capacity) tokens in memory mapped for the host. Token number `i` of all that were ever
///   published, from 0 on, is at `i` modulo the capacity. The kernel does not wait for the host: a launch may publish
///   as many tokens as the ring has room for beside the unread ones.
/// - `control`: two words in memory mapped for the host, [`Publish::STOP`] and [`Publish::COUNT`]. The host sets the
///   first one to a nonzero value to end the launch; the second one counts published tokens, modulo 2³², and continues
///   from launch to launch.
/// - `progress`: three words, [`Publish::TOKENS`], [`Publish::FINISHED`] and [`Publish::LIMIT`]: the tokens of this
///   launch so far; 0 while another token follows, otherwise a [`Finish`] ([`Finish::from_word`]); and the maximum
///   number of tokens of this launch. The host sets them to 0, 0 and the limit.
///
/// The token is stored relaxed and then the count releasing, both at system scope: a host that reads the count
/// acquiring can read the tokens that it counts, and everything that the kernel wrote before. Then the stop flag is
/// read, acquiring. `progress` is for threads of the device, which order themselves. After the host sets the stop flag,
/// the launch ends with the current token or with the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Config)]
#[config(
    doc = "hands a token to the host while a launch for many goes on, and says whether another one follows",
    examples("capacity=1 ends=0", "capacity=4096 ends=40")
)]
pub struct Publish {
    /// Tokens that the ring has room for: a power of two.
    #[field(range = 1..=1 << 24, default = 1024)]
    pub capacity: u32,
    /// Ids that end a text: up to 1024.
    #[field(range = 0..=1024, default = 2)]
    pub ends: u32,
}

/// The arguments of [`Publish`].
#[derive(Args)]
#[args(of = Publish)]
#[allow(missing_docs, reason = "they are described with the kernel")]
pub struct PublishArgs<M: Mode> {
    #[arg(len = 1)]
    pub tokens: M::In<u32>,
    #[arg(len = of.ends.max(1))]
    pub ends: M::In<u32>,
    #[arg(len = of.capacity)]
    pub ring: M::Out<u32>,
    #[arg(len = 2)]
    pub control: M::InOut<u32>,
    #[arg(len = 3)]
    pub progress: M::InOut<u32>,
}

/// Why no token follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Finish {
    /// The host has set the stop flag, and the token does not end the text.
    Stopped,
    /// The token ends the text. This takes precedence over the other reasons.
    EndOfText,
    /// The launch has reached its limit, and there is no other reason.
    Limit,
}

impl Finish {
    /// The reason encoded in [`Publish::FINISHED`]; `None` for 0, while another token follows, and for unknown words.
    pub fn from_word(word: u32) -> Option<Self> {
        [Finish::Stopped, Finish::EndOfText, Finish::Limit].into_iter().find(|finish| finish.word() == word)
    }

    /// The encoding: 1, 2 or 3.
    pub fn word(self) -> u32 {
        match self {
            Finish::Stopped => 1,
            Finish::EndOfText => 2,
            Finish::Limit => 3,
        }
    }
}

impl Publish {
    /// The word of `control` that the host sets to end the launch.
    pub const STOP: u32 = 0;
    /// The word of `control` that counts published tokens.
    pub const COUNT: u32 = 1;
    /// The word of `progress` that counts the tokens of this launch.
    pub const TOKENS: u32 = 0;
    /// The word of `progress` that is not 0 once no token follows.
    pub const FINISHED: u32 = 1;
    /// The word of `progress` that holds the maximum number of tokens of the launch.
    pub const LIMIT: u32 = 2;

    /// A ring of this capacity, and this many ids that end a text.
    pub fn new(capacity: u32, ends: u32) -> Self {
        Publish { capacity, ends }
    }
}

impl Kernel for Publish {
    type Args<M: Mode> = PublishArgs<M>;

    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn launch(&self) -> LaunchRule {
        LaunchRule::new(32)
    }

    fn check(&self) -> Result<(), BuildError> {
        if !self.capacity.is_power_of_two() {
            return Err(BuildError::field("capacity", self.capacity, "a power of two"));
        }
        Ok(())
    }

    fn body<'k>(&self, k: K<'k>, args: PublishArgs<Body<'k>>) {
        let PublishArgs { tokens, ends, ring, control, progress } = args;
        let (capacity, count) = (k.dim(self.capacity).reg(), k.dim(self.ends).reg());

        let token = tokens.ld(0);
        let mine = k.fold(k.warp_strided(count), k.u32(0), |i, found| ends.ld(i).eq(token).select(1, found));
        let is_end = k.any(mine.ne(0));
        k.when(k.lane().eq(0), || {
            // Nobody else counts.
            let published = control.relaxed(Scope::Sys).ld(Self::COUNT);
            ring.relaxed(Scope::Sys).st(published & (capacity - 1), token);
            control.release(Scope::Sys).st(Self::COUNT, published + 1);

            let made = progress.ld(Self::TOKENS) + 1;
            let stop = control.acquire(Scope::Sys).ld(Self::STOP).ne(0);
            let reason = |holds: Reg<'k, Pred>, reason: Finish, otherwise: Reg<'k, u32>| {
                holds.select(k.u32(reason.word()), otherwise)
            };
            let finished = reason(made.ge(progress.ld(Self::LIMIT)), Finish::Limit, k.u32(0));
            let finished = reason(stop, Finish::Stopped, finished);
            progress.st(Self::FINISHED, reason(is_end, Finish::EndOfText, finished));
            progress.st(Self::TOKENS, made);
        });
    }
}
