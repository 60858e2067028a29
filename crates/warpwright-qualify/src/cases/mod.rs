//! Correctness cases of the kernels, by what they are cases of.

mod advance;
mod dsl;
mod elementwise;
mod embedding;
mod flash_attention;
mod gemm;
mod gemv;
mod in_place;
mod incremental_attention;
mod norm;
mod penalties;
mod publish;
mod quantize;
mod repack;
mod rope;
mod sampling;

use crate::Case;

/// The correctness cases of the kernels, by module.
pub const MODULES: &[(&str, &[Case])] = &[
    ("advance", advance::CASES),
    ("dsl::activations", dsl::activations::CASES),
    ("dsl::attention", dsl::attention::CASES),
    ("dsl::choice", dsl::choice::CASES),
    ("dsl::control", dsl::control::CASES),
    ("dsl::division", dsl::division::CASES),
    ("dsl::exchange", dsl::exchange::CASES),
    ("dsl::fragments", dsl::fragments::CASES),
    ("dsl::halo", dsl::halo::CASES),
    ("dsl::operations", dsl::operations::CASES),
    ("dsl::row_wise", dsl::row_wise::CASES),
    ("dsl::spread", dsl::spread::CASES),
    ("dsl::states", dsl::states::CASES),
    ("dsl::thin", dsl::thin::CASES),
    ("dsl::tiles", dsl::tiles::CASES),
    ("elementwise", elementwise::CASES),
    ("embedding", embedding::CASES),
    ("flash_attention", flash_attention::CASES),
    ("gemm", gemm::CASES),
    ("gemv", gemv::CASES),
    ("in_place", in_place::CASES),
    ("incremental_attention::numbers", incremental_attention::numbers::CASES),
    ("norm", norm::CASES),
    ("penalties", penalties::CASES),
    ("publish", publish::CASES),
    ("quantize", quantize::CASES),
    ("repack", repack::CASES),
    ("rope", rope::CASES),
    ("sampling::argmax", sampling::argmax::CASES),
    ("sampling::cuts", sampling::cuts::CASES),
    ("sampling::draw", sampling::draw::CASES),
    ("sampling", sampling::CASES),
];
