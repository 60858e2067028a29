//! One model in two stores of one device: executed step by step, and by launches for many tokens.

use crate::common::run::{add_weights, begin};
use crate::common::{Choice, ModelConfig};
use std::sync::Arc;
use warpwright_dsl::{ArgDesc, K, LaunchRule, any::AnyKernel};
use warpwright_graph::{
    Executable, KernelLibrary, Persistent, PersistentLaunch, PersistentOptions, Plan, PlanOptions, Store,
    execute_graph,
};
use warpwright_ptx::ir::Type;
use warpwright_runtime::{Device, VmConfig};
use warpwright_vm::{Options, Schedule};

/// A model, and where its sequence is.
pub(crate) struct Pair {
    /// The store of the executions, and that of the launches.
    pub(crate) stores: [Store; 2],
    executable: Executable,
    pub(crate) persistent: Persistent,
}

impl Pair {
    pub(crate) fn new(
        device: &Device,
        config: &ModelConfig,
        choice: Choice,
        options: &PersistentOptions,
    ) -> Self {
        Pair::planned(device, config, choice, options, &PlanOptions::for_device(device))
    }

    pub(crate) fn planned(
        device: &Device,
        config: &ModelConfig,
        choice: Choice,
        options: &PersistentOptions,
        planning: &PlanOptions,
    ) -> Self {
        let graph = config.decode(1, choice);
        let plan = Arc::new(Plan::new(&graph, planning, &KernelLibrary).expect("a plan"));
        let mut stores = [(); 2].map(|()| {
            let mut store = Store::new(&device.default_stream());
            add_weights(&mut store, &graph, 1);
            store
        });
        let executable = Executable::new(plan.clone(), &mut stores[0]).expect("bound");
        let persistent =
            Persistent::new(plan, &mut stores[1], options).unwrap_or_else(|error| panic!("{error}"));
        let mut pair = Pair { stores, executable, persistent };
        pair.begin(3, 0);
        pair
    }

    /// The token that comes next, and how many were before it.
    pub(crate) fn begin(&mut self, id: u32, before: u32) {
        self.stores.iter_mut().for_each(|store| begin(store, &[id], &[before]));
    }

    /// Executes so many steps: the tokens.
    pub(crate) fn execute(&mut self, steps: usize) -> Vec<u32> {
        let token = |_| {
            execute_graph(&mut self.executable, &KernelLibrary).expect("executed");
            self.executable.read_output::<u32>("tokens").expect("a token")[0]
        };
        (0..steps).map(token).collect()
    }

    /// Launches so many.
    pub(crate) fn launch(&mut self, tokens: u32, ends: &[u32]) -> PersistentLaunch {
        self.persistent.launch(tokens, ends).unwrap_or_else(|error| panic!("{error}"))
    }

    /// That states and logits are the same in both stores, bit by bit.
    pub(crate) fn assert_same(&self, what: &str) {
        let logits = |values: Vec<f32>| values.into_iter().map(f32::to_bits).collect::<Vec<_>>();
        let own = logits(self.persistent.read_output("logits").expect("logits"));
        assert!(
            own == logits(self.executable.read_output("logits").expect("logits")),
            "{what}: other logits"
        );
        let states: Vec<String> = self.stores[0].states().map(|(name, _)| name.to_owned()).collect();
        for name in states {
            let [a, b] = [0, 1].map(|i| bytes(&self.stores[i], &name));
            assert!(a == b, "{what}: `{name}` differs");
        }
    }
}

/// All tokens of a launch.
pub(crate) fn all(launch: &mut PersistentLaunch) -> Vec<u32> {
    let next = || launch.next_token().unwrap_or_else(|error| panic!("{error}"));
    std::iter::from_fn(next).collect()
}

/// The bytes of a state.
fn bytes(store: &Store, name: &str) -> Vec<u8> {
    let stream = store.stream();
    let parts = store.state_buffers(name).expect("a state").iter();
    parts
        .flat_map(|part| {
            let bytes = part.cast(Type::U8).and_then(|part| part.typed::<u8>()).expect("bytes");
            stream.clone_dtoh(&bytes).expect("read")
        })
        .collect()
}

/// So many blocks.
pub(crate) fn options(blocks: u32) -> PersistentOptions {
    let mut options = PersistentOptions::default();
    options.blocks = Some(blocks);
    options
}

/// The device of the test; as a virtual GPU with all checks, and blocks in an order by a seed.
pub(crate) fn seeded(seed: u64) -> Device {
    let options = Options { schedule: Schedule::Seeded(seed), ..Options::checked() };
    warpwright_testing::device(VmConfig { options, ..VmConfig::default() })
}

/// A kernel that traps.
pub(crate) struct Fails;

impl AnyKernel for Fails {
    fn entry(&self) -> String {
        "fails".into()
    }

    fn args(&self) -> Vec<ArgDesc> {
        Vec::new()
    }

    fn launch(&self) -> LaunchRule {
        LaunchRule::new(32)
    }

    fn body(&self, k: K<'_>) {
        k.trap();
    }
}
