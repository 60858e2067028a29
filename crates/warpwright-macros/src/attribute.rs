//! Helpers of the derives: doc comments, names, attributes.

use proc_macro2::TokenStream;
use quote::quote;
use std::cell::Cell;
use syn::{Attribute, Data, DeriveInput, Expr, ExprLit, Fields, Lit, Meta, Token, punctuated::Punctuated};

/// The text of a doc comment, line by line.
fn doc_lines(attributes: &[Attribute]) -> Vec<String> {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value().trim().to_owned()),
            _ => None,
        },
        _ => None,
    });
    lines.collect()
}

/// The first sentence of a doc comment, for a list: without backquotes and the period.
pub(crate) fn summary(attributes: &[Attribute]) -> String {
    let lines = doc_lines(attributes);
    let paragraph: Vec<_> = lines.iter().take_while(|line| !line.is_empty()).map(String::as_str).collect();
    let text = paragraph.join(" ");
    let end = text.find(". ").unwrap_or(text.len());
    text[..end].trim_end_matches('.').replace('`', "")
}

/// `RmsNorm` as `rms_norm`.
pub(crate) fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for (i, c) in name.chars().enumerate() {
        if c.is_ascii_uppercase() && i > 0 {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    snake
}

/// The contents of the parentheses of the attribute `name`: `key = expression` and bare keys, in order.
pub(crate) struct Options {
    metas: Vec<Meta>,
    attribute: &'static str,
}

impl Options {
    /// All attributes of that name together. A key that is not in `known` is refused.
    pub(crate) fn of(
        attributes: &[Attribute],
        attribute: &'static str,
        known: &[&str],
    ) -> syn::Result<Options> {
        let mut metas = Vec::new();
        for found in attributes.iter().filter(|found| found.path().is_ident(attribute)) {
            metas.extend(found.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)?);
        }
        for meta in &metas {
            if !known.iter().any(|key| meta.path().is_ident(key)) {
                let message = format!("`{attribute}` takes {}", known.join(", "));
                return Err(syn::Error::new_spanned(meta.path(), message));
            }
        }
        Ok(Options { metas, attribute })
    }

    fn find(&self, key: &str) -> Option<&Meta> {
        self.metas.iter().find(|meta| meta.path().is_ident(key))
    }

    /// Whether the bare key is present.
    pub(crate) fn flag(&self, key: &str) -> syn::Result<bool> {
        match self.find(key) {
            None => Ok(false),
            Some(Meta::Path(_)) => Ok(true),
            Some(other) => {
                Err(syn::Error::new_spanned(other, format!("`{key}` of `{}` takes no value", self.attribute)))
            }
        }
    }

    /// The expression after `key =`.
    pub(crate) fn expression(&self, key: &str) -> syn::Result<Option<&Expr>> {
        match self.find(key) {
            None => Ok(None),
            Some(Meta::NameValue(pair)) => Ok(Some(&pair.value)),
            Some(other) => Err(syn::Error::new_spanned(other, format!("it is written `{key} = ...`"))),
        }
    }

    /// The expression after `key =`, if it is written so, and not as `key(...)`.
    pub(crate) fn assigned(&self, key: &str) -> Option<&Expr> {
        match self.find(key) {
            Some(Meta::NameValue(pair)) => Some(&pair.value),
            _ => None,
        }
    }

    /// The text after `key =`.
    pub(crate) fn text(&self, key: &str) -> syn::Result<Option<String>> {
        self.expression(key)?.map(literal).transpose()
    }

    /// The items in the parentheses after `key`.
    pub(crate) fn list<T: syn::parse::Parse>(&self, key: &str) -> syn::Result<Vec<T>> {
        match self.find(key) {
            None => Ok(Vec::new()),
            Some(Meta::List(list)) => {
                Ok(list.parse_args_with(Punctuated::<T, Token![,]>::parse_terminated)?.into_iter().collect())
            }
            Some(other) => Err(syn::Error::new_spanned(other, format!("it is written `{key}(...)`"))),
        }
    }
}

/// The text of a literal, or of a number that is written as one.
fn literal(value: &Expr) -> syn::Result<String> {
    match value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Ok(text.value()),
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => Ok(number.base10_digits().to_owned()),
        Expr::Lit(ExprLit { lit: Lit::Float(number), .. }) => Ok(number.base10_digits().to_owned()),
        Expr::Lit(ExprLit { lit: Lit::Bool(value), .. }) => Ok(value.value.to_string()),
        other => Err(syn::Error::new_spanned(other, "this is a literal")),
    }
}

/// The fields of a struct.
pub(crate) fn fields_of(input: &DeriveInput) -> syn::Result<Vec<&syn::Field>> {
    match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => Ok(fields.named.iter().collect()),
            Fields::Unit => Ok(Vec::new()),
            Fields::Unnamed(fields) => Err(syn::Error::new_spanned(fields, "the fields must have names")),
        },
        _ => Err(syn::Error::new_spanned(&input.ident, "this is derived for structs")),
    }
}

/// The type inside `Outer<...>`, if the type is one.
pub(crate) fn inside<'a>(ty: &'a syn::Type, outer: &str) -> Option<&'a syn::Type> {
    let syn::Type::Path(path) = ty else { return None };
    let last = path.path.segments.last()?;
    let syn::PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first()? {
        syn::GenericArgument::Type(inner) if last.ident == outer => Some(inner),
        _ => None,
    }
}

thread_local! {
    /// Whether the DSL is used through the umbrella crate.
    static GATHERED: Cell<bool> = const { Cell::new(false) };
}

/// Runs a derive for crates that use the DSL as `warpwright::dsl`.
pub(crate) fn gathered<R>(derive: impl FnOnce() -> R) -> R {
    let before = GATHERED.replace(true);
    let derived = derive();
    GATHERED.set(before);
    derived
}

/// The path of the DSL, as derived code names it.
pub(crate) fn dsl() -> TokenStream {
    if GATHERED.get() { quote!(::warpwright::dsl) } else { quote!(::warpwright_dsl) }
}
