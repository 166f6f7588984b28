//! What in a workspace is of no interest: what `.gitignore` and `.ignore` files say, as git and ripgrep read them, what the settings say,
//! and what is never anybody's work. Reads rule files, nothing else.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// Of no interest in any workspace: what version control and package managers keep for themselves, and what editors keep only while
/// they edit.
const NEVER: [&str; 12] =
    [".git", ".hg", ".svn", ".jj", "node_modules", "__pycache__", ".venv", ".mypy_cache", ".*.sw?", "*~", ".#*", "4913"];

/// By this file a folder says that everything in it can be made again (cargo's `target`, caches).
pub const CACHE_TAG: &str = "CACHEDIR.TAG";

/// The stronger first.
const RULE_FILES: [&str; 2] = [".ignore", ".gitignore"];

/// Whether a change of this file changes the rules.
pub fn makes_rules(name: &OsStr) -> bool {
    name == CACHE_TAG || RULE_FILES.iter().any(|file| name == *file)
}

pub struct Rules {
    /// Our own folders: what we write because something changed must not be a change.
    ours: Vec<PathBuf>,
    by_folder: HashMap<PathBuf, Vec<Gitignore>>,
    /// Weaker than those of folders, the strongest first: folders above the workspace, the repository's and the user's own.
    outer: Vec<Gitignore>,
    /// Stronger than all.
    fixed: Gitignore,
    root: PathBuf,
}

impl Rules {
    pub fn new(root: &Path, ours: Vec<PathBuf>, more: &[String]) -> Self {
        let mut fixed = GitignoreBuilder::new(root);
        for pattern in NEVER.iter().copied().chain(more.iter().map(String::as_str)) {
            // those of the settings were looked at when they were read
            let _ = fixed.add_line(None, pattern);
        }
        let mut outer = Vec::new();
        // up to where the repository begins, as git does; without one, what is above is somebody else's
        if let Some(repository) = root.ancestors().find(|folder| folder.join(".git").exists()) {
            let above = root.ancestors().skip(1).take_while(|folder| folder.starts_with(repository));
            outer.extend(above.flat_map(read));
            outer.extend(read_file(repository, &repository.join(".git/info/exclude")));
        }
        outer.push(Gitignore::global().0);
        Self { ours, by_folder: HashMap::new(), outer, fixed: fixed.build().unwrap_or_else(|_| Gitignore::empty()), root: root.to_owned() }
    }

    /// Reads what a folder of the workspace itself says.
    pub fn enter(&mut self, folder: &Path) {
        let found = read(folder);
        if found.is_empty() {
            self.by_folder.remove(folder);
        } else {
            self.by_folder.insert(folder.to_owned(), found);
        }
    }

    pub fn leave(&mut self, folder: &Path) {
        self.by_folder.remove(folder);
    }

    /// Whether a file or folder is of no interest; the folders above it are not looked at.
    pub fn ignores(&self, path: &Path, is_folder: bool) -> bool {
        if self.ours.iter().any(|folder| path.starts_with(folder)) || self.fixed.matched(path, is_folder).is_ignore() {
            return true;
        }
        let above = path.ancestors().skip(1).take_while(|folder| folder.starts_with(&self.root));
        let nearest_first = above.filter_map(|folder| self.by_folder.get(folder)).flatten();
        for rules in nearest_first.chain(&self.outer) {
            // those of folders above the workspace know what is below them; the user's own have no folder
            match rules.matched(path, is_folder) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        false
    }
}

fn read(folder: &Path) -> Vec<Gitignore> {
    RULE_FILES.iter().filter_map(|name| read_file(folder, &folder.join(name))).collect()
}

fn read_file(folder: &Path, file: &Path) -> Option<Gitignore> {
    if !file.is_file() {
        return None;
    }
    let mut builder = GitignoreBuilder::new(folder);
    // a line that makes no sense is passed over, as git does
    let _ = builder.add(file);
    builder.build().ok().filter(|rules| !rules.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ignored_is_what_git_ignores_and_what_is_never_work() {
        let dir = tempfile::tempdir().expect("a folder");
        let repository = dir.path();
        let root = repository.join("app");
        std::fs::create_dir_all(root.join("sub")).expect("folders");
        std::fs::create_dir_all(repository.join(".git/info")).expect("folders");
        std::fs::write(repository.join(".git/info/exclude"), "mine\n").expect("a file");
        std::fs::write(repository.join(".gitignore"), "*.log\n/app/build/\n").expect("a file");
        std::fs::write(root.join(".gitignore"), "!keep.log\n/dist\n").expect("a file");
        std::fs::write(root.join("sub/.ignore"), "!mine\n*.tmp\n").expect("a file");
        let mut rules = Rules::new(&root, vec![root.join("state")], &["*.bak".to_owned()]);
        rules.enter(&root);
        rules.enter(&root.join("sub"));
        for (path, is_folder, is_ignored) in [
            ("main.rs", false, false),
            ("a.log", false, true),
            ("sub/a.log", false, true),
            ("keep.log", false, false),
            ("build", true, true),
            ("dist", true, true),
            ("sub/dist", true, false),
            ("mine", false, true),
            ("sub/mine", false, false),
            ("sub/x.tmp", false, true),
            ("x.tmp", false, false),
            ("x.bak", false, true),
            (".git", true, true),
            ("sub/node_modules", true, true),
            (".main.rs.swp", false, true),
            ("main.rs~", false, true),
            (".env", false, false),
            ("state", true, true),
            ("state/sessions.db", false, true),
        ] {
            assert_eq!(rules.ignores(&root.join(path), is_folder), is_ignored, "{path}");
        }
        rules.leave(&root.join("sub"));
        assert!(!rules.ignores(&root.join("sub/x.tmp"), false));
    }

    #[test]
    fn outside_of_a_repository_only_the_workspace_counts() {
        let dir = tempfile::tempdir().expect("a folder");
        std::fs::write(dir.path().join(".gitignore"), "*\n").expect("a file");
        let root = dir.path().join("app");
        std::fs::create_dir(&root).expect("a folder");
        let rules = Rules::new(&root, Vec::new(), &[]);
        assert!(!rules.ignores(&root.join("main.rs"), false));
    }
}
