//! The persistent decoder runs programs as their launches do, one after the other.

mod chains;
mod ends;
mod planted;
mod programs;
mod rig;
