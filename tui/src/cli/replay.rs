//! replay: the full-screen player.

use clap::Args;
use shared::exec::Language;
use shared::id::{Offset, RuntimeId};
use shared::message::Failure;
use shared::paths::Paths;
use shared::replay::Of;

use super::parse;
use crate::replay::{self, IdleLimit, Place, Speed, Start};

pub const HELP: &str = "\
Keys: space plays and pauses, ← → step by change, ↑ ↓ by a second, pgup pgdn by ten, 0…9 jump to percent, g G start and end,
  t to a time, / n N search, { } commands, m M marks and events, + - speed, i I pauses, l live, z scaled, ? all keys, q leaves.
  A click on the timeline goes there, the wheel steps.

TIME: 1:23, 90s or 1m30s since the beginning; -10s before the end; 50%; 14:05 or @14:05:10 by the clock;
  2026-11-16T14:05:10Z; start; end.

Examples:
  sessions-tui replay api
  sessions-tui replay api --at 14:05 --speed 4
  sessions-tui replay api -l python --at 50%";

#[derive(Args)]
pub struct ReplayArgs {
    /// The session: its name, its id, or the beginning of either
    #[arg(required_unless_present = "runtime", default_value = "", hide_default_value = true)]
    name: String,
    /// Begin there: so long after the beginning (1:23, 90s), 50%, a time of day, start or end
    #[arg(long, value_name = "TIME", value_parser = Place::parse, allow_hyphen_values = true, conflicts_with = "offset")]
    at: Option<Place>,
    /// The transcript of this language's runtime: bash, python or node
    #[arg(long, short, value_name = "LANG", value_parser = parse::language)]
    language: Option<Language>,
    /// 0.25, 0.5, 1, 2, 4, 8, 16, 32 or 64
    #[arg(long, value_name = "N", value_parser = Speed::parse, default_value = "1", hide_default_value = true)]
    speed: Speed,
    /// Play longer pauses as if they were this long (500ms, 2s, off) [default: 2s]
    #[arg(long, value_name = "DURATION", value_parser = IdleLimit::parse, default_value = "2s", hide_default_value = true)]
    idle_limit: IdleLimit,
    /// Exactly this place of the recording, paused: for what `search` finds
    #[arg(long, value_name = "OFFSET", hide = true)]
    offset: Option<Offset>,
    /// Exactly this recording
    #[arg(long, value_name = "ID", hide = true, value_parser = runtime)]
    runtime: Option<RuntimeId>,
}

fn runtime(text: &str) -> Result<RuntimeId, String> {
    RuntimeId::parse(text).ok_or_else(|| format!("{text:?} is not the id of a runtime: `sessions-tui show NAME` has it"))
}

pub async fn replay(paths: &Paths, args: ReplayArgs) -> Result<(), Failure> {
    let of = Of { name: args.name, language: args.language, runtime: args.runtime };
    let start = Start { place: args.at, offset: args.offset, speed: args.speed, limit: args.idle_limit, ..Start::default() };
    replay::replay(paths, of, &start).await.map(|_| ())
}
