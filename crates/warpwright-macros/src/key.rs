//! `#[derive(KeyPart)]`.

use crate::attribute::dsl;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Data, DeriveInput, Fields};

pub(crate) fn derive(input: &DeriveInput) -> syn::Result<TokenStream> {
    let (dsl, name) = (dsl(), &input.ident);
    let body = match &input.data {
        Data::Struct(data) => {
            let fields = data.fields.iter().enumerate().map(|(i, field)| match &field.ident {
                Some(name) => quote!(self.#name),
                None => {
                    let index = syn::Index::from(i);
                    quote!(self.#index)
                }
            });
            quote!(#( #dsl::KeyPart::feed(&#fields, key); )*)
        }
        Data::Enum(data) => {
            let arms = data.variants.iter().enumerate().map(|(i, variant)| {
                let (ident, number) = (&variant.ident, i as u32);
                let bound: Vec<_> = (0..variant.fields.len()).map(|i| format_ident!("part{i}")).collect();
                let pattern = match &variant.fields {
                    Fields::Unit => quote!(),
                    Fields::Unnamed(_) => quote!((#(#bound),*)),
                    Fields::Named(fields) => {
                        let names = fields.named.iter().map(|field| &field.ident);
                        quote!({ #( #names: #bound ),* })
                    }
                };
                quote! {
                    Self::#ident #pattern => {
                        #dsl::KeyPart::feed(&#number, key);
                        #( #dsl::KeyPart::feed(#bound, key); )*
                    }
                }
            });
            quote!(match self { #(#arms)* })
        }
        Data::Union(_) => return Err(syn::Error::new_spanned(name, "a union has no parts to tell apart")),
    };
    let (generics, parameters, bounds) = input.generics.split_for_impl();
    Ok(quote! {
        impl #generics #dsl::KeyPart for #name #parameters #bounds {
            fn feed(&self, key: &mut ::std::vec::Vec<u8>) {
                #body
            }
        }
    })
}
