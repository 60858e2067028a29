//! `#[derive(Choice)]`.

use crate::attribute::{dsl, snake_case};
use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Fields, LitStr};

pub(crate) fn derive(input: &DeriveInput) -> syn::Result<TokenStream> {
    let (dsl, name) = (dsl(), &input.ident);
    let Data::Enum(data) = &input.data else {
        return Err(syn::Error::new_spanned(name, "a choice is an enum"));
    };
    let (mut idents, mut names) = (Vec::new(), Vec::new());
    for variant in &data.variants {
        if !matches!(variant.fields, Fields::Unit) {
            return Err(syn::Error::new_spanned(&variant.fields, "what can be chosen has no data"));
        }
        let given = variant.attrs.iter().find(|attribute| attribute.path().is_ident("name"));
        let text = match given {
            Some(attribute) => attribute.parse_args::<LitStr>()?.value(),
            None => snake_case(&variant.ident.to_string()),
        };
        if names.contains(&text) {
            return Err(syn::Error::new_spanned(variant, format!("`{text}` is the name of two")));
        }
        idents.push(&variant.ident);
        names.push(text);
    }
    let count = idents.len();
    Ok(quote! {
        impl #name {
            /// All of them.
            pub const ALL: [#name; #count] = [#( #name::#idents ),*];

            /// Its name.
            pub fn name(self) -> &'static str {
                <Self as #dsl::Choice>::NAMES[self as usize]
            }

            /// The one of that name.
            pub fn from_name(name: &str) -> ::core::option::Option<Self> {
                <Self as #dsl::FieldValue>::parse(name)
            }
        }

        impl #dsl::Choice for #name {
            const NAMES: &'static [&'static str] = &[#( #names ),*];
        }

        impl #dsl::KeyPart for #name {
            fn feed(&self, key: &mut ::std::vec::Vec<u8>) {
                #dsl::KeyPart::feed(&(*self as u32), key);
            }
        }

        impl #dsl::FieldValue for #name {
            const DOMAIN: #dsl::Domain = #dsl::Domain::OneOf(<Self as #dsl::Choice>::NAMES);

            fn parse(text: &str) -> ::core::option::Option<Self> {
                Self::ALL.into_iter().find(|choice| choice.name() == text)
            }

            fn text(&self) -> ::std::string::String {
                self.name().into()
            }
        }

        impl ::core::fmt::Display for #name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.write_str(self.name())
            }
        }
    })
}
