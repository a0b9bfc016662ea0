"""Files that points name: read, renamed and unpacked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pumice.status import InvalidArgumentError, NotFoundError, UnavailableError
from pumice.study.cluster.study_files import StudyFiles, map_files, unpack_files
from pumice.study.definition.point import Point


def test_files_of_a_folder_keep_their_names_and_others_get_some(tmp_path: Path) -> None:
    folder = tmp_path / "study"
    (folder / "weights").mkdir(parents=True)
    for name in ("m.vmfb", "weights/a.irpa", "in.npy", "../out.bin"):
        (folder / name).write_bytes(name.encode())
    absolute = tmp_path / "out.bin"
    settings = {
        "source": "m.vmfb",
        "parameters": {"model": "weights/a.irpa"},
        "inputs": ["@in.npy", "4xf32=@../out.bin", "5", {"shape": [4], "init": f"@{absolute}"}, {"shape": [4]}],
    }
    files = StudyFiles(folder)
    taken = files.take("module", Point(0, "t", "d", settings=settings), 2).settings
    assert taken["source"] == "m.vmfb" and taken["parameters"] == {"model": "weights/a.irpa"}
    inputs = taken["inputs"]
    assert isinstance(inputs, list)
    assert inputs[0] == "@in.npy" and inputs[2] == "5" and inputs[4] == {"shape": [4]}
    assert files.contents["weights/a.irpa"] == b"weights/a.irpa"
    for name in (inputs[1].partition("@")[2], inputs[3]["init"][1:]):
        assert name.startswith("outside/") and files.contents[name] == b"../out.bin"
    unpack_files(files.contents, tmp_path / "there")
    assert (tmp_path / "there" / "weights" / "a.irpa").read_bytes() == b"weights/a.irpa"
    assert settings["source"] == "m.vmfb"


def test_glsl_is_compiled_once_for_each_set_of_macros(tmp_path: Path) -> None:
    (tmp_path / "k.comp").write_text("#version 450\nlayout(local_size_x = N) in;\nvoid main() {}\n")
    files = StudyFiles(tmp_path)

    def source(macros: dict[str, int]) -> object:
        return files.take("kernel", Point(0, "t", "d", settings={"source": "k.comp", "defines": macros}), 2).settings[
            "source"
        ]

    try:
        names = [source({"N": 1}), source({"N": 2}), source({"N": 1})]
    except UnavailableError as error:
        pytest.skip(f"no compiler of GLSL: {error.message}")
    assert names[0] == names[2] != names[1]
    assert len(files.contents) == 2 and all(name.endswith("/k.spv") for name in files.contents)
    with pytest.raises(InvalidArgumentError):
        source({})


def test_sources_are_compiled_with_all_that_they_name(tmp_path: Path) -> None:
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "size.glsl").write_text("#define N 4\n")
    (tmp_path / "k.txt").write_text(
        '#version 450\n#include "size.glsl"\nlayout(local_size_x = N) in;\nvoid main() {}\n'
    )
    files = StudyFiles(tmp_path)
    settings = {"source": "k.txt", "language": "glsl", "include_dirs": ["inc"], "batch": 2}
    try:
        taken = files.take("kernel", Point(0, "t", "d", settings=settings), 2).settings
    except UnavailableError as error:
        pytest.skip(f"no compiler of GLSL: {error.message}")
    assert taken == {"batch": 2, "source": "compiled/0/k.spv"}
    assert files.contents["compiled/0/k.spv"][:4] in (b"\x03\x02\x23\x07", b"\x07\x23\x02\x03")
    builtin = {"source": "builtin:mul", "language": "glsl"}
    assert files.take("kernel", Point(0, "t", "d", settings=builtin), 2).settings == builtin


def test_what_is_no_file_stays(tmp_path: Path) -> None:
    def refuse(name: str) -> str:
        raise AssertionError(name)

    settings = {"source": "builtin:timing/copy", "bindings": ["4xf32=1,2,3,4", {"shape": 4, "init": "random"}]}
    assert map_files("kernel", settings, refuse) == settings
    assert map_files("copy", {"bytes": 4}, refuse) == {"bytes": 4}


def test_files_that_cannot_be_had(tmp_path: Path) -> None:
    files = StudyFiles(tmp_path)
    with pytest.raises(NotFoundError, match="gone.spv"):
        files.take("kernel", Point(0, "t", "d", settings={"source": "gone.spv"}), 2)
    with pytest.raises(InvalidArgumentError, match="expected @"):
        files.take("module", Point(0, "t", "d", settings={"inputs": ["*all.npy"]}), 2)
    for name in ("../up", "/abs"):
        with pytest.raises(InvalidArgumentError, match="relative file name"):
            unpack_files({name: b""}, tmp_path)
    np.save(tmp_path / "x.npy", np.zeros(1))
    assert files.take("kernel", Point(0, "t", "d", settings={"bindings": ["@x.npy"]}), 2).settings["bindings"]
