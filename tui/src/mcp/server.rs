//! The server as the protocol sees it: who we are, which tools there are, and what each call of one has at hand.

use std::sync::Arc;

use rmcp::handler::server::tool::{ToolCallContext, ToolRouter};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, Implementation, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
    Tool,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde::de::DeserializeOwned;
use shared::message::{Code, Failure, Request};
use shared::paths::Paths;

use super::progress::Progress;
use super::stdio::Gone;
use super::workspace::Roots;
use super::{daemon, files, runtime, search, session, terminal};

const INSTRUCTIONS: &str = "\
Terminals, interpreters and records of tasks that outlive this conversation and this client.
- To run code use `runtime`: bash, python and node keep their folder, variables and imports between calls. A call that takes longer \
than yield_ms goes on; poll it with action `result`.
- For programs that need a screen or are to stay (servers, editors, REPLs, other agents) use terminal_start, then terminal_send, \
terminal_wait and terminal_screen.
- To find what was printed, run or told before, in any session, use search.
- To keep a task across conversations use session_start, session_iterate, session_event, session_context, and session_complete or \
session_fail at its end.
A session is meant by its id, its name, or the beginning of either; it stays until it is removed. People see the same sessions with \
`sessions-tui`.";

/// How long a client may keep our list of tools, which only changes with our version: an hour.
const TOOLS_TTL_MS: u64 = 3_600_000;

#[derive(Clone)]
pub struct Server(Arc<Shared>);

struct Shared {
    paths: Paths,
    gone: Gone,
    roots: Roots,
    router: ToolRouter<Server>,
}

impl Server {
    pub fn new(paths: Paths, gone: Gone) -> Self {
        let mut router = ToolRouter::new();
        for route in
            runtime::tools().into_iter().chain(terminal::tools()).chain(session::tools()).chain(search::tools()).chain(files::tools())
        {
            router.add_route(route);
        }
        Self(Arc::new(Shared { paths, gone, roots: Roots::default(), router }))
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        // without a name of ours the library gives its own
        let ours = Implementation::new("sessions-tui", env!("CARGO_PKG_VERSION")).with_title("sessions-tui");
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build()).with_server_info(ours).with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(&self, _: Option<PaginatedRequestParams>, _: RequestContext<RoleServer>) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.0.router.list_all()).with_ttl_ms(TOOLS_TTL_MS))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.0.router.get(name).cloned()
    }

    async fn call_tool(&self, request: CallToolRequestParams, context: RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
        self.0.router.call(ToolCallContext::new(self, request, context)).await
    }

    async fn on_roots_list_changed(&self, _: NotificationContext<RoleServer>) {
        self.0.roots.forget().await;
    }
}

/// One call of a tool.
pub struct Call {
    server: Server,
    context: RequestContext<RoleServer>,
}

impl Call {
    pub fn new(server: Server, context: RequestContext<RoleServer>) -> Self {
        Self { server, context }
    }

    pub fn paths(&self) -> &Paths {
        &self.server.0.paths
    }

    /// One question to the daemon.
    pub async fn ask<T: DeserializeOwned>(&self, request: Request) -> Result<T, Failure> {
        daemon::ask(self.paths(), request).await
    }

    /// As `ask`, for what may take a while: the caller hears of it, and may give up.
    pub async fn ask_patiently<T: DeserializeOwned>(&self, request: Request, meanwhile: &str) -> Result<T, Failure> {
        let mut progress = self.progress();
        let answer = self.ask(request);
        tokio::pin!(answer);
        loop {
            tokio::select! {
                answered = &mut answer => return answered,
                () = progress.due() => progress.tell(meanwhile).await,
                () = self.cancelled() => return Err(cancelled()),
            }
        }
    }

    pub fn progress(&self) -> Progress {
        Progress::new(self.context.meta.get_progress_token(), self.context.peer.clone())
    }

    /// Waits until the caller says that it does not want this any more; for ever if it just goes away.
    pub async fn cancelled(&self) {
        self.context.ct.cancelled().await;
        if self.server.0.gone.is_true() {
            std::future::pending::<()>().await;
        }
    }

    pub fn is_cancelled(&self) -> bool {
        self.context.ct.is_cancelled() && !self.server.0.gone.is_true()
    }

    /// The folder that is meant: the one given, else where the client works.
    pub async fn workspace(&self, given: Option<&str>) -> Result<String, Failure> {
        self.server.0.roots.workspace(&self.context, given).await
    }
}

/// Nobody reads it: a client that cancels a call gets no answer to it.
pub fn cancelled() -> Failure {
    Failure::new(Code::Failed, "the call was cancelled")
}
