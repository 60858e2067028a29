//! An attack: a module, a launch, and how it must be answered.

use std::time::{Duration, Instant};
use warpwright_ptx::{parse, verify};
use warpwright_vm::{
    Arg, Checks, Device, DeviceConfig, DeviceError, LaunchConfig, Options, Report, Schedule, TrapKind,
};

/// Lane instructions that an attack may take.
pub(crate) const BUDGET: u64 = 2_000_000;

/// An answer that takes longer is a hang, also where a kernel that polls gives its core away to many others.
const PATIENCE: Duration = Duration::from_secs(180);

/// How an attack is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The parser or the verifier refuses the module.
    Verifier,
    /// The device does not load it.
    Load,
    /// The launch is refused.
    Launch,
    /// The launch ends with that trap.
    Trap(TrapKind),
    /// The launch ends, and the first finding is of that name.
    Finding(&'static str),
    /// It is no attack: it runs, and nothing is found.
    Nothing,
}

/// A module and how it is launched.
pub(crate) struct Attack {
    pub(crate) module: String,
    pub(crate) config: LaunchConfig,
    /// `None` for one argument, the address of 64 bytes.
    pub(crate) args: Option<Vec<Arg>>,
    pub(crate) budget: u64,
}

impl Attack {
    /// One warp of a kernel with this body. It has registers of every kind, `%d0` the address of 64 bytes of
    /// global memory, `%r0` the thread's index, and 64 bytes of shared memory, `tile`.
    pub(crate) fn body(body: &str) -> Attack {
        Attack::with("", body)
    }

    /// The same, in a module with further declarations.
    pub(crate) fn with(declarations: &str, body: &str) -> Attack {
        let module = format!(
            ".version 8.7\n.target sm_90\n.address_size 64\n{declarations}
.visible .entry k(.param .u64 buffer)
{{
    .reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<16>; .reg .b64 %d<16>; .reg .b128 %q<2>;
    .reg .f32 %f<16>; .reg .f64 %e<4>;
    .shared .align 16 .b8 tile[64];
    .local .align 16 .b8 own[64];
    ld.param.u64 %d0, [buffer];
    cvta.to.global.u64 %d0, %d0;
    mov.u32 %r0, %tid.x;
    {body}
    ret;
}}\n"
        );
        Attack::module(module)
    }

    /// A whole module with a kernel `k`.
    pub(crate) fn module(module: impl Into<String>) -> Attack {
        Attack { module: module.into(), config: LaunchConfig::new(1, 32), args: None, budget: BUDGET }
    }

    pub(crate) fn threads(mut self, threads: u32) -> Self {
        self.config.block_dim.0 = threads;
        self
    }

    pub(crate) fn blocks(mut self, blocks: u32) -> Self {
        self.config.grid_dim.0 = blocks;
        self
    }

    pub(crate) fn cooperative(mut self) -> Self {
        self.config.cooperative = true;
        self
    }

    pub(crate) fn args(mut self, args: impl Into<Vec<Arg>>) -> Self {
        self.args = Some(args.into());
        self
    }

    pub(crate) fn budget(mut self, budget: u64) -> Self {
        self.budget = budget;
        self
    }

    /// How it is answered, with a report where it was launched.
    pub(crate) fn answer(&self, schedule: Schedule) -> (Answer, String) {
        let Ok(module) = parse(&self.module).map_err(|problems| format!("{problems:?}")) else {
            return (Answer::Verifier, "it does not parse".to_string());
        };
        let info = match verify(&module) {
            Ok(info) => info,
            Err(problems) => return (Answer::Verifier, format!("{problems:?}")),
        };
        let mut config = DeviceConfig::default();
        (config.workers, config.memory) = (2, 1 << 30);
        let device = Device::new(config).expect("a device with two workers");
        let loaded = match device.load(&module, &info) {
            Ok(loaded) => loaded,
            Err(error) => return (Answer::Load, error.to_string()),
        };
        let buffer = device.clone_htod(&[0u8; 64]).expect("64 bytes of memory");
        let args = self.args.clone().unwrap_or_else(|| vec![Arg::buffer(&buffer)]);
        let options =
            Options { checks: Checks::ALL, schedule, max_instructions: self.budget, ..Options::checked() };
        let running = match device.launch(&loaded, "k", &self.config, &args, &options) {
            Ok(running) => running,
            Err(DeviceError::Launch(message)) => return (Answer::Launch, message.to_string()),
            Err(error) => panic!("a launch is refused with {error:?}"),
        };
        let start = Instant::now();
        // A host that waits changes nothing, so that a kernel that polls is known to wait in vain.
        let report = running.wait();
        assert!(start.elapsed() < PATIENCE, "it takes too long:\n{}", self.module);
        // The device is as it was.
        assert!(device.clone_htod(&[1u32; 4]).is_ok_and(|buffer| buffer.read() == [1; 4]));
        (judge(&report), format!("{report:?}").chars().take(1500).collect())
    }
}

fn judge(report: &Report) -> Answer {
    match (&report.trap, report.findings.first()) {
        (Some(trap), _) => Answer::Trap(trap.kind),
        (None, Some(finding)) => Answer::Finding(finding.kind.name()),
        (None, None) => Answer::Nothing,
    }
}

/// Holds a table of attacks against their answers, whatever the order of things.
pub(crate) fn check(table: impl IntoIterator<Item = (&'static str, Attack, Answer)>) {
    let mut wrong = Vec::new();
    for (name, attack, expected) in table {
        for schedule in [Schedule::Parallel, Schedule::Seeded(7)] {
            let outcome = std::panic::catch_unwind(|| attack.answer(schedule));
            match outcome {
                Ok((answer, _)) if answer == expected => {}
                Ok((answer, words)) => {
                    wrong.push(format!("{name}: {answer:?}, and should be {expected:?}: {words}"));
                }
                Err(_) => wrong.push(format!("{name}: panics")),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
