"""What the peers' scripts share: reading the task, timing, printing the result.

A script prints one line of JSON: peer, version, and what it measured. Times of queries are in
microseconds, one number a query: `wall_us` on the clock, `cpu_us` of this thread's processor time,
which other programs on the machine disturb less. Each runs on one thread.
"""
import json
import os
import sys
import time

for name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR"):
    os.environ.setdefault(name + "_NUM_THREADS", "1")


def vectors(path, dims):
    """Rows of little-endian f32."""
    import numpy
    return numpy.fromfile(path, dtype="<f4").reshape(-1, dims)


def records(path):
    """JSON objects, one a line."""
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


class Given:
    """The vectors of texts: the rows of `path`, one for each line of `files`."""

    def __init__(self, files, path, dims):
        texts = (one["text"] for file in files for one in records(file))
        self.rows = dict(zip(texts, vectors(path, dims)))

    def of(self, text):
        return self.rows[text]


def by_conversation(history):
    """The turns of each conversation, with their numbers in the file."""
    conversations = {}
    for number, turn in enumerate(records(history)):
        conversations.setdefault(turn["conv"], []).append((number, turn))
    return conversations


def timed(act, inputs):
    """What `act` gave for each input, and its wall and processor times in microseconds."""
    results, wall, cpu = [], [], []
    for one in inputs:
        began, thread = time.perf_counter_ns(), time.thread_time_ns()
        results.append(act(one))
        cpu.append((time.thread_time_ns() - thread) / 1e3)
        wall.append((time.perf_counter_ns() - began) / 1e3)
    return results, wall, cpu


def rate(act, count):
    """How many of `count` things a second of processor time `act` does."""
    began = time.process_time()
    act()
    return count / max(time.process_time() - began, 1e-9)


def resident():
    """Bytes of this process in memory."""
    with open("/proc/self/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
    return 0


def size(folder):
    """Bytes of all files in `folder`."""
    return sum(entry.stat().st_size for entry in os.scandir(folder) if entry.is_file())


def sqlite():
    """A sqlite3 module that can load extensions: this interpreter's own often can't."""
    import pysqlite3
    return pysqlite3


def say(peer, version, **measured):
    json.dump({"peer": peer, "version": version, **measured}, sys.stdout)
    print()
