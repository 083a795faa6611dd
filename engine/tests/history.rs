//! Random concurrent transactions on a simulated disk, and a checker of what they were told.

#[path = "history/checker.rs"]
mod checker;
#[path = "history/checker_tests.rs"]
mod checker_tests;
#[path = "history/crashes.rs"]
mod crashes;
#[path = "history/world.rs"]
mod world;
