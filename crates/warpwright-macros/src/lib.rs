//! The derives of `warpwright-dsl`, which re-exports them and documents what they derive.
//!
//! Each is a file. What a derive refuses, it refuses at the field or the attribute that is wrong.
#![forbid(unsafe_code)]

mod carry;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Derives [`Carry`](https://docs.rs/warpwright-dsl): a struct whose fields can be carried can be carried.
#[proc_macro_derive(Carry)]
pub fn carry(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    carry::derive(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}
