//! `#[derive(Config)]`.

use crate::attribute::{Options, dsl, fields_of, inside, snake_case, summary};
use proc_macro2::TokenStream;
use quote::quote;
use syn::{DeriveInput, Expr, Generics, LitStr, Type, parse_quote};

/// A field that has a text.
struct Field<'a> {
    ident: &'a syn::Ident,
    ty: &'a Type,
    name: String,
    doc: String,
    domain: TokenStream,
    default: Option<String>,
    /// The word for `None`.
    none: Option<String>,
}

pub(crate) fn derive(input: &DeriveInput) -> syn::Result<TokenStream> {
    let (dsl, ident) = (dsl(), &input.ident);
    let options = Options::of(&input.attrs, "config", &["name", "doc", "examples"])?;
    let name = options.text("name")?.unwrap_or_else(|| snake_case(&ident.to_string()));
    let doc = options.text("doc")?.unwrap_or_else(|| summary(&input.attrs));
    let examples = options.list::<LitStr>("examples")?;

    let (mut fields, mut opaque) = (Vec::new(), Vec::new());
    let mut marker = Vec::new();
    for field in fields_of(input)? {
        let keys = ["name", "default", "none", "range", "multiple_of", "most", "domain", "opaque"];
        let options = Options::of(&field.attrs, "field", &keys)?;
        let Some(own) = &field.ident else { continue };
        // The key has the type, and with it what a marker says.
        if inside(&field.ty, "PhantomData").is_some() {
            marker.push(own);
        } else if options.flag("opaque")? {
            opaque.push(own);
        } else {
            fields.push(Field {
                ident: own,
                ty: &field.ty,
                name: options.text("name")?.unwrap_or_else(|| own.to_string()),
                doc: summary(&field.attrs),
                domain: domain(&field.ty, &options)?,
                default: options.text("default")?,
                none: options.text("none")?,
            });
        }
    }

    let described = fields.iter().map(|Field { name, doc, domain, default, .. }| {
        let default = match default {
            Some(default) => quote!(::core::option::Option::Some(#default)),
            None => quote!(::core::option::Option::None),
        };
        quote!(#dsl::Field { name: #name, domain: #domain, default: #default, doc: #doc })
    });
    let texts = fields.iter().map(Field::text);
    let parts = fields.iter().map(|field| field.ident).chain(opaque.iter().copied());
    let bounded = bounded(&input.generics);
    let (generics, parameters, bounds) = bounded.split_for_impl();
    let configure = opaque.is_empty().then(|| {
        let parsed = fields.iter().enumerate().map(|(i, field)| {
            let (ident, parse) = (field.ident, field.parse(quote!(values[#i])));
            quote!(#ident: #parse?)
        });
        let body = match fields_of(input).is_ok_and(|fields| fields.is_empty()) {
            true => quote!(::core::option::Option::Some(#ident)),
            false => {
                quote!(::core::option::Option::Some(#ident { #(#parsed,)* #(#marker: ::core::marker::PhantomData),* }))
            }
        };
        quote! {
            impl #generics #dsl::Configure for #ident #parameters #bounds {
                const EXAMPLES: &'static [&'static str] = &[#(#examples),*];

                fn from_texts(values: &[&str]) -> ::core::option::Option<Self> {
                    let _ = values;
                    #body
                }
            }
        }
    });
    let hashed = !opaque.is_empty();
    Ok(quote! {
        impl #generics #dsl::Config for #ident #parameters #bounds {
            const NAME: &'static str = #name;
            const DOC: &'static str = #doc;
            const FIELDS: &'static [#dsl::Field] = &[#(#described),*];
            const SAYS_ALL: bool = !#hashed;

            fn texts(&self) -> ::std::vec::Vec<::std::string::String> {
                ::std::vec![#(#texts),*]
            }

            fn key(&self) -> #dsl::Key {
                let mut key = #dsl::Key::of::<Self>();
                #( #dsl::KeyPart::feed(&self.#parts, key.parts()); )*
                key
            }
        }

        #configure
    })
}

impl Field<'_> {
    /// The value as text.
    fn text(&self) -> TokenStream {
        let (dsl, ident) = (dsl(), self.ident);
        match &self.none {
            Some(none) => quote! {
                self.#ident.as_ref().map_or_else(|| #none.into(), |value| #dsl::FieldValue::text(value))
            },
            None => quote!(#dsl::FieldValue::text(&self.#ident)),
        }
    }

    /// The text `from` as a value, or `None`.
    fn parse(&self, from: TokenStream) -> TokenStream {
        let (dsl, ty) = (dsl(), self.ty);
        match (&self.none, inside(ty, "Option")) {
            (Some(none), Some(inner)) => quote! {
                match #from {
                    #none => ::core::option::Option::Some(::core::option::Option::None),
                    text => <#inner as #dsl::FieldValue>::parse(text).map(::core::option::Option::Some),
                }
            },
            _ => quote!(<#ty as #dsl::FieldValue>::parse(#from)),
        }
    }
}

/// The values that a field may have: those of its type, or those that its attribute says.
fn domain(ty: &Type, options: &Options) -> syn::Result<TokenStream> {
    let dsl = dsl();
    if let Some(domain) = options.expression("domain")? {
        return Ok(quote!(#domain));
    }
    let optional = inside(ty, "Option");
    let listed = inside(ty, "Vec");
    let inner = optional.or(listed).unwrap_or(ty);
    let of_inner = match options.expression("range")? {
        None => quote!(<#inner as #dsl::FieldValue>::DOMAIN),
        Some(Expr::Range(range)) => {
            let (Some(from), Some(to), syn::RangeLimits::Closed(_)) =
                (&range.start, &range.end, range.limits)
            else {
                return Err(syn::Error::new_spanned(range, "the range has both ends: `from..=to`"));
            };
            let is = |name: &str| matches!(inner, Type::Path(path) if path.path.is_ident(name));
            let of = options.expression("multiple_of")?.map_or(quote!(1), |of| quote!(#of));
            match (is("f32"), is("u64")) {
                (true, _) => quote!(#dsl::Domain::Float { from: #from, to: #to }),
                (_, true) => quote!(#dsl::Domain::Int { from: #from, to: #to, multiple_of: #of }),
                _ => quote!(#dsl::Domain::multiples(#of, #from, #to)),
            }
        }
        Some(other) => return Err(syn::Error::new_spanned(other, "this is a range: `from..=to`")),
    };
    let none = options.text("none")?;
    if let (Some(none), None) = (&none, optional) {
        return Err(syn::Error::new_spanned(
            ty,
            format!("`{none}` is a word for `None`, and this is no `Option`"),
        ));
    }
    Ok(match (optional, listed) {
        (Some(_), _) => {
            let none = none.unwrap_or_else(|| "none".into());
            quote!(#dsl::Domain::Or { word: #none, of: &#of_inner })
        }
        (None, Some(_)) => {
            let most = match options.expression("most")? {
                Some(most) => quote!(#most),
                None => quote!(u32::MAX),
            };
            quote!(#dsl::Domain::List { of: &#of_inner, most: #most })
        }
        (None, None) => of_inner,
    })
}

/// Type parameters live as long as the program, so that the key can tell types.
fn bounded(generics: &Generics) -> Generics {
    let mut generics = generics.clone();
    let names: Vec<_> = generics.type_params().map(|parameter| parameter.ident.clone()).collect();
    let clause = generics.make_where_clause();
    for name in names {
        clause.predicates.push(parse_quote!(#name: 'static));
    }
    generics
}
