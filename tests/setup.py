#!/usr/bin/env python3
"""Tests of examples/setup.sh: what a machine lacks is noticed, whatever lies around in its place.

    python3 tests/setup.py

Machines are made up: folders with libraries of certain names, and search paths in which one
command is missing, too old, or starts and does nothing. Ends with unittest's report.
"""
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True  # leaves no __pycache__ in the clone
ROOT = pathlib.Path(__file__).resolve().parent.parent
PROBE = ROOT / "examples" / "libclang.py"
SCRIPT = f'root={ROOT}; . "$root/examples/setup.sh"; '
TOOLS = ("sh bash cc c++ ld as make cmake python3 ccache pkg-config sed sort head cut mktemp rm cat "
         "uname tr dirname basename grep id xargs env ls tee echo").split()


class Libclang(unittest.TestCase):
    """Names of libraries in made-up folders, as crate clang-sys takes or leaves them."""

    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root)

    def put(self, path, content=b"\x7fELF\x02 and nothing that could be loaded"):
        path = self.root / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    def answer(self, **environment):
        inherited = {name: value for name, value in os.environ.items() if "CLANG" not in name}
        ran = subprocess.run([sys.executable, PROBE, "--root", self.root], capture_output=True,
                             text=True, env=inherited | environment, check=False)
        return ran.returncode, ran.stdout + ran.stderr

    def test_other_libraries_of_clang_are_not_libclang(self):
        for name in ("libclang-cpp.so.14", "libclang-cpp.so", "libclangAST.so", "libclang.a",
                     "libclang.so", "xlibclang.so.1"):
            if name != "libclang.so":
                self.put(f"usr/lib/x86_64-linux-gnu/{name}")
        self.put("usr/lib/llvm-14/lib/libclang-cpp.so.14")
        code, said = self.answer()
        self.assertEqual(code, 1, said)
        self.assertIn("no libclang was found", said)

    def test_every_form_of_the_name_is_looked_at(self):
        for name in ("libclang.so", "libclang-14.so", "libclang.so.1", "libclang-14.so.1",
                     "libclang-14.so.14.0.6"):
            path = self.put(f"usr/lib/llvm-14/lib/{name}")
            code, said = self.answer()
            self.assertEqual(code, 1, said)
            self.assertIn(f"{path}: it can't be loaded", said)
            path.unlink()

    def test_a_link_that_leads_nowhere_and_a_file_of_another_kind_are_not_there(self):
        link = self.put("usr/lib/llvm-14/lib/other").with_name("libclang.so")
        link.symlink_to(self.root / "removed")
        self.put("usr/lib/x86_64-linux-gnu/libclang-13.so.1", b"INPUT ( libclang-13.so )")
        self.put("usr/lib/i386-linux-gnu/libclang-15.so.1", b"\x7fELF\x01 of 32 bits")
        code, said = self.answer()
        self.assertEqual(code, 1, said)
        self.assertIn("no libclang was found", said)

    def test_a_path_that_the_user_names_is_the_only_one_looked_at(self):
        self.put("usr/lib/llvm-14/lib/libclang.so")
        mine = self.put("mine/libclang.so.9")
        for named in (mine, mine.parent):
            code, said = self.answer(LIBCLANG_PATH=str(named))
            self.assertEqual(code, 1, said)
            self.assertIn(f"{mine}: it can't be loaded", said)
            self.assertNotIn("llvm-14", said)
        code, said = self.answer(LIBCLANG_PATH=str(self.root / "mine" / "libclang-cpp.so.14"))
        self.assertIn("no libclang was found", said)

    def test_a_broken_library_is_passed_over_for_one_that_works(self):
        works = subprocess.run([sys.executable, PROBE], capture_output=True, text=True, check=False)
        if works.returncode != 0:
            self.skipTest("this machine has no libclang")
        library = pathlib.Path(works.stdout.split(" ", 1)[1].strip()).resolve()
        # Beside itself, so that it finds its headers, which it looks for from where it lies.
        folder = self.root / "usr" / "lib"
        folder.mkdir(parents=True)
        (folder / "libclang-2.so").symlink_to(library)
        self.assertEqual(self.answer(), (0, f"first {folder}/libclang-2.so\n"))
        self.put("usr/lib/llvm-99/lib/libclang-99.so.1")
        self.assertEqual(self.answer(), (0, f"other {folder}/libclang-2.so\n"))


class Tools(unittest.TestCase):
    """Search paths that lack one command, or hold something else by its name."""

    def setUp(self):
        self.path = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.path)
        for tool in TOOLS:
            found = sys.executable if tool == "python3" else shutil.which(tool)
            if found:
                # A script, since compilers and Python look for their parts beside themselves.
                self.put(tool, f'exec {found} "$@"')

    def put(self, tool, script):
        path = self.path / tool
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="ascii")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def missing(self, ask="missing_tools build"):
        kept = {name: value for name, value in os.environ.items()
                if name not in ("CC", "CXX", "CMAKE", "MAKEFLAGS")}
        ran = subprocess.run(["/bin/bash", "-c", SCRIPT + ask], capture_output=True, text=True,
                             env=kept | {"PATH": str(self.path)}, check=False)
        return ran.stdout.split()

    def test_a_whole_machine_lacks_nothing(self):
        self.assertEqual(self.missing(), [])

    def test_each_missing_command_names_its_package(self):
        for tool, package in (("cc", "build-essential"), ("c++", "build-essential"),
                              ("make", "build-essential"), ("cmake", "cmake")):
            with self.subTest(tool):
                kept = (self.path / tool).read_text()
                (self.path / tool).unlink()
                try:
                    self.assertEqual(self.missing(), [package])
                finally:
                    self.put(tool, kept.split("\n", 1)[1])
        (self.path / "python3").unlink()
        self.assertIn("python3", self.missing())

    def test_what_has_the_name_and_does_not_work_counts_as_missing(self):
        python = (self.path / "python3").read_text().split("\n", 1)[1]
        pip = '[ "$2" != pip ] || exit 1\n'
        ssl = 'case "$2" in *ssl*) exit 1 ;; esac\n'
        old = 'case "$2" in *version_info*) exit 1 ;; esac\n'
        for tool, script, package in (
                ("cc", "exit 0", "build-essential"),
                ("c++", "exit 1", "build-essential"),
                ("c++", 'echo "fatal error: string: No such file"; exit 1', "build-essential"),
                ("make", "exit 0", "build-essential"),
                ("cmake", "echo cmake version 3.10.2", "cmake"),
                ("cmake", "exit 127", "cmake"),
                ("python3", pip + python, "python3-pip"),
                ("python3", ssl + python, "python3-pip"),
                ("python3", old + python, "python3")):
            with self.subTest(f"{tool}: {script[:40]}"):
                kept = (self.path / tool).read_text()
                self.put(tool, script)
                try:
                    self.assertEqual(self.missing(), [package])
                finally:
                    (self.path / tool).write_text(kept)

    def test_helpers_that_do_not_start_are_asked_for(self):
        self.put("ccache", "exit 1")
        self.put("pkg-config", "exit 0")
        self.assertEqual(self.missing("missing_helpers"), ["ccache"])

    def test_a_rust_without_a_toolchain_is_told_of(self):
        self.put("cargo", "echo 'error: rustup could not choose a version of cargo' >&2; exit 1")
        self.put("rustc", "exit 1")
        ran = subprocess.run(["/bin/bash", "-c", SCRIPT + "ensure_rust"], capture_output=True,
                             text=True, env={"PATH": str(self.path), "HOME": "/nowhere"},
                             check=False)
        self.assertEqual(ran.returncode, 1)
        self.assertIn("rustup default stable", ran.stderr)

    def test_a_failed_build_names_the_packages_that_its_errors_tell_of(self):
        for error, package in (
                ("Unable to find libclang: \"couldn't find any valid shared libraries",
                 "libclang-dev"),
                ("/usr/include/stdio.h:33:10: fatal error: 'stddef.h' file not found",
                 "libclang-dev"),
                ("error: linker `cc` not found", "build-essential"),
                ("CMake Error: CMAKE_CXX_COMPILER not set, after EnableLanguage",
                 "build-essential"),
                ("failed to execute command: No such file or directory\nis `cmake` not installed?",
                 "cmake")):
            with self.subTest(package):
                ran = subprocess.run(
                    ["/bin/bash", "-c", SCRIPT + 'build_or_explain sh -c "printf %s \\"$1\\"; exit 1"',
                     "setup", error.replace("`", "\\`").replace('"', "")],
                    capture_output=True, text=True, env=os.environ, check=False)
                self.assertEqual(ran.returncode, 1)
                self.assertIn(f"--reinstall {package}, run again", ran.stderr)


if __name__ == "__main__":
    unittest.main()
