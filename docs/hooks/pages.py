"""Pages of the site beside the files of `docs/`: public names of packages, notebooks, and files that pages link to.

Links are written as they are right in the repository (``../examples/serve_model.py``), and are led to the site's pages:
``docs/x.md`` is ``x.md``, any other file ``repository/<path>.md``, with its text.
"""

from __future__ import annotations

import ast
import json
import os
import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from posixpath import dirname, join, normpath, relpath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from pygments.lexers import find_lexer_class_for_filename

ROOT = Path(__file__).parents[2]
_LINK = re.compile(r"(?<=\]\()(?P<path>[^)\s#:]+)(?P<anchor>#[^)\s]*)?(?=\))")
_NAMED = re.compile(r"\[(?:[\w-]+/)*(?P<name>[\w-]+\.md)\]\((?P<path>(?:[^)\s#:]*/)?(?P=name))(?=[#)])")
_FENCE = "~" * 8


def on_startup(**_: object) -> None:
    """Links the package's folders below one of its name, without those of tests and environments beside them."""
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["packages"]
    place = ROOT / "build" / "typing" / "pumice"
    place.mkdir(parents=True, exist_ok=True)
    for path in place.iterdir():
        path.unlink()
    for name in {*(name.split(".")[1] for name in packages if "." in name), *(path.name for path in ROOT.glob("*.py"))}:
        (place / name).symlink_to(os.path.relpath(ROOT / name, place))


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds pages: those of the navigation that no file has, and those that pages link to."""
    waiting = [uri for uri in _leaves(config.nav) if files.get_file_from_path(uri) is None]
    texts = {page.src_uri: page.content_string for page in files.documentation_pages()}
    while waiting or texts:
        for uri in waiting:
            text = _text(uri, config)
            if text is not None and files.get_file_from_path(uri) is None:
                files.append(File.generated(config, uri, content=text))
                texts[uri] = text
        waiting = [_site_path(target) for uri, text in texts.items() for target in _linked(text, uri)]
        texts = {}
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Leads links to pages of the site, and calls them by the title where they are called by the file."""
    here = page.file.src_uri

    def titled(match: re.Match[str]) -> str:
        target = _target(match, here)
        title = target and re.search(r"^# (.+)$", (ROOT / target).read_text(encoding="utf-8"), re.M)
        return f"[{title[1]}]({match['path']}" if title else match[0]

    def led(match: re.Match[str]) -> str:
        target = _target(match, here)
        return match[0] if target is None else relpath(_site_path(target), dirname(here)) + (match["anchor"] or "")

    return _LINK.sub(led, _NAMED.sub(titled, markdown))


def _leaves(nav: object) -> Iterator[str]:
    """The pages of a navigation."""
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, dict | list):
        for item in nav.values() if isinstance(nav, dict) else nav:
            yield from _leaves(item)


def _target(match: re.Match[str], uri: str) -> str | None:
    """The file of the repository that a link of a page leads to, if there is one."""
    path = uri.removeprefix("repository/") if uri.startswith("repository/") else f"docs/{uri}"
    target = normpath(join(dirname(path), match["path"]))
    return target if (ROOT / target).exists() else None


def _linked(text: str, uri: str) -> Iterator[str]:
    """The files that a page links to, of those that are no pages by themselves."""
    for match in _LINK.finditer(text):
        target = _target(match, uri)
        if target is not None and not target.startswith("docs/"):
            yield target


def _site_path(path: str) -> str:
    """Where a file of the repository is on the site."""
    if path.startswith("docs/"):
        return re.sub(r"\.ipynb$", ".md", path.removeprefix("docs/"))
    return f"repository/{path}" if path.endswith(".md") else f"repository/{path}.md"


def _text(uri: str, config: MkDocsConfig) -> str | None:
    """The text of a page that no file has; None if nothing says what it is."""
    place, _, rest = uri.partition("/")
    path = rest.removesuffix(".md")
    if place == "api":
        return _packages(config) if path == "index" else _reference(path, config.extra["also"].get(path, ()))
    if place == "notebooks":
        return _notebook(ROOT / "docs" / place / f"{path}.ipynb")
    if place == "repository":
        return (ROOT / rest).read_text(encoding="utf-8") if (ROOT / rest).is_file() else _source(ROOT / path)
    return None


def _packages(config: MkDocsConfig) -> str:
    """The packages of the navigation, each with the first sentence of its docstring."""
    rows = []
    for package in (Path(uri).stem for uri in _leaves(config.nav) if uri.startswith("api/pumice")):
        init = ROOT.joinpath(*package.split(".")[1:], "__init__.py")
        summary = (
            (ast.get_docstring(ast.parse(init.read_text(encoding="utf-8"))) or "").split("\n\n")[0].replace("\n", " ")
        )
        rows.append(f"| [`{package}`]({package}.md) | {summary} |\n")
    return "# Python\n\n| package | what it has |\n| -- | -- |\n" + "".join(rows)


def _reference(page: str, also: Iterable[str]) -> str:
    """The public names of a package, and what else its page has."""
    head = f"# {page}\n\n::: {page}\n\n" if page.startswith("pumice") else f"# {page.capitalize()}\n\n"
    return head + "".join(f"::: {name}\n    options: {{ show_root_heading: true }}\n\n" for name in also)


def _source(path: Path) -> str:
    """A page with a file's text, or with a list of a folder's files."""
    head = f"---\nsearch: {{ exclude: true }}\n---\n\n# {path.relative_to(ROOT)}\n\n"
    if path.is_dir():
        names = sorted(one.name for one in path.iterdir() if not one.name.startswith(("_", ".")))
        return head + "".join(f"- [{name}]({path.name}/{name})\n" for name in names)
    lexer = find_lexer_class_for_filename(path.name)
    try:
        return f"{head}{_FENCE}{lexer.aliases[0] if lexer else 'text'}\n{path.read_text(encoding='utf-8')}{_FENCE}\n"
    except UnicodeDecodeError:
        return f"{head}{path.stat().st_size} bytes.\n"


def _notebook(path: Path) -> str:
    """A notebook with the results that it holds."""
    parts = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"{_FENCE}python\n{source}\n{_FENCE}")
        for output in cell.get("outputs", ()):
            results = output.get("data") or {"text/plain": output["text"]}
            data = {kind: "".join(text) for kind, text in results.items()}
            if "text/html" in data:
                html = re.sub(r"\n\s*\n", "\n", data["text/html"])
                parts.append(f'<div class="output">{html}</div>')
            elif "image/png" in data:
                parts.append(f"![Result](data:image/png;base64,{data['image/png'].strip()})")
            else:
                parts.append(f"{_FENCE}text\n{data['text/plain'].rstrip()}\n{_FENCE}")
    return "\n\n".join(parts)
