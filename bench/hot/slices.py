#!/usr/bin/env python3
"""Gives the workers of a running server slices of another length, so that one program can be measured with several.

usage: bench/hot/slices.py PID NANOSECONDS (100000 is what the workers ask for; 0 is the system's own)

The threads named `worker` of the process get it by sched_setattr. Threads that the server starts later ask for their own.
"""
import ctypes, os, struct, sys

SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}[os.uname().machine]


def main():
    pid, slice_ns = map(int, sys.argv[1:3])
    libc = ctypes.CDLL(None, use_errno=True)
    attributes = ctypes.create_string_buffer(struct.pack("=IIQiIQQQ", 48, 0, 0, 0, 0, slice_ns, 0, 0))
    for thread in os.listdir(f"/proc/{pid}/task"):
        if not open(f"/proc/{pid}/task/{thread}/comm").read().startswith("worker"):
            continue
        if libc.syscall(SCHED_SETATTR, int(thread), attributes, 0):
            sys.exit(f"thread {thread}: {os.strerror(ctypes.get_errno())}")


main()
