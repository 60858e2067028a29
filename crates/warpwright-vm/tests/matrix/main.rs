//! Matrix instructions through real PTX: every shape and type against sums of integers.

mod measured;
mod mma;
mod narrow;
mod run;
mod sparse;
mod tcgen05;
mod transfer;
mod wgmma;
mod wmma;
