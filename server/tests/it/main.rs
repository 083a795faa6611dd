//! The protocol against a stub of the SQL layer: what a client sends and sees, without a database.

mod door;
mod fuzz;
mod protocol;
mod states;
mod stub;
