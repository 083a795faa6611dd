//! Latches, mutexes, queues of waiting tasks and threads: spin-then-park written once, every slow path in the books.
