//! Graphs: made by hand or by capture, instantiated, and launched.
//!
//! | file | what it is |
//! | --- | --- |
//! | `nodes` | graphs: nodes and their order |
//! | `task` | what a node does |
//! | `exec` | a graph that is ready to run |
//! | `turns` | when the nodes of a run have their turns |
//! | `capture` | what is asked for on streams becomes nodes |
//! | `guard` | what must not be called meanwhile |
//! | `object` | what the client has graphs keep |
//! | `dot` | a picture |
//!
//! Nodes refer to code and memory but keep neither alive: **each launch checks that the code is still loaded and the
//! memory still allocated**; otherwise the client has made a mistake.

pub(crate) mod capture;
mod dot;
pub(crate) mod exec;
pub(crate) mod guard;
pub(crate) mod nodes;
mod object;
mod task;
mod turns;

pub(crate) use capture::launch;
pub(crate) use dot::dot;
pub(crate) use exec::{EXECS, Exec, exec};
pub(crate) use nodes::{GRAPHS, Graph, graph, ids};
pub(crate) use object::{References, USER_OBJECTS, UserObject};
pub(crate) use task::{Fill, Kernel, Task};
