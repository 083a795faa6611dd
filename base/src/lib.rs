//! Files, latches, wait events and test kit: what every layer stands on and that knows no database.
