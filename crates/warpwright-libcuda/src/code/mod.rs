//! Modules from PTX text, their functions and variables, launches, occupancy.
//!
//! | file | what it is |
//! | --- | --- |
//! | `image`, `fat_binary`, `object` | code from clients |
//! | `options` | options of the compiler |
//! | `compile` | from PTX to code that a device runs |
//! | `module`, `function`, `library` | code in contexts |
//! | `managed` | managed variables |
//! | `link` | the linker |
//! | `launch` | checks and runs a kernel, its shape and its parameters |
//! | `occupancy` | occupancy |
//!
//! Code is compiled when it is loaded, never later. This module does not know what a launch does with memory.

mod compile;
mod fat_binary;
mod function;
mod image;
mod launch;
pub(crate) mod library;
mod link;
mod managed;
mod module;
pub(crate) mod object;
pub(crate) mod occupancy;
mod options;

use compile::{Checked, Facts, begins_as_ptx, check, compile, line_in, message};
pub(crate) use function::Function;
use function::registers;
pub(crate) use image::Image;
pub(crate) use launch::{Launch, Shape};
pub(crate) use library::{KERNELS, LIBRARIES, Library};
pub(crate) use link::{LINKS, Link};
pub(crate) use managed::Managed;
pub(crate) use module::{MODULES, Module, forget, function, module, unload};
pub(crate) use options::Options;
