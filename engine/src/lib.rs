//! Tables and indexes: the embedded library.
