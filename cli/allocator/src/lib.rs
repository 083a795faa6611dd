//! The allocator of the program `clearway`: a crate that names it is linked with it.
//!
//! A crate of its own because the functions through which all others allocate are compiled where the static stands, with the optimisation of that crate. The crate
//! of the command is not optimised, and there they took 23 instructions for each piece of memory beside the allocator's own.

use clearway_base::memory::Accounted;

#[global_allocator]
static ALLOCATOR: Accounted = Accounted;
