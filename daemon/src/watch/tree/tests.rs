use super::*;
use crate::file_time::tick;
use FileChange::{Changed, Created, Removed};

/// Counts what is watched; refuses beyond a number.
#[derive(Default)]
struct Few {
    watched: HashSet<PathBuf>,
    most: Option<usize>,
}

impl Watches for Few {
    fn add(&mut self, folder: &Path) -> Result<(), Refused> {
        if self.most.is_some_and(|most| self.watched.len() >= most) {
            return Err(Refused::Full("that is all".into()));
        }
        assert!(self.watched.insert(folder.to_owned()), "{folder:?} is watched already");
        Ok(())
    }

    fn renew(&mut self, folder: &Path) -> Result<(), Refused> {
        assert!(self.watched.contains(folder));
        if folder.is_dir() { Ok(()) } else { Err(Refused::Gone) }
    }

    fn remove(&mut self, folder: &Path) {
        assert!(self.watched.remove(folder), "{folder:?} was not watched");
    }

    fn is_over(&self) -> bool {
        false
    }
}

const ENOUGH: Limits = Limits { folders: 100, files: 100, advice: "" };

struct Place {
    dir: tempfile::TempDir,
    watches: Few,
}

impl Place {
    fn new(files: &[&str]) -> Self {
        let place = Self { dir: tempfile::tempdir().expect("a folder"), watches: Few::default() };
        for file in files {
            place.write(file);
        }
        place
    }

    fn root(&self) -> PathBuf {
        self.dir.path().canonicalize().expect("a path")
    }

    fn write(&self, file: &str) {
        let path = self.root().join(file);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        std::fs::write(path, "text").expect("a file");
    }

    fn open(&mut self, limits: Limits, since: Timestamp) -> Result<Tree, Unwatched> {
        let root = self.root();
        Tree::open(&root, |root| Rules::new(root, Vec::new(), &[]), limits, since, &mut self.watches)
    }

    /// What a look at these comes to; all that has been told is taken.
    fn look(&mut self, tree: &mut Tree, touched: &[(&str, bool)]) -> Vec<(String, FileChange)> {
        let touched = touched.iter().map(|(path, anew)| (self.root().join(path), *anew)).collect();
        tree.look(&touched, &mut self.watches).expect("is there");
        told(tree)
    }
}

fn told(tree: &mut Tree) -> Vec<(String, FileChange)> {
    let changes = std::mem::take(&mut tree.changes);
    changes.files.into_iter().map(|(path, (change, _))| (path.display().to_string(), change)).collect()
}

fn of(changes: &[(&str, FileChange)]) -> Vec<(String, FileChange)> {
    changes.iter().map(|(path, change)| ((*path).to_owned(), *change)).collect()
}

/// Until what was written is older than all that comes, by file times; and when that is.
fn grow_old() -> Timestamp {
    let old = file_time() + tick() * 5;
    while file_time() <= old {
        std::thread::yield_now();
    }
    file_time()
}

#[test]
fn files_are_created_changed_and_removed_whatever_the_system_calls_it() {
    let mut place = Place::new(&["a", "sub/b", "sub/deep/c"]);
    let mut tree = place.open(ENOUGH, Timestamp::now()).expect("opens");
    assert_eq!(tree.state(), Watching::On { folders: 3, files: 3 });
    assert_eq!(told(&mut tree), [], "what was there is no change");
    place.write("a");
    place.write("new");
    place.write("fresh/d");
    std::fs::remove_file(place.root().join("sub/b")).expect("goes");
    let told = place.look(&mut tree, &[("a", false), ("new", true), ("fresh", true), ("sub/b", true), ("never", true)]);
    assert_eq!(told, of(&[("a", Changed), ("fresh/d", Created), ("new", Created), ("sub/b", Removed)]));
    // renamed over: the file is another, its name is known
    place.write("other");
    std::fs::rename(place.root().join("other"), place.root().join("a")).expect("is renamed");
    assert_eq!(place.look(&mut tree, &[("other", true), ("a", true)]), of(&[("a", Changed)]));
    // a folder goes elsewhere, with what is in it
    std::fs::rename(place.root().join("sub"), place.root().join("moved")).expect("is renamed");
    let told = place.look(&mut tree, &[("sub", true), ("moved", true)]);
    assert_eq!(told, of(&[("moved/deep/c", Created), ("sub/deep/c", Removed)]));
    // and comes and goes before anybody looks
    place.write("brief/e");
    std::fs::remove_dir_all(place.root().join("brief")).expect("goes");
    assert_eq!(place.look(&mut tree, &[("brief", true), ("brief/e", true)]), []);
    assert_eq!(place.watches.watched.len(), 4);
    tree.close(&mut place.watches);
    assert!(place.watches.watched.is_empty());
}

#[test]
fn what_changed_before_anybody_looked_is_found_by_its_times() {
    let mut place = Place::new(&["old"]);
    let since = grow_old();
    place.write("young");
    place.write("old");
    let mut tree = place.open(ENOUGH, since).expect("opens");
    assert_eq!(told(&mut tree), of(&[("old", Changed), ("young", Created)]));
}

#[test]
fn after_lost_events_everything_is_compared() {
    let mut place = Place::new(&["a", "b", "sub/c", "gone/d"]);
    let mut tree = place.open(ENOUGH, Timestamp::now()).expect("opens");
    std::fs::remove_file(place.root().join("b")).expect("goes");
    std::fs::remove_dir_all(place.root().join("gone")).expect("goes");
    place.write("sub/e");
    tree.look_everywhere(&mut place.watches).expect("is there");
    let told = told(&mut tree);
    for expected in [("b", Removed), ("gone/d", Removed), ("sub/e", Created)] {
        assert!(told.contains(&(expected.0.to_owned(), expected.1)), "{expected:?} is not in {told:?}");
    }
    assert_eq!(tree.state(), Watching::On { folders: 2, files: 3 });
}

#[test]
fn rules_count_as_soon_as_they_change() {
    let mut place = Place::new(&["src/a", "out/b", "cache/c"]);
    grow_old();
    let mut tree = place.open(ENOUGH, Timestamp::now()).expect("opens");
    std::fs::write(place.root().join(".gitignore"), "/out\n").expect("a file");
    std::fs::write(place.root().join("cache/CACHEDIR.TAG"), "").expect("a file");
    place.write("out/more");
    let told = place.look(&mut tree, &[(".gitignore", true), ("out/more", true), ("cache/CACHEDIR.TAG", true)]);
    assert_eq!(told, of(&[(".gitignore", Created)]));
    assert_eq!(tree.state(), Watching::On { folders: 2, files: 2 });
    std::fs::write(place.root().join(".gitignore"), "").expect("a file");
    let told = place.look(&mut tree, &[(".gitignore", false)]);
    assert!(told.contains(&(".gitignore".to_owned(), Changed)) && !told.iter().any(|(path, _)| path == "out/b"), "{told:?}");
    assert_eq!(place.look(&mut tree, &[("out/b", false)]), of(&[("out/b", Changed)]), "it is of interest again");
}

#[test]
fn huge_trees_and_a_full_system_are_said() {
    let mut place = Place::new(&["a/1", "b/2", "c/3"]);
    let why = place.open(Limits { folders: 3, ..ENOUGH }, Timestamp::now()).err().expect("too large").why();
    assert!(why.contains("more than 3 folders"), "{why}");
    assert!(place.watches.watched.is_empty(), "nothing stays behind");
    let why = place.open(Limits { files: 2, ..ENOUGH }, Timestamp::now()).err().expect("too large").why();
    assert!(why.contains("more than 2 files"), "{why}");
    place.watches.most = Some(2);
    let tree = place.open(ENOUGH, Timestamp::now()).expect("a part of it");
    assert_eq!(tree.state(), Watching::Part { folders: 2, why: "that is all".into() });
    let gone =
        Tree::open(Path::new("/nowhere/at/all"), |root| Rules::new(root, Vec::new(), &[]), ENOUGH, Timestamp::now(), &mut place.watches);
    assert!(matches!(gone, Err(Unwatched::Gone(_))));
}
