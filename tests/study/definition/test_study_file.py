"""Study files: their content, errors with their locations, and studies as stored values."""

from __future__ import annotations

import dataclasses
import json
import pickle
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.study.reference import FIRST, PAGE, reference_tables

from pumice.status import (
    IncompatibleError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    PumiceError,
    UnavailableError,
)
from pumice.study.definition.axis import Axis, parse_axis
from pumice.study.definition.expansion import MAX_POINTS, expand
from pumice.study.definition.expression import FUNCTIONS
from pumice.study.definition.figures import MEASURED
from pumice.study.definition.sample import SEGMENTS
from pumice.study.definition.settings import Sampling
from pumice.study.definition.study import BASELINE_NAME, FORMAT_VERSION, Study, Target
from pumice.study.definition.study_file import load_study, parse_study, study_as_dict, study_from_dict
from pumice.study.definition.target_settings import BASELINE_SETTINGS, KINDS

TEXT = """\
version = 1
name = "batch-depth"
title = "Dispatches in a command buffer"
devices = ["lavapipe"]
fit = ["batch"]
compare = "barrier"
reference = "between"
baseline = true
[sampling]
min_samples = 50
relative_error = 0.01
[axes]
n = [1024, 4096]
batch = { powers_of_two = [1, 4] }
barrier = ["between", "none"]
[derived]
bytes = "12 * n"
[[targets]]
name = "saxpy"
kind = "kernel"
source = "builtin:examples/saxpy"
bindings = [{ shape = ["$n"] }, { shape = "$n", dtype = "f32", init = "zeros" }]
push = { a = 2.0 }
measure = "total"
"""


def test_a_file_has_all_of_a_study(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text(TEXT, encoding="utf-8")
    study = load_study(file)
    assert study == Study(
        name="batch-depth",
        title="Dispatches in a command buffer",
        devices=("lavapipe",),
        fit=("batch",),
        compare="barrier",
        reference="between",
        baseline=True,
        sampling=Sampling(min_samples=50, relative_error=0.01),
        axes=(
            Axis("n", (1024, 4096)),
            Axis.powers_of_two("batch", 1, 4),
            Axis("barrier", ("between", "none")),
        ),
        derived={"bytes": "12 * n"},
        targets=(
            Target(
                "saxpy",
                "kernel",
                {
                    "source": "builtin:examples/saxpy",
                    "bindings": [{"shape": ["$n"]}, {"shape": "$n", "dtype": "f32", "init": "zeros"}],
                    "push": {"a": 2.0},
                },
                measure="total",
            ),
        ),
        folder=tmp_path,
    )
    assert study.text == TEXT
    assert study.source == str(file)


def test_built_in_studies_are_found_by_name(tmp_path: Path) -> None:
    (tmp_path / "batch-depth.toml").write_text(TEXT, encoding="utf-8")
    assert load_study("batch-depth", tmp_path).folder == tmp_path
    with pytest.raises(
        NotFoundError, match=r"'batch-deth' \(did you mean 'batch-depth'\?\); built-in studies are batch-depth"
    ):
        load_study("batch-deth", tmp_path)
    with pytest.raises(NotFoundError, match="no such file: .*batch-depth"):
        load_study("batch-depth")
    with pytest.raises(NotFoundError, match="no such file: .*other.toml"):
        load_study("other.toml", tmp_path)


def test_files_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnavailableError, match="cannot be read"):
        load_study(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b'name = "\xe9"')
    with pytest.raises(InvalidArgumentError, match="byte 8 is not"):
        load_study(tmp_path / "latin.toml")

    def refuse(path: Path) -> bytes:
        raise PermissionError

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(PermissionDeniedError, match="cannot be read"):
        load_study(tmp_path / "latin.toml")


@pytest.mark.parametrize(
    ("text", "line"), [("version = 1\nname = \n", 2), ("a = 1\n\nb = [1,\n", 4), ('x = "\n', 1), ("a = 1\na = 2\n", 2)]
)
def test_what_is_no_toml_says_the_line(text: str, line: int) -> None:
    with pytest.raises(InvalidArgumentError, match="expected TOML") as caught:
        parse_study(text, source="a.toml")
    assert caught.value.location is not None
    assert re.fullmatch(rf"a\.toml:{line}|a\.toml:{line + 1}", caught.value.location)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"version = {'9' * 5000}", "expected TOML: Exceeds the limit"),
        (f"version = {'[' * 5000}{']' * 5000}", "nested too deeply"),
        (TEXT.replace("{ a = 2.0 }", f"{'[' * 40}{']' * 40}"), "at most 32 lists and tables within each other"),
    ],
)
def test_what_is_too_long_or_too_deep_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message) as caught:
        parse_study(text, source="a.toml")
    assert str(caught.value.location).startswith("a.toml")
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("version", [2, 99])
def test_a_newer_version_is_refused(version: int) -> None:
    with pytest.raises(IncompatibleError, match=rf"version {version} .* versions up to 1; update pumice") as caught:
        parse_study(f"version = {version}\nwhatever = 1\n", source="new.toml")
    assert caught.value.location == "new.toml: version"


@pytest.mark.parametrize("line", ["", 'version = "1"', "version = true", "version = 0", "version = 1.0"])
def test_a_version_is_needed(line: str) -> None:
    with pytest.raises(InvalidArgumentError, match="version = 1; got .*: docs/reference/study.md"):
        parse_study(line)


CASES = [
    ('name = "batch-depth"', 'name = "a b"', "name", "expected a name of letters"),
    ('name = "batch-depth"', "", "name", "a study has a name"),
    ('title = "D', 'tilte = "D', "", r"no 'tilte' \(did you mean 'title'\?\)"),
    ('title = "Dispatches in a command buffer"', "title = 3", "title", "expected a text, got 3"),
    ('["lavapipe"]', '["a", "a"]', "devices[1]", "'a' is given twice"),
    ('["lavapipe"]', "[3]", "devices[0]", "expected a device's URI, got 3"),
    ('["lavapipe"]', '"lavapipe"', "devices", "expected a sequence"),
    ('fit = ["batch"]', 'fit = ["bacth"]', "fit[0]", r"got 'bacth' \(did you mean 'batch'\?\)"),
    ('fit = ["batch"]', 'fit = ["barrier"]', "fit[0]", "not numbers"),
    ('compare = "barrier"', 'compare = "barier"', "compare", r"did you mean 'barrier'"),
    ('compare = "barrier"', "", "reference", "something to compare"),
    ('reference = "between"', 'reference = "all"', "reference", "'between', 'none'; got 'all'"),
    ("baseline = true", "baseline = 1", "baseline", "expected true or false, got 1"),
    ("min_samples = 50", "min_sample = 50", "sampling", r"no 'min_sample' \(did you mean 'min_samples'\?\)"),
    ("min_samples = 50", "min_samples = 0", "sampling", "min_samples is at least 1"),
    ("n = [1024, 4096]", "n = []", "axes.n", "empty"),
    ("n = [1024, 4096]", "n = { range = [9, 1] }", "axes.n", "is empty"),
    ("n = [1024, 4096]", "m = [1]", "targets[0].bindings[0].shape[0]", "nothing is named 'n'.*known are m, batch"),
    ("n = [1024, 4096]", "n = [1]\nx = [1]", "axes.x", "unknown axis 'x': no setting of kind kernel has that name"),
    ("n = [1024, 4096]", "n = [1]\nbarriers = [1]", "axes.barriers", r"did you mean 'barrier'\?"),
    ("n = [1024, 4096]", "n = [1]\ntarget = [1]", "axes.target", "compare"),
    ('"12 * n"', '"12 * m"', "derived.bytes", "nothing is named 'm'"),
    ('"12 * n"', '"12 *"', "derived.bytes", "expected an expression"),
    ('"12 * n"', "12", "derived.bytes", "expected an expression such as"),
    ("bytes =", "time =", "derived.time", "is a measurement"),
    ("bytes =", "n =", "derived.n", "an axis is named 'n'"),
    ("[[targets]]", "[targets]", "targets", "a list of tables"),
    ('name = "saxpy"', "", "targets[0]", "a target has a name"),
    ('name = "saxpy"', 'name = ""', "targets[0].name", "a target has a name, got ''"),
    ('name = "saxpy"', 'name = "empty kernel"', "targets[0]", "the baseline's name"),
    ('kind = "kernel"', 'kind = "kernle"', "targets[0].kind", r"'kernle' \(did you mean 'kernel'\?\)"),
    ('measure = "total"', 'measure = "exec"', "targets[0].measure", "execute"),
    ('measure = "total"', "bacth = 2", "targets[0].bacth", r"'bacth' \(did you mean 'batch'\?\); its settings are"),
    ('measure = "total"', "batch = 2", "axes.batch", "every target of kind kernel sets batch itself"),
    ("push = { a = 2.0 }", 'push = { a = "$n +" }', "targets[0].push.a", "expected an expression"),
    ("push = { a = 2.0 }", "push = { a = 2020-01-01 }", "targets[0].push.a", "date"),
    ("push = { a = 2.0 }", 'push = { a = "$log(n)" }', "targets[0].push.a", "no function is named 'log'"),
]  # fmt: skip


@pytest.mark.parametrize("table", ["sampling", "axes", "derived"])
def test_tables_are_tables(table: str) -> None:
    with pytest.raises(InvalidArgumentError, match="expected a table, got 3") as caught:
        study_from_dict({"version": 1, "name": "a", table: 3}, source="a.toml")
    assert caught.value.location == f"a.toml: {table}"


@pytest.mark.parametrize(("old", "new", "where", "message"), CASES)
def test_what_is_wrong_says_where(old: str, new: str, where: str, message: str) -> None:
    assert old in TEXT
    with pytest.raises(InvalidArgumentError, match=message) as caught:
        parse_study(TEXT.replace(old, new, 1), source="a.toml")
    assert caught.value.location == (f"a.toml: {where}" if where else "a.toml")


def test_studies_made_in_python_say_their_name() -> None:
    with pytest.raises(InvalidArgumentError, match="at least one target") as caught:
        Study("empty", ())
    assert caught.value.location == "study 'empty': targets"
    twice = Target("a", "submit")
    with pytest.raises(InvalidArgumentError, match="two targets are named 'a'"):
        Study("twice", (twice, twice))
    with pytest.raises(InvalidArgumentError, match="two axes are named 'waits'"):
        Study("twice", (twice,), (Axis("waits", (1,)), Axis("waits", (2,))))
    with pytest.raises(InvalidArgumentError, match="exclude each other"):
        Study("both", (twice,), (Axis("device", ("a",)),), devices=("b",))
    with pytest.raises(InvalidArgumentError, match="URIs"):
        Study("numbers", (twice,), (Axis("device", (1,)),))


def test_overrides_keep_the_rest() -> None:
    study = parse_study(TEXT, source="a.toml")
    other = study.with_axes(parse_axis("n=7,8"), parse_axis("queues=1,2"))
    assert [axis.name for axis in other.axes] == ["n", "batch", "barrier", "queues"]
    assert other.axes[0].values == (7, 8)
    assert (other.text, other.source) == (TEXT, "a.toml")
    with pytest.raises(InvalidArgumentError, match="unknown axis 'quues'.*did you mean 'queues'"):
        study.with_axes(parse_axis("quues=1,2"))
    assert study.with_sampling(max_samples=60).sampling == Sampling(min_samples=50, max_samples=60, relative_error=0.01)
    with pytest.raises(InvalidArgumentError, match="less than min_samples"):
        study.with_sampling(max_samples=20)
    with pytest.raises(InvalidArgumentError, match="did you mean 'max_samples'"):
        study.with_sampling(max_sample=20)


def test_a_study_survives_storing_and_pickling() -> None:
    study = parse_study(TEXT, Path("there"), source="a.toml")
    stored = json.loads(json.dumps(study_as_dict(study)))
    assert study_from_dict(stored, Path("there")) == study
    assert study_as_dict(study_from_dict(stored)) == stored
    assert pickle.loads(pickle.dumps(study)) == study


AXES = st.dictionaries(
    st.sampled_from(KINDS["submit"].names),
    st.lists(st.integers(1, 5), min_size=1, max_size=3, unique=True),
)


@pytest.mark.slow
@given(AXES, st.booleans(), st.sampled_from(["submit", "total", None]), st.integers(0, 10))
def test_any_study_survives_storing(axes: Mapping[str, list[int]], peaks: bool, measure: str | None, seed: int) -> None:
    study = Study(
        "any",
        (Target("submission", "submit", {}, measure), Target("wake", "semaphore", {"waiters": "$1 + 1"})),
        tuple(Axis(name, tuple(values)) for name, values in axes.items()),
        peaks=peaks,
        sampling=Sampling(seed=seed),
        derived={"per": "time / dispatches"},
    )
    assert study_from_dict(json.loads(json.dumps(study_as_dict(study)))) == study
    assert expand(study, ["x"]) == expand(study_from_dict(study_as_dict(study)), ["x"])


VALUES = (
    st.none()
    | st.integers()
    | st.text()
    | st.lists(st.integers() | st.text() | st.lists(st.none()))
    | st.dictionaries(st.text(), st.integers())
)


def test_the_other_side_is_stored_and_read_with_the_study(tmp_path: Path) -> None:
    text = (
        TEXT
        + """
[against]
version = 1
name = "batch-depth"
[against.axes]
n = [1024]
[[against.targets]]
name = "saxpy"
kind = "kernel"
source = "old.comp"
bindings = [{ shape = "$n" }]
"""
    )
    study = parse_study(text, tmp_path)
    assert study.against is not None and study.against.folder == tmp_path
    stored = json.loads(json.dumps(study_as_dict(study)))
    assert study_from_dict(stored, tmp_path) == study
    assert study_as_dict(study_from_dict(stored)) == stored
    assert "against" not in study_as_dict(parse_study(TEXT))
    with pytest.raises(InvalidArgumentError, match="no 'axis'") as raised:
        parse_study(text.replace("against.axes", "against.axis"))
    assert "against" in str(raised.value.location)


@pytest.mark.slow
@given(st.dictionaries(st.sampled_from(list(study_as_dict(parse_study(TEXT)))), VALUES))
def test_any_values_are_a_study_or_a_clear_error(changes: Mapping[str, object]) -> None:
    data = {**tomllib.loads(TEXT), **changes}
    try:
        expand(study_from_dict(data, source="a.toml"), ["x"])
    except PumiceError as error:
        assert error.location is not None and error.location.startswith("a.toml")


# -- the reference -----------------------------------------------------------------------------------


def test_the_reference_page_has_the_tables_of_settings() -> None:
    above, first, below = PAGE.read_text(encoding="utf-8").partition(FIRST)
    assert first + below == reference_tables(), "run python tests/support/study/reference.py"
    text = " ".join(above.split())
    for names in (FUNCTIONS, MEASURED, BASELINE_SETTINGS, SEGMENTS):
        assert ", ".join(f"`{name}`" for name in names) in text
    for fact in (
        f"version {FORMAT_VERSION} of the format",
        f"at most {MAX_POINTS:,}.",
        f"the target `{BASELINE_NAME}`",
    ):
        assert fact in text


def test_tables_of_the_reference_page_are_whole() -> None:
    code = False
    before = ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        code ^= line.startswith("```")
        if line.startswith("|"):
            assert line.endswith("|") and (not before.startswith("|") or line.count("|") == before.count("|")), line
        elif not code:
            assert (len(line) <= 120 and not before.startswith("|")) or not line, line
        before = line


def test_the_reference_page_has_every_setting() -> None:
    sections = re.split(r"^### `(\w+)`$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    described = dict(zip(sections[1::2], sections[2::2], strict=True))
    assert list(described) == list(KINDS)
    for kind in KINDS.values():
        rows = re.findall(r"^\| `(\w+)` \|", described[kind.name].partition("## Sampling")[0], re.MULTILINE)
        assert tuple(rows) == kind.names
    text = PAGE.read_text(encoding="utf-8")
    for setting in dataclasses.fields(Sampling):
        assert f"| `{setting.name}` |" in text and setting.metadata["doc"] in text


def test_the_reference_pages_example_is_a_study() -> None:
    example = PAGE.read_text(encoding="utf-8").partition("```toml\n")[2].partition("```")[0]
    assert len(expand(parse_study(example), ["x"])) > 100


def test_defaults_are_what_their_types_take() -> None:
    for kind in KINDS.values():
        assert len(set(kind.names)) == len(kind.names)
        for setting in kind.settings:
            if not setting.required:
                assert setting.check(setting.default) == setting.default
    assert set(BASELINE_SETTINGS) <= set(KINDS["kernel"].names)
