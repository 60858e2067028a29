//! Penalties for recent tokens.

use super::setting::{Setting, or_buffer};
use crate::data::floats::{Dtype, Floats};
use warpwright_dsl::*;

/// Lowers the logits of the tokens among the last `window` of each row, in place, before a token is drawn. A token that
/// occurs `count ≥ 1` times gets `logit · repeat` if its logit is negative, otherwise `logit / repeat` (Keskar et al.
/// 2019), minus `count · frequency + presence`: the order of llama.cpp.
///
/// `logits` is `rows × n`, row-major. `recent` is `rows × window`, tokens as `u32` in any order; an id of `n` or more,
/// such as `u32::MAX`, marks an empty slot. Logits that are not finite do not change. With a `repeat` of 1 and zeros
/// nothing changes.
///
/// With `remembers`, `recent` is a ring: each row's newest token, `tokens[row]`, is first written to slot
/// `positions[row]` modulo `window`. In a decode step these are its token and its position, so the step can be
/// replayed. Repeating the write changes nothing.
///
/// A block to a row; a thread to a token of the window, or to several where the block has fewer. `|err| ≤ 2⁻²³ · (|s| + count · |frequency| + |presence|)`,
/// where `s` is the logit after `repeat`, and one rounding to its type.
#[derive(Clone, Copy, Debug, PartialEq, Config)]
#[config(
    doc = "logits of the tokens that came lately, lowered in place: repeat, frequency, presence",
    examples(
        "n=151936 remembers=true",
        "repeat=buffer frequency=buffer presence=buffer remembers=true window=256",
        "n=32000 dtype=f16 frequency=0.5 presence=0.25 window=1024",
        "n=1 window=1 dtype=bf16",
        "window=1024 threads=256 remembers=true"
    )
)]
pub struct Penalties {
    /// Numbers of a row.
    #[field(range = 1..=1 << 24, default = 128256)]
    pub n: u32,
    /// Tokens of a row that count as recent: up to 1024.
    #[field(range = 1..=MAX_WINDOW, default = 64)]
    pub window: u32,
    /// Element type of `logits`.
    #[field(name = "dtype", default = "f32")]
    pub input: Dtype,
    /// Divides or multiplies logits, more than 0; in a buffer `repeats`, an `f32` for each row.
    #[field(domain = or_buffer(&Domain::Float { from: 1e-3, to: 1e3 }), default = 1.1)]
    pub repeat: Setting<f32>,
    /// Subtracted for each occurrence; in a buffer `frequencies`, an `f32` for each row.
    #[field(domain = or_buffer(&Domain::Float { from: -1e6, to: 1e6 }), default = 0.0)]
    pub frequency: Setting<f32>,
    /// Subtracted once; in a buffer `presences`, an `f32` for each row.
    #[field(domain = or_buffer(&Domain::Float { from: -1e6, to: 1e6 }), default = 0.0)]
    pub presence: Setting<f32>,
    /// Whether the newest token is written into `recent` first.
    #[field(default = false)]
    pub remembers: bool,
    /// Threads of a block, a multiple of 32: by default as many as the window has tokens.
    #[field(none = "auto", range = 32..=1024, multiple_of = 32, default = "auto")]
    pub threads: Option<u32>,
}

/// The arguments of [`Penalties`].
#[derive(Args)]
#[args(of = Penalties)]
#[allow(missing_docs, reason = "they are described with the kernel")]
pub struct PenaltiesArgs<M: Mode> {
    #[arg(len = rows.times(of.n.into()), dtype = of.input.ty())]
    pub logits: M::AnyInOut,
    #[arg(len = rows.times(of.window.into()), when = !of.remembers)]
    pub recent: Option<M::In<u32>>,
    #[arg(name = "recent", len = rows.times(of.window.into()), when = of.remembers)]
    pub ring: Option<M::InOut<u32>>,
    #[arg(len = rows, when = of.remembers)]
    pub tokens: Option<M::In<u32>>,
    #[arg(len = rows, when = of.remembers)]
    pub positions: Option<M::In<u32>>,
    #[arg(len = rows, when = of.repeat == Setting::Buffer)]
    pub repeats: Option<M::In<f32>>,
    #[arg(len = rows, when = of.frequency == Setting::Buffer)]
    pub frequencies: Option<M::In<f32>>,
    #[arg(len = rows, when = of.presence == Setting::Buffer)]
    pub presences: Option<M::In<f32>>,
    pub rows: M::Dim,
}

/// Maximum number of tokens of a window.
const MAX_WINDOW: u32 = 1024;

impl Penalties {
    /// None, for logits in `f32`: the other members say more.
    pub fn new(n: u32, window: u32) -> Self {
        let (repeat, none) = (Setting::Fixed(1.0), Setting::Fixed(0.0));
        Penalties {
            n,
            window,
            input: Dtype::F32,
            repeat,
            frequency: none,
            presence: none,
            remembers: false,
            threads: None,
        }
    }

    /// Threads of a block.
    fn threads(&self) -> u32 {
        self.threads.unwrap_or(self.window.clamp(1, MAX_WINDOW).next_multiple_of(32))
    }
}

impl Kernel for Penalties {
    type Args<M: Mode> = PenaltiesArgs<M>;

    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn launch(&self) -> LaunchRule {
        LaunchRule::new(self.threads()).grid(Extent::dim("rows")).any_warps()
    }

    fn body<'k>(&self, k: K<'k>, args: PenaltiesArgs<Body<'k>>) {
        let (row, place) = (k.ctaid(), k.tid());
        let (n, size) = (k.dim(self.n), k.dim(self.window));
        let logits = Floats::from(args.logits).row(row, n);
        let (n, window) = (n.reg(), size.reg());
        let Some(recent) = k.given(args.recent.or(args.ring)) else { return };
        let recent = recent.row(row, size);
        let newest = args.tokens.zip(args.positions);
        let newest = newest.map(|(tokens, positions)| (tokens.ld(row), positions.ld(row) % window));
        let repeat = self.repeat.of(k, row, args.repeats);
        let frequency = self.frequency.of(k, row, args.frequencies);
        let presence = self.presence.of(k, row, args.presences);

        let remembered = |place: Reg<'k, u32>, inside| {
            let remembered = recent.ld_if(inside, place, u32::MAX);
            match newest {
                Some((token, at)) => {
                    recent.st_if(place.eq(at), place, token);
                    place.eq(at).select(token, remembered)
                }
                None => remembered,
            }
        };
        let lower =
            |ids: Ptr<'k, Shared, u32>, place: Reg<'k, u32>, inside: Reg<'k, Pred>, id: Reg<'k, u32>| {
                // How often it is there, and how often before this place: the first of them does the work.
                let none = (k.u32(0), k.u32(0));
                let others = k.upto(window).unroll(4);
                let (count, before) = k.fold(others, none, |other, (count, before)| {
                    let same = ids.ld(other).eq(id).select(k.u32(1), 0);
                    (count + same, other.lt(place).select(before + same, before))
                });
                k.when(inside & id.lt(n) & before.eq(0), || {
                    let logit = logits.ld(id);
                    let scaled = logit.lt(0.0).select(logit * repeat, logit / repeat);
                    let lowered = scaled - count.f32().mul_add(frequency, presence);
                    logits.st_if(logit.abs().lt(f32::INFINITY), id, lowered);
                });
            };

        // A place to a thread, or several.
        if size.is_at_most(k.threads()) {
            let inside = place.lt(window);
            let id = remembered(place, inside);
            let ids = k.shared::<u32>(self.window);
            ids.st_if(inside, place, id);
            k.sync();
            lower(ids, place, inside, id);
        } else {
            let (ids, all) = (k.shared::<u32>(MAX_WINDOW), k.pred(true));
            k.each(k.strided(window), |place| ids.st(place, remembered(place, all)));
            k.sync();
            k.each(k.strided(window), |place| lower(ids, place, all, ids.ld(place)));
        }
    }
}
