//! End to end: the real binary in a temporary root, real terminals, a real database. Keys in, screen text out.
//! One target; a file per subject. A function named after a promise of the specification carries its number.

mod support;

mod agents;
mod attach;
mod bad_input;
mod budget_policy;
mod children;
mod commands;
mod continuity;
mod crash;
mod dashboard;
mod events;
mod exec;
mod exec_attach;
mod exec_crash;
mod exec_language;
mod exec_state;
mod export;
mod faults;
mod first_run;
mod hibernate;
mod history;
mod hostile;
mod idle;
mod lifecycle;
mod live;
mod mcp;
mod migration;
mod pause;
mod privacy;
mod queries;
mod queue;
mod readme;
mod real_agents;
mod recording;
mod replay;
mod restore;
mod retention;
mod screen;
mod screen_restart;
mod search;
mod settings;
mod shell;
mod time_machine;
mod webhook;
