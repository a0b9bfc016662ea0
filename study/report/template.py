"""Pages: self-contained HTML files of sections with charts and tables, light or dark as the reader prefers."""

from __future__ import annotations

import base64
import functools
import importlib.metadata
import json
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import jinja2
from plotly.offline import get_plotlyjs

from ...base.lazy_dataclass import dataclass
from .charts.chart import Chart
from .charts.palette import DARK
from .charts.point_rows import Column

_TEMPLATES: Final = Path(__file__).with_name("templates")


@dataclass(frozen=True, slots=True)
class Table:
    """A table with a caption above it."""

    caption: str
    columns: tuple[Column, ...]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a page; ``text`` leads it."""

    id: str
    title: str
    charts: Sequence[Chart]
    tables: Sequence[Table] = ()
    text: str = ""


def render_page(template: str, **values: object) -> str:
    """Renders a template that extends ``base.html.j2``, which needs the ``values``."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["script"] = _script_json
    return environment.get_template(template).render(
        **values,
        version=importlib.metadata.version("pumice"),
        dark=json.dumps(dict(DARK)),
        # The template does not escape these two and JSON.
        style=(_TEMPLATES / "report.css").read_text(encoding="utf-8"),
        script=(_TEMPLATES / "report.js").read_text(encoding="utf-8"),
        plotly=_packed_plotly(),
    )


@functools.cache
def _packed_plotly() -> str:
    """Compresses Plotly's script, which the page unpacks: 2.0 MB of text instead of 4.8 MB."""
    return base64.b64encode(zlib.compress(get_plotlyjs().encode(), 9)).decode()


def _script_json(text: str) -> str:
    """Escapes JSON for a script element, which a ``<`` could end."""
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
