//! Black-box tests and the model of the protocol.

pub mod model;
