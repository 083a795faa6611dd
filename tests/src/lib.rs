//! Black-box tests and the model of the protocol.

pub mod crash;
pub mod model;
