"""The code blocks of the documentation run, and the checker of them fails where one is wrong."""

from __future__ import annotations

import multiprocessing
import os
import re
import sys
from pathlib import Path

import pytest
from support import pages
from support.pages import LACKING, ROOT

from pumice.hal_vulkan.instance.driver import Driver

MESA_LLVMPIPE = 13  # VkDriverId

# Pages with a block of code; what is not run at all is checked below.
WITH_CODE = [path for path in pages.pages() if re.search(r"^ *```(?!text)\w", path.read_text("utf-8"), re.MULTILINE)]


# Pages whose commands measure, or that run pytest.
LONG = {"README.md", *(f"docs/{name}.md" for name in ("cli", "dispatch-timing", "testing-in-ci", "tutorial"))}


def page_case(path: Path) -> object:
    """A page as a case of a test: one of the long ones in each run, and seven others."""
    name = path.relative_to(ROOT).as_posix()
    return pytest.param(path, id=name, marks=pytest.mark.sample(*((1, "long pages") if name in LONG else (7, "pages"))))


# A page has a process of its own, forked from one that has imported what all pages need.
PROCESSES = multiprocessing.get_context("spawn" if sys.platform == "win32" else "forkserver")
if sys.platform != "win32":
    # What the checker of pages imports, not the checker: that process does not have the tests' folder on its path.
    imported = "amber hal_reference study.definition.study_file tools.cli vm.assembly.assembler"
    packages = ["click.testing", "markdown_it", "numpy", "yaml"]
    PROCESSES.set_forkserver_preload([*packages, *(f"pumice.{name}" for name in imported.split())])


def run_page(path: Path, errors: Path) -> tuple[int | None, str]:
    """The exit status of a page, and what it writes to stderr."""
    process = PROCESSES.Process(target=pages.run_apart, args=(str(path), str(errors)))
    errors.touch()
    process.start()
    try:
        process.join()
    finally:
        process.kill()
    return process.exitcode, errors.read_text(encoding="utf-8")


@pytest.mark.vulkan
@pytest.mark.slow
@pytest.mark.timeout(400)  # README.md takes 20 s of processor time: minutes on a busy machine
@pytest.mark.skipif(sys.platform == "win32", reason="commands are for a POSIX shell")
@pytest.mark.parametrize("path", [page_case(path) for path in WITH_CODE])
def test_page(driver: Driver, path: Path, tmp_path: Path) -> None:
    names_driver = any("lavapipe" in block.text for block in pages.blocks(path) if not block.reason)
    if names_driver and all(profile.driver_id != MESA_LLVMPIPE for profile in driver.profiles):
        pytest.skip("the page uses lavapipe")
    status, errors = run_page(path, tmp_path / "errors.txt")
    if status == LACKING and not os.environ.get("CI"):
        pytest.skip(errors.strip())
    assert status == 0, errors


@pytest.mark.slow
def test_every_block_is_run_or_says_why_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert pages.main([]) == 0, capsys.readouterr().err
    assert re.match(r"\d+ blocks of \d+ pages are run, \d+ are not:\n", capsys.readouterr().out)


WRONG = {
    "no language": ("```\nx\n```", "expected a fence of"),
    "an unknown language": ("```fortran\nx\n```", "got 'fortran'"),
    "an indented block": ("text\n\n    x = 1\n", "expected a fence of"),
    "installs": ("```sh\npip install pumice\n```", "what installs packages"),
    "a reason of nothing": ("<!-- not run: x -->\n\ntext", "no block follows"),
    "an attribute": ("```python hl_lines=1\nx\n```", "hl_lines=1"),
    "another value": ("```python\nprint(\n    1 + 1\n)  # 3\n```", "line 3 says '3', and prints '2\\n'"),
    "what is not printed": ("```python\nif 1 > 2:\n    print(1)  # 1\n```", "never ran in the lines [4]"),
    "another text": ("```python\nprint(1)\n```\n\n```text\n2\n```", "expected what the block before it prints:\n1"),
    "a file": ('```python title="part.py"\n```', "page.md:2: no block after it uses part.py"),
    "no block before": ("```text\n2\n```", "expected a block before it"),
    "an exception": ("```python\n1 / 0\n```\n\n```python\n```", 'page.md", line 3'),
    "another exception": ("```python\n1 / 0\n```\n\n```text\nValueError: …\n```", "ZeroDivisionError"),
    "a failed command": ("```sh\nfalse\necho after\n```", "false: status 1"),
    "a failed command at the end": ("```sh\npumice run none.spv\n```", "page.md:2: pumice run none.spv: status 1"),
    "another output": ("```console\n$ echo 1\n2\n```", "echo 1: status 0\n1"),
    "an open quotation": ("```sh\necho '1\n```", "expected the end of echo '1"),
    "a study": ('```toml\nversion = 1\nname = "x"\ntargets = [{ name = "y", kind = "z" }]\n```', "'z'"),
    "C": ("```c\nint main(void) { return x; }\n```", "undeclared"),
    "a program": ("```mlir\nfunc.func @f() -> tensor<4xf32> { return }\n```", "page.md:2: error: block2.mlir:1:1"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, message = WRONG[name]
    page = tmp_path / "page.md"
    page.write_text(f"\n{text}\n", encoding="utf-8")
    path = list(sys.path)
    main = sys.modules["__main__"]
    try:
        assert pages.main([str(page)]) == 1
    finally:
        sys.path[:] = path
        sys.modules["__main__"] = main
    assert message in capsys.readouterr().err


def test_what_is_right(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        """
```python title="part.py"
value = 7
```

```python
import part
print([part.value] * 2)  # [7, …]
print("what", "else")
raise KeyError("x")
```

```text
what else
KeyError: 'x'
```

<!-- not run: opens a window -->

```sh
pip install nothing; exit 1
```

```sh
cat part.py | tr 7 8 > other.py   # a comment
cat >> other.py <<'END'
it's
END
cat other.py
```

```text
value = 8
it's
```
""",
        encoding="utf-8",
    )
    assert run_page(page, tmp_path / "errors.txt") == (0, "")
