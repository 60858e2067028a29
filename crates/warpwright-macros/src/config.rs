//! `#[derive(Config)]`.

use crate::attribute::{Options, dsl, fields_of, inside, snake_case, summary};
use proc_macro2::TokenStream;
use quote::quote;
use syn::{DeriveInput, Expr, Generics, LitStr, Type, parse_quote};

/// A field with a text form.
struct Field<'a> {
    ident: &'a syn::Ident,
    ty: &'a Type,
    name: String,
    doc: String,
    domain: TokenStream,
    default: Option<String>,
    /// The word for `None`.
    none: Option<String>,
    /// For a table, the type of its rows and their maximum number.
    table: Option<(&'a Type, TokenStream)>,
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
        let keys = ["name", "default", "none", "range", "multiple_of", "max", "domain", "opaque", "table"];
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
                table: table(&field.ty, &options)?,
            });
        }
    }

    let described = fields.iter().map(|field| field.described());
    let count = fields.iter().map(|field| match &field.table {
        Some((row, _)) => quote!(<#row as #dsl::Config>::FIELDS.len()),
        None => quote!(1),
    });
    let described = quote!(&#dsl::joined::<{ 0 #(+ #count)* }>(&[#(#described),*]));
    let texts = fields.iter().map(Field::text);
    let parts = fields.iter().map(|field| field.ident).chain(opaque.iter().copied());
    let bounded = bounded(&input.generics);
    let (generics, parameters, bounds) = bounded.split_for_impl();
    let configure = opaque.is_empty().then(|| {
        let parsed = fields.iter().map(|field| {
            let (ident, parse) = (field.ident, field.parse());
            quote!(#ident: #parse?)
        });
        quote! {
            impl #generics #dsl::Configure for #ident #parameters #bounds {
                const EXAMPLES: &'static [&'static str] = &[#(#examples),*];

                fn from_texts(values: &[&str]) -> ::core::result::Result<Self, #dsl::BuildError> {
                    let mut texts = #dsl::Texts::of::<Self>(values);
                    let _ = &mut texts;
                    ::core::result::Result::Ok(#ident {
                        #(#parsed,)*
                        #(#marker: ::core::marker::PhantomData),*
                    })
                }
            }
        }
    });
    let all =
        opaque.is_empty() && fields.iter().all(|field| field.default.is_some() || field.table.is_some());
    let default = all.then(|| {
        let values = fields.iter().map(Field::default_value);
        quote! {
            impl #generics ::core::default::Default for #ident #parameters #bounds {
                /// The defaults of the fields.
                fn default() -> Self {
                    #ident { #(#values,)* #(#marker: ::core::marker::PhantomData),* }
                }
            }
        }
    });
    let hashed = !opaque.is_empty();
    Ok(quote! {
        impl #generics #dsl::Config for #ident #parameters #bounds {
            const NAME: &'static str = #name;
            const DOC: &'static str = #doc;
            const FIELDS: &'static [#dsl::Field] = #described;
            const SAYS_ALL: bool = !#hashed;

            fn texts(&self) -> ::std::vec::Vec<::std::string::String> {
                let mut texts = ::std::vec::Vec::new();
                #(#texts)*
                texts
            }

            fn key(&self) -> #dsl::Key {
                let mut key = #dsl::Key::of::<Self>();
                #( #dsl::KeyPart::feed(&self.#parts, key.parts()); )*
                key
            }
        }

        #configure
        #default
    })
}

impl Field<'_> {
    /// Its description, and for a table the maximum number of rows.
    fn described(&self) -> TokenStream {
        let dsl = dsl();
        let Field { name, doc, domain, default, table, .. } = self;
        if let Some((row, max)) = table {
            return quote!((<#row as #dsl::Config>::FIELDS, ::core::option::Option::Some(#max)));
        }
        let default = match default {
            Some(default) => quote!(::core::option::Option::Some(#default)),
            None => quote!(::core::option::Option::None),
        };
        let field = quote!(#dsl::Field { name: #name, domain: #domain, default: #default, doc: #doc });
        quote!((&[#field], ::core::option::Option::None))
    }

    /// Adds the value to the texts.
    fn text(&self) -> TokenStream {
        let (dsl, ident) = (dsl(), &self.ident);
        match (&self.table, &self.none) {
            (Some(_), _) => quote!(texts.extend(#dsl::columns(&self.#ident));),
            (None, Some(none)) => quote! {
                texts.push(self.#ident.as_ref().map_or_else(|| #none.into(), |value| #dsl::FieldValue::text(value)));
            },
            (None, None) => quote!(texts.push(#dsl::FieldValue::text(&self.#ident));),
        }
    }

    /// The value of the next text.
    fn parse(&self) -> TokenStream {
        if let Some((row, _)) = &self.table {
            return quote!(texts.rows::<#row>());
        }
        let parse = self.parsed(quote!(text));
        quote!(texts.value(|text| #parse))
    }

    /// The value of the text `from`, or `None`.
    fn parsed(&self, from: TokenStream) -> TokenStream {
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

    /// The field at its default; of a table one row.
    fn default_value(&self) -> TokenStream {
        let ident = self.ident;
        if self.table.is_some() {
            return quote!(#ident: ::std::vec![::core::default::Default::default()]);
        }
        let (parsed, default) = (self.parsed(quote!(text)), &self.default);
        let wrong = format!("the default of field `{}` is no value of its type", self.name);
        quote!(#ident: {
            let text = #default;
            #parsed.expect(#wrong)
        })
    }
}

/// The type of a table's rows, and their maximum number.
fn table<'a>(ty: &'a Type, options: &Options) -> syn::Result<Option<(&'a Type, TokenStream)>> {
    match (options.flag("table")?, inside(ty, "Vec")) {
        (false, _) => Ok(None),
        (true, Some(row)) => Ok(Some((row, max(options)?))),
        (true, None) => Err(syn::Error::new_spanned(ty, "a table is a `Vec`")),
    }
}

/// The maximum number of values.
fn max(options: &Options) -> syn::Result<TokenStream> {
    Ok(options.expression("max")?.map_or(quote!(u32::MAX), |max| quote!(#max)))
}

/// The domain of a field: that of its type, or that of its attribute.
fn domain(ty: &Type, options: &Options) -> syn::Result<TokenStream> {
    let dsl = dsl();
    if options.flag("table")? {
        return Ok(TokenStream::new());
    }
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
            let max = max(options)?;
            quote!(#dsl::Domain::List { of: &#of_inner, max: #max })
        }
        (None, None) => of_inner,
    })
}

/// Adds `'static` bounds to type parameters, so that the key can distinguish types.
fn bounded(generics: &Generics) -> Generics {
    let mut generics = generics.clone();
    let names: Vec<_> = generics.type_params().map(|parameter| parameter.ident.clone()).collect();
    let clause = generics.make_where_clause();
    for name in names {
        clause.predicates.push(parse_quote!(#name: 'static));
    }
    generics
}
