//! The one place that touches files.
