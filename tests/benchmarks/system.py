"""What the operating system says of a process. Linux reads ``/proc``; elsewhere ``ps`` is asked."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path


def family(process: int) -> list[int]:
    """The process and its descendants: some commands are launchers that stay."""
    found = [process]
    for parent in found:
        for children in Path(f"/proc/{parent}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                found.extend(int(child) for child in children.read_text().split())
    return found


def resident(process: int) -> float:
    """MiB resident now."""
    if sys.platform != "linux":
        said = subprocess.run(
            ["ps", "-o", "rss=", "-p", str(process)], check=True, capture_output=True, text=True
        )
        return int(said.stdout) / 1024
    kib = 0
    for member in family(process):
        status = Path(f"/proc/{member}/status").read_text()
        kib += int(status.partition("VmRSS:")[2].split()[0])
    return kib / 1024


def processor(process: int) -> float:
    """CPU milliseconds spent so far, by threads that have ended too."""
    if sys.platform == "linux":
        # The id of its CPU clock, as the kernel builds it: nanoseconds, where /proc has ticks.
        clocks = ((~member << 3) | 2 for member in family(process))
        return sum(time.clock_gettime_ns(clock) for clock in clocks) / 1e6
    said = subprocess.run(
        ["ps", "-o", "time=", "-p", str(process)], check=True, capture_output=True, text=True
    )
    minutes, _, seconds = said.stdout.strip().rpartition(":")
    return (int(minutes.replace(":", "") or 0) * 60 + float(seconds)) * 1000


def switches(process: int) -> dict[str, int]:
    """Context switches so far of each thread alive; empty where the system does not count them."""
    counts: dict[str, int] = {}
    for member in family(process):
        for task in Path(f"/proc/{member}/task").glob("*"):
            said = re.findall(r"ctxt_switches:\s*(\d+)", (task / "status").read_text())
            counts[task.name] = sum(map(int, said))
    return counts


def python_of(command: Sequence[str]) -> str:
    """The interpreter behind a command, so that the bare programs run on the same one."""
    program = shutil.which(command[0]) or command[0]
    if re.fullmatch(r"python[\d.]*", Path(program).name):
        return program
    with contextlib.suppress(OSError), Path(program).open("rb") as script:
        head = script.read(1024)
        found = re.search(rb"(/[^\s'\"]*python[\d.]*)", head) if head.startswith(b"#!") else None
        if found:
            return found[1].decode()
    return sys.executable


@contextlib.contextmanager
def apart(processes: Sequence[int]) -> Iterator[None]:
    """This process on one CPU and the others on the next, where the system can do that.

    Left alone, the scheduler moves an echo loop to and from the asker's CPU, and its p50 jumps by
    half between one round and the next.
    """
    if sys.platform != "linux" or len(before := os.sched_getaffinity(0)) < 2:
        yield
        return
    ours, theirs = sorted(before)[:2]
    for process in processes:
        for member in family(process):
            for task in Path(f"/proc/{member}/task").iterdir():
                os.sched_setaffinity(int(task.name), {theirs})
    os.sched_setaffinity(0, {ours})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
