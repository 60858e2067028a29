//! `#[derive(Args)]`.

use crate::attribute::{Options, dsl, fields_of, inside};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{DeriveInput, Expr, GenericParam, Ident, LitStr, Type, TypeParamBound};

/// The kind of a field, by the name of its type: `M::In<f32>`.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    In,
    Out,
    InOut,
    Scalar,
    AnyIn,
    AnyOut,
    AnyInOut,
    Dim,
}

/// The multiplicity of a field.
enum Times<'a> {
    Once,
    /// `Option`.
    Where(Option<&'a Expr>),
    /// `Vec`: that many arguments, with these names; for options, the condition under which each is present.
    Each(&'a Expr, Vec<LitStr>, Option<&'a Expr>),
}

struct Field<'a> {
    ident: &'a Ident,
    name: String,
    kind: Kind,
    /// The element type in the field's type.
    element: Option<Type>,
    times: Times<'a>,
    len: Option<&'a Expr>,
    dtype: Option<&'a Expr>,
    shares: Option<TokenStream>,
    constant: bool,
}

pub(crate) fn derive(input: &DeriveInput) -> syn::Result<TokenStream> {
    let (dsl, ident) = (dsl(), &input.ident);
    let options = Options::of(&input.attrs, "args", &["of"])?;
    let Some(of) = options.expression("of")? else {
        let message = "say whose arguments these are: `#[args(of = Configuration)]`";
        return Err(syn::Error::new_spanned(ident, message));
    };
    let of = config_type(of)?;
    let mode = mode(input)?;
    let parsed = fields_of(input)?;
    let options = parsed
        .iter()
        .map(|field| {
            let keys = ["name", "len", "dtype", "when", "count", "names", "shares", "constant"];
            Options::of(&field.attrs, "arg", &keys)
        })
        .collect::<syn::Result<Vec<_>>>()?;
    let fields = parsed
        .iter()
        .zip(&options)
        .map(|(field, options)| Field::of(field, &mode, options))
        .collect::<syn::Result<Vec<_>>>()?;

    // Numbers that lengths depend on are in scope by their names.
    let numbers = fields.iter().filter(|field| matches!(field.kind, Kind::Scalar | Kind::Dim));
    let numbers = numbers.map(|field| {
        let (ident, name) = (field.ident, &field.name);
        quote!(#[allow(unused_variables)] let #ident = #dsl::Extent::dim(#name);)
    });
    let described = fields.iter().filter(|field| field.kind != Kind::Dim).map(Field::describe);
    let asked = fields.iter().map(Field::ask).collect::<syn::Result<Vec<_>>>()?;
    let given = fields.iter().map(Field::give);
    let (generics, parameters, bounds) = input.generics.split_for_impl();
    Ok(quote! {
        impl #generics #dsl::Arguments<#mode> for #ident #parameters #bounds {
            type Of = #of;

            #[allow(unused_variables)]
            fn describe(of: &Self::Of) -> ::std::vec::Vec<#dsl::ArgDesc> {
                #(#numbers)*
                let mut args: ::std::vec::Vec<#dsl::ArgDesc> = ::std::vec::Vec::new();
                #(#described)*
                args
            }

            #[allow(unused_variables)]
            fn ask(of: &Self::Of, source: &mut impl #dsl::Source<#mode>) -> Self {
                Self { #(#asked),* }
            }

            #[allow(unused_variables)]
            fn give(self, sink: &mut impl #dsl::Sink<#mode>) {
                #(#given)*
            }
        }
    })
}

/// The type named by an expression such as `VectorAdd::<T>` or `RmsNorm`.
fn config_type(of: &Expr) -> syn::Result<Type> {
    syn::parse2(quote!(#of)).map_err(|_| syn::Error::new_spanned(of, "this is the type of a configuration"))
}

/// The type parameter that is bound by `Mode`.
fn mode(input: &DeriveInput) -> syn::Result<Ident> {
    let is_mode = |bound: &TypeParamBound| match bound {
        TypeParamBound::Trait(bound) => bound.path.segments.last().is_some_and(|last| last.ident == "Mode"),
        _ => false,
    };
    let found = input.generics.params.iter().find_map(|parameter| match parameter {
        GenericParam::Type(parameter) if parameter.bounds.iter().any(is_mode) => Some(&parameter.ident),
        _ => None,
    });
    found.cloned().ok_or_else(|| {
        let message =
            "the struct has a type parameter with the bound `Mode`, which its fields are of: `M::In<f32>`";
        syn::Error::new_spanned(&input.ident, message)
    })
}

impl<'a> Field<'a> {
    fn of(field: &'a syn::Field, mode: &Ident, options: &'a Options) -> syn::Result<Self> {
        let Some(ident) = &field.ident else {
            return Err(syn::Error::new_spanned(field, "an argument has a name"));
        };
        let (count, when) = (options.expression("count")?, options.expression("when")?);
        let (times, ty) = if let Some(inner) = inside(&field.ty, "Option") {
            (Times::Where(when), inner)
        } else if let Some(inner) = inside(&field.ty, "Vec") {
            let names = options.list("names")?;
            let Some(count) = count else {
                return Err(syn::Error::new_spanned(&field.ty, "say how many: `count = ...`"));
            };
            if names.is_empty() {
                let message = "name as many as there may be: `names(\"w0\", \"w1\")`";
                return Err(syn::Error::new_spanned(&field.ty, message));
            }
            match inside(inner, "Option") {
                Some(one) if when.is_some() => (Times::Each(count, names, when), one),
                _ => (Times::Each(count, names, None), inner),
            }
        } else {
            (Times::Once, &field.ty)
        };
        let (kind, element) = kind(ty, mode)?;
        let field = Field {
            ident,
            name: options.text("name")?.unwrap_or_else(|| ident.to_string()),
            kind,
            element,
            times,
            len: options.expression("len")?,
            dtype: options.expression("dtype")?,
            shares: shares(options)?,
            constant: options.flag("constant")?,
        };
        field.check(ty)?;
        Ok(field)
    }

    /// Checks that the attribute fits the field's type.
    fn check(&self, ty: &Type) -> syn::Result<()> {
        let refuse = |message: &str| Err(syn::Error::new_spanned(ty, message));
        let buffer = !matches!(self.kind, Kind::Scalar | Kind::Dim);
        let any = matches!(self.kind, Kind::AnyIn | Kind::AnyOut | Kind::AnyInOut);
        match &self.times {
            _ if buffer && self.len.is_none() => refuse("say how many elements it has: `#[arg(len = ...)]`"),
            _ if !buffer && self.len.is_some() => refuse("a number has no length"),
            _ if any && self.dtype.is_none() => refuse("say of which type its elements are: `dtype = ...`"),
            _ if !any && self.dtype.is_some() => refuse("its type says of which type its elements are"),
            Times::Where(when) if any == when.is_some() => refuse(match any {
                true => "`dtype = ...` is an `Option` here, and says whether it is there",
                false => "say in which configurations it is there: `when = ...`",
            }),
            Times::Each(..) if self.kind == Kind::Dim => refuse("numbers that lengths depend on have names"),
            _ if self.constant && !matches!(self.kind, Kind::In | Kind::AnyIn) => {
                refuse("only what is read alone is constant")
            }
            _ => Ok(()),
        }
    }

    /// The expression for its description, with the name in `name` and, in a list, the index in `i`.
    fn description(&self, dtype: TokenStream) -> TokenStream {
        let dsl = dsl();
        let len = self.len;
        let role = match self.kind {
            Kind::In | Kind::AnyIn => quote!(In),
            Kind::Out | Kind::AnyOut => quote!(Out),
            Kind::InOut | Kind::AnyInOut => quote!(InOut),
            Kind::Scalar | Kind::Dim => {
                let element = &self.element;
                return quote!(#dsl::ArgDesc::scalar::<#element>(name));
            }
        };
        let shares = self.shares.as_ref().map(|shares| quote!(.may_share(#shares)));
        let constant = self.constant.then(|| quote!(.constant()));
        quote!(#dsl::ArgDesc::buffer(name, #dtype, #dsl::Role::#role, #len) #shares #constant)
    }

    /// The element type as a value.
    fn dtype(&self) -> TokenStream {
        let (dsl, element, dtype) = (dsl(), &self.element, self.dtype);
        match dtype {
            Some(dtype) => quote!(#dtype),
            None => quote!(<#element as #dsl::Element>::TYPE),
        }
    }

    /// Appends its description to `args`.
    fn describe(&self) -> TokenStream {
        let name = &self.name;
        match &self.times {
            Times::Once => {
                let description = self.description(self.dtype());
                quote!({ let name = #name; args.push(#description); })
            }
            Times::Where(Some(when)) => {
                let description = self.description(self.dtype());
                quote!(if #when { let name = #name; args.push(#description); })
            }
            Times::Where(None) => {
                let (dtype, description) = (self.dtype, self.description(quote!(dtype)));
                quote! {
                    if let ::core::option::Option::Some(dtype) = #dtype {
                        let name = #name;
                        args.push(#description);
                    }
                }
            }
            Times::Each(count, names, when) => {
                let description = self.description(self.dtype());
                let when = when.map(|when| quote!(if #when));
                quote! {
                    for (i, name) in [#(#names),*].into_iter().enumerate().take(#count) {
                        #when { args.push(#description); }
                    }
                }
            }
        }
    }

    /// Its method of `Source` and `Sink`.
    fn method(&self) -> Ident {
        let name = match self.kind {
            Kind::In => "input",
            Kind::Out => "output",
            Kind::InOut => "in_out",
            Kind::Scalar => "scalar",
            Kind::AnyIn => "any_input",
            Kind::AnyOut => "any_output",
            Kind::AnyInOut => "any_in_out",
            Kind::Dim => "dim",
        };
        format_ident!("{name}")
    }

    /// The expression that requests an argument, whose name is in `name`.
    fn ask_one(&self, dtype: TokenStream) -> TokenStream {
        let (method, element) = (self.method(), &self.element);
        match self.kind {
            Kind::AnyIn | Kind::AnyOut | Kind::AnyInOut => quote!(source.#method(name, #dtype)),
            Kind::Dim => quote!(source.#method(name)),
            _ => quote!(source.#method::<#element>(name)),
        }
    }

    /// The field with its value.
    fn ask(&self) -> syn::Result<TokenStream> {
        let (ident, name) = (self.ident, &self.name);
        let value = match &self.times {
            Times::Once => {
                let one = self.ask_one(self.dtype());
                quote!({ let name = #name; #one })
            }
            Times::Where(Some(when)) => {
                let one = self.ask_one(self.dtype());
                quote!((#when).then(|| { let name = #name; #one }))
            }
            Times::Where(None) => {
                let (dtype, one) = (self.dtype, self.ask_one(quote!(dtype)));
                quote!((#dtype).map(|dtype| { let name = #name; #one }))
            }
            Times::Each(count, names, when) => {
                let one = self.ask_one(self.dtype());
                let one = when.map_or(one.clone(), |when| quote!((#when).then(|| #one)));
                quote! {
                    [#(#names),*].into_iter().enumerate().take(#count).map(|(i, name)| #one).collect()
                }
            }
        };
        Ok(quote!(#ident: #value))
    }

    /// The statement that passes its value to `sink`.
    fn give(&self) -> TokenStream {
        let (ident, name, method) = (self.ident, &self.name, self.method());
        let element = match self.kind {
            Kind::In | Kind::Out | Kind::InOut | Kind::Scalar => {
                let element = &self.element;
                quote!(::<#element>)
            }
            _ => quote!(),
        };
        match &self.times {
            Times::Once => quote!(sink.#method #element(#name, self.#ident);),
            Times::Where(_) => quote! {
                if let ::core::option::Option::Some(value) = self.#ident {
                    sink.#method #element(#name, value);
                }
            },
            Times::Each(_, names, when) => {
                let values = match when {
                    Some(_) => quote!(value.into_iter()),
                    None => quote!(::core::iter::once(value)),
                };
                quote! {
                    for (name, value) in [#(#names),*].into_iter().zip(self.#ident) {
                        #values.for_each(|value| sink.#method #element(name, value));
                    }
                }
            }
        }
    }
}

/// The inputs whose buffer it may share, as a slice of names: `shares(x)`, or `shares = ...`.
fn shares(options: &Options) -> syn::Result<Option<TokenStream>> {
    if let Some(names) = options.assigned("shares") {
        return Ok(Some(quote!(#names)));
    }
    let names: Vec<_> = options.list::<Ident>("shares")?.iter().map(ToString::to_string).collect();
    Ok((!names.is_empty()).then(|| quote!(&[#(#names),*])))
}

/// The parts of a type such as `M::In<f32>`.
fn kind(ty: &Type, mode: &Ident) -> syn::Result<(Kind, Option<Type>)> {
    let wrong = || {
        let message = format!(
            "an argument is `{mode}::In<T>`, `Out<T>`, `InOut<T>`, `Scalar<T>`, `AnyIn`, `AnyOut`, `AnyInOut` or `Dim`, \
             or an `Option` or a `Vec` of one"
        );
        syn::Error::new_spanned(ty, message)
    };
    let Type::Path(path) = ty else { return Err(wrong()) };
    let segments: Vec<_> = path.path.segments.iter().collect();
    let [first, last] = segments[..] else { return Err(wrong()) };
    if first.ident != *mode {
        return Err(wrong());
    }
    let element = match &last.arguments {
        syn::PathArguments::AngleBracketed(arguments) => match arguments.args.first() {
            Some(syn::GenericArgument::Type(element)) => Some(element.clone()),
            _ => None,
        },
        _ => None,
    };
    let kind = match (last.ident.to_string().as_str(), element.is_some()) {
        ("In", true) => Kind::In,
        ("Out", true) => Kind::Out,
        ("InOut", true) => Kind::InOut,
        ("Scalar", true) => Kind::Scalar,
        ("AnyIn", false) => Kind::AnyIn,
        ("AnyOut", false) => Kind::AnyOut,
        ("AnyInOut", false) => Kind::AnyInOut,
        ("Dim", false) => Kind::Dim,
        _ => return Err(wrong()),
    };
    Ok((kind, element))
}
