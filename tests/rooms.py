#!/usr/bin/env python3
"""Checks the house against its plan: which room imports which, and where imports run in circles.

    python3 rooms.py            check; prints each fault on a line, exits with 1 if there was any
    python3 rooms.py --show     print rooms, arrows, arrows that run up and circles of each crate

A room is a module right below a crate's root: a folder or a file of `src`. rooms.json lists the
rooms of each crate by floor, the highest first. A file may import from its own room and from lower
floors; rooms on one floor don't import each other. An import that runs up, or sideways, must stand
in the crate's list `up`, and a circle of files must be no larger than `circle`. Both only shrink:
an entry that isn't needed any more is a fault, too.

An import is a path in code outside tests that begins with `crate`, `self` or `super`, in a `use` or
anywhere else; a name that a module passes on by `use` counts for the file that defines it, and a
module that passes on names of its own parts imports nothing by that.
"""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PLAN = pathlib.Path(__file__).with_name("rooms.json")
NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|r(#*)".*?"\1|b?"(?:\\.|[^"\\])*"|'
                   r"'(?:\\.[^']*|[^'\\])'", re.S)
USE = re.compile(r"^\s*(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);", re.M)
PATH = re.compile(r"\b(crate|self|super)((?:\s*::\s*\w+)+)")
MODULE = re.compile(r"^\s*(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+)\s*;", re.M)


def stripped(text):
    """Code without comments, strings and what is compiled for tests alone."""
    # Comments and strings first, since braces and attributes are matched by hand below.
    text = NOISE.sub(lambda match: " " * 0 + "\n" * match[0].count("\n"), text)
    out, position = [], 0
    for mark in re.finditer(r"#\[cfg\((?:all\()?test\b[^\]]*\]", text):
        if mark.start() < position:
            continue
        out.append(text[position:mark.start()])
        position = end_of_item(text, mark.end())
    return "".join(out) + text[position:]


def end_of_item(text, start):
    """The place after the item that begins at `start`: its semicolon or its closing brace."""
    depth = 0
    for place in range(start, len(text)):
        if text[place] in "{([":
            depth += 1
        elif text[place] in "})]":
            depth -= 1
            if depth == 0 and text[place] == "}":
                return place + 1
        elif text[place] == ";" and depth == 0:
            return place + 1
    return len(text)


def leaves(tree):
    """Paths of a use tree, as (path, name here): `a::{b, c as d}` gives a::b as b and a::c as d."""
    tree = tree.strip()
    brace = tree.find("{")
    if brace < 0:
        path, _, name = tree.partition(" as ")
        parts = [part.strip() for part in path.split("::")]
        return [(parts, name.strip() or parts[-1])]
    prefix = [part.strip() for part in tree[:brace].split("::") if part.strip()]
    depth, begin, inner = 0, brace + 1, []
    for place in range(brace, len(tree)):
        if tree[place] == "{":
            depth += 1
        elif tree[place] == "}":
            depth -= 1
        if (tree[place] == "," and depth == 1) or depth == 0:
            inner.append(tree[begin:place])
            begin = place + 1
            if depth == 0:
                break
    found = [(prefix + parts, name) for part in inner if part.strip()
             for parts, name in leaves(part)]
    # `a::{self, b}` names a itself.
    return [(parts[:-1], parts[-2] if name == "self" else name) if parts[-1] == "self" else
            (parts, name) for parts, name in found]


class Crate:
    """Modules of one crate, by their paths, and what each imports."""

    def __init__(self, folder):
        self.files = {}  # module path -> file
        self.code = {}
        self.passed_on = {}  # (module path, name) -> path it stands for
        self.read((), folder / "lib.rs" if (folder / "lib.rs").exists() else folder / "main.rs",
                  folder)
        self.arrows = {}
        for module in self.files:
            found = {self.target(module, path) for path in self.paths(module)}
            self.arrows[module] = {one for one in found if one not in (None, module)}

    def read(self, module, file, folder):
        self.files[module] = file
        code = self.code[module] = stripped(file.read_text(encoding="ascii"))
        for mark in USE.finditer(code):
            for parts, name in leaves(mark[2]):
                if name != "_":
                    self.passed_on[module, name] = parts
        for name in MODULE.findall(code):
            for path in (folder / f"{name}.rs", folder / name / "mod.rs"):
                if path.exists():
                    self.read((*module, name), path, folder / name)

    def paths(self, module):
        code = self.code[module]
        for mark in USE.finditer(code):
            for parts, _ in leaves(mark[2]):
                # A room's own parts, shown at its door, aren't imports of it.
                below = mark[1] and self.absolute(module, parts) or ()
                if not below or tuple(below[:len(module)]) != module:
                    yield parts
        for mark in PATH.finditer(USE.sub("", code)):
            yield [mark[1]] + [part.strip() for part in mark[2].split("::") if part.strip()]

    def absolute(self, module, parts):
        """`parts`, said in `module`, from the crate's root; None for what is another crate's."""
        if parts[0] == "crate":
            return parts[1:]
        if parts[0] in ("self", "super"):
            base = list(module)
            while parts and parts[0] in ("self", "super"):
                if parts[0] == "super" and base:
                    base.pop()
                parts = parts[1:]
            return base + parts
        first = (*module, parts[0])
        return list(first) + parts[1:] if first in self.files else None

    def target(self, module, parts, depth=0):
        """The module that defines what `parts` names, through what modules pass on."""
        path = self.absolute(module, parts)
        if path is None or depth > 8:
            return None
        at = ()
        for place, part in enumerate(path):
            if (*at, part) in self.files:
                at = (*at, part)
                continue
            other = self.passed_on.get((at, part))
            if other is None:
                return at
            through = self.target(at, other + path[place + 1:], depth + 1)
            return through if through is not None or self.absolute(at, other) is None else at
        return at

    def circles(self):
        """Groups of modules that reach each other, largest first (Tarjan's algorithm)."""
        index, low, stack, groups = {}, {}, [], []

        def visit(module):
            index[module] = low[module] = len(index)
            stack.append(module)
            for other in self.arrows[module]:
                if other not in index:
                    visit(other)
                    low[module] = min(low[module], low[other])
                elif other in stack:
                    low[module] = min(low[module], index[other])
            if low[module] == index[module]:
                group = stack[stack.index(module):]
                del stack[stack.index(module):]
                if len(group) > 1:
                    groups.append(group)

        for module in self.arrows:
            if module not in index:
                visit(module)
        return sorted(groups, key=len, reverse=True)

    def rooms(self):
        return sorted({module[0] for module in self.files if module})

    def room_arrows(self):
        """(room, other room) -> the pairs of files behind it."""
        found = {}
        for module, others in self.arrows.items():
            for other in others:
                if module and other and module[0] != other[0]:
                    found.setdefault((module[0], other[0]), []).append((module, other))
        return found

    def name(self, module):
        return str(self.files[module].relative_to(ROOT))


def not_down(crate, floors):
    """Arrows between rooms that don't lead to a lower floor."""
    height = {room: number for number, floor in enumerate(floors) for room in floor}
    return {(a, b): pairs for (a, b), pairs in crate.room_arrows().items()
            if height.get(a, 0) >= height.get(b, 0)}


def faults_of(name, crate, plan):
    planned = [room for floor in plan["floors"] for room in floor]
    for room in crate.rooms():
        if room not in planned:
            yield f"{name}: room {room} stands on no floor; give it one in tests/rooms.json"
    for room in sorted(set(planned) - set(crate.rooms())):
        yield f"{name}: room {room} is planned and isn't there; remove it from tests/rooms.json"
    allowed = {tuple(entry.split(" -> ")) for entry in plan.get("up", [])}
    found = {(".".join(module), ".".join(other)): (module, other)
             for pairs in not_down(crate, plan["floors"]).values() for module, other in pairs}
    for pair in sorted(set(found) - allowed):
        module, other = found[pair]
        yield (f"{crate.name(module)} imports from {crate.name(other)}, which isn't on a lower "
               "floor: move what both need down, or pass it in")
    for a, b in sorted(allowed - set(found)):
        yield f"{name}: {a} -> {b} is allowed and doesn't happen; remove it from tests/rooms.json"
    circles = crate.circles()
    largest = max((len(group) for group in circles), default=1)
    most = plan.get("circle", 1)
    for group in circles:
        if len(group) > most:
            names = ", ".join(sorted(crate.name(module) for module in group))
            yield f"{name}: a circle of {len(group)} files, {most} is the most: {names}"
    if largest < most:
        yield f"{name}: no circle is above {largest}; write that in tests/rooms.json"


def show(name, crate, plan):
    arrows = crate.room_arrows()
    up = not_down(crate, plan["floors"])
    print(f"{name}: {len(crate.rooms())} rooms, {len(arrows)} arrows, {len(up)} not down "
          f"({sum(map(len, up.values()))} imports)")
    for (a, b), pairs in sorted(up.items()):
        for module, other in sorted(pairs):
            print(f"    \"{'.'.join(module)} -> {'.'.join(other)}\",")
    for group in crate.circles():
        print(f"    circle of {len(group)}: {', '.join(sorted('.'.join(m) or 'lib' for m in group))}")


def main():
    plan = json.loads(PLAN.read_text(encoding="ascii"))
    faults = []
    for name, part in plan.items():
        crate = Crate(ROOT / name / "src")
        if sys.argv[1:] == ["--show"]:
            show(name, crate, part)
        else:
            faults += faults_of(name, crate, part)
    for fault in faults:
        print(fault)
    if sys.argv[1:] != ["--show"]:
        print(f"rooms: {len(plan)} crates, {len(faults)} faults")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
