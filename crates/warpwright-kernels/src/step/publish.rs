//! What a step of decoding tells the host, and whether it is the last one.

use warpwright_dsl::*;
use warpwright_ptx::ir::Scope;

/// Hands the token of a step to the host, while the kernel that made it goes on, and decides whether another step
/// follows: one launch for many tokens.
///
/// - `tokens`: the token, a `u32`.
/// - `ends`: ids that end a text, a `u32` each; the first [`ends`](Self::ends) count, and the buffer has one at least.
/// - `ring`: [`capacity`](Self::capacity) tokens in memory that is mapped for the host. Token number `i` of all that
///   were ever published, from 0 on, lies at `i` modulo the capacity. Nothing waits for the host: a launch may publish
///   as many as the ring has room for beside those that were not read yet.
/// - `control`: two words in memory that is mapped for the host, [`Publish::STOP`] and [`Publish::COUNT`]. The host sets
///   the first one to anything but 0 to end the launch; the second one is the number of tokens published so far, modulo
///   2³², and goes on from launch to launch.
/// - `progress`: three words, [`Publish::TOKENS`], [`Publish::FINISHED`] and [`Publish::LIMIT`]: tokens of this launch so
///   far; 0 while another one follows, else a [`Finish`] ([`Finish::from_word`]); and the most tokens of this launch.
///   The host sets them to 0, 0 and the limit.
///
/// At system scope the token is stored, relaxed, and then the count, releasing: a host that has read the count,
/// acquiring, reads the tokens that it counts, and whatever the kernel had written before. After that the stop flag is
/// read, acquiring. `progress` is for threads of the device, which order themselves. Whoever sets the stop flag sees
/// the launch end with the token that is being made, or with the one after it.
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
    /// The host has set the stop flag, and the token ends no text.
    Stopped,
    /// The token ends a text, whatever else holds.
    EndOfText,
    /// The launch has made as many as it may, and nothing else has ended it.
    Limit,
}

impl Finish {
    /// The reason that stands in [`Publish::FINISHED`]; `None` for 0, while another token follows, and for what no
    /// kernel writes there.
    pub fn from_word(word: u32) -> Option<Self> {
        [Finish::Stopped, Finish::EndOfText, Finish::Limit].into_iter().find(|finish| finish.word() == word)
    }

    /// What stands for it: 1, 2 or 3.
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
    /// The word of `control` that counts the tokens that were published.
    pub const COUNT: u32 = 1;
    /// The word of `progress` that counts the tokens of this launch.
    pub const TOKENS: u32 = 0;
    /// The word of `progress` that is not 0 once no token follows.
    pub const FINISHED: u32 = 1;
    /// The word of `progress` that says how many tokens the launch may make.
    pub const LIMIT: u32 = 2;

    /// A ring of that capacity, and so many ids that end a text.
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
