//! Tokens that came lately become less likely.

use super::setting::Setting;
use crate::data::floats::{Dtype, FloatBuffers};
use crate::entry::{DTYPES, Domain, Entry, Field, boxed, check_threads, smaller};
use warpwright_dsl::any::AnyKernel;
use warpwright_dsl::*;

/// Lowers the logits of the tokens among the last `window` of each row, in place, before a token is drawn. A token
/// that is there `count` times, once or more, gets
/// `logit · repeat` if its logit is negative, else `logit / repeat` (Keskar et al. 2019), less
/// `count · frequency + presence`: the order of llama.cpp.
///
/// `logits` is `rows × n`, row-major. `recent` is `rows × window`, tokens as `u32` in any order; an id of `n` or more,
/// `u32::MAX` for one, is a place where there is none. What is not finite stays as it is. With a `repeat` of 1 and
/// zeros nothing changes.
///
/// With `remembers`, each row's newest token, `tokens[row]`, first takes the place `positions[row]` modulo `window` in
/// `recent`, which is a ring then: of a step of decoding, these are its token and its position, and the step
/// can be replayed. To do it again changes nothing.
///
/// A block to a row; a thread to a token of the window, or to several where the block has fewer. `|err| ≤ 2⁻²³ · (|s| + count · |frequency| + |presence|)`,
/// where `s` is the logit after `repeat`, and one rounding to its type.
#[derive(Clone, Copy, Debug, PartialEq, warpwright_dsl::KeyPart)]
pub struct Penalties {
    /// Numbers of a row.
    pub n: u32,
    /// Tokens of a row that are looked at: up to 1024.
    pub window: u32,
    /// Element type of `logits`.
    pub input: Dtype,
    /// What logits are divided or multiplied by, more than 0; in a buffer `repeats`, an `f32` for each row.
    pub repeat: Setting<f32>,
    /// What is taken off for each time; in a buffer `frequencies`, an `f32` for each row.
    pub frequency: Setting<f32>,
    /// What is taken off once; in a buffer `presences`, an `f32` for each row.
    pub presence: Setting<f32>,
    /// Whether the newest token is written into `recent` first.
    pub remembers: bool,
    /// Threads of a block, a multiple of 32: as many as the window has tokens where that is not said.
    pub threads: Option<u32>,
}

/// The most tokens of a window.
const MOST: u32 = 1024;

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
        self.threads.unwrap_or(self.window.clamp(1, MOST).next_multiple_of(32))
    }

    /// The settings, with the names of their buffers.
    fn settings(&self) -> [(Setting<f32>, &'static str); 3] {
        [(self.repeat, "repeats"), (self.frequency, "frequencies"), (self.presence, "presences")]
    }
}

impl AnyKernel for Penalties {
    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn key(&self) -> Option<Key> {
        Some(Key::derived(self))
    }

    fn entry(&self) -> String {
        let Penalties { n, window, input, .. } = self;
        let [repeat, frequency, presence] = self.settings().map(|(setting, _)| setting.tag());
        let remembers = if self.remembers { "_remembers" } else { "" };
        let threads = self.threads.map(|threads| format!("_t{threads}")).unwrap_or_default();
        format!("penalties_n{n}_w{window}_{input}_{repeat}_{frequency}_{presence}{remembers}{threads}")
    }

    fn args(&self) -> Vec<ArgDesc> {
        let rows = Extent::dim("rows");
        let mut args =
            vec![ArgDesc::buffer("logits", self.input.ty(), Role::InOut, rows.times(self.n.into()))];
        let recent = rows.times(self.window.into());
        if self.remembers {
            args.push(ArgDesc::in_out::<u32>("recent", recent));
            args.push(ArgDesc::input::<u32>("tokens", rows));
            args.push(ArgDesc::input::<u32>("positions", rows));
        } else {
            args.push(ArgDesc::input::<u32>("recent", recent));
        }
        let buffers = self.settings().into_iter().filter(|(setting, _)| *setting == Setting::Buffer);
        args.extend(buffers.map(|(_, name)| ArgDesc::input::<f32>(name, rows)));
        args
    }

    fn launch(&self) -> LaunchRule {
        LaunchRule::new(self.threads()).grid(Extent::dim("rows"))
    }

    fn sizes(&self) -> Vec<(&'static str, SizeValue)> {
        let mut sizes = vec![("n", SizeValue::U32(self.n)), ("window", SizeValue::U32(self.window))];
        sizes.extend(self.settings().into_iter().filter_map(|(setting, name)| setting.size(name)));
        sizes
    }

    /// With blocks that teams divide.
    fn called(&self, threads: u32) -> Option<Vec<Called>> {
        smaller(self, self.threads(), threads, |threads| Penalties { threads: Some(threads), ..*self })
    }

    fn check(&self) -> Result<(), BuildError> {
        if !(1..=1 << 24).contains(&self.n) {
            return Err(BuildError::field("n", self.n, "from 1 to 16777216"));
        }
        if !(1..=MOST).contains(&self.window) {
            return Err(BuildError::field("window", self.window, "from 1 to 1024"));
        }
        check_threads(self.threads())?;
        if let Setting::Fixed(repeat) = self.repeat
            && !(1e-3..=1e3).contains(&repeat)
        {
            return Err(BuildError::field("repeat", repeat, "from 0.001 to 1000"));
        }
        for (field, setting) in [("frequency", self.frequency), ("presence", self.presence)] {
            if let Setting::Fixed(number) = setting
                && !(-1e6..=1e6).contains(&number)
            {
                return Err(BuildError::field(field, number, "from -1e6 to 1e6"));
            }
        }
        Ok(())
    }

    fn body<'k>(&self, k: K<'k>) {
        let (row, place) = (k.ctaid(), k.tid());
        let (n, size) = (k.size("n", self.n), k.size("window", self.window));
        let logits = k.floats_mut("logits", self.input).row(row, n);
        let (n, window) = (n.reg(), size.reg());
        let recent = if self.remembers { k.ptr_mut::<u32>("recent") } else { k.ptr::<u32>("recent") };
        let recent = recent.row(row, size);
        let newest = self.remembers.then(|| {
            let (tokens, positions) = (k.ptr::<u32>("tokens"), k.ptr::<u32>("positions"));
            (tokens.ld(row), positions.ld(row) % window)
        });
        let [repeat, frequency, presence] = self.settings().map(|(setting, name)| setting.of(k, name, row));

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
        if size.known().is_some_and(|window| window <= self.threads()) {
            let inside = place.lt(window);
            let id = remembered(place, inside);
            let ids = k.shared::<u32>(self.window);
            ids.st_if(inside, place, id);
            k.sync();
            lower(ids, place, inside, id);
        } else {
            let (ids, all) = (k.shared::<u32>(MOST), k.pred(true));
            k.each(k.strided(window), |place| ids.st(place, remembered(place, all)));
            k.sync();
            k.each(k.strided(window), |place| lower(ids, place, all, ids.ld(place)));
        }
    }
}

pub(crate) const ENTRY: Entry = Entry {
    name: "penalties",
    doc: "logits of the tokens that came lately, lowered in place: repeat, frequency, presence",
    fields: &[
        Field {
            name: "n",
            domain: Domain::int(1, 1 << 24),
            default: Some("128256"),
            doc: "numbers of a row",
        },
        Field {
            name: "window",
            domain: Domain::int(1, 1024),
            default: Some("64"),
            doc: "tokens of a row that are looked at",
        },
        Field { name: "dtype", domain: DTYPES, default: Some("f32"), doc: "element type of the logits" },
        Field {
            name: "repeat",
            domain: Domain::Float { from: 1e-3, to: 1e3 },
            default: Some("1.1"),
            doc: "what logits are divided by, and negative ones multiplied by",
        },
        Field {
            name: "frequency",
            domain: Domain::Float { from: -1e6, to: 1e6 },
            default: Some("0"),
            doc: "what is taken off for each time that a token is there",
        },
        Field {
            name: "presence",
            domain: Domain::Float { from: -1e6, to: 1e6 },
            default: Some("0"),
            doc: "what is taken off if it is there",
        },
        Field {
            name: "settings",
            domain: Domain::OneOf(&["fixed", "buffer"]),
            default: Some("fixed"),
            doc: "repeat, frequency and presence as they are here, or read for each row",
        },
        Field {
            name: "remembers",
            domain: Domain::FLAG,
            default: Some("false"),
            doc: "whether the newest token is written among the last ones first",
        },
        Field {
            name: "threads",
            domain: Domain::Or { word: "auto", of: &Domain::THREADS },
            default: Some("auto"),
            doc: "threads of a block: as many as the window has tokens, rounded up",
        },
    ],
    examples: &[
        "n=151936 remembers=true",
        "settings=buffer remembers=true window=256",
        "n=32000 dtype=f16 frequency=0.5 presence=0.25 window=1024",
        "n=1 window=1 dtype=bf16",
        "window=1024 threads=256 remembers=true",
    ],
    make: |config| {
        let buffers = config.text("settings") == "buffer";
        let number = |name| if buffers { Setting::Buffer } else { Setting::Fixed(config.f32(name)) };
        boxed(Penalties {
            input: config.dtype("dtype"),
            repeat: number("repeat"),
            frequency: number("frequency"),
            presence: number("presence"),
            remembers: config.flag("remembers"),
            threads: config.auto_u32("threads"),
            ..Penalties::new(config.u32("n"), config.u32("window"))
        })
    },
};
