//! A plan as one launch for many tokens: what it leaves is what as many executions leave, and nothing is lost on the way.

#[path = "../common/mod.rs"]
mod common;

mod flow;
mod pair;
mod same;
mod steps;
