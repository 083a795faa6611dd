//! What the machine itself can do, measured in the same session.

mod switches;
mod syncs;
mod wire;

pub use switches::switches;
pub use syncs::syncs;
pub use wire::serve as serve_wire;
