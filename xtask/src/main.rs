//! Checks of the repository, run by `cargo xtask`.
fn main() {}
