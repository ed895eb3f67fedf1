//! Which file a path leads to. Reads words, not syntax: the compiler has seen the rest.

use crate::tidy::tree::File;
use std::collections::{BTreeMap, BTreeSet};

/// A path from the root of the crate.
type Path = Vec<String>;

/// The modules of a crate by their paths.
#[derive(Default)]
pub(super) struct Modules(BTreeMap<Path, Module>);

/// What stands in a file, or in a `mod` with braces.
#[derive(Default)]
struct Module {
    file: String,
    /// Items that it defines.
    defines: BTreeSet<String>,
    /// Names that a `use` gave to something, with the path as it stands there.
    imports: BTreeMap<String, Path>,
    /// Paths of which everything is imported.
    globs: Vec<Path>,
    /// All other paths, as they stand there.
    names: BTreeSet<Path>,
}

/// Words before the name of an item.
const ITEMS: [&str; 8] = ["struct", "enum", "trait", "type", "fn", "const", "static", "union"];

/// Longer chains of re-exports are a circle of their own.
const STEPS_MAX: usize = 32;

impl Modules {
    /// Reads the files below the folder `source`.
    pub(super) fn read(source: &str, files: &[&File]) -> Self {
        let mut modules = Self::default();
        for file in files {
            let path = file.path.trim_start_matches(source).trim_end_matches(".rs");
            let names: Path = match path {
                "lib" | "main" => Vec::new(),
                path => path.trim_end_matches("/mod").split('/').map(str::to_owned).collect(),
            };
            let words = words(&file.code);
            Reader { modules: &mut modules, file: &file.path, words: &words, at: 0 }.module(names);
        }
        modules
    }

    /// For each file the files that it imports.
    pub(super) fn imports(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut imports: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (at, module) in &self.0 {
            let all = module.imports.values().chain(&module.globs).chain(&module.names);
            let to = all.filter_map(|path| self.file_of(at, path, 0));
            let others = to.filter(|file| *file != module.file).map(str::to_owned);
            imports.entry(module.file.clone()).or_default().extend(others);
        }
        imports
    }

    /// The file that defines what a path means in a module; `None` if that is in another crate, or
    /// a module itself.
    fn file_of(&self, at: &Path, path: &[String], steps: usize) -> Option<&str> {
        let (first, rest) = path.split_first()?;
        let module = self.0.get(at)?;
        match first.as_str() {
            "crate" => self.within(&Vec::new(), rest, steps),
            "self" => self.within(at, rest, steps),
            "super" => self.file_of_super(at, rest, steps),
            // A type of this module, and what belongs to it.
            name if module.defines.contains(name) => None,
            name if self.0.contains_key(&below(at, name)) || module.imports.contains_key(name) => {
                self.within(at, path, steps)
            }
            _ => None,
        }
    }

    fn file_of_super(&self, at: &Path, rest: &[String], steps: usize) -> Option<&str> {
        let (_, above) = at.split_last()?;
        let above = above.to_vec();
        match rest.first().map(String::as_str) {
            Some("super") => self.file_of(&above, rest, steps),
            _ => self.within(&above, rest, steps),
        }
    }

    /// The same, of a path that begins in a module.
    fn within(&self, at: &Path, path: &[String], steps: usize) -> Option<&str> {
        let module = self.0.get(at)?;
        let (first, rest) = path.split_first()?;
        if steps > STEPS_MAX {
            return None;
        }
        if first == "*" {
            return Some(&module.file);
        }
        if self.0.contains_key(&below(at, first)) {
            return self.within(&below(at, first), rest, steps);
        }
        if module.defines.contains(first) {
            return Some(&module.file);
        }
        if let Some(import) = module.imports.get(first) {
            let whole: Path = import.iter().chain(rest).cloned().collect();
            return self.file_of(at, &whole, steps + 1);
        }
        let through = |glob: &Path| {
            let (_, path) = glob.split_last()?;
            let whole: Path = path.iter().cloned().chain([first.clone()]).collect();
            self.file_of(at, &whole, steps + 1)
        };
        module.globs.iter().find_map(through)
    }
}

fn below(at: &Path, name: &str) -> Path {
    at.iter().cloned().chain([name.to_owned()]).collect()
}

/// Identifiers, `::`, and single signs.
fn words(code: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = code;
    while let Some(c) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let len = match c {
            c if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            ':' if rest.starts_with("::") => 2,
            c => c.len_utf8(),
        };
        let (word, after) = rest.split_at(len);
        rest = after;
        if !c.is_whitespace() {
            words.push(word);
        }
    }
    words
}

struct Reader<'r> {
    modules: &'r mut Modules,
    file: &'r str,
    words: &'r [&'r str],
    at: usize,
}

impl<'r> Reader<'r> {
    /// Reads up to the brace that ends the module, or to the end.
    fn module(&mut self, path: Path) {
        let mut module = Module { file: self.file.to_owned(), ..Module::default() };
        let mut depth = 0;
        while let Some(word) = self.take() {
            match word {
                "{" => depth += 1,
                "}" if depth == 0 => break,
                "}" => depth -= 1,
                "#" if self.is_next(&["[", "cfg", "(", "test", ")", "]"]) => self.skip_item(),
                "mod" if depth == 0 => {
                    let name = self.take().unwrap_or_default();
                    // Without braces it is a file, which is read by itself.
                    if self.take() == Some("{") {
                        self.module(below(&path, name));
                    }
                }
                "use" => self.tree(Vec::new(), &mut module),
                word if depth == 0 && ITEMS.contains(&word) => {
                    let name = self.words.get(self.at).copied().unwrap_or_default();
                    module.defines.insert(name.to_owned());
                }
                word if self.is_next(&["::"]) && !self.is_behind_path() => {
                    let names = self.path(word);
                    module.names.insert(names);
                }
                _ => {}
            }
        }
        self.modules.0.insert(path, module);
    }

    fn take(&mut self) -> Option<&'r str> {
        let word = self.words.get(self.at).copied();
        self.at += 1;
        word
    }

    fn is_next(&self, words: &[&str]) -> bool {
        self.words.get(self.at..).is_some_and(|rest| rest.starts_with(words))
    }

    /// Whether the word that was taken goes on with a path: `<T as A>::b::c`.
    fn is_behind_path(&self) -> bool {
        self.at.checked_sub(2).and_then(|at| self.words.get(at)) == Some(&"::")
    }

    /// The rest of a path that began with this.
    fn path(&mut self, first: &str) -> Path {
        let mut path = vec![first.to_owned()];
        while self.is_next(&["::"]) {
            let Some(name) = self.words.get(self.at + 1).filter(|word| is_name(word)) else {
                break;
            };
            path.push((*name).to_owned());
            self.at += 2;
        }
        path
    }

    /// Passes over what follows an attribute: to its semicolon, or to the end of its braces.
    fn skip_item(&mut self) {
        let mut depth = 0;
        while let Some(word) = self.take() {
            match word {
                "{" | "(" | "[" => depth += 1,
                "}" | ")" | "]" => {
                    depth -= 1;
                    if depth == 0 && word == "}" {
                        return;
                    }
                }
                ";" if depth == 0 => return,
                _ => {}
            }
        }
    }

    /// What a `use` imports, behind this beginning of a path.
    fn tree(&mut self, before: Path, module: &mut Module) {
        let mut path = before.clone();
        while let Some(word) = self.take() {
            match word {
                "{" => {
                    self.tree(path.clone(), module);
                    path.clear();
                }
                "*" => {
                    path.push("*".to_owned());
                    module.globs.push(std::mem::take(&mut path));
                }
                "as" => {
                    let alias = self.take().unwrap_or_default();
                    module.imports.insert(alias.to_owned(), std::mem::take(&mut path));
                }
                "," | "}" | ";" => {
                    import(std::mem::take(&mut path), module);
                    if word != "," {
                        return;
                    }
                    path.clone_from(&before);
                }
                "::" => {}
                name => path.push(name.to_owned()),
            }
        }
    }
}

/// A path of a `use` has come to its end: it is known by its last name.
fn import(mut path: Path, module: &mut Module) {
    if path.len() > 1 && path.last().is_some_and(|name| name == "self") {
        path.pop();
    }
    if let Some(name) = path.last().cloned() {
        module.imports.insert(name, path);
    }
}

fn is_name(word: &str) -> bool {
    word.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_')
}
