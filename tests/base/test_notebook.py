"""Tables of notebooks: well-formed, escaped, and without colours of their own."""

from __future__ import annotations

import json
import math
import os
import re
import sys
import types
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas
import pytest
from support.study.made_studies import STUDY, made, taken
from support.vm.wait_sources import Signal

import pumice
from pumice import shaders
from pumice.base.notebook import figure_text, html_table, interval_text, place_text, with_process, without_process
from pumice.hal.buffer import Buffer
from pumice.study import compare, compare_results, summarize
from pumice.study.definition.point import Point
from pumice.study.results.comparison.series import Plotted, series_figure, series_plot
from pumice.study.results.storage.store import Store


class _Reader(HTMLParser):
    """Rows of cells; checks that every tag is closed in its order."""

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
    table = text[: text.rindex("</table>")] + "</table></div>"
    # Neither black nor white appears: the colours are the page's.
    assert not re.search(r"(?<![-\w])(color|background): (?!inherit|transparent)", table)
    return _Reader(table).rows


def test_names_are_text_and_no_markup() -> None:
    name = "<script>alert('a & b')</script>"
    text = html_table((name, "n"), [(name, "1")], title=name, notes=[name])
    reader = _Reader(text)
    assert reader.rows == [[name, "n"], [name, "1"]] and "script" not in reader.names


@pytest.mark.slow
def test_results_and_comparisons(tmp_path: Path) -> None:
    target = STUDY.replace('name = "mul"', 'name = "<b>"').replace('title = "Dispatches', 'title = "<i>Dispatches')
    with made(tmp_path / "a", target) as a, made(tmp_path / "b", target) as b:
        head, *rows = read(a._repr_html_())
        frame = a.to_pandas()
        frame = frame[~frame["is_baseline"]]
        shown = pandas.DataFrame(rows, columns=head)
        (best,) = a.best()
        points = [point for point in a.points if not point.point.is_baseline]
        assert shown["point"].tolist() == [
            f"{point.point.label} ★" if point.point is best.point.point else point.point.label for point in points
        ]
        intervals = [summarize(point.values(), blocks=point.blocks).median_interval for point in points]
        ends = [[float(end) for end in text.strip("[]").split(", ")] for text in shown["interval"]]
        np.testing.assert_allclose(ends, np.array(intervals) / 1e3, rtol=6e-4)
        for column, expected in (("median, µs", frame["median_ns"] / 1e3), ("GB/s", frame["GB/s"])):
            np.testing.assert_allclose(shown[column].astype(float), expected, rtol=6e-4)
        assert repr(a).startswith("<Results of 'depth'")
        comparison = compare_results(a, b)
        head, *rows = read(comparison._repr_html_())
        known = [compared.comparison for compared in comparison.points if compared.comparison]
        assert [row[1::4] for row in rows] == [[str(point.verdict), "; ".join(point.remarks)] for point in known]


@pytest.mark.slow
def test_summaries_and_comparisons_of_samples() -> None:
    values = np.random.default_rng(1).normal(100, 3, 2000)
    shown = {row[0]: row[1] for row in read(summarize(values)._repr_html_())}
    expected = pandas.Series(values).describe(percentiles=[0.25, 0.5, 0.75, 0.99])
    for name, theirs in (("median", "50%"), ("q1", "25%"), ("p99", "99%"), ("mean", "mean"), ("maximum", "max")):
        np.testing.assert_allclose(float(shown[name]), expected[theirs], rtol=6e-4)
    comparison = compare(values, 1.2 * values)
    assert ["ratio", "1.200"] in read(comparison._repr_html_())
    assert comparison.explanation in comparison._repr_html_()


def test_figures_keep_their_digits_and_unknown_intervals_are_a_dash() -> None:
    numbers = {1.18: "1.180", 186.0: "186.0", 3.0: "3.000", 12345.6: "12,346", 0.0012: "0.001200", 1e13: "1e+13"}
    assert {number: figure_text(number) for number in numbers} == numbers
    assert [figure_text(number) for number in (0.0, None, math.nan)] == ["0", "—", "—"]
    assert (interval_text(1.0, 1.2), interval_text(math.nan, math.nan)) == ("[1.000, 1.200]", "—")


def test_results_and_comparisons_have_a_plot_of_each_line_over_their_axis(tmp_path: Path) -> None:
    def slower(store: Store, points: tuple[Point, ...]) -> None:
        for point in points:
            store.add_samples(point.index, 0, "sample", taken(point, scale=1 + point.index / 10))
            store.set_status(point.index, "done", "error reached")

    with made(tmp_path / "a", STUDY) as a, made(tmp_path / "b", STUDY, slower) as b:
        comparison = compare_results(a, b)
        medians = {point.point.label: np.median(point.values()) / 1e3 for point in a.points}
        pages = a._repr_html_(), comparison._repr_html_()
    ratios = {
        compared.b.point.label: compared.comparison.ratio for compared in comparison.points if compared.comparison
    }
    for page, values, title in zip(
        pages, (medians, ratios), ("median of execute, \u00b5s", "ratio, second over first"), strict=True
    ):
        lines, layout = (json.JSONDecoder().raw_decode(text.strip(" ,\n"))[0] for text in figure_parts(page))
        assert [line["name"] for line in lines] == ["barrier=between", "barrier=none"]
        for line in lines:
            known = [values[f"mul batch={batch:g} {line['name']}"] for batch in line["x"]]
            np.testing.assert_allclose(line["y"], known)
            assert line["x"] == [1, 4, 16, 64]
        assert [layout[axis]["title"]["text"] for axis in ("xaxis", "yaxis")] == ["batch", title]
        assert layout["xaxis"]["type"] == "log"


def figure_parts(page: str) -> tuple[str, str]:
    """Returns the data and the layout of a page's plot, each followed by more text."""
    data = page[page.index("[{", page.index("Plotly.newPlot(")) :]
    return data, data[json.JSONDecoder().raw_decode(data)[1] :]


def test_intervals_of_a_plot_are_its_error_bars_where_they_are_known() -> None:
    intervals = [(9.0, 12.0), (-math.inf, math.inf), (math.nan, math.nan)]
    marks = [Plotted(Point(n, "t", "d"), {"n": n}, "<t>", 10.0, interval) for n, interval in enumerate(intervals)]
    figure = series_figure(marks)
    assert figure is not None
    bars = figure.data[0].error_y
    assert (list(bars.array), list(bars.arrayminus)) == ([2, 0, 0], [1, 0, 0])
    assert (figure.layout.yaxis.title.text, figure.layout.yaxis.type) == ("&lt;t&gt;", "linear")
    assert series_figure(marks[:1]) is None
    # The page has the script itself: it shows without a network.
    plot = series_plot(marks)
    assert "Plotly.newPlot" in plot and re.search(r"<script[^>]* src=", plot) is None


def test_cells_are_named_by_number_and_alike_in_every_process(monkeypatch: pytest.MonkeyPatch) -> None:
    mine, other = (f'loc("/tmp/ipykernel_{pid}/4711.py":8:1)' for pid in (os.getpid(), 1))
    assert without_process(mine) == without_process(other) == 'loc("/tmp/ipykernel/4711.py":8:1)'
    assert with_process(without_process(other)) == mine
    assert without_process('"/home/ipykernel_1/net.py"') == '"/home/ipykernel_1/net.py"'
    cell = "/tmp/ipykernel/4711.py:8"
    assert place_text(cell) == cell
    known = {f"/tmp/ipykernel_{os.getpid()}/4711.py": ("Cell", "In[3]")}
    shell = types.SimpleNamespace(compile=types.SimpleNamespace(format_code_name=known.get))
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))  # type: ignore[arg-type]
    assert (place_text(cell), place_text("net.py:8"), place_text("")) == ("In[3]:8", "net.py:8", "")
    shell.compile = types.SimpleNamespace()  # IPython 7 does not identify cells by their files
    assert place_text(cell) == cell


def test_long_texts_have_room_for_a_line() -> None:
    text = html_table(("point", "why", "n"), [("a b", "because " * 20, "1")], texts=("why",))
    assert re.findall(r"(nowrap|min-width: \d+em)", text) == ["nowrap", "min-width: 20em", "nowrap"] * 2


@pytest.mark.vulkan
@pytest.mark.parametrize("staging", [False, True])
def test_devices_arrays_and_kernels(staging: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    with pumice.open_device(staging=staging) as device:
        assert ["URI", device.uri] in read(device._repr_html_())
        array = device.asarray(np.arange(2000, dtype=np.int32).reshape(2, 1000))
        downloads: list[int] = []
        real = device.download

        def download(source: Buffer, out: np.ndarray) -> None:
            downloads.append(out.nbytes)
            real(source, out)

        monkeypatch.setattr(device, "download", download)
        bundle = array._repr_mimebundle_()
        assert read(bundle["text/html"])[-1] == ["elements", "0, 1, 2, 3, …, 1996, 1997, 1998, 1999"]
        assert bundle["text/plain"] == repr(array) and sum(downloads) == 32
        for values, shown in (
            (np.zeros((0, 4)), ""),
            (np.float32(1.5), "1.5"),
            (np.arange(8), "0, 1, 2, 3, 4, 5, 6, 7"),
        ):
            small = device.asarray(values)
            bundle = small._repr_mimebundle_()
            assert read(bundle["text/html"])[-1] == ["elements", shown] and bundle["text/plain"] == repr(small)
        kernel = device.load_kernel(shaders.path("mul"))
        head, *rows = read(kernel._repr_html_())
        assert head == ["parameter", "takes", "written"] and [row[2] for row in rows] == ["no", "no", "yes"]
    assert ["state", "closed"] in read(device._repr_html_())
    bundle = array._repr_mimebundle_()
    assert bundle["text/plain"] == repr(array) and "closed" in read(bundle["text/html"])[-1][1]
    assert read(kernel._repr_html_()) == [head, *rows]


@pytest.mark.vulkan
def test_a_preview_waits_for_no_work_and_a_lost_device_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pumice.open_device() as device:
        array = device.zeros(4)
        program = Signal()
        array.mark_pending(program)
        bundle = array._repr_mimebundle_()
        assert "under way" in bundle["text/html"] and "\n" not in bundle["text/plain"]
        program.set()
        assert read(array._repr_mimebundle_()["text/html"])[-1] == ["elements", "0.0, 0.0, 0.0, 0.0"]
        monkeypatch.setattr(device.vulkan.fn, "vkQueueSubmit", lambda *_: -4)
        with pytest.raises(pumice.DeviceLostError):
            array.copy()
        assert ["state", "lost"] in read(device._repr_html_())
        assert set(array._repr_mimebundle_()) == {"text/plain", "text/html"}
