//! One test target: the real binary, real PTYs, a real database. One file per promise.

mod screen;
