//! The derives of `warpwright-dsl`, which re-exports them and documents what they derive.
//!
//! Each is a file. What a derive refuses, it refuses at the field or the attribute that is wrong.
#![forbid(unsafe_code)]

mod args;
mod attribute;
mod carry;
mod choice;
mod config;
mod key;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Derives [`Carry`](https://docs.rs/warpwright-dsl): a struct whose fields can be carried can be carried.
#[proc_macro_derive(Carry)]
pub fn carry(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    carry::derive(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Derives `Arguments` for the struct of a kernel's arguments: see `warpwright_dsl::Arguments`.
#[proc_macro_derive(Args, attributes(args, arg))]
pub fn args(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    args::derive(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Derives `Config` for the struct of a kernel's configuration: see `warpwright_dsl::Config`.
#[proc_macro_derive(Config, attributes(config, field))]
pub fn config(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    config::derive(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Derives `Choice` for an enum without data, whose values are names: see `warpwright_dsl::Choice`.
#[proc_macro_derive(Choice, attributes(name))]
pub fn choice(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    choice::derive(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Derives `KeyPart`: a value whose parts tell configurations apart tells them apart. See `warpwright_dsl::KeyPart`.
#[proc_macro_derive(KeyPart)]
pub fn key_part(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    key::derive(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}
