//! The agents' door: a server of the Model Context Protocol on standard input and output, over the same client as the
//! command line. It keeps nothing and starts nothing by itself: the daemon is reached at the first call that needs it.

mod clip;
mod daemon;
mod described;
mod exec;
mod files;
mod progress;
mod row;
mod runtime;
mod schema;
mod search;
mod server;
mod session;
mod stdio;
mod terminal;
mod tool;
mod workspace;

use std::time::Duration;

use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use shared::message::Failure;
use shared::paths::Paths;

use server::Server;

pub const HELP: &str = "\
Agents start this themselves; tell them how:
  claude mcp add sessions -s user -- sessions-tui mcp
  codex mcp add sessions -- sessions-tui mcp
  others: {\"mcpServers\": {\"sessions\": {\"command\": \"sessions-tui\", \"args\": [\"mcp\"]}}}

Tools: runtime (bash, python and node that remember), terminal_start, terminal_send, terminal_screen, terminal_wait, \
search, session_list, session_start, session_iterate, session_event, session_pause, session_resume, session_complete, \
session_fail, session_context, session_files.

Commands without a session run in the runtime of a folder: the one the call names, else the client's first root, else \
CLAUDE_PROJECT_DIR, else the folder this was started in. SESSIONS_SESSION is the session that session_* mean when none \
is named. When the client goes away, what it started goes on: `sessions-tui ls` shows it.";

/// Calls that are under way when the client closes our input get this long to answer: a script that pipes its requests in
/// still reads what comes of them, and no client has to wait for us. What they started goes on in any case.
const GRACE: Duration = Duration::from_millis(500);

/// Serves one client until it closes our standard input.
pub async fn serve(paths: &Paths) -> Result<(), Failure> {
    if rustix::termios::isatty(rustix::stdio::stdin()) {
        eprintln!("This speaks the Model Context Protocol with an agent, not with a person.");
        eprintln!("See `sessions-tui mcp --help`; ctrl-d leaves.");
    }
    let (reader, writer, gone, mut output) = stdio::open();
    let server = Server::new(paths.clone(), gone.clone());
    let running = match server.serve((reader, writer)).await {
        Ok(running) => running,
        // a client that only asks what we are, and goes
        Err(ServerInitializeError::ConnectionClosed(_)) => {
            output.drained().await;
            return Ok(());
        }
        Err(error) => return Err(Failure::usage(format!("the client does not speak the Model Context Protocol: {error}"))),
    };
    tokio::select! {
        _ = running.waiting() => {}
        () = async { gone.wait().await; tokio::time::sleep(GRACE).await } => {}
    }
    output.drained().await;
    Ok(())
}
