//! Random concurrent transactions on a simulated disk, and checkers of the replies that they got.

#[path = "history/checker.rs"]
mod checker;
#[path = "history/checker_tests.rs"]
mod checker_tests;
#[path = "history/crashes.rs"]
mod crashes;
#[path = "history/cut.rs"]
mod cut;
#[path = "history/disk.rs"]
mod disk;
#[path = "history/dropped.rs"]
mod dropped;
#[path = "history/hermitage.rs"]
mod hermitage;
#[path = "history/oracle.rs"]
mod oracle;
#[path = "history/oracle_tests.rs"]
mod oracle_tests;
#[path = "history/replies.rs"]
mod replies;
#[path = "history/reply_tests.rs"]
mod reply_tests;
#[path = "history/rows.rs"]
mod rows;
#[path = "history/statements.rs"]
mod statements;
#[path = "history/together.rs"]
mod together;
#[path = "history/world.rs"]
mod world;
