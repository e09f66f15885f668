//! What callers rely on: whole files or none, private modes, honest refusals, locks.

mod atomic;
mod directory;
mod lines;
mod locks;
mod reading;
