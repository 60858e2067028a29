//! What numbers do: roundings, conversions and functions of single values, as the PTX ISA defines them.
