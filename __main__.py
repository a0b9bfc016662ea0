"""``python -m pumice``: the command line."""

from .tools.cli import main

main()
