//! Limits of the machine itself, measured in the same session: thread switches, syncs, and a wire protocol without a database.

mod switches;
mod syncs;
mod wire;

pub use switches::switches;
pub use syncs::syncs;
pub use wire::serve as serve_wire;
