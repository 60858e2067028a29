//! Graphs: made by hand or by capture, instantiated, and launched.
//!
//! | file | what it is |
//! | --- | --- |
//! | `nodes` | graphs: nodes and their dependencies |
//! | `task` | operations of nodes |
//! | `condition` | conditional nodes and their values |
//! | `exec` | executable graphs |
//! | `turns` | the execution order of nodes |
//! | `capture` | operations of streams become nodes |
//! | `guard` | calls that are forbidden during a capture |
//! | `object` | user objects |
//! | `dot` | graphs as Graphviz text |
//!
//! Nodes refer to code and memory but keep neither alive: **each launch checks that the code is still loaded and the
//! memory still allocated**; otherwise the client has made a mistake.

pub(crate) mod capture;
mod condition;
mod dot;
pub(crate) mod exec;
pub(crate) mod guard;
pub(crate) mod nodes;
mod object;
mod task;
mod turns;

pub(crate) use capture::launch;
pub(crate) use condition::{Condition, Conditional};
pub(crate) use dot::dot;
pub(crate) use exec::{EXECS, Exec, exec};
pub(crate) use nodes::{GRAPHS, Graph, graph, ids};
pub(crate) use object::{References, USER_OBJECTS, UserObject};
pub(crate) use task::{Alloc, Fill, Kernel, Task, Values};
