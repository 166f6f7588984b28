//! End to end: the real binary in a temporary root, real terminals, a real database. Keys in, screen text out.
//! One target; a file per subject. A function named after a promise of the specification carries its number.

mod support;

mod attach;
mod bad_input;
mod children;
mod commands;
mod crash;
mod faults;
mod first_run;
mod idle;
mod migration;
mod queries;
mod readme;
mod recording;
mod screen;
mod screen_restart;
mod webhook;
