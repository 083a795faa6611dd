//! The contention lab: the same scenario against Clearway and its peers.
