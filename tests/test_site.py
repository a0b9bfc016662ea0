"""The hooks of the site: pages that are made, links that are led to them, and faults that fail a build."""

from __future__ import annotations

import importlib.util
import json
import logging
import zlib
from pathlib import Path
from types import ModuleType, SimpleNamespace

import griffe
import markdown
import pytest
import yaml
from support.import_graph import ROOT

CONFIG = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


def _hook(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"site_{name}", ROOT / "docs" / "hooks" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


pages = _hook("pages")
checks = _hook("checks")
docstrings = _hook("docstrings")


@pytest.mark.parametrize(
    ("page", "link", "led"),
    [
        ("images.md", "../examples/filter_picture.py", "repository/examples/filter_picture.py.md"),
        ("design/house.md", "../../CONTRIBUTING.md#tests", "../repository/CONTRIBUTING.md#tests"),
        ("view.md", "../examples/view", "repository/examples/view.md"),
        ("jit.md", "notebooks/jax_to_profile.ipynb", "notebooks/jax_to_profile.md"),
        ("repository/CHANGELOG.md", "docs/view.md", "../view.md"),
        ("repository/benchmarks/README.md", "../docs/design/study.md", "../../design/study.md"),
        ("jit.md", "https://iree.dev/x.md", "https://iree.dev/x.md"),
        ("jit.md", "gone.md", "gone.md"),
    ],
)
def test_a_link_leads_to_a_page_of_the_site(page: str, link: str, led: str) -> None:
    found = pages.on_page_markdown(f"see [x]({link}).", SimpleNamespace(file=SimpleNamespace(src_uri=page)), None, None)
    assert found == f"see [x]({led})."


def test_a_link_that_is_called_by_its_file_is_called_by_the_title() -> None:
    text = "see [cli.md](cli.md), [docs/cli.md](cli.md#devices), [flags](cli.md) and [cli.md](jit.md)"
    found = pages.on_page_markdown(text, SimpleNamespace(file=SimpleNamespace(src_uri="jit.md")), None, None)
    named = "see [The command line](cli.md), [The command line](cli.md#devices), [flags](cli.md) and [cli.md](jit.md)"
    assert found == named


@pytest.mark.slow
def test_a_file_that_is_linked_is_a_page_with_its_text() -> None:
    source = (ROOT / "examples" / "mandelbrot.py").read_text(encoding="utf-8")
    page = pages._text("repository/examples/mandelbrot.py.md", None)
    assert "# examples/mandelbrot.py\n" in page and f"python\n{source}~" in page
    assert "- [ball.frag](view/ball.frag)\n" in pages._text("repository/examples/view.md", None)


def test_a_notebook_is_a_page_with_its_results(tmp_path: Path) -> None:
    outputs = [
        {"output_type": "stream", "name": "stdout", "text": ["one\n", "two\n"]},
        {"output_type": "execute_result", "data": {"text/plain": ["3"], "text/html": ["<table>\n", "\n", "</table>"]}},
        {"output_type": "display_data", "data": {"image/png": "iVBORw0=\n"}},
    ]
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "\n", "Text."]},
        {"cell_type": "code", "source": ["1 + 2"], "outputs": outputs},
    ]
    (tmp_path / "book.ipynb").write_text(json.dumps({"cells": cells}), encoding="utf-8")
    html = markdown.markdown(pages._notebook(tmp_path / "book.ipynb"), extensions=["pymdownx.superfences"])
    assert "<h1>Title</h1>" in html and "one\ntwo" in html
    assert '<div class="output"><table>\n</table></div>' in html
    assert 'src="data:image/png;base64,iVBORw0="' in html


@pytest.mark.parametrize("text", ["- one\n  - below it\n", "1. one\n\n   Its second paragraph.\n", "text:\n- one\n"])
def test_what_a_viewer_renders_in_another_way_is_a_warning(text: str, caplog: pytest.LogCaptureFixture) -> None:
    page = SimpleNamespace(markdown=text, file=SimpleNamespace(src_uri="page.md"))
    checks.on_page_content(markdown.markdown(text), page, None, None)
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert caplog.messages[0].startswith("page.md: ")


def test_what_viewers_agree_on_is_none(caplog: pytest.LogCaptureFixture) -> None:
    text = "# Title\n\n- one `x`\n- two\n\n| a | b |\n| -- | -- |\n| `x \\| y` | [z](z.md) |\n\n```python\n1\n```\n"
    page = SimpleNamespace(markdown=text, file=SimpleNamespace(src_uri="page.md"))
    checks.on_page_content(markdown.markdown(text, extensions=["tables", "fenced_code"]), page, None, None)
    assert caplog.messages == []


def test_a_site_that_lacks_names_requests_files_or_names_folders_is_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    also = yaml.load(CONFIG, Loader=yaml.BaseLoader)["extra"]["also"]
    names = [name for name in _public_names() if name not in ("pumice.open_device", "pumice.vm.FIFO")]
    lines = "".join(f"{name} py:class 1 api/x.html#$ -\n" for name in names)
    head = b"# Sphinx inventory version 2\n# Project: pumice\n# Version: 0\n# zlib\n"
    (tmp_path / "objects.inv").write_bytes(head + zlib.compress(lines.encode()))
    (tmp_path / "index.html").write_text(
        f'<a href="https://iree.dev">IREE</a><link rel="stylesheet" href="https://fonts.example/x.css"><p>{ROOT}</p>',
        encoding="utf-8",
    )
    checks.on_post_build(SimpleNamespace(site_dir=str(tmp_path), extra={"also": also}))
    assert [message.split(" ")[:2] for message in caplog.messages] == [
        ["pumice.open_device", "has"],
        ["pumice.vm.FIFO", "has"],
        ["index.html", "requests"],
        ["index.html", "names"],
    ]


def _public_names() -> list[str]:
    inits = {"pumice": ROOT / "__init__.py", **{f"pumice.{f.parent.name}": f for f in ROOT.glob("[a-z]*/__init__.py")}}
    return [f"{package}.{name}" for package, init in inits.items() for name in checks._exported(init)]


def test_docstrings_are_written_out_for_readers_of_the_reference() -> None:
    source = '''"""A room.

>>> f(1)
2

Imports: spirv.

Read: a, b.
"""
class Colour(enum.Enum):
    """A colour.

    More of it.
    """
    RED = 1
    BLUE = 2

def f(x, y):
    """Adds, as docs/jit.md and docs/gone.md say.

    Args:
        x, y: numbers,
            of any kind.
    """
'''
    module = griffe.visit("room", Path("room.py"), source, extensions=griffe.Extensions(docstrings.Docstrings()))
    texts = [one.docstring.value for one in (module, module["Colour"], module["f"]) if one.docstring is not None]
    assert texts == [
        "A room.\n\n```pycon\n>>> f(1)\n2\n```",
        "A colour.\n\nMembers: ``RED``, ``BLUE``.\n\nMore of it.",
        "Adds, as [docs/jit.md](../jit.md) and docs/gone.md say.\n\nArgs:\n"
        "    x: numbers,\n        of any kind.\n    y: numbers,\n        of any kind.",
    ]
