"""The bars of docs/speed.md: one for each row of the table under the same heading, drawn as SVG."""

from __future__ import annotations

import math
import re
from html import escape

_ROW = re.compile(r"^\| ([^|]+?) \| *([\d.]*)[^|]*\| *([\d.]*)[^|]*\|$", re.M)
_WIDTH, _LABEL, _HEIGHT = 720, 380, 24


def rows(text: str, peer: str) -> list[tuple[str, float]]:
    """(work, ratio) of the table after the mark of a peer: the newer measurement, where there are two."""
    table = text.partition(f"<!-- made: speed {peer} -->")[2].lstrip().partition("\n\n")[0]
    found, before = [], ""
    for work, first, second in _ROW.findall(table):
        if first or second:
            name = work.replace("the same", before.partition(",")[0]) if work.startswith("the same") else work
            before = before if work.startswith("the same") else work
            found.append((name, float(second or first)))
    assert found, f"no table after the mark of {peer}"
    return found


def markdown(text: str, peer: str) -> str:
    """The picture as raw HTML: its colours are those of the page."""
    bars = rows(text, peer)
    low, high = math.log(0.5), math.log(max(ratio for _, ratio in bars) * 1.6)

    def place(ratio: float) -> float:
        return _LABEL + (_WIDTH - _LABEL) * (math.log(ratio) - low) / (high - low)

    height = _HEIGHT * len(bars) + 20
    title = f"How many times as fast as {peer} kwire is, on a logarithmic scale"
    parts = [f'<svg class="speed" role="img" aria-label="{escape(title)}" viewBox="0 0 {_WIDTH} {height}">']
    for number, (work, ratio) in enumerate(bars):
        top, one = _HEIGHT * number, place(1)
        left, right = sorted((one, place(ratio)))
        short = work if len(work) <= 62 else work[:61].rstrip() + "…"
        parts += [
            f'<text x="{_LABEL - 8}" y="{top + 16}" text-anchor="end">{escape(short)}</text>',
            f'<rect x="{left:.1f}" y="{top + 4}" width="{max(right - left, 1):.1f}" height="16"/>',
            f'<text x="{right + 5:.1f}" y="{top + 16}">{ratio:g}</text>',
        ]
    same = f"{place(1):.1f}"
    parts += [
        f'<line x1="{same}" x2="{same}" y1="0" y2="{height - 18}"/>',
        f'<text x="{same}" y="{height - 4}" text-anchor="middle">as fast as {escape(peer)}</text>',
        "</svg>",
    ]
    return "\n".join(["```{raw} html", *parts, "```"])
