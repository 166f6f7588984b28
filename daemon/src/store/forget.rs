//! Forgetting what a session said: what the recording had goes by its folder; here go the words of its calls.

use rusqlite::params;
use serde_json::json;
use shared::event::Author;
use shared::id::SessionId;

use super::{Durability, Fact, Result, StoreHandle};

/// Tries to empty the log of the database.
const CHECKPOINTS: usize = 40;

impl StoreHandle {
    /// The code and the values of a session's calls are gone, and that they are is told.
    pub async fn forget(&self, session: SessionId, bytes: u64, author: Author) -> Result<()> {
        self.write(Durability::Power, move |change| {
            let key = session.to_string();
            change.execute(
                "UPDATE execs SET code = '', stdin = NULL,
                    outcome = CASE WHEN outcome IS NULL THEN NULL ELSE json_remove(outcome, '$.error', '$.value', '$.json') END
                 WHERE session_id = ?1 AND stage <> 'open'",
                params![key],
            )?;
            change.execute(
                "UPDATE events SET data = json_remove(data, '$.code', '$.error', '$.value')
                 WHERE session_id = ?1 AND type IN ('exec_started', 'exec_finished')",
                params![key],
            )?;
            change.execute("UPDATE commands SET text = '', cwd = NULL WHERE session_id = ?1", params![key])?;
            change.execute("UPDATE runtimes SET hook = NULL WHERE session_id = ?1", params![key])?;
            change.tell(Fact::new(session, author, "forgotten", json!({"bytes": bytes})))
        })
        .await?;
        self.checkpoint().await
    }

    /// Empties the write-ahead log: what was overwritten must not live on beside the database. A reader (the daily check) is soon
    /// done.
    pub async fn checkpoint(&self) -> Result<()> {
        for _ in 0..CHECKPOINTS {
            let is_busy: bool =
                self.read(|connection| Ok(connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?)).await?;
            if !is_busy {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        Ok(())
    }
}
