//! The client protocol, for whoever writes a client: printed from the types themselves, without a daemon.

use shared::message::Failure;
use shared::schema;

use super::print;

pub const HELP: &str = "\
Examples:
  sessions-tui schema                 all of it, as one JSON Schema (draft 2020-12)
  sessions-tui schema session         one type; also call.new, ok.new (its answer), push.event, hello
  sessions-tui schema --list          the names of all parts";

pub fn schema(name: Option<&str>, list: bool) -> Result<(), Failure> {
    if list {
        return print(&(schema::names().join("\n") + "\n"));
    }
    let found = match name {
        None => schema::protocol(),
        Some(name) => schema::part(name).ok_or_else(|| {
            Failure::usage(format!("no part of the protocol is called {name:?}; `sessions-tui schema --list` names them all"))
        })?,
    };
    let text = serde_json::to_string_pretty(&found).map_err(|error| Failure::failed(error.to_string()))?;
    print(&format!("{text}\n"))
}
