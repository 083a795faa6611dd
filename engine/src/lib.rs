//! Tables and indexes: the embedded library.
#![forbid(unsafe_code)]

pub mod codec;
pub mod decimal;
pub mod value;
