//! Snapshots, locks and the commit section.
