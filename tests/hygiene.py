#!/usr/bin/env python3
"""Checks of the tree itself, run by tests/run.sh.

    python3 hygiene.py files      names at the top, ASCII text, length of source files
    python3 hygiene.py licences   every dependency's licence, as Cargo.lock resolves them
    python3 hygiene.py manual     paths that the manual and the README name, rooms on the map
    python3 hygiene.py builds     one build of llama.cpp, whichever packages are selected

Prints each fault on a line and exits with 1 if there was any.
"""
import fnmatch
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOP_LEVEL = {"Cargo.toml", "Cargo.lock", "engine", "llm-local", "storage", "hal", "examples",
             "bench", "tests", "README.md", "LICENSE", "CHANGELOG.md"}
LONGEST = 800
MANUAL = "engine/src/manual"
# Test data may hold any bytes: other scripts, broken UTF-8, old database files.
DATA = ["*/fixtures/*", "*/testdata/*", "*.rotation", "*/proptest-regressions/*"]
# Tests may be long: a table of cases is easier to read in one piece.
TESTS = ["tests/*", "*/tests/*", "*/tests.rs", "*_tests.rs"]

# Permissive, and compatible with offering the whole under MIT or Apache-2.0.
ALLOWED = {"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0", "ISC",
           "MIT", "MIT-0", "Unicode-3.0", "Unlicense", "Zlib"}
ALLOWED_EXCEPTIONS = {"LLVM-exception"}


def tracked():
    """Files of the tree: git's list in a clone, all but build output in an unpacked archive."""
    if (ROOT / ".git").exists():
        listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others",
                                 "--exclude-standard"], check=True, stdout=subprocess.PIPE)
        names = listed.stdout.decode().split("\0")
        return sorted(n for n in names if n and (ROOT / n).is_file())
    return sorted(os.path.relpath(path, ROOT) for path in ROOT.rglob("*")
                  if path.is_file() and path.relative_to(ROOT).parts[0] != "target")


def matches(name, patterns):
    return any(fnmatch.fnmatch(name, pattern) for pattern in patterns)


def faults_of_file(name):
    top = name.split("/", 1)[0]
    if not top.startswith(".") and top not in TOP_LEVEL:
        yield f"{name}: {top} has no place at the top of the tree"
    if matches(name, DATA):
        return
    content = (ROOT / name).read_bytes()
    lines = content.split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line.isascii():
            yield f"{name}:{number}: not plain ASCII; write an escape such as \\u{{e9}}"
            break
    if name.endswith(".rs") and len(lines) - 1 > LONGEST and not matches(name, TESTS):
        yield f"{name}: {len(lines) - 1} lines; split it, {LONGEST} is the most"


def check_files():
    names = tracked()
    return [fault for name in names for fault in faults_of_file(name)], f"{len(names)} files"


def without_fences(text):
    """The lines of a page, numbered, without what stands in fenced blocks."""
    fenced = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield number, line


def faults_of_page(page):
    """Paths in a page that lead nowhere: of the tree in code spans, beside the page in links."""
    for number, line in without_fences((ROOT / page).read_text(encoding="ascii")):
        for path in re.findall(r"`([\w./-]+)`", line):
            if path.split("/")[0] in TOP_LEVEL and not (ROOT / path).exists():
                yield f"{page}:{number}: there is no {path}"
        for path in re.findall(r"(?:\]\(|^\[\w+\]: )([\w./-]+)", line):
            if not (ROOT / page).parent.joinpath(path).exists():
                yield f"{page}:{number}: there is no {path} beside it"


def rooms_of_map(page):
    """Rooms that the map lists, by crate: `# PATH: ...`, below it `ROOM`, `ROOM`: what for."""
    lines = [line for _, line in without_fences((ROOT / page).read_text(encoding="ascii"))]
    for section in re.split(r"^# ", "\n".join(lines), flags=re.M):
        crate = re.match(r"([\w/-]+): ", section)
        if crate:
            listed = re.findall(r"((?:`\w+`,\s+)*`\w+`):", section)
            yield crate[1], set(re.findall(r"\w+", " ".join(listed)))


def faults_of_map(page):
    for crate, rooms in rooms_of_map(page):
        if not (ROOT / crate / "src").is_dir():
            yield f"{page}: there is no {crate}/src"
            continue
        there = {path.stem for path in (ROOT / crate / "src").iterdir()
                 if not matches(f"{crate}/src/{path.name}", TESTS)} - {"lib", "main"}
        for room in sorted(rooms - there):
            yield f"{page}: {crate}/src has no {room}"
        for room in sorted(there - rooms):
            yield f"{page}: {crate}/src/{room} isn't on the map"


def check_manual():
    pages = ["README.md"] + [f"{MANUAL}/{path.name}" for path in (ROOT / MANUAL).glob("*.md")]
    faults = [fault for page in sorted(pages) for fault in faults_of_page(page)]
    return faults + list(faults_of_map(f"{MANUAL}/architecture.md")), f"{len(pages)} pages"


def allowed(expression):
    """Whether an SPDX expression leaves us a choice that is allowed."""
    tokens = re.findall(r"[()]|[^\s()]+", expression.replace("/", " OR "))
    position = 0

    def peek():
        return tokens[position] if position < len(tokens) else None

    def take():
        nonlocal position
        position += 1
        return tokens[position - 1]

    def either():
        result = both()
        while peek() == "OR":
            take()
            result = both() or result
        return result

    def both():
        result = single()
        while peek() == "AND":
            take()
            result = single() and result
        return result

    def single():
        if peek() == "(":
            take()
            result = either()
            return peek() == ")" and take() == ")" and result
        result = peek() is not None and take() in ALLOWED
        if peek() == "WITH":
            take()
            result = result and peek() is not None and take() in ALLOWED_EXCEPTIONS
        return result

    return either() and position == len(tokens)


def check_licences():
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--manifest-path",
               str(ROOT / "Cargo.toml")]
    answer = subprocess.run(command, check=False, stdout=subprocess.PIPE)
    if answer.returncode != 0:
        return ["cargo can't read this workspace, see above"], "no packages"
    packages = json.loads(answer.stdout)
    faults = []
    for package in packages["packages"]:
        if not allowed(package["license"] or ""):
            faults.append(f"{package['name']} {package['version']}: licence "
                          f"{package['license'] or 'not stated'} isn't among the allowed ones")
    return faults, f"{len(packages['packages'])} packages"


def units_of_llama(selection):
    """Cargo's units, and which of them runs the build of llama.cpp, for one selection of packages."""
    # The graph of units is an unstable output; the variable opens it in a stable cargo.
    command = ["cargo", *selection, "--locked", "--unit-graph", "-Z", "unstable-options",
               "--manifest-path", str(ROOT / "Cargo.toml")]
    answer = subprocess.run(command, check=True, stdout=subprocess.PIPE,
                            env=os.environ | {"RUSTC_BOOTSTRAP": "1"})
    units = json.loads(answer.stdout)["units"]
    return units, [number for number, unit in enumerate(units)
                   if "llama-cpp-sys-2@" in unit["pkg_id"] and unit["mode"] == "run-custom-build"]


def first_difference(units, number, others, other, seen):
    """What differs between two units of one crate or, before that, between what they stand on."""
    if (number, other) in seen:
        return None
    seen.add((number, other))
    mine, theirs = units[number], others[other]
    below = {(one["extern_crate_name"], units[one["index"]]["pkg_id"]): one["index"]
             for one in mine["dependencies"]}
    for one in theirs["dependencies"]:
        match = below.get((one["extern_crate_name"], others[one["index"]]["pkg_id"]))
        if match is not None:
            found = first_difference(units, match, others, one["index"], seen)
            if found:
                return found
    if mine["features"] != theirs["features"]:
        differ = sorted(set(mine["features"]) ^ set(theirs["features"]))
        return f"{mine['pkg_id'].rsplit('#', 1)[-1]} differs by {', '.join(differ)}"
    profiles = [dict(unit["profile"], name="") for unit in (mine, theirs)]
    if profiles[0] != profiles[1]:
        return f"{mine['pkg_id'].rsplit('#', 1)[-1]} has another profile"
    return None


def check_builds():
    """Other features of anything below llama.cpp would compile it once more, in ten minutes."""
    manifest = (ROOT / "Cargo.toml").read_text(encoding="ascii")
    members = re.search(r"^members = \[(.*?)\]", manifest, re.M | re.S)[1]
    names = [re.search(r'^name = "(.*)"', (ROOT / path / "Cargo.toml").read_text(), re.M)[1]
             for path in re.findall(r'"([^"]+)"', members)]
    whole, whole_builds = units_of_llama(["build", "--workspace", "--all-targets"])
    selections = [["build"], ["build", "--workspace"], ["test", "--workspace"]]
    selections += [[verb, "-p", name] for name in names for verb in ("build", "test")]
    faults = []
    for selection in selections:
        units, builds = units_of_llama(selection)
        for build in builds:
            differ = first_difference(units, build, whole, whole_builds[0], set())
            if differ:
                faults.append(f"cargo {' '.join(selection)} compiles llama.cpp again, since "
                              f"{differ}: even it out in llm-local/Cargo.toml")
    return faults, f"{len(selections)} selections"


def main():
    checks = {"files": check_files, "licences": check_licences, "builds": check_builds,
              "manual": check_manual}
    if len(sys.argv) != 2 or sys.argv[1] not in checks:
        sys.exit(f"usage: hygiene.py {'|'.join(checks)}")
    faults, looked_at = checks[sys.argv[1]]()
    for fault in faults:
        print(fault)
    print(f"{sys.argv[1]}: {looked_at}, {len(faults)} faults")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
