#!/usr/bin/env python3
"""Finds the libclang that bindgen opens, and proves that it reads C headers.

    python3 libclang.py [--root DIR]

The bindings to llama.cpp are made with bindgen, which opens libclang while the build runs. This
looks where bindgen looks (crate clang-sys 1.9: LIBCLANG_PATH alone if it is set, else llvm-config's
folders and the system's) and parses a file with what it finds: `libclang-cpp.so.14` is another
library, and a libclang without its package of headers can't read `#include <stddef.h>`.

Prints `first PATH` if the library that bindgen takes by itself works, `other PATH` if LIBCLANG_PATH
must name another one, and exits with 0; else says what is wrong with each and exits with 1.

--root DIR looks below DIR in place of / (for tests).
"""
import argparse
import fnmatch
import glob
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

try:
    import ctypes
except ImportError:  # a Python that was built without libffi: the name must do
    ctypes = None

NAMES = ("libclang.so", "libclang-*.so", "libclang.so.*", "libclang-*.so.*")
FOLDERS = ("usr/local/llvm*/lib*", "usr/local/lib*/*/*", "usr/local/lib*/*", "usr/local/lib*",
           "usr/lib*/*/*", "usr/lib*/*", "usr/lib*")
HEADERS = ("stdbool.h", "stddef.h", "stdint.h", "stdio.h")
ERROR = 3  # CXDiagnostic_Error


def is_name(name):
    """True for a file name that clang-sys takes for libclang."""
    return "-cpp." not in name and any(fnmatch.fnmatchcase(name, form) for form in NAMES)


def in_folder(folder):
    """Libraries of one folder, as clang-sys names them; links that lead nowhere aren't there."""
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    paths = [pathlib.Path(folder, name) for name in sorted(names) if is_name(name)]
    return [path for path in paths if path.is_file()]


def output_of(*command):
    try:
        ran = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return ran.stdout.decode(errors="replace")


def candidates(root):
    """Every file that has the right name, in clang-sys's order."""
    chosen = os.environ.get("LIBCLANG_PATH")
    if chosen:
        path = pathlib.Path(chosen)
        return [path] if path.is_file() and is_name(path.name) else in_folder(path)
    found = []
    if root == "/":
        prefix = output_of(os.environ.get("LLVM_CONFIG_PATH", "llvm-config"), "--prefix").strip()
        if prefix:
            for part in ("bin", "lib", "lib64"):
                found += in_folder(os.path.join(prefix, part))
    for form in FOLDERS:
        for folder in sorted(glob.glob(os.path.join(glob.escape(root), form))):
            found += in_folder(folder)
    return found


def is_ours(path):
    """True for an ELF file of this process's word size."""
    try:
        with path.open("rb") as file:
            head = file.read(5)
    except OSError:
        return False
    return head == b"\x7fELF" + (b"\x02" if sys.maxsize > 2**32 else b"\x01")


def version(path):
    number = re.sub(r"^libclang(\.so\.|-)", "", path.name).removesuffix(".so")
    if number == path.name or path.name == "libclang.so":
        return []
    return [int(part) if part.isdigit() else 0 for part in number.split(".")]


def ranked(root):
    """Libraries of this machine in the order of clang-sys's preference: the newest by name first."""
    return sorted((path for path in candidates(root) if is_ours(path)), key=version, reverse=True)


def arguments():
    """What bindgen hands to libclang here: the headers of a clang in the path, and the user's."""
    clang = os.environ.get("CLANG_PATH", "clang")
    listed = output_of(clang, "-E", "-x", "c", "-", "-v")
    found = re.search(r"#include <\.\.\.> search starts here:\n(.*?)End of search", listed, re.S)
    given = [f"-isystem{line.strip()}" for line in found[1].splitlines()] if found else []
    return given + shlex.split(os.environ.get("BINDGEN_EXTRA_CLANG_ARGS", ""))


def faults_of(library):
    """What keeps `library` from reading a file of C that includes the usual headers."""
    if ctypes is None:
        return None
    try:
        clang = ctypes.CDLL(str(library))
        create, parse = clang.clang_createIndex, clang.clang_parseTranslationUnit
        count, get = clang.clang_getNumDiagnostics, clang.clang_getDiagnostic
        severity = clang.clang_getDiagnosticSeverity
    except (OSError, AttributeError) as error:
        return f"it can't be loaded: {error}"
    create.restype = parse.restype = get.restype = ctypes.c_void_p
    parse.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_char_p),
                      ctypes.c_int, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
    count.argtypes, severity.argtypes = [ctypes.c_void_p], [ctypes.c_void_p]
    get.argtypes = [ctypes.c_void_p, ctypes.c_uint]
    given = [argument.encode() for argument in arguments()]
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "probe.c")
        source.write_text("".join(f"#include <{name}>\n" for name in HEADERS), encoding="ascii")
        unit = parse(create(0, 0), os.fsencode(source), (ctypes.c_char_p * len(given))(*given),
                     len(given), None, 0, 0)
        if not unit:
            return "it can't parse C"
        if any(severity(get(unit, number)) >= ERROR for number in range(count(unit))):
            return f"it can't find the compiler's headers ({', '.join(HEADERS)})"
    return None


def main():
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--root", default="/")
    libraries = ranked(parser.parse_args().root)
    if not libraries:
        sys.exit("no libclang was found (libclang.so, libclang-N.so or libclang.so.N)")
    faults = []
    for library in dict.fromkeys(libraries):
        fault = faults_of(library)
        if fault is None:
            print("first" if not faults else "other", library)
            return
        faults.append(f"{library}: {fault}")
    sys.exit("\n".join(faults))


if __name__ == "__main__":
    main()
