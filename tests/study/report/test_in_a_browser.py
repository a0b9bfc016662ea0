"""Reports in Chromium, wide and narrow: plots are drawn and fit, no page scrolls sideways, labels do not overlap."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.browser import CHROMIUM, Browser
from support.study.made_studies import STUDY, figures_of, fill_all, made
from support.study.stored_results import made_version

from pumice.study.report.charts import distributions
from pumice.study.report.history_page import write_history
from pumice.study.report.page import write_report
from pumice.study.results.history import read_history

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")

# More axes than a chart has colours for, which gives panels; and long names, whose labels are cut.
WIDE_STUDY = STUDY.replace(
    "batch = [1, 4, 16, 64]",
    "batch = [1, 16, 64]\nin_flight = [1, 2, 3]\na_long_name_of_an_axis_that_has_to_be_cut = [1, 30]",
).replace("[derived]", '[derived]\nused = "a_long_name_of_an_axis_that_has_to_be_cut"')

OVERPRINTED = """(() => {
  const shown = (one) => one.textContent.trim() && getComputedStyle(one).visibility !== "hidden";
  const found = [];
  for (const plot of document.querySelectorAll(".plot")) {
    const texts = [...plot.querySelectorAll("[class$=tick] > text, text[class$=title]")].filter(shown)
      .map((one) => ({ text: one.textContent, box: one.getBoundingClientRect() }));
    const edge = plot.getBoundingClientRect();
    for (const { text, box } of texts)
      if (box.left < edge.left - 1 || box.right > edge.right + 1 || box.top < edge.top - 1
          || box.bottom > edge.bottom + 1) found.push(`${plot.id}: ${text} is cut`);
    texts.forEach((a, place) => texts.slice(0, place).forEach((b) => {
      if (a.box.left < b.box.right - 1 && b.box.left < a.box.right - 1 && a.box.top < b.box.bottom - 1
          && b.box.top < a.box.bottom - 1) found.push(`${plot.id}: ${b.text} and ${a.text}`);
    }));
  }
  return found;
})()"""

# In a narrow window that scrolls sideways, the root would be as wide as the content.
SIDEWAYS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
TOO_WIDE = """[...document.querySelectorAll("body *")].filter((one) => !one.closest(".scroll, pre")
  && one.getBoundingClientRect().right > innerWidth + 1).map((one) => one.tagName + " " + one.textContent)"""
DRAWN = "[...document.querySelectorAll('.plot')].filter((one) => one.querySelector('svg.main-svg')).length"
WIDTHS = """[...document.querySelectorAll(".plot")].map((one) =>
  [one.clientWidth, one.querySelector("svg.main-svg").clientWidth])"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Creates a report with plots of every kind; of the many histograms only the first."""
    folder = tmp_path_factory.mktemp("results")
    with pytest.MonkeyPatch.context() as patch, made(folder, WIDE_STUDY, fill_all) as results:
        patch.setattr(distributions, "_MAX_HISTOGRAMS", 2)
        return write_report(results, folder / "report.html")


@pytest.fixture(scope="module")
def history_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Creates a history of sixteen commits, 6 % slower from the seventh on, with long subjects."""
    folder = tmp_path_factory.mktemp("history")
    levels = [1.0] * 6 + [1.06] * 10
    for index, level in enumerate(levels):
        before = max(index - 1, 0)
        revision = {
            "commit": f"{index:02x}" * 20,
            "time": f"2026-01-{index + 1:02}T00:00:00Z",
            "subject": f"Commit {index}, which has a long subject " * 4,
        }
        made_version(folder / f"{index}", index, level, (f"v{before}", levels[before]), revision)
    return write_history(read_history([folder]), folder / "history.html")


@pytest.mark.slow
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (400, True)])
def test_histories_are_drawn_and_fit(browser: Browser, history_page: Path, width: int, dark: bool) -> None:
    browser.open(history_page, width=width, dark=dark)
    assert browser.evaluate(DRAWN) == 1
    assert browser.evaluate(SIDEWAYS) == 0 and browser.evaluate(TOO_WIDE) == []
    assert browser.evaluate(OVERPRINTED) == []
    assert browser.complaints == []


@pytest.mark.slow
@pytest.mark.parametrize(("widths", "dark"), [((1280, 400, 1280), False), ((800,), True)])
def test_plots_are_drawn_and_shrink_and_grow_with_the_window(
    browser: Browser, page: Path, widths: tuple[int, ...], dark: bool
) -> None:
    browser.open(page, width=widths[0], dark=dark)
    assert browser.evaluate(DRAWN) == len(figures_of(page.read_text(encoding="utf-8")))
    first = browser.evaluate(WIDTHS)
    for width in widths:
        browser.resize(width)
        browser.wait_until(f"{WIDTHS}.every(([outer, inner]) => Math.abs(outer - inner) < 2)")
        assert browser.evaluate(SIDEWAYS) == 0 and browser.evaluate(TOO_WIDE) == []
        assert browser.evaluate(OVERPRINTED) == [], width
    assert browser.evaluate(WIDTHS) == first
    assert browser.complaints == []
