//! No crate has a circle of files: what a file uses does not use it in turn,
//! by whatever way round.
//!
//! An edge is a name that one file mentions and another defines. A `pub use` is
//! followed to the file that defines the name, so that going by way of `lib.rs`
//! or `mod.rs` is not an edge to them; neither are `mod` and `pub use` by
//! themselves. A method that a file adds to a type of another file is an edge
//! where it is called. Tests are left out.

mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use quote::ToTokens;
use syn::{Item, Visibility};

use source::{
    Import, Mention, attributes, attributes_inside, defined_type, file_attribute, flatten,
    is_for_tests, methods, name, scan,
};

/// A module, inline ones included.
struct Module {
    file: usize,
    parent: Option<usize>,
    children: BTreeMap<String, usize>,
    /// Names that the module defines, macros included.
    items: BTreeSet<String>,
    imports: Vec<Import>,
    mentions: Vec<Mention>,
}

/// The modules of a crate.
#[derive(Default)]
pub(super) struct Crate {
    files: Vec<PathBuf>,
    modules: Vec<Module>,
    /// Methods of `impl` blocks: their module, the type's path (empty for those of a
    /// trait), their names.
    methods: Vec<(usize, Vec<String>, Vec<String>)>,
    types: Vec<DefinedType>,
}

/// A type or trait that a crate defines.
pub(super) struct DefinedType {
    pub(super) name: String,
    /// Whether more than its own module may use it.
    pub(super) is_visible: bool,
    pub(super) file: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    Module(usize),
    /// Something that is defined in a file.
    Item(usize),
}

impl Crate {
    /// Reads the crate whose first file is `root`.
    pub(super) fn read(root: &Path) -> Self {
        let mut read = Self::default();
        let folder = root.parent().expect("a file is in a directory");
        read.read_file(root, folder, None);
        read
    }

    fn read_file(&mut self, path: &Path, folder: &Path, parent: Option<usize>) -> usize {
        let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let parsed = syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        self.files.push(path.to_owned());
        let module = self.add_module(self.files.len() - 1, parent);
        self.read_items(module, parsed.items, folder);
        module
    }

    fn add_module(&mut self, file: usize, parent: Option<usize>) -> usize {
        self.modules.push(Module {
            file,
            parent,
            children: BTreeMap::new(),
            items: BTreeSet::new(),
            imports: Vec::new(),
            mentions: Vec::new(),
        });
        self.modules.len() - 1
    }

    /// `folder` is where the files of child modules are.
    fn read_items(&mut self, module: usize, items: Vec<Item>, folder: &Path) {
        for item in items {
            if is_for_tests(attributes(&item)) {
                continue;
            }
            match item {
                Item::Mod(it) => self.read_child(module, it, folder),
                Item::Use(it) => {
                    let passes_on = !matches!(it.vis, Visibility::Inherited);
                    let imports = &mut self.modules[module].imports;
                    flatten(&it.tree, &mut Vec::new(), passes_on, imports);
                }
                mut item => {
                    if let Item::Impl(block) = &mut item {
                        block
                            .items
                            .retain(|it| !is_for_tests(attributes_inside(it)));
                        let (of, names) = methods(block);
                        // A method of a trait is only here to be known by name.
                        let of = if block.trait_.is_none() {
                            of
                        } else {
                            Vec::new()
                        };
                        self.methods.push((module, of, names));
                    }
                    let own = &mut self.modules[module];
                    if let Some((name, is_visible)) = defined_type(&item) {
                        self.types.push(DefinedType {
                            name,
                            is_visible,
                            file: self.files[own.file].clone(),
                        });
                    }
                    own.items.extend(name(&item));
                    scan(item.into_token_stream(), false, &mut own.mentions);
                }
            }
        }
    }

    fn read_child(&mut self, parent: usize, child: syn::ItemMod, folder: &Path) {
        let mut name = child.ident.to_string();
        let inside = folder.join(&name);
        let elsewhere = child.attrs.iter().find_map(file_attribute);
        let module = match child.content {
            Some((_, items)) => {
                let module = self.add_module(self.modules[parent].file, Some(parent));
                self.read_items(module, items, &inside);
                module
            }
            None => {
                let places = match elsewhere {
                    // Stands for another module of that name, so it gets its own.
                    Some(file) => {
                        name = file.trim_end_matches(".rs").to_owned();
                        vec![folder.join(file)]
                    }
                    None => vec![inside.with_extension("rs"), inside.join("mod.rs")],
                };
                let file = places.iter().find(|place| place.is_file());
                let file = file.unwrap_or_else(|| panic!("no file of {}", inside.display()));
                self.read_file(file, &inside, Some(parent))
            }
        };
        self.modules[parent].children.insert(name, module);
    }

    /// The types and traits that it defines.
    pub(super) fn types(&self) -> &[DefinedType] {
        &self.types
    }

    /// What a path leads to from a module; `None` outside of the crate.
    fn resolve(&self, from: usize, path: &[String], depth: usize) -> Option<Target> {
        let (first, mut rest) = path.split_first()?;
        let mut at = match first.as_str() {
            "crate" | "$crate" => Target::Module(0),
            "self" => Target::Module(from),
            "super" => Target::Module(self.modules[from].parent?),
            name => self.lookup(from, name, depth)?,
        };
        while let (Target::Module(module), Some((name, after))) = (at, rest.split_first()) {
            at = match name.as_str() {
                "super" => Target::Module(self.modules[module].parent?),
                name => self.lookup(module, name, depth)?,
            };
            rest = after;
        }
        Some(at)
    }

    /// What a name is in a module. Imports may go round in a circle, so there is
    /// a limit to `depth`.
    fn lookup(&self, module: usize, name: &str, depth: usize) -> Option<Target> {
        const DEEPEST: usize = 8;
        let own = &self.modules[module];
        if let Some(child) = own.children.get(name) {
            return Some(Target::Module(*child));
        }
        if own.items.contains(name) {
            return Some(Target::Item(own.file));
        }
        if depth == DEEPEST {
            return None;
        }
        let named = own
            .imports
            .iter()
            .find(|it| it.name.as_deref() == Some(name));
        // `use serde;` names no module of ours.
        if let Some(import) = named.filter(|it| it.path != [name]) {
            return self.resolve(module, &import.path, depth + 1);
        }
        let globs = own.imports.iter().filter(|it| it.name.is_none());
        globs
            .filter_map(|it| self.resolve(module, &it.path, depth + 1))
            .find_map(|target| match target {
                Target::Module(other) if other != module => self.lookup(other, name, depth + 1),
                _ => None,
            })
    }

    /// A macro is known to modules below the one that defines it too.
    fn find_macro(&self, from: usize, name: &str) -> Option<Target> {
        let mut module = Some(from);
        while let Some(at) = module {
            if let Some(target) = self.lookup(at, name, 0) {
                return Some(target);
            }
            module = self.modules[at].parent;
        }
        None
    }

    /// The files of methods that were added to types of other files, where no other
    /// method has their name.
    fn added_methods(&self) -> BTreeMap<&str, usize> {
        let mut found: BTreeMap<&str, Vec<(usize, bool)>> = BTreeMap::new();
        for (module, of, names) in &self.methods {
            let file = self.modules[*module].file;
            let target = self.resolve(*module, of, 0);
            let is_added = matches!(target, Some(Target::Item(other)) if other != file);
            for name in names {
                found.entry(name).or_default().push((file, is_added));
            }
        }
        let single = found
            .into_iter()
            .filter_map(|(name, places)| match places[..] {
                [(file, true)] => Some((name, file)),
                _ => None,
            });
        single.collect()
    }

    /// For each file the files that it uses, each with a name by which it does.
    fn edges(&self) -> BTreeMap<usize, BTreeMap<usize, String>> {
        let added = self.added_methods();
        let mut edges: BTreeMap<usize, BTreeMap<usize, String>> = BTreeMap::new();
        for (at, module) in self.modules.iter().enumerate() {
            let imports = module.imports.iter().filter(|it| !it.passes_on);
            let imported = imports.map(|it| (self.resolve(at, &it.path, 0), it.path.join("::")));
            let mentioned = module.mentions.iter().map(|mention| match mention {
                Mention::Path(path) => (self.resolve(at, path, 0), path.join("::")),
                Mention::Macro(name) => (self.find_macro(at, name), format!("{name}!")),
                Mention::Method(name) => {
                    let file = added.get(name.as_str()).copied();
                    (file.map(Target::Item), format!(".{name}()"))
                }
            });
            for (target, name) in imported.chain(mentioned) {
                if let Some(Target::Item(file)) = target
                    && file != module.file
                {
                    edges
                        .entry(module.file)
                        .or_default()
                        .entry(file)
                        .or_insert(name);
                }
            }
        }
        edges
    }

    /// The circles of files, each with the edges inside of it.
    pub(super) fn circles(&self) -> Vec<String> {
        let edges = self.edges();
        let reached: Vec<BTreeSet<usize>> = (0..self.files.len())
            .map(|file| reach(&edges, file))
            .collect();
        let mut circles = Vec::new();
        for (first, reached_by_first) in reached.iter().enumerate() {
            let together = |other: &usize| reached[*other].contains(&first);
            let circle: BTreeSet<usize> =
                reached_by_first.iter().copied().filter(together).collect();
            if circle.first() == Some(&first) {
                circles.push(self.show(&circle, &edges));
            }
        }
        circles
    }

    fn show(
        &self,
        circle: &BTreeSet<usize>,
        edges: &BTreeMap<usize, BTreeMap<usize, String>>,
    ) -> String {
        let mut text = format!("a circle of {} files:", circle.len());
        for from in circle {
            for (to, name) in edges[from].iter().filter(|(to, _)| circle.contains(to)) {
                let (from, to) = (self.files[*from].display(), self.files[*to].display());
                text += &format!("\n  {from} uses {to} by `{name}`");
            }
        }
        text
    }
}

/// All files that a file uses, by whatever way round.
fn reach(edges: &BTreeMap<usize, BTreeMap<usize, String>>, from: usize) -> BTreeSet<usize> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(file) = open.pop() {
        let used = edges.get(&file).into_iter().flat_map(BTreeMap::keys);
        open.extend(used.copied().filter(|used| reached.insert(*used)));
    }
    reached
}
