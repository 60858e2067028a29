//! `#[derive(Carry)]`.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Ident, Lifetime, Member, Type};

pub(crate) fn derive(input: &DeriveInput) -> syn::Result<TokenStream> {
    let Data::Struct(data) = &input.data else {
        let message = "a struct can be carried; which variant a value has is known to the host alone";
        return Err(Error::new_spanned(&input.ident, message));
    };
    let mut lifetimes = input.generics.lifetimes();
    let own = lifetimes.next().map(|param| param.lifetime.clone());
    if let Some(second) = lifetimes.next() {
        let message = "a carried struct has one lifetime, that of the kernel";
        return Err(Error::new_spanned(&second.lifetime, message));
    }
    // A struct whose registers are all of its type parameters has no lifetime to take.
    let kernel = own.clone().unwrap_or_else(|| Lifetime::new("'kernel", Span::mixed_site()));
    let parameters: Vec<_> = input.generics.type_params().map(|param| &param.ident).collect();
    let types: Vec<_> = data.fields.iter().map(|field| &field.ty).collect();
    let members: Vec<Member> = data.fields.members().collect();

    let mut generics = input.generics.clone();
    if own.is_none() {
        generics.params.insert(0, syn::parse_quote!(#kernel));
    }
    let bounds = &mut generics.make_where_clause().predicates;
    for ty in types.iter().filter(|ty| mentions(ty.to_token_stream(), &parameters)) {
        bounds.push(syn::parse_quote_spanned!(ty.span()=> #ty: ::warpwright_dsl::Carry<#kernel>));
    }
    let (generics, _, bounds) = generics.split_for_impl();
    let (_, arguments, _) = input.generics.split_for_impl();
    let name = &input.ident;

    // On the line of the field, so that a field that cannot be carried is what the compiler shows.
    let field = |call: fn(&Type, &Member, &Lifetime) -> TokenStream| -> Vec<TokenStream> {
        types.iter().zip(&members).map(|(ty, member)| call(ty, member, &kernel)).collect()
    };
    let each = field(
        |ty, member, k| quote_spanned!(ty.span()=> <#ty as ::warpwright_dsl::Carry<#k>>::each(&self.#member, see);),
    );
    let rebuild = field(
        |ty, member, k| quote_spanned!(ty.span()=> #member: <#ty as ::warpwright_dsl::Carry<#k>>::rebuild(&self.#member, k, next),),
    );
    let poison = field(
        |ty, member, k| quote_spanned!(ty.span()=> #member: <#ty as ::warpwright_dsl::Carry<#k>>::poison(k),),
    );
    let shape = field(
        |ty, member, k| quote_spanned!(ty.span()=> <#ty as ::warpwright_dsl::Carry<#k>>::shape(&self.#member, see);),
    );
    Ok(quote! {
        #[automatically_derived]
        impl #generics ::warpwright_dsl::Carry<#kernel> for #name #arguments #bounds {
            fn each(&self, see: &mut dyn ::core::ops::FnMut(::warpwright_dsl::derive::Reg)) {
                let _ = &see;
                #(#each)*
            }

            fn rebuild(
                &self,
                k: ::warpwright_dsl::K<#kernel>,
                next: &mut dyn ::core::ops::FnMut() -> ::warpwright_dsl::derive::Reg,
            ) -> Self {
                let _ = (&k, &next);
                Self { #(#rebuild)* }
            }

            fn poison(k: ::warpwright_dsl::K<#kernel>) -> Self {
                let _ = &k;
                Self { #(#poison)* }
            }

            fn shape(&self, see: &mut dyn ::core::ops::FnMut(u32, u32)) {
                let _ = &see;
                #(#shape)*
            }
        }
    })
}

/// Whether a type depends on a parameter: only then does it need a bound.
fn mentions(tokens: TokenStream, parameters: &[&Ident]) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => parameters.contains(&&ident),
        TokenTree::Group(group) => mentions(group.stream(), parameters),
        _ => false,
    })
}
