//! Barriers and fences.

use super::{Rule, instruction, modifiers};
use crate::ir::*;
use crate::verify::Check;

modifiers! {
    /// Whom a `membar` orders accesses for.
    pub enum MembarLevel {
        /// The block.
        Cta = "cta",
        /// The device.
        Gl = "gl",
        /// The system.
        Sys = "sys",
    }
}

instruction! {
    /// Waits for the threads of the block.
    pub struct BarSync("bar.sync") {
        cta: bool = "cta",
    }(a: Src, b: Option<Src>)

    /// Arrives at a barrier without waiting.
    pub struct BarArrive("bar.arrive") {
        cta: bool = "cta",
    }(a: Src, b: Src)

    /// Waits for lanes of the warp, and orders memory among them.
    pub struct BarWarpSync("bar.warp.sync") {}(mask: Src)

    /// Orders memory accesses.
    pub struct Membar("membar") {
        level: MembarLevel,
    }()

    /// Orders memory accesses, in the memory model.
    pub struct Fence("fence") {
        semantics: Option<Semantics>,
        scope: Scope,
    }()
}

impl Rule for BarSync {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for BarArrive {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for BarWarpSync {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Membar {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Fence {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}
