#!/usr/bin/env python3
"""Finds recursions that do not ask for stack (STK-1 in base/src/stack.rs), in the machine code of a debug build.

usage: tests/recursion.py BINARY [--bytes 600] [--all]

The calls between functions are read from objdump's output, those of `stack::deeper` left out: what still calls itself, through others or not, recurses
without asking for more stack. Frames of a cycle that take more than `--bytes` together end a thread's stack within a few thousand levels. Such a cycle fails
unless tests/recursion.list names one of its functions with the reason for which it is not deep. Calls through pointers are not seen. `--all` shows the
small ones too. A debug build has frames several times as large as a release build. The last line is `N passed, N failed`.
"""
import argparse, os, re, subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
HEAD = re.compile(r"^<(.+)>:$")
CALL = re.compile(r"\b(call|jmp)\s+<([^>+]+)>")
FRAME = re.compile(r"(?:sub\s+\$0x([0-9a-f]+),%rsp|lea\s+-0x([0-9a-f]+)\(%rsp\),%r11)")
# Where more stack is asked for; what the compiler makes to drop values (bounded by SYN-2, STK-1) and to show them.
LEFT_OUT = re.compile(r"stack6deeper|deeper_polls|maybe_grow|drop_in_place|core3fmt|4core9panicking")
# The prologue of a function, in lines.
PROLOGUE = 40


def read(binary):
    """What each function calls, and the bytes of its frame."""
    calls, frames, name, line_of = {}, {}, None, 0
    command = ["objdump", "-d", "--no-show-raw-insn", "--no-addresses", binary]
    for line in subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace").stdout:
        head = HEAD.match(line)
        if head:
            name, line_of = head.group(1), 0
            calls.setdefault(name, set())
            frames.setdefault(name, 8)
            continue
        if name is None:
            continue
        line_of += 1
        if line_of < PROLOGUE:
            frame = FRAME.search(line)
            frames[name] += int(frame.group(1) or frame.group(2), 16) if frame else 8 * ("push " in line)
        call = CALL.search(line)
        # A jump within a function is no call.
        if call and (call.group(1) == "call" or call.group(2) != name):
            calls[name].add(call.group(2))
    return calls, frames


def cycles(calls):
    """Sets of functions that reach each other (Tarjan's algorithm)."""
    nodes = {name for name in calls if not LEFT_OUT.search(name)}
    number, low, stack, on_stack = {}, {}, [], set()
    for root in nodes:
        if root in number:
            continue
        number[root] = low[root] = len(number)
        stack.append(root)
        on_stack.add(root)
        work = [(root, iter(calls[root]))]
        while work:
            name, rest = work[-1]
            for called in rest:
                if called not in nodes:
                    continue
                if called not in number:
                    number[called] = low[called] = len(number)
                    stack.append(called)
                    on_stack.add(called)
                    work.append((called, iter(calls[called])))
                    break
                if called in on_stack:
                    low[name] = min(low[name], number[called])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[name])
                if low[name] == number[name]:
                    found = []
                    while not found or found[-1] != name:
                        found.append(stack.pop())
                        on_stack.discard(found[-1])
                    if len(found) > 1 or name in calls[name]:
                        yield found


def shown(names):
    """Names as the source has them."""
    text = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True).stdout
    return [re.sub(r"::h[0-9a-f]{16}$", "", name) for name in text.splitlines()]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--bytes", type=int, default=600)
    parser.add_argument("--all", action="store_true")
    asked = parser.parse_args()
    lines = [line.rstrip("\n") for line in open(f"{HERE}/recursion.list") if line.strip() and not line.startswith("#")]
    listed = [line.split(" -- ")[0] for line in lines]
    used, passed, failed = set(), 0, 0
    calls, frames = read(asked.binary)
    assert len(calls) > 10_000, f"{asked.binary} has no symbols, or objdump is not there"
    for cycle in cycles(calls):
        own = [name for name in cycle if "clearway" in name]
        size = sum(frames[name] for name in cycle)
        if not own or (size <= asked.bytes and not asked.all):
            continue
        names = sorted(set(shown(own)))
        known = [entry for entry in listed if any(entry in name for name in names)]
        used.update(known)
        passed, failed = passed + bool(known), failed + (not known)
        if not known or asked.all:
            print(f"{'listed' if known else 'FAILED'}: {size} bytes a level without stack::deeper: {'; '.join(names)}")
    for entry in set(listed) - used:
        failed += 1
        print(f"FAILED: recursion.list names {entry}, which is no such recursion any more")
    print(f"{passed} passed, {failed} failed")


main()
