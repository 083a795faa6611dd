//! Wait events, clocks, session blocks and totals: where elapsed time goes.
