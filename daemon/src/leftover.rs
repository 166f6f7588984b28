//! Private files in the runtime directory that daemon and holder left when both died at once: what shells export, and standard input of
//! execs.

use shared::id::{ExecId, RuntimeId};

use crate::context::Context;

/// Removes the files of runtimes and execs that are over. Those of live ones stay, for this user alone.
pub async fn remove(context: &Context) {
    let Ok(live) = context.store.live_runtimes().await else { return };
    let Ok(entries) = std::fs::read_dir(&context.paths.runtime) else { return };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let Some((name, ending)) = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.rsplit_once('.')) else { continue };
        let is_over = match ending {
            "env" | "now" | "was" => RuntimeId::parse(name).is_some_and(|id| live.iter().all(|runtime| runtime.runtime != id)),
            "in" => match ExecId::parse(name) {
                Some(id) => match context.store.exec(id).await {
                    Ok(exec) => exec.finished.is_some(),
                    // any other error says nothing of the exec
                    Err(error) => matches!(error, crate::store::Error::NotFound(_)),
                },
                None => false,
            },
            _ => false,
        };
        if is_over {
            let _ = std::fs::remove_file(&path);
        } else if ["env", "now", "was", "in"].contains(&ending) {
            // made by an earlier version, with the mask of whoever started it
            let _ = std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600));
        }
    }
}
