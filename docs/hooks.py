"""Pages of the site beside those of this folder: the public names of a package, and the files that pages link to.

Links are written as they are right in the repository (``../examples/serve_model.py``), and are led to pages of the
site: ``docs/x.md`` is ``x.md``, any other file ``repository/<path>.md``, with its text.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from posixpath import dirname, join, normpath, relpath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from pygments.lexers import find_lexer_class_for_filename

ROOT = Path(__file__).parents[1]
_LINK = re.compile(r"(?<=\]\()(?P<path>[^)\s#:]+)(?P<anchor>#[^)\s]*)?(?=\))")
_FENCE = "~" * 8


def on_startup(**_: object) -> None:
    """Links the package's folders below one of its name, without those of tests and environments beside them."""
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    place = ROOT / "build" / "typing" / "pumice"
    place.mkdir(parents=True, exist_ok=True)
    wanted = {*(name.split(".")[1] for name in packages if "." in name), *(path.name for path in ROOT.glob("*.py"))}
    for path in place.iterdir():
        path.unlink()
    for name in wanted:
        (place / name).symlink_to(os.path.relpath(ROOT / name, place))


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds pages for the packages of the navigation and for the files that pages link to, and those link to."""
    for uri in _leaves(config.nav):
        if uri.startswith("api/"):
            files.append(File.generated(config, uri, content=_reference(uri.removeprefix("api/").removesuffix(".md"))))
        elif uri.startswith("repository/"):
            files.append(File.generated(config, uri, content=_text(_repository_path(uri))))
    pages = list(files.documentation_pages())
    for page in pages:
        for target in _linked(page.content_string, _repository_path(page.src_uri)):
            uri = _site_path(target)
            if files.get_file_from_path(uri) is None and not target.startswith("docs/"):
                pages.append(File.generated(config, uri, content=_text(target)))
                files.append(pages[-1])
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Leads links to pages of the site."""
    here = page.file.src_uri
    path = _repository_path(here)

    def led(match: re.Match[str]) -> str:
        target = normpath(join(dirname(path), match["path"]))
        if not (ROOT / target).exists():
            return match[0]
        return relpath(_site_path(target), dirname(here)) + (match["anchor"] or "")

    return _LINK.sub(led, markdown)


def _leaves(nav: object) -> Iterator[str]:
    """The pages of a navigation."""
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, dict | list):
        for item in nav.values() if isinstance(nav, dict) else nav:
            yield from _leaves(item)


def _site_path(path: str) -> str:
    """The page of a file of the repository, or where its picture lies."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return f"repository/{path}" if path.endswith(".md") else f"repository/{path}.md"


def _repository_path(uri: str) -> str:
    """The file that a page of the site shows."""
    if not uri.startswith("repository/"):
        return f"docs/{uri}"
    path = uri.removeprefix("repository/")
    return path if (ROOT / path).exists() else path.removesuffix(".md")


def _linked(text: str, path: str) -> Iterator[str]:
    """The files of the repository that a file's text links to."""
    if path.endswith(".md") or (ROOT / path).is_dir():
        for match in _LINK.finditer(text):
            target = normpath(join(dirname(path), match["path"]))
            if (ROOT / target).exists():
                yield target


def _text(path: str) -> str:
    """A page for a file of the repository; a folder's lists its files."""
    file = ROOT / path
    if file.suffix == ".md":
        return file.read_text()
    head = f"---\nsearch: {{ exclude: true }}\n---\n\n# {path}\n\n"
    if file.is_dir():
        names = sorted(one.name for one in file.iterdir() if not one.name.startswith(("_", ".")))
        return head + "".join(f"- [{name}]({file.name}/{name})\n" for name in names)
    lexer = find_lexer_class_for_filename(file.name)
    language = lexer.aliases[0] if lexer else "text"
    try:
        return f"{head}{_FENCE}{language}\n{file.read_text()}{_FENCE}\n"
    except UnicodeDecodeError:
        return f"{head}{file.stat().st_size} bytes.\n"


def _reference(package: str) -> str:
    """The page of a package's public names."""
    return f"# {package}\n\n::: {package}\n"
