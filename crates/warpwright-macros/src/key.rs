//! `#[derive(KeyPart)]`.

use crate::attribute::dsl;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Data, DeriveInput, Fields, Type, parse_quote};

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
    let mut bounded = input.generics.clone();
    if bounded.type_params().next().is_some() {
        // What a field is made of needs a key, and not each parameter: a marker has none.
        let types = fields(&input.data);
        let clause = bounded.make_where_clause();
        clause.predicates.extend(types.map(|ty| -> syn::WherePredicate { parse_quote!(#ty: #dsl::KeyPart) }));
    }
    let (generics, parameters, bounds) = bounded.split_for_impl();
    Ok(quote! {
        impl #generics #dsl::KeyPart for #name #parameters #bounds {
            fn feed(&self, key: &mut ::std::vec::Vec<u8>) {
                #body
            }
        }
    })
}

/// The types of all fields.
fn fields(data: &Data) -> impl Iterator<Item = &Type> {
    let (fields, variants) = match data {
        Data::Struct(data) => (Some(&data.fields), None),
        Data::Enum(data) => (None, Some(&data.variants)),
        Data::Union(_) => (None, None),
    };
    let variants = variants.into_iter().flatten().flat_map(|variant| &variant.fields);
    fields.into_iter().flatten().chain(variants).map(|field| &field.ty)
}
