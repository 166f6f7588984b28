//! Which folder a call means when it names none: the client's first root, else the project Claude Code names, else where
//! we were started.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::service::RequestContext;
use shared::message::Failure;
use tokio::sync::Mutex;

/// A client that does not answer this quickly has no roots worth waiting for.
const PATIENCE: Duration = Duration::from_secs(2);

/// What the client said of its roots.
#[derive(Default)]
pub struct Roots(Mutex<Said>);

#[derive(Default)]
enum Said {
    #[default]
    NotAsked,
    /// The first folder, if it has one.
    First(Option<PathBuf>),
}

impl Roots {
    /// They have changed: the next call asks again.
    pub async fn forget(&self) {
        *self.0.lock().await = Said::NotAsked;
    }

    pub async fn workspace(&self, context: &RequestContext<RoleServer>, given: Option<&str>) -> Result<String, Failure> {
        let path = match given {
            Some(given) => named(given)?,
            None => match self.first(context).await.or_else(claude_project) {
                Some(path) => path,
                None => std::env::current_dir().map_err(|error| {
                    Failure::usage(format!("the folder this was started in cannot be used ({error}): give `workspace`"))
                })?,
            },
        };
        // as the command line does: one folder has one name
        let path = std::fs::canonicalize(&path).unwrap_or(path);
        path.into_os_string().into_string().map_err(|path| Failure::usage(format!("the folder {} is not Unicode", path.display())))
    }

    /// Asked once, and only of clients that have roots and may be asked: since 2026-07-28 servers have no questions.
    async fn first(&self, context: &RequestContext<RoleServer>) -> Option<PathBuf> {
        let has_roots = context.peer.peer_info().is_some_and(|info| info.capabilities.roots.is_some());
        if !has_roots {
            return None;
        }
        let mut known = self.0.lock().await;
        if let Said::First(first) = &*known {
            return first.clone();
        }
        let first = ask(context).await;
        *known = Said::First(first.clone());
        first
    }
}

#[expect(deprecated, reason = "clients of the older era have nothing else to say where they work")]
async fn ask(context: &RequestContext<RoleServer>) -> Option<PathBuf> {
    match tokio::time::timeout(PATIENCE, context.peer.list_roots()).await {
        Ok(Ok(listed)) => listed.roots.iter().filter_map(|root| folder(&root.uri)).find(|path| path.is_dir()),
        _ => None,
    }
}

fn named(given: &str) -> Result<PathBuf, Failure> {
    let path = Path::new(given);
    if !path.is_absolute() {
        return Err(Failure::usage(format!("{given:?} is not an absolute path: write the folder from / on")));
    }
    if !path.is_dir() {
        return Err(Failure::usage(format!("there is no folder {given:?}: make it first, or name another")));
    }
    Ok(path.to_owned())
}

fn claude_project() -> Option<PathBuf> {
    std::env::var_os("CLAUDE_PROJECT_DIR").map(PathBuf::from).filter(|path| path.is_absolute() && path.is_dir())
}

/// The folder of a `file://` address on this machine.
fn folder(uri: &str) -> Option<PathBuf> {
    let rest = uri.strip_prefix("file://")?;
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    if !path.starts_with('/') {
        return None;
    }
    let mut bytes = Vec::with_capacity(path.len());
    let mut left = path.bytes();
    while let Some(byte) = left.next() {
        if byte == b'%' {
            let digits = [left.next()?, left.next()?];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok().map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_folders_of_this_machine() {
        for (uri, path) in [
            ("file:///home/me/my%20app", Some("/home/me/my app")),
            ("file://localhost/srv", Some("/srv")),
            ("file:///gr%C3%B6%C3%9Fe", Some("/größe")),
            ("file://elsewhere/srv", None),
            ("https://example.org/", None),
            ("file:///bad%2", None),
            ("file:///bad%zz", None),
        ] {
            assert_eq!(folder(uri), path.map(PathBuf::from), "{uri}");
        }
    }
}
