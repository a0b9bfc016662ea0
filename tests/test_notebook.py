"""Tables of notebooks: well-formed, escaped, and without colours of their own."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas
from support.made_studies import STUDY, made

from pumice.notebook import html_table
from pumice.study import compare, compare_results, summarize


class _Reader(HTMLParser):
    """Rows of cells; every tag is closed in turn."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.rows: list[list[str]] = []
        self.names: set[str] = set()
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.names.add(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


def read(text: str) -> list[list[str]]:
    # Neither black nor white is written: the page's own colours are.
    assert not re.search(r"(?<![-\w])(color|background): (?!inherit|transparent)", text)
    return _Reader(text).rows


def test_names_are_text_and_no_markup() -> None:
    name = "<script>alert('a & b')</script>"
    text = html_table((name, "n"), [(name, "1")], title=name, notes=[name])
    found = _Reader(text)
    assert found.rows == [[name, "n"], [name, "1"]] and "script" not in found.names


def test_results_and_comparisons(tmp_path: Path) -> None:
    target = STUDY.replace('name = "mul"', 'name = "<b>"').replace('title = "Dispatches', 'title = "<i>Dispatches')
    with made(tmp_path / "a", target) as a, made(tmp_path / "b", target) as b:
        head, *rows = read(a._repr_html_())
        frame = a.to_pandas()
        frame = frame[~frame["is_baseline"]]
        shown = pandas.DataFrame(rows, columns=head)
        assert shown["point"].tolist() == [one.point.label for one in a.points if not one.point.is_baseline]
        for column, expected in (("median, µs", frame["median_ns"] / 1e3), ("GB/s", frame["GB/s"])):
            np.testing.assert_allclose(shown[column].astype(float), expected, rtol=6e-4)
        assert repr(a).startswith("<Results of 'depth'")
        found = compare_results(a, b)
        head, *rows = read(found._repr_html_())
        assert [row[1] for row in rows] == [str(one.comparison.verdict) for one in found.points if one.comparison]


def test_summaries_and_comparisons_of_samples() -> None:
    values = np.random.default_rng(1).normal(100, 3, 2000)
    shown = {row[0]: row[1] for row in read(summarize(values)._repr_html_())}
    expected = pandas.Series(values).describe(percentiles=[0.25, 0.5, 0.75, 0.99])
    for name, theirs in (("median", "50%"), ("q1", "25%"), ("p99", "99%"), ("mean", "mean"), ("maximum", "max")):
        np.testing.assert_allclose(float(shown[name]), expected[theirs], rtol=6e-4)
    found = compare(values, 1.2 * values)
    assert ["ratio", f"{found.ratio:.4g}"] in read(found._repr_html_())
    assert found.explanation in found._repr_html_()
