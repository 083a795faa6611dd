//! The protocol against a stub of the SQL layer, without a database: what a client sends and receives.

mod door;
mod fuzz;
mod protocol;
mod states;
mod stub;
