//! Graphs: made by hand or by capture, made ready to run, run.
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
//! Nodes hold code and the descriptions of memory, but keep neither: **whether code is still loaded and memory still
//! allocated is asked before each run**, and what is gone is an error of the client's.

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
