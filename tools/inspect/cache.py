"""``pumice cache``: the contents of the cache on disk."""

from __future__ import annotations

import click

from ...base.cache import MAX_BYTES, cache_directory, clear, unavailable_reason, usage
from ...base.terminal import printable
from ..streams import note


@click.command()
@click.option("--clear", "clears", is_flag=True, help="Delete all of it.")
def cache(clears: bool) -> None:
    """Show what is kept on disk so that the next run starts sooner: compiled sources and programs, checked shaders,
    translated functions, pipelines. The environment variable PUMICE_CACHE_DIR moves it, PUMICE_CACHE=0 switches it off.
    """
    from ..tables import heading, print_table

    folder, nothing = cache_directory(), unavailable_reason()
    if nothing is not None:
        note(f"nothing is kept: {printable(nothing)}")
    if folder is None:
        return
    if clears:
        clear()
    held = usage()
    heading(printable(str(folder)))
    rows = [(kept.room, f"{kept.entries:,}", f"{kept.size:,}") for kept in held]
    total = sum(kept.size for kept in held)
    print_table(("room", "entries", "bytes"), [*rows, ("all", f"{sum(kept.entries for kept in held):,}", f"{total:,}")])
    note(f"{100 * total // MAX_BYTES} % of what it may take; the entries that were not used for longest go first")
