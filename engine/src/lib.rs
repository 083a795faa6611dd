//! Tables and indexes: the embedded library.
#![forbid(unsafe_code)]

pub mod catalog;
pub mod codec;
pub mod decimal;
pub mod error;
pub mod value;
