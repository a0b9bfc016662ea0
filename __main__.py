"""``python -m pumice``: the command line."""

from .tools.cli import main  # type: ignore[import-not-found]  # mypy takes the file for a script without a package

main()
