"""Commands that list and show studies and results, and export results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from ..errors import needs_study_extra, usage, usage_error
from ..options import complete_files, given_options
from ..streams import put
from ..tables import heading
from .baselines import baseline_names, baselines_option

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from ...study.definition.study import Study

STUDIES: Final = Path(__file__).parents[1] / "studies"


def complete_studies(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Completes the studies that come with pumice, or a file."""
    from click.shell_completion import CompletionItem

    names = sorted(path.stem for path in STUDIES.glob("*.toml") if path.stem.startswith(incomplete))
    return [CompletionItem(name) for name in names] or complete_files(ctx, parameter, incomplete)


def read_study(name: str) -> Study:
    """Reads the study of a name or file on the command line."""
    from ...status import NotFoundError
    from ...study.definition.study_file import load_study

    with usage("", NotFoundError):
        return load_study(name, STUDIES)


@click.command("list", short_help="List the studies that come with pumice, or the results in a folder.")
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@baselines_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
@needs_study_extra()
def list_(ctx: click.Context, folder: Path | None, baselines: Path, as_json: bool) -> None:
    """List the studies that come with pumice, and the baselines; with DIR, the results in and below it.

    In JSON, baselines are listed with --baselines alone.
    """
    from .tables import print_result_list, print_study_list

    asked = any(parameter.name == "baselines" for parameter in given_options(ctx))
    if folder is not None and asked:
        raise usage_error("--baselines lists baselines, and DIR results; give one of them")
    if folder is not None or asked:
        print_result_list(folder or baselines, as_json)
        return
    print_study_list(STUDIES, as_json)
    if baseline_names(baselines) and not as_json:
        put()
        heading(f"baselines in {baselines}")
        print_result_list(baselines, as_json)


@click.command("show", short_help="Show a study, or what results are of.")
@click.argument("name", metavar="STUDY|DIR", shell_complete=complete_studies)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@needs_study_extra()
def show(name: str, as_json: bool) -> None:
    """Show what a study measures and how to read its results, or the contents of results in a folder."""
    from ...study.results.storage.store import Store
    from .tables import print_result_facts, print_study

    if Store.exists(Path(name)) if Path(name).is_dir() else Path(name).name == "results.sqlite":
        print_result_facts(Path(name), as_json)
    else:
        print_study(read_study(name), as_json)


@click.command("export", short_help="Write results as CSV, JSON, Markdown or Parquet.")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--csv", type=click.Path(path_type=Path), metavar="FILE", help="Comma-separated values.")
@click.option("--json", type=click.Path(path_type=Path), metavar="FILE", help="JSON: the study, its runs and points.")
@click.option("--markdown", type=click.Path(path_type=Path), metavar="FILE", help="A table for people.")
@click.option("--parquet", type=click.Path(path_type=Path), metavar="FILE", help="Parquet.")
@click.option(
    "--records", type=click.Path(path_type=Path), metavar="FILE", help="JSON: a list of rows, for pandas.read_json."
)
@click.option("--raw", is_flag=True, help="One row a sample instead of one a point.")
@needs_study_extra()
def export(folder: Path, raw: bool, **files: Path | None) -> None:
    """Write the results in DIR to files; - is stdout."""
    import io

    from ...study.results.export import export_results, export_to
    from ...study.results.results import Results

    wanted = [(kind, path) for kind, path in files.items() if path is not None]
    if not wanted:
        raise usage_error(
            "say what to write: --csv FILE, --json FILE, --markdown FILE, --parquet FILE or --records FILE; - is stdout"
        )
    with Results.open(folder) as results:
        for kind, path in wanted:
            if str(path) != "-":
                export_results(results, kind, path, raw=raw)
            elif kind == "parquet":
                raise usage_error("--parquet -: Parquet is not text; name a file")
            else:
                buffer = io.BytesIO()
                export_to(results, kind, buffer, raw=raw)
                put(buffer.getvalue().decode("utf-8"), end="")
