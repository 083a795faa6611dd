//! The PostgreSQL wire protocol and sessions.
