#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails where the library is no quiet guest.

The static library may not refer to what writes to the terminal, ends the process, reads the
environment or changes what the whole process shares, and may have no static constructors or
destructors. The shared library may export the public API and nothing else.

Usage: manners.py NM STATIC_LIBRARY SHARED_LIBRARY   (`-` for one that is not built)
"""

import re
import sys

from report import finish, output_of

# Undefined symbols, as `nm -C` writes them without parameters.
FORBIDDEN = {
    "writes to the terminal": """
        stdin stdout stderr std::cin std::cout std::cerr std::clog std::wcout std::wcerr
        printf vprintf __printf_chk __vprintf_chk fprintf vfprintf __fprintf_chk __vfprintf_chk
        puts putchar putc fputs fputc fwrite perror syslog""",
    "ends the process": """
        abort exit _exit _Exit quick_exit __assert_fail raise kill std::__glibcxx_assert_fail""",
    "depends on the environment": """
        getenv secure_getenv setenv putenv unsetenv environ""",
    "changes what the process shares": """
        signal sigaction atexit on_exit setlocale std::locale::global fork vfork system popen
        chdir umask srand rand setrlimit std::set_terminate std::set_new_handler""",
    "constructs a static object": """
        __cxa_atexit __cxa_guard_acquire std::ios_base::Init::Init""",
    "uses OpenMP": "omp_get_num_threads omp_set_num_threads GOMP_parallel __kmpc_fork_call",
}
REASONS = {symbol: reason for reason, names in FORBIDDEN.items() for symbol in names.split()}

STATIC_CONSTRUCTOR = re.compile(r"_GLOBAL__(sub_)?[ID]_|__cxx_global_var_init")
# A symbol of the public API, or what the compiler makes for one of its types.
PUBLIC = re.compile(r"((vtable|typeinfo|typeinfo name) for )?incipit::v0::")
# Nested in a public class, and yet not public.
PRIVATE = re.compile(r"::Impl\b")


def symbols(listing: str):
    """(kind, name) of each line of `nm -C`: `<address> <kind> <name>`."""
    for line in listing.splitlines():
        match = re.match(r"\s*[0-9a-fA-F]*\s+([A-Za-z]) (.+)$", line)
        if match:
            yield match.group(1), match.group(2)


def check_static(listing: str) -> list[str]:
    findings, file = [], "?"
    for line in listing.splitlines():
        if line.endswith(":") and " " not in line:
            file = line[:-1]
        for kind, name in symbols(line):
            plain = re.split(r"[(@]", name)[0]
            if kind in "Uw" and plain in REASONS:
                findings.append(f"{file}: {plain}: {REASONS[plain]}")
            if STATIC_CONSTRUCTOR.search(name):
                findings.append(f"{file}: {name}: constructs a static object")
    return sorted(set(findings))


def check_shared(listing: str) -> list[str]:
    exported = [name for _, name in symbols(listing)]
    if not exported:
        return ["the shared library exports nothing"]
    return [
        f"exported, but not part of the public API: {name}"
        for name in sorted(set(exported))
        if not PUBLIC.match(name) or PRIVATE.search(name)
    ]


def main(nm: str, static: str, shared: str) -> None:
    findings = []
    if static != "-":
        findings += check_static(output_of(nm, "-C", static))
    if shared != "-":
        findings += check_shared(output_of(nm, "-C", "-D", "--defined-only", shared))
    finish(findings)


if __name__ == "__main__":
    main(*sys.argv[1:])
