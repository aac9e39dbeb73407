//! What the source of a module says: the names that it brings, defines and
//! mentions.

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Attribute, ImplItem, Item, UseTree, Visibility};

/// A name that a `use` brings; all names of a module where it has none.
pub(super) struct Import {
    pub(super) name: Option<String>,
    pub(super) path: Vec<String>,
    pub(super) passes_on: bool,
}

/// A name that is used.
pub(super) enum Mention {
    Path(Vec<String>),
    Macro(String),
    Method(String),
}

/// Collects the paths, macros and methods of tokens. In an attribute a path may be
/// in quotes, as serde takes them.
pub(super) fn scan(tokens: TokenStream, in_attribute: bool, found: &mut Vec<Mention>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let is = |at: usize, sign: char| match tokens.get(at) {
        Some(TokenTree::Punct(it)) => it.as_char() == sign,
        _ => false,
    };
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        match token {
            TokenTree::Group(group) => {
                let attribute = in_attribute || at > 0 && is(at - 1, '#');
                scan(group.stream(), attribute, found);
            }
            TokenTree::Literal(it) if in_attribute => {
                if let Ok(text) = syn::parse2::<syn::LitStr>(it.to_token_stream())
                    && let Ok(path) = text.parse::<syn::Path>()
                {
                    found.push(Mention::Path(segments(&path)));
                }
            }
            TokenTree::Ident(ident) => {
                let is_range = at > 1 && is(at - 1, '.') && is(at - 2, '.');
                if at > 0 && is(at - 1, '.') && !is_range {
                    found.push(Mention::Method(ident.to_string()));
                } else if at == 0 || !is(at - 1, ':') || at == 1 || !is(at - 2, ':') {
                    let mut path = vec![ident.to_string()];
                    while let (true, true, Some(TokenTree::Ident(next))) =
                        (is(at + 1, ':'), is(at + 2, ':'), tokens.get(at + 3))
                    {
                        path.push(next.to_string());
                        at += 3;
                    }
                    let calls_macro = path.len() == 1 && is(at + 1, '!') && !is(at + 2, '=');
                    found.push(match calls_macro {
                        true => Mention::Macro(path.remove(0)),
                        false => Mention::Path(path),
                    });
                }
            }
            _ => {}
        }
        at += 1;
    }
}

fn segments(path: &syn::Path) -> Vec<String> {
    path.segments
        .iter()
        .map(|it| it.ident.to_string())
        .collect()
}

/// Collects the names that a tree of `use` brings, behind the path `before`.
pub(super) fn flatten(
    tree: &UseTree,
    before: &mut Vec<String>,
    passes_on: bool,
    found: &mut Vec<Import>,
) {
    let (own, name) = match tree {
        UseTree::Path(it) => {
            before.push(it.ident.to_string());
            flatten(&it.tree, before, passes_on, found);
            before.pop();
            return;
        }
        UseTree::Group(it) => {
            let each = it.items.iter();
            return each.for_each(|tree| flatten(tree, before, passes_on, found));
        }
        UseTree::Name(it) => (Some(&it.ident), Some(it.ident.to_string())),
        UseTree::Rename(it) => (Some(&it.ident), Some(it.rename.to_string())),
        UseTree::Glob(_) => (None, None),
    };
    let mut path = before.clone();
    let mut name = name;
    match own.map(ToString::to_string) {
        // `use a::{self}` brings `a`.
        Some(own) if own == "self" => {
            name = name.filter(|it| it != "self").or(path.last().cloned())
        }
        own => path.extend(own),
    }
    found.push(Import {
        name,
        path,
        passes_on,
    });
}

/// The path of the type of an `impl` block, and the names of its methods.
pub(super) fn methods(block: &syn::ItemImpl) -> (Vec<String>, Vec<String>) {
    let of = match &*block.self_ty {
        syn::Type::Path(it) => segments(&it.path),
        _ => Vec::new(),
    };
    let names = block.items.iter().filter_map(|it| match it {
        ImplItem::Fn(it) => Some(it.sig.ident.to_string()),
        _ => None,
    });
    (of, names.collect())
}

/// The name that an item defines.
pub(super) fn name(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(it) => &it.ident,
        Item::Enum(it) => &it.ident,
        Item::Fn(it) => &it.sig.ident,
        Item::Macro(it) => it.ident.as_ref()?,
        Item::Static(it) => &it.ident,
        Item::Struct(it) => &it.ident,
        Item::Trait(it) => &it.ident,
        Item::Type(it) => &it.ident,
        Item::Union(it) => &it.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

/// The name of a type or trait, and whether more than its own module may use it.
pub(super) fn defined_type(item: &Item) -> Option<(String, bool)> {
    let (name, visibility) = match item {
        Item::Enum(it) => (&it.ident, &it.vis),
        Item::Struct(it) => (&it.ident, &it.vis),
        Item::Trait(it) => (&it.ident, &it.vis),
        Item::Type(it) => (&it.ident, &it.vis),
        Item::Union(it) => (&it.ident, &it.vis),
        _ => return None,
    };
    let is_visible = !matches!(visibility, Visibility::Inherited);
    Some((name.to_string(), is_visible))
}

/// The attributes of an item.
pub(super) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(it) => &it.attrs,
        Item::Enum(it) => &it.attrs,
        Item::Fn(it) => &it.attrs,
        Item::Impl(it) => &it.attrs,
        Item::Macro(it) => &it.attrs,
        Item::Mod(it) => &it.attrs,
        Item::Static(it) => &it.attrs,
        Item::Struct(it) => &it.attrs,
        Item::Trait(it) => &it.attrs,
        Item::Type(it) => &it.attrs,
        Item::Use(it) => &it.attrs,
        _ => &[],
    }
}

/// The attributes of an item of an `impl` block.
pub(super) fn attributes_inside(item: &ImplItem) -> &[Attribute] {
    match item {
        ImplItem::Const(it) => &it.attrs,
        ImplItem::Fn(it) => &it.attrs,
        _ => &[],
    }
}

/// Whether it is there in tests alone.
pub(super) fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|it| {
        it.path().is_ident("test")
            || it.path().is_ident("cfg")
                && it
                    .parse_args::<syn::Path>()
                    .is_ok_and(|cfg| cfg.is_ident("test"))
    })
}

/// The file of `#[path = "file"]`.
pub(super) fn file_attribute(attribute: &Attribute) -> Option<String> {
    let pair = attribute.meta.require_name_value().ok()?;
    match &pair.value {
        syn::Expr::Lit(it) if pair.path.is_ident("path") => match &it.lit {
            syn::Lit::Str(file) => Some(file.value()),
            _ => None,
        },
        _ => None,
    }
}
