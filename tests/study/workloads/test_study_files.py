"""Files of points: read, renamed, unpacked, and taken from earlier results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pumice import shaders
from pumice.status import FailedPreconditionError, InvalidArgumentError, NotFoundError, UnavailableError
from pumice.study.definition import kept_file
from pumice.study.definition.kept_file import KeptFile, KeptFiles
from pumice.study.definition.point import Point
from pumice.study.definition.study import Study, Target
from pumice.study.workloads.study_files import StudyFiles, map_files, unpack_files

TARGETS = (Target("k", "kernel", {"source": "k.comp"}), Target("m", "module", {"source": "m.vmfb"}))


def of_study(folder: Path, *, sent: bool = True, kept: KeptFiles | None = None) -> StudyFiles:
    return StudyFiles(Study("s", TARGETS, folder=folder, kept=kept), sent=sent)


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
    files = of_study(folder)
    taken = files.take(Point(0, "m", "d", settings=settings), 2).settings
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


@pytest.mark.slow
def test_glsl_is_compiled_once_for_each_set_of_macros(tmp_path: Path) -> None:
    (tmp_path / "k.comp").write_text("#version 450\nlayout(local_size_x = N) in;\nvoid main() {}\n")
    files = of_study(tmp_path)

    def source(macros: dict[str, int]) -> object:
        return files.take(Point(0, "k", "d", settings={"source": "k.comp", "defines": macros}), 2).settings["source"]

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
    files = of_study(tmp_path)
    settings = {"source": "k.txt", "language": "glsl", "include_dirs": ["inc"], "batch": 2}
    try:
        taken = files.take(Point(0, "k", "d", settings=settings), 2).settings
    except UnavailableError as error:
        pytest.skip(f"no compiler of GLSL: {error.message}")
    assert taken == {"batch": 2, "source": "compiled/0/k.spv"}
    assert files.contents["compiled/0/k.spv"][:4] in (b"\x03\x02\x23\x07", b"\x07\x23\x02\x03")


def test_what_is_no_file_stays(tmp_path: Path) -> None:
    def refuse(name: str, role: str) -> str:
        raise AssertionError(name)

    settings = {"source": "builtin:timing/copy", "bindings": ["4xf32=1,2,3,4", {"shape": 4, "init": "random"}]}
    assert map_files("kernel", settings, refuse) == settings
    assert map_files("copy", {"bytes": 4}, refuse) == {"bytes": 4}


def test_files_that_cannot_be_had(tmp_path: Path) -> None:
    files = of_study(tmp_path)
    with pytest.raises(NotFoundError, match="gone.spv"):
        files.take(Point(0, "k", "d", settings={"source": "gone.spv"}), 2)
    with pytest.raises(InvalidArgumentError, match="expected @"):
        files.take(Point(0, "m", "d", settings={"inputs": ["*all.npy"]}), 2)
    for name in ("../up", "/abs"):
        with pytest.raises(InvalidArgumentError, match="relative file name"):
            unpack_files({name: b""}, tmp_path)
    np.save(tmp_path / "x.npy", np.zeros(1))
    assert files.take(Point(0, "k", "d", settings={"bindings": ["@x.npy"]}), 2).settings["bindings"]


def test_results_keep_the_module_that_sources_become(tmp_path: Path) -> None:
    (tmp_path / "k.comp").write_text("#version 450\nlayout(local_size_x = N) in;\nvoid main() {}\n")
    files = of_study(tmp_path, sent=False)
    point = Point(4, "k", "d", settings={"source": "k.comp", "defines": {"N": 1}})
    assert files.used_by(4) == ()
    try:
        taken = files.take(point, 9)
    except UnavailableError as error:
        pytest.skip(f"no compiler of GLSL: {error.message}")
    (kernel,) = files.used_by(4)
    assert (kernel.name, kernel.role) == ("k.comp -DN=1 --target-env=vulkan1.3", "kernel")
    assert kernel.content == files.contents[str(taken.settings["source"])]
    # On another machine without the file and the compiler, with a device of a later version of Vulkan.
    kept = KeptFiles({kernel.name: kernel}, "the results in r")
    again = of_study(tmp_path / "gone", sent=False, kept=kept)
    source = again.take(point, 4).settings["source"]
    assert again.contents == {source: kernel.content} and again.used_by(4) == (kernel,)
    with pytest.raises(NotFoundError, match=r"the results in r do not keep k.comp -DN=2 .*they keep k.comp -DN=1 "):
        again.take(Point(0, "k", "d", settings={"source": "k.comp", "defines": {"N": 2}}), 3)
    with pytest.raises(NotFoundError, match="do not keep k.comp -DN=1 --target-env=vulkan1.2"):
        of_study(tmp_path, kept=kept).take(point, 2)


def test_results_keep_kernels_that_come_with_pumice(tmp_path: Path) -> None:
    """Another version of pumice may have another kernel with the name."""
    point = Point(0, "k", "d", settings={"source": "builtin:timing/copy", "language": "glsl"})
    files = of_study(tmp_path, sent=False)
    assert files.take(point, 3).settings == {"source": "compiled/0/copy.spv"}
    assert files.used_by(0) == (KeptFile.of("builtin:timing/copy", shaders.spirv("timing/copy"), "kernel"),)
    before = KeptFile.of("builtin:timing/copy", b"of then", "kernel")
    again = of_study(tmp_path, sent=False, kept=KeptFiles({before.name: before}, "the results in r"))
    assert again.take(point, 3).settings == {"source": "compiled/0/copy.spv"}
    assert again.contents == {"compiled/0/copy.spv": b"of then"} and again.used_by(0) == (before,)
    with pytest.raises(NotFoundError, match=r"the results in r do not keep builtin:mul"):
        again.take(Point(1, "k", "d", settings={"source": "builtin:mul"}), 3)


def test_files_that_are_too_large_are_measured_where_they_are_if_they_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_file, "MAX_KEPT_BYTES", 8)
    (tmp_path / "m.vmfb").write_bytes(b"12345678")
    large = tmp_path / "w.irpa"
    large.write_bytes(b"123456789")
    point = Point(0, "m", "d", settings={"source": "m.vmfb", "parameters": {"": "w.irpa"}})
    files = of_study(tmp_path, sent=False)
    assert files.take(point, 3).settings == {"source": "m.vmfb", "parameters": {"": str(large)}}
    assert files.contents == {"m.vmfb": b"12345678"}
    module, weights = files.used_by(0)
    assert weights == KeptFile(
        "w.irpa", "15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225", 9, None, "parameters"
    )  # from sha256sum
    assert module.packed == b"12345678" and weights.packed is None
    assert of_study(tmp_path).take(point, 3).settings["parameters"] == {"": "w.irpa"}
    kept = KeptFiles({file.name: file for file in (module, weights)}, "the results in r")
    (tmp_path / "m.vmfb").unlink()
    assert of_study(tmp_path, sent=False, kept=kept).take(point, 3) == files.take(point, 3)
    large.write_bytes(b"123456780")
    with pytest.raises(FailedPreconditionError, match=r"keep only the SHA-256 of w.irpa.*another file now"):
        of_study(tmp_path, sent=False, kept=kept).take(point, 3)


def test_inputs_relative_to_the_working_folder_stay_and_are_not_kept(tmp_path: Path) -> None:
    point = Point(0, "m", "d", settings={"inputs": ["*all.npy", "+more.npy"]})
    files = of_study(tmp_path, sent=False)
    assert files.take(point, 3).settings == point.settings and files.used_by(0) == ()
    with pytest.raises(InvalidArgumentError, match="nor kept"):
        of_study(tmp_path, sent=False, kept=KeptFiles({}, "the results in r")).take(point, 3)


def test_both_sides_have_files_of_their_own(tmp_path: Path) -> None:
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "m.vmfb").write_bytes(name.encode())
    old = Study("s", TARGETS, folder=tmp_path / "old")
    files = StudyFiles(Study("s", TARGETS, folder=tmp_path / "new", against=old), sent=False)
    settings = {"source": "m.vmfb"}
    new = files.take(Point(0, "m", "d", settings=settings, against=1), 3)
    other = files.take(Point(1, "m", "d", settings=settings, is_against=True), 3)
    assert files.contents[str(new.settings["source"])] == b"new"
    assert files.contents[str(other.settings["source"])] == b"old"
    assert [file.name for at in (0, 1) for file in files.used_by(at)] == ["m.vmfb", "against: m.vmfb"]


def test_a_program_is_measured_as_the_module_that_it_was_compiled_to(tmp_path: Path) -> None:
    program = KeptFile.of("m.mlir", b"a module", "module")
    files = of_study(tmp_path, sent=False, kept=KeptFiles({"m.mlir": program}))
    (tmp_path / "in.npy").write_bytes(b"x")
    taken = files.take(Point(0, "m", "d", settings={"source": "m.mlir", "inputs": ["@in.npy"]}), 3).settings
    assert taken == {"source": "m.vmfb", "inputs": ["@in.npy"]}
    assert files.contents == {"m.vmfb": b"a module", "in.npy": b"x"}
