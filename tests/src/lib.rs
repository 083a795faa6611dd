//! Black-box tests and the model of the protocol.
