//! `#[derive(Carry)]`.

use proc_macro2::TokenStream;
use syn::DeriveInput;

pub(crate) fn derive(input: &DeriveInput) -> syn::Result<TokenStream> {
    Err(syn::Error::new_spanned(&input.ident, "`Carry` is not derived yet"))
}
