# SPDX-License-Identifier: Apache-2.0
"""Installs the peers into a folder, from the Python package index only.

The folder is a virtual environment with OpenVINO GenAI. llama.cpp is built inside it, in build-*,
from the source package of llama-cpp-python, which carries all of llama.cpp.
"""

import os
import pathlib
import subprocess
import venv

LLAMA_TARGETS = ("llama-bench", "llama-batched-bench", "llama-quantize")
# How a build for machines without AVX-512 differs from one for this machine.
AVX2_ONLY = (
    "-DGGML_NATIVE=OFF",
    "-DGGML_AVX2=ON",
    "-DGGML_FMA=ON",
    "-DGGML_F16C=ON",
    "-DGGML_BMI2=ON",
)


def run(*command: object) -> None:
    subprocess.run([str(word) for word in command], check=True)


def python_of(folder: pathlib.Path) -> pathlib.Path:
    return folder / "bin" / "python"


def llama_programs(folder: pathlib.Path, cpu_path: str) -> pathlib.Path:
    return folder / ("build-avx2" if cpu_path == "avx2" else "build-native") / "bin"


def llama_source(folder: pathlib.Path) -> pathlib.Path:
    """The unpacked source package; the newest where there are several."""
    return sorted(folder.glob("llama_cpp_python-*/vendor/llama.cpp"))[-1]


def install_openvino(folder: pathlib.Path) -> None:
    run(python_of(folder), "-m", "pip", "install", "openvino-genai", "numpy")


def install_llama(folder: pathlib.Path, cpu_path: str) -> None:
    if not list(folder.glob("llama_cpp_python-*/vendor")):
        pip = (python_of(folder), "-m", "pip", "download", "--no-deps", "-d", folder)
        run(*pip, "--no-binary", "llama-cpp-python", "llama-cpp-python")
        for archive in folder.glob("llama_cpp_python-*.tar.gz"):
            run("tar", "-xzf", archive, "-C", folder)
    build = llama_programs(folder, cpu_path).parent
    options = AVX2_ONLY if cpu_path == "avx2" else ()
    configure = ("cmake", "-S", llama_source(folder), "-B", build, "-DCMAKE_BUILD_TYPE=Release")
    run(*configure, "-DLLAMA_BUILD_TESTS=OFF", "-DLLAMA_BUILD_SERVER=OFF", *options)
    run("cmake", "--build", build, "-j", os.cpu_count() or 1, "--target", *LLAMA_TARGETS)


def install(folder: pathlib.Path, peers: list[str], cpu_path: str) -> None:
    if not python_of(folder).exists():
        venv.create(folder, with_pip=True)
    if "openvino" in peers:
        install_openvino(folder)
    if "llama.cpp" in peers:
        install_llama(folder, cpu_path)


def versions(folder: pathlib.Path, peers: list[str]) -> dict[str, str]:
    found = {}
    if "openvino" in peers:
        ask = "import importlib.metadata as m; print(m.version('openvino-genai'))"
        command = [str(python_of(folder)), "-c", ask]
        out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        found["openvino-genai"] = out.strip()
    if "llama.cpp" in peers:
        package = llama_source(folder).parents[1].name
        found["llama.cpp"] = "of llama-cpp-python " + package.removeprefix("llama_cpp_python-")
    return found
