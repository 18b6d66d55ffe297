#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shows that each check finds what it is there to find.

Usage: self_test.py CXX NM OBJDUMP
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

import instructions
import layers
import manners
import snippets
import sources

CXX, NM, OBJDUMP = sys.argv[1:4]
LICENSE = "// SPDX-License-Identifier: Apache-2.0\n"


class Tree(unittest.TestCase):
    """A test case with a made-up source tree."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def write(self, name: str, text: str) -> pathlib.Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def assertFinds(self, findings, *expected):
        """One finding for each expected piece of text, in order."""
        self.assertEqual(len(findings), len(expected), findings)
        for finding, piece in zip(findings, expected):
            self.assertIn(piece, finding)


class LayersTest(Tree):
    def setUp(self):
        super().setUp()
        self.write("lib/kv/CMakeLists.txt", "incipit_module(kv a.cpp\n  DEPENDS base tensor)\n")
        self.write("lib/engine/CMakeLists.txt", "incipit_module(engine a.cpp DEPENDS base cpu kv)")

    def test_accepts_what_the_table_allows(self):
        self.write("lib/kv/a.cpp", '#include "kv/a.h"\n#include "base/b.h"\n#include <vector>\n')
        self.write("lib/kv/b.cpp", '#include "incipit/prefix_cache.h"\n')
        self.write("lib/engine/make_device.cpp", '#include "cpu/cpu_device.h"\n')
        self.assertFinds(layers.check(self.root))

    def test_finds_a_forbidden_module(self):
        self.write("lib/kv/a.cpp", '#include "model/config.h"\n')
        self.assertFinds(layers.check(self.root), "kv may not include model/config.h")

    def test_finds_a_device_named_elsewhere(self):
        self.write("lib/engine/engine.cpp", '# include "cpu/cpu_device.h"\n')
        self.assertFinds(layers.check(self.root), "only lib/engine/make_device.cpp")

    def test_finds_what_cmake_does_not_know(self):
        self.write("lib/kv/a.cpp", '#include "device/device.h"\n')
        self.assertFinds(layers.check(self.root), "does not DEPEND on device")

    def test_finds_a_dependency_that_the_table_forbids(self):
        self.write("lib/kv/CMakeLists.txt", "incipit_module(kv a.cpp DEPENDS model\n LIBRARIES x)")
        self.write("lib/kv/a.cpp", "")
        self.assertFinds(layers.check(self.root), "may not DEPEND on model")

    def test_finds_relative_and_unknown_names(self):
        self.write("lib/kv/a.cpp", '#include "../base/b.h"\n#include "a.h"\n')
        self.write("lib/odd/a.cpp", "")
        findings = layers.check(self.root)
        self.assertFinds(findings, '"../base/b.h"', '"a.h"', "odd is no module")

    def test_finds_internals_in_public_headers_and_examples(self):
        self.write("include/incipit/a.h", '#include "base/b.h"\n')
        self.write("examples/a.cpp", "#include <kv/a.h>\n")
        self.write("tests/a.cpp", '#include "kv/a.h"\n')
        self.assertFinds(layers.check(self.root), "not kv/a.h", "not base/b.h")

    def test_knows_the_kernels_and_what_they_may_name(self):
        self.write("cuda/CMakeLists.txt", "incipit_kernels(cuda DEPENDS base)")
        self.write("cuda/prim/platform.cuh", '#include <simt/device.h>\n  asm("");\n')
        self.write("cuda/runtime.cpp", "#include <cuda_runtime.h>\n")
        self.write("cuda/kernels/a.cuh", '#include "cuda/prim/b.cuh"\n#include "base/b.h"\n')
        self.assertFinds(layers.check(self.root))
        self.write("cuda/kernels/a.cuh", '#include <simt/a.h>\n#include "kv/a.h"\nasm("");\n')
        self.write("cuda/launch/a.cu", "cudaMalloc(&p, 1);")
        self.assertFinds(layers.check(self.root), "inline PTX", "the emulator is",
                         "cuda may not include kv/a.h", "the runtime API")


class SourcesTest(Tree):
    def test_accepts_good_files(self):
        guard = "#ifndef INCIPIT_KV_A_B_H_\n#define INCIPIT_KV_A_B_H_\n#endif\n"
        self.write("lib/kv/a_b.h", LICENSE + guard)
        self.write("include/incipit/a.h", LICENSE + guard.replace("KV_A_B", "A"))
        self.write("tests/support/a.h", LICENSE + guard.replace("KV_A_B", "TESTS_SUPPORT_A"))
        self.write("lib/cpu/a.inl.h", LICENSE)
        self.write("lib/kv/a.cpp", LICENSE + "\n" * 499)
        self.write("cmake/a.sh", "#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\n")
        self.assertFinds(sources.check(self.root))

    def test_finds_bad_files(self):
        self.write("lib/kv/a.cpp", LICENSE + "\n" * 500)
        self.write("lib/kv/b.cpp", "int a;\n")
        self.write("lib/kv/c.cpp", LICENSE + "int a; \n")
        self.write("lib/kv/d.cpp", LICENSE + "int a;")
        self.write("lib/kv/e.h", LICENSE + "#pragma once\n")
        self.write("tests/f.py", "pass\n")
        self.assertFinds(sources.check(self.root), "501 lines", "first line", "white space",
                         "no newline", "INCIPIT_KV_E_H_", "missing at the top")


class SnippetsTest(Tree):
    def page(self, code: str) -> str:
        return f"# incipit\n\n<!-- examples/readme.cpp -->\n```cpp\n{code}```\nmore\n"

    def setUp(self):
        super().setUp()
        self.write("examples/readme.cpp", LICENSE + "int main() {}\n")

    def test_accepts_the_file(self):
        self.write("README.md", self.page("int main() {}\n"))
        self.assertFinds(snippets.check(self.root))

    def test_finds_other_code(self):
        self.write("README.md", self.page("int main() { }\n"))
        self.assertFinds(snippets.check(self.root), "differs")

    def test_finds_missing_code(self):
        self.write("README.md", "# incipit\n")
        self.assertFinds(snippets.check(self.root), "missing")

    def test_finds_a_missing_file(self):
        self.write("README.md", self.page("int main() {}\n"))
        self.write("docs/a.md", "<!-- examples/no.cpp -->\n```\n```\n")
        self.assertFinds(snippets.check(self.root), "does not exist")


class BinaryTest(Tree):
    def compile(self, code: str, *options: str) -> str:
        source, built = self.write("a.cpp", code), str(self.root / "a.bin")
        subprocess.run([CXX, "-O1", *options, str(source), "-o", built], check=True)
        return built

    def listing(self, built: str, *options: str) -> str:
        return subprocess.run([NM, "-C", *options, built], check=True, capture_output=True,
                              text=True).stdout

    def static_findings(self, code: str) -> list[str]:
        return manners.check_static(self.listing(self.compile(code, "-c")))

    def test_finds_bad_manners(self):
        for code, expected in (
            ('#include <cstdio>\nvoid f() { std::puts("x"); }', "puts"),
            ("#include <cstdio>\nvoid f(int x) { std::fprintf(stderr, \"%d\", x); }", "stderr"),
            ('#include <iostream>\nvoid f() { std::cout << "x"; }', "std::cout"),
            ("#include <cstdlib>\nvoid f() { std::abort(); }", "abort"),
            ('#include <cstdlib>\nchar* f() { return std::getenv("X"); }', "getenv"),
            ("#undef NDEBUG\n#include <cassert>\nvoid f(int x) { assert(x); }", "__assert_fail"),
            ("#include <map>\nstd::map<int, int> f;", "constructs a static object"),
            ("int g(); int f = g();", "_GLOBAL__sub_I_"),
            ("struct A { A(); ~A(); }; A& f() { static A a; return a; }", "__cxa_guard_acquire"),
        ):
            with self.subTest(code):
                self.assertIn(expected, "\n".join(self.static_findings(code)))

    def test_accepts_good_manners(self):
        self.assertFinds(self.static_findings(
            "#include <string>\n#include <stdexcept>\nconstexpr int kTable[] = {1, 2};\n"
            "std::string f(int i) { if (i > 1) throw std::out_of_range(std::to_string(i));\n"
            "return std::to_string(kTable[i]); }"))

    def test_finds_what_is_exported_but_not_public(self):
        code = """namespace incipit::inline v0 {
          struct A { virtual ~A(); struct Impl; }; A::~A() {}
          struct A::Impl { void f(); }; void A::Impl::f() {} }
          namespace incipit::kv { void g() {} } extern "C" void h() {}"""
        built = self.compile(code, "-shared", "-fPIC", "-std=c++20")
        findings = manners.check_shared(self.listing(built, "-D", "--defined-only"))
        self.assertFinds(findings, ": h", "incipit::kv::g()", "incipit::v0::A::Impl::f()")
        self.assertFinds(manners.check_shared(""), "exports nothing")

    def instruction_findings(self, namespace: str) -> list[str]:
        built = self.compile(f"""#include <immintrin.h>
          namespace {namespace} {{
          __attribute__((target("avx2"))) __m256 f(__m256 a) {{ return _mm256_add_ps(a, a); }} }}
          float g(float a) {{ return a + a; }}""", "-c", "-Wno-psabi")
        listing = subprocess.run([OBJDUMP, "-d", "-C", "--no-show-raw-insn", built], check=True,
                                 capture_output=True, text=True).stdout
        return instructions.check(listing.splitlines())

    def test_finds_avx_outside_of_its_namespaces(self):
        if "x86-64" not in subprocess.run([OBJDUMP, "-i"], capture_output=True,
                                          text=True, check=True).stdout:
            self.skipTest("not x86-64")
        self.assertFinds(self.instruction_findings("incipit::cpu"), "incipit::cpu::f")
        self.assertFinds(self.instruction_findings("incipit::cpu::avx2"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
