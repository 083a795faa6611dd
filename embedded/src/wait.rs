//! The wait of a synchronous call: the calling thread drives the future and performs its own I/O.

use std::future::Future;

use clearway_base::sync::block_on;
use clearway_base::vfs::inline_io_here;

/// Drives a future on this thread, which performs its own I/O.
pub(crate) fn wait<F: Future>(future: F) -> F::Output {
    let _inline = inline_io_here();
    block_on(future)
}
