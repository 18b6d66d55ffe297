#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""compare_peers.py on made-up figures and with programs that only pretend to measure.

Usage: compare_peers_test.py BENCHMARKS_FOLDER
"""

import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest
import xml.etree.ElementTree

FOLDER = pathlib.Path(sys.argv.pop(1))
sys.path.insert(0, str(FOLDER))

import compare_peers  # noqa: E402
from peers import install, llama_cpp, report  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"


def figures(value: float) -> report.Figures:
    """A program that is `value` times as fast as one with figures(1)."""
    return {key: 100 / value if less else 100 * value for key, (_, less) in report.KEYS.items()}


class Report(unittest.TestCase):
    def test_ratio_above_one_means_that_we_are_faster(self):
        for value in report.ratios(figures(3), figures(2)).values():
            self.assertAlmostEqual(value, 1.5)

    def test_median_is_taken_key_by_key(self):
        runs = [figures(1), figures(5), figures(2)]
        runs[1]["ttft_64_ms"], runs[2]["ttft_64_ms"] = 7.0, 9.0
        middle = report.medians(runs)
        self.assertEqual(middle["ttft_64_ms"], 9.0)
        self.assertEqual(middle["decode_1_tok_s"], 200.0)

    def test_best_is_the_best_setting_of_each_key(self):
        one, other = figures(1), figures(1)
        one["ttft_16_ms"], other["decode_8_at_4096"] = 50.0, 300.0
        best = report.best_of([one, other])
        self.assertEqual(best["ttft_16_ms"], 50.0)
        self.assertEqual(best["decode_8_at_4096"], 300.0)
        self.assertEqual(best["ttft_64_ms"], 100.0)

    def test_columns_are_default_and_best(self):
        measured = {"a": {"default": figures(1), "other": figures(2)}, "b": {"default": figures(3)}}
        columns = report.columns_of(measured)
        self.assertEqual(list(columns), ["a default", "a best", "b default"])
        self.assertEqual(columns["a best"], figures(2))

    def test_table_has_each_key_and_column(self):
        lines = report.table(figures(4), {"a": figures(2), "b": figures(1)}).splitlines()
        self.assertEqual(len(lines), 2 + len(report.KEYS))
        self.assertEqual({line.count("|") for line in lines}, {5})
        for line in lines[2:]:
            self.assertIn("(2.00 x)", line)
            self.assertIn("(4.00 x)", line)

    def test_chart_is_xml_with_bars_as_long_as_the_ratios(self):
        columns = {"a": figures(2), "<b> & c": figures(1)}
        root = xml.etree.ElementTree.fromstring(report.chart(figures(4), columns, "x < y"))
        bars = [float(rect.get("width")) for rect in root.iter(SVG + "rect")][1:]
        in_chart = bars[len(columns) :]
        self.assertEqual(len(in_chart), len(columns) * len(report.KEYS))
        for short, long in zip(in_chart[0::2], in_chart[1::2]):
            self.assertAlmostEqual(long, 2 * short, delta=0.2)
        words = [text.text for text in root.iter(SVG + "text")]
        self.assertIn("<b> & c", words)
        self.assertEqual(words.count("2.00"), len(report.KEYS))


class LlamaCpp(unittest.TestCase):
    def test_seconds_are_medians(self):
        rows = [{"n_prompt": 512, "n_gen": 0, "samples_ns": [3e9, 1e9, 2e9]}]
        self.assertEqual(llama_cpp.seconds_of(json.dumps(rows)), {(512, 0): 2.0})

    def test_speed_is_that_of_the_last_line(self):
        lines = 'loading\n{"speed_tg": 1.0}\n{"speed_tg": 70.5}\n\n'
        self.assertEqual(llama_cpp.decode_speed(lines), 70.5)


class Pretended(unittest.TestCase):
    """Scripts in the places of incipit-bench and of llama.cpp's programs."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "llama_cpp_python-1.2.3" / "vendor" / "llama.cpp").mkdir(parents=True)
        programs = install.llama_programs(self.root, "auto")
        self.script(programs / "llama-bench", LLAMA_BENCH)
        self.script(programs / "llama-batched-bench", 'print(\'{"speed_tg": 50.0}\')')
        document = {
            "machine": {"cpu": "a CPU"},
            "model": {},
            "settings": {},
            **figures(1),
        }
        self.script(self.root / "incipit-bench", INCIPIT_BENCH.format(document=document))

    def script(self, path: pathlib.Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!{sys.executable}\n{text}\n")
        path.chmod(0o700)

    def compare(self, *more: str) -> str:
        arguments = ["--venv", str(self.root), "--bench", str(self.root / "incipit-bench")]
        arguments += ["--model", "a.gguf", "--document", "b.txt", "--peers", "llama.cpp", *more]
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            compare_peers.main(arguments)
        return out.getvalue()

    def test_all_is_measured_and_written(self):
        json_path, svg_path = self.root / "out.json", self.root / "out.svg"
        table = self.compare("--rounds", "2", "--json", str(json_path), "--svg", str(svg_path))
        self.assertIn("16 samples behind the document", table)
        self.assertIn("a CPU", table)
        document = json.loads(json_path.read_text())
        self.assertEqual(document["versions"], {"llama.cpp": "of llama-cpp-python 1.2.3"})
        self.assertEqual(document["rounds"], 2)
        for setting in compare_peers.LLAMA_SETTINGS:
            self.assertEqual(len(document["runs"]["llama.cpp"][setting]), 2)
        self.assertEqual(len(document["runs"]["incipit"]), 2)
        # 512 tokens in 2 s against 100 tokens a second; the better setting takes 1 s.
        self.assertEqual(document["ratios"]["llama.cpp default"]["prefill_512_tok_s"], 100 / 256)
        self.assertEqual(document["ratios"]["llama.cpp best"]["prefill_512_tok_s"], 100 / 512)
        self.assertEqual(document["ratios"]["llama.cpp best"]["decode_8_at_4096"], 2.0)
        xml.etree.ElementTree.parse(svg_path)


class CommandLine(unittest.TestCase):
    def exit_code(self, *arguments: str) -> int:
        silent = io.StringIO()
        with contextlib.redirect_stdout(silent), contextlib.redirect_stderr(silent):
            with self.assertRaises(SystemExit) as ended:
                compare_peers.main(list(arguments))
        return ended.exception.code

    def test_help(self):
        self.assertEqual(self.exit_code("--help"), 0)

    def test_bad_arguments(self):
        measured = ("--venv", "v", "--model", "m", "--document", "d")
        self.assertEqual(self.exit_code(), 2)
        self.assertEqual(self.exit_code("--venv", "v"), 2)
        self.assertEqual(self.exit_code(*measured, "--rounds", "0"), 2)
        self.assertEqual(self.exit_code(*measured, "--peers", "nobody"), 2)
        self.assertEqual(self.exit_code(*measured, "--cpu-path", "avx2"), 2)


# Answers what is asked with -p and -n: 2 s each, or 1 s without flash attention.
LLAMA_BENCH = """
import json, sys
words = dict(zip(sys.argv, sys.argv[1:]))
nanoseconds = 1e9 if words.get("-fa") == "off" else 2e9
tests = [(int(n), 0) for n in words["-p"].split(",")] + [(0, int(words["-n"]))]
print(json.dumps(
    [{"n_prompt": p, "n_gen": n, "samples_ns": [nanoseconds] * 3} for p, n in tests]))
"""
INCIPIT_BENCH = """
import json, sys
words = dict(zip(sys.argv, sys.argv[1:]))
if sys.argv[1] == "texts":
    open(words["--json"], "w").write("{{}}")
else:
    print(json.dumps({document!r}))
"""

if __name__ == "__main__":
    unittest.main()
