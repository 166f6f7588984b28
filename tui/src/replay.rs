//! Replay: a recording as a full-screen player, and the way back from an attached terminal.
//! [`Player`] and [`History`] are components: events in, effects out, drawn into any area. `run` gives them a terminal and a daemon.

mod clock;
mod event;
mod find;
mod history;
mod keys;
mod notice;
mod place;
mod player;
mod reel;
mod run;
mod screen_widget;
mod selection;
mod status;
mod timeline;
mod view;

pub use clock::{IdleLimit, Speed};
pub use event::{Effect, Event};
pub use find::Pattern;
pub use history::History;
pub use notice::notice;
pub use place::Place;
pub use player::{Player, Start};
pub use run::{Asked, Component, Left, Wanted, failed, look_back, replay, request, typed_behind, understood};
pub use screen_widget::{Part, ScreenWidget, at_cursor, at_edge};
pub use selection::{Point, Selection, Shape};
