# SPDX-License-Identifier: Apache-2.0
"""Medians, ratios, a table and a chart of what was measured."""

import html
import statistics

# Key of the workload: what it is called, and whether less is better.
KEYS = {
    "prefill_512_tok_s": ("prompt of 512 tokens, tok/s", False),
    "prefill_4096_s": ("first token of 4,096, nothing cached, s", True),
    "ttft_64_ms": ("first token, 64 new behind the document, ms", True),
    "ttft_16_ms": ("first token, 16 new behind the document, ms", True),
    "decode_1_tok_s": ("text, short context, tok/s", False),
    "decode_1_at_4096": ("text behind the document, tok/s", False),
    "decode_8_at_4096": ("8 samples behind the document, tok/s", False),
    "decode_16_at_4096": ("16 samples behind the document, tok/s", False),
}

Figures = dict[str, float]


def medians(runs: list[Figures]) -> Figures:
    return {key: statistics.median(run[key] for run in runs) for key in KEYS}


def best_of(settings: list[Figures]) -> Figures:
    """What a peer reaches at best: for each key the setting that is best there."""
    return {
        key: (min if less else max)(figures[key] for figures in settings)
        for key, (_, less) in KEYS.items()
    }


def ratios(ours: Figures, theirs: Figures) -> Figures:
    """How many times as fast we are."""
    return {
        key: theirs[key] / ours[key] if less else ours[key] / theirs[key]
        for key, (_, less) in KEYS.items()
    }


def columns_of(measured: dict[str, dict[str, Figures]]) -> dict[str, Figures]:
    """Medians by peer and setting, as columns to compare with: each peer's default, and its best
    where it has several settings."""
    columns = {}
    for peer, settings in measured.items():
        columns[f"{peer} default"] = settings["default"]
        if len(settings) > 1:
            columns[f"{peer} best"] = best_of(list(settings.values()))
    return columns


def table(ours: Figures, columns: dict[str, Figures]) -> str:
    """Markdown: our figure, and for each column its figure and how many times as fast we are."""
    lines = [
        "| workload | incipit | " + " | ".join(columns) + " |",
        "|---|" + "---|" * (len(columns) + 1),
    ]
    for key, (label, _) in KEYS.items():
        cells = [label, f"{ours[key]:.4g}"]
        for figures in columns.values():
            cells.append(f"{figures[key]:.4g} ({ratios(ours, figures)[key]:.2f} x)")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def chart(ours: Figures, columns: dict[str, Figures], title: str) -> str:
    """SVG: a bar per workload and column, how many times as fast we are; a line marks 1."""
    label_width, bar_width, bar_height, gap, top = 330, 480, 14, 12, 64
    colours = ("#4477aa", "#66ccee", "#228833", "#ccbb44", "#ee6677", "#aa3377")
    all_ratios = {name: ratios(ours, figures) for name, figures in columns.items()}
    scale = bar_width / max(1.0, *(x for column in all_ratios.values() for x in column.values()))
    group_height = len(columns) * bar_height + gap
    height = top + len(KEYS) * group_height + gap
    width = label_width + bar_width + 70

    def text(x: float, y: float, words: str, more: str = "") -> str:
        return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{html.escape(words)}</text>'

    def bar(x: float, y: float, length: float, colour: str) -> str:
        size = f'width="{length:.1f}" height="{bar_height - 2}"'
        return f'<rect x="{x:.1f}" y="{y:.1f}" {size} fill="{colour}"/>'

    shapes = [text(10, 22, title, 'font-size="15" font-weight="bold"')]
    x = 10.0
    for name, colour in zip(all_ratios, colours):
        shapes += [bar(x, 36, 12, colour), text(x + 17, 46, name)]
        x += 40 + 7 * len(name)
    for group, (key, (label, _)) in enumerate(KEYS.items()):
        y = top + group * group_height
        shapes.append(text(label_width - 8, y + 11, label, 'text-anchor="end"'))
        for (name, column), colour in zip(all_ratios.items(), colours):
            shapes.append(bar(label_width, y, column[key] * scale, colour))
            shapes.append(text(label_width + column[key] * scale + 4, y + 11, f"{column[key]:.2f}"))
            y += bar_height
    one = label_width + scale
    shapes.append(
        f'<line x1="{one:.1f}" y1="{top - 6}" x2="{one:.1f}" y2="{height - gap}" stroke="#000"/>'
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            'font-family="sans-serif" font-size="12">',
            f'<rect width="{width}" height="{height}" fill="#fff"/>',
            *shapes,
            "</svg>\n",
        ]
    )
