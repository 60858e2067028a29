//! The derives of `warpwright-dsl`, which re-exports them and documents what they derive.
//!
//! Each derive has its own file. A derive reports an error at the field or the attribute that is wrong. Derived code
//! names the DSL by its path, so each derive exists twice: for crates that depend on `warpwright-dsl`, and for those
//! that use it as `warpwright::dsl`.
#![forbid(unsafe_code)]

mod args;
mod attribute;
mod carry;
mod choice;
mod config;
mod key;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

macro_rules! derives {
    ($($(#[$doc:meta])* $name:ident, $gathered:ident, $of:path, $function:ident, $function_gathered:ident ($($attribute:ident),*);)*) => {
        $(
            $(#[$doc])*
            #[proc_macro_derive($name, attributes($($attribute),*))]
            pub fn $function(input: TokenStream) -> TokenStream {
                let input = parse_macro_input!(input as DeriveInput);
                $of(&input).unwrap_or_else(syn::Error::into_compile_error).into()
            }

            $(#[$doc])*
            ///
            /// The same for crates that use the DSL as `warpwright::dsl`.
            #[proc_macro_derive($gathered, attributes($($attribute),*))]
            pub fn $function_gathered(input: TokenStream) -> TokenStream {
                attribute::gathered(|| $function(input))
            }
        )*
    };
}

derives! {
    /// Derives [`Carry`](https://docs.rs/warpwright-dsl): a struct whose fields can be carried can be carried.
    Carry, GatheredCarry, carry::derive, carry, gathered_carry();
    /// Derives `Arguments` for the struct of a kernel's arguments: see `warpwright_dsl::Arguments`.
    Args, GatheredArgs, args::derive, args, gathered_args(args, arg);
    /// Derives `Config` for the struct of a kernel's configuration: see `warpwright_dsl::Config`.
    Config, GatheredConfig, config::derive, config, gathered_config(config, field);
    /// Derives `Choice` for an enum without data, whose values are names: see `warpwright_dsl::Choice`.
    Choice, GatheredChoice, choice::derive, choice, gathered_choice(name);
    /// Derives `KeyPart`: a value whose parts tell configurations apart tells them apart. See `warpwright_dsl::KeyPart`.
    KeyPart, GatheredKeyPart, key::derive, key_part, gathered_key_part();
}
