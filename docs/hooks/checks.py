"""What every page of the site is checked for. A warning fails the build."""

from __future__ import annotations

import ast
import logging
import re
import zlib
from itertools import zip_longest
from pathlib import Path

from markdown_it import MarkdownIt
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
_TAGS = re.compile(r"<(h[1-6]|ul|ol|li|blockquote|table|tr|t[dh]|pre|code|img|a|strong|em|p)\b(?! class=\"headerlink)")
_REQUEST = re.compile(r"<(?:link|script|img|iframe|source)\b[^>]*(?:src|href)=[\"']?(?:https?:)?//[^>]*>")
_log = logging.getLogger("mkdocs.hooks.checks")


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> None:
    """Warns where a page's text is not what it is by CommonMark, as viewers of repositories render it."""
    text = page.markdown or ""
    if "::: " in text or "<div" in text:
        return
    expected = _TAGS.findall(MarkdownIt("commonmark").enable("table").render(text))
    found = _TAGS.findall(re.sub(r"<span class=\"filename\">.*?</span>", "", html))
    if expected != found:
        differ = (n for n, pair in enumerate(zip_longest(expected, found)) if len({*pair}) > 1)
        near = slice(max((at := next(differ)) - 8, 0), at + 3)
        _log.warning(f"{page.file.src_uri}: {' '.join(found[near])}, not {' '.join(expected[near])}")


def on_post_build(config: MkDocsConfig) -> None:
    """Warns of public names without an entry, and of pages that request files from elsewhere or name this machine."""
    site = Path(config.site_dir)
    entries = zlib.decompress((site / "objects.inv").read_bytes().split(b"\n", 4)[4]).decode()
    known = {line.split(" ")[0] for line in entries.splitlines()}
    also: dict[str, list[str]] = config.extra["also"]
    known |= also.keys() | {f"{page}.{name.rpartition('.')[2]}" for page, names in also.items() for name in names}
    for init in (ROOT / "__init__.py", *ROOT.glob("[a-z]*/__init__.py")):
        package = "pumice" if init.parent == ROOT else f"pumice.{init.parent.name}"
        for name in _exported(init):
            if f"{package}.{name}" not in known:
                _log.warning(f"{package}.{name} has no entry in the reference: it needs a docstring, {package} a page")
    for path in (*site.rglob("*.html"), *site.rglob("*.json")):
        text = path.read_text(encoding="utf-8")
        for found in _REQUEST.findall(text):
            _log.warning(f"{path.relative_to(site)} requests {found}")
        if str(ROOT) in text:
            _log.warning(f"{path.relative_to(site)} names the folder {ROOT}")


def _exported(path: Path) -> list[str]:
    """The names of ``__all__``."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            names: list[str] = ast.literal_eval(node.value)
            return names
    return []
