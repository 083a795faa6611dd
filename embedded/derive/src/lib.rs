//! `#[derive(FromRow)]`, `#[derive(Params)]`, `#[derive(Columns)]` and `#[derive(Key)]` of the clearway library.
//!
//! All work on structures with named fields. A field stands for the column, or the parameter, of the same name;
//! `#[clearway(rename = "other")]` names another one.
#![forbid(unsafe_code)]

use proc_macro::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Field, Fields, LitStr, parse_macro_input};

/// A structure from a row, field by field by the columns' names.
#[proc_macro_derive(FromRow, attributes(clearway))]
pub fn from_row(input: TokenStream) -> TokenStream {
    expand(parse_macro_input!(input as DeriveInput), |input, fields| {
        let name = &input.ident;
        let (generics, arguments, bounds) = input.generics.split_for_impl();
        let lines = fields.iter().map(|(field, column)| {
            let ident = &field.ident;
            quote! { #ident: row.get(#column)? }
        });
        quote! {
            impl #generics ::clearway::FromRow for #name #arguments #bounds {
                fn from_row(row: ::clearway::Row<'_>) -> ::clearway::Result<Self> {
                    Ok(Self { #(#lines),* })
                }
            }
        }
    })
}

/// Named parameters from a structure, `:field` for each field.
#[proc_macro_derive(Params, attributes(clearway))]
pub fn params(input: TokenStream) -> TokenStream {
    expand(parse_macro_input!(input as DeriveInput), |input, fields| {
        let name = &input.ident;
        let (generics, arguments, bounds) = input.generics.split_for_impl();
        let count = fields.len();
        let values = fields.iter().enumerate().map(|(at, (field, _))| {
            let ident = &field.ident;
            quote! { #at => &self.#ident, }
        });
        let names = fields.iter().enumerate().map(|(at, (_, column))| quote! { #at => Some(#column), });
        quote! {
            impl #generics ::clearway::Params for #name #arguments #bounds {
                fn count(&self) -> usize {
                    #count
                }
                fn value(&self, at: usize) -> &dyn ::clearway::ToSql {
                    match at {
                        #(#values)*
                        _ => &None::<bool>,
                    }
                }
                fn name(&self, at: usize) -> Option<&str> {
                    match at {
                        #(#names)*
                        _ => None,
                    }
                }
            }
        }
    })
}

/// A structure as columns of a typed table's value: each field's type is a `clearway::typed::Cell`.
#[proc_macro_derive(Columns, attributes(clearway))]
pub fn columns(input: TokenStream) -> TokenStream {
    expand(parse_macro_input!(input as DeriveInput), typed_columns)
}

/// A structure as key of a typed table: each field's type is a `clearway::typed::KeyCell`.
#[proc_macro_derive(Key, attributes(clearway))]
pub fn key(input: TokenStream) -> TokenStream {
    expand(parse_macro_input!(input as DeriveInput), |input, fields| {
        let columns = typed_columns(input, fields);
        let name = &input.ident;
        let (generics, arguments, bounds) = input.generics.split_for_impl();
        let types = fields.iter().map(|(field, _)| &field.ty);
        quote! {
            #columns
            impl #generics ::clearway::typed::Key for #name #arguments #bounds {}
            const _: () = {
                fn key_cell<T: ::clearway::typed::KeyCell>() {}
                #[allow(dead_code)]
                fn key_cells #generics () #bounds {
                    #(key_cell::<#types>();)*
                }
            };
        }
    })
}

fn typed_columns(input: &DeriveInput, fields: &Named) -> proc_macro2::TokenStream {
    let name = &input.ident;
    let (generics, arguments, bounds) = input.generics.split_for_impl();
    let idents: Vec<_> = fields.iter().map(|(field, _)| &field.ident).collect();
    let types: Vec<_> = fields.iter().map(|(field, _)| &field.ty).collect();
    let names = fields.iter().map(|(_, column)| column);
    let cell = quote! { ::clearway::typed::Cell };
    quote! {
        impl #generics ::clearway::typed::Named for #name #arguments #bounds {
            const COLUMNS: &'static [&'static str] = &[#(#names),*];
        }
        impl #generics ::clearway::typed::Columns for #name #arguments #bounds {
            type Ref<'clearway> = (#(<#types as #cell>::Ref<'clearway>,)*);
            fn kinds() -> ::std::vec::Vec<::clearway::typed::ColumnKind> {
                ::std::vec![#(::clearway::typed::ColumnKind {
                    storage: <#types as #cell>::STORAGE,
                    type_oid: <#types as #cell>::TYPE_OID,
                    nullable: <#types as #cell>::NULLABLE,
                }),*]
            }
            fn write(&self, row: &mut ::std::vec::Vec<::clearway::typed::Value>) {
                #(row.push(#cell::to_value(&self.#idents));)*
            }
            fn read(values: &[::clearway::typed::Value]) -> ::std::option::Option<Self> {
                match values {
                    [#(#idents),*] => ::std::option::Option::Some(Self { #(#idents: #cell::from_value(#idents)?),* }),
                    _ => ::std::option::Option::None,
                }
            }
            fn read_copied(values: &[::clearway::typed::ValueRef<'_>]) -> ::std::option::Option<Self> {
                match values {
                    [#(#idents),*] => ::std::option::Option::Some(Self { #(#idents: #cell::copied(*#idents)?),* }),
                    _ => ::std::option::Option::None,
                }
            }
            fn read_ref<'clearway>(
                values: &[::clearway::typed::ValueRef<'clearway>],
            ) -> ::std::option::Option<Self::Ref<'clearway>> {
                match values {
                    [#(#idents),*] => ::std::option::Option::Some((#(<#types as #cell>::from_ref(*#idents)?,)*)),
                    _ => ::std::option::Option::None,
                }
            }
        }
    }
}

type Named = Vec<(Field, String)>;

fn expand(input: DeriveInput, make: impl FnOnce(&DeriveInput, &Named) -> proc_macro2::TokenStream) -> TokenStream {
    match named_fields(&input) {
        Ok(fields) => make(&input, &fields).into(),
        Err(error) => error.into_compile_error().into(),
    }
}

fn named_fields(input: &DeriveInput) -> syn::Result<Named> {
    let Data::Struct(data) = &input.data else {
        return Err(syn::Error::new_spanned(&input.ident, "only structures can be derived"));
    };
    let Fields::Named(fields) = &data.fields else {
        return Err(syn::Error::new_spanned(&input.ident, "the fields need names; a tuple does without the derive"));
    };
    fields.named.iter().map(|field| Ok((field.clone(), column(field)?))).collect()
}

/// The column's name: the field's, or what `rename` says.
fn column(field: &Field) -> syn::Result<String> {
    let mut name = field.ident.as_ref().map(ToString::to_string).unwrap_or_default();
    for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("clearway")) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("rename") {
                return Err(meta.error("only `rename = \"...\"` is known"));
            }
            name = meta.value()?.parse::<LitStr>()?.value();
            Ok(())
        })?;
    }
    Ok(name.trim_start_matches("r#").to_owned())
}
