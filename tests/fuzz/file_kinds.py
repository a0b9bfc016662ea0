"""Files of data that pumice reads: arrays, parameters, results."""

from __future__ import annotations

import io
import json
import os
import random
import shutil
import sqlite3
import struct
import tempfile
import zipfile
from pathlib import Path
from typing import Any, Final

import numpy as np
from click.testing import CliRunner
from judging import FileCases, SeededCases, judged, judged_command, one_of, small_study
from mutations import mutate, plain_base
from numpy.lib import format as npy
from PIL import Image
from support.case_pool import Cases, Outcome

from pumice.formats.image_format import FORMATS
from pumice.formats.image_texels import to_texels
from pumice.formats.picture import decode_picture, picture_to_array, texels_to_picture
from pumice.runtime.parameters.files import read_parameter_file
from pumice.runtime.parameters.index import ParameterIndex
from pumice.runtime.values.files import ValueFiles
from pumice.study.results.results import Results
from pumice.study.results.storage.database import RESULTS_FILE
from pumice.study.results.storage.store import Store
from pumice.tools.cli import main

HERE: Final = Path(__file__).parent
EDGES: Final = (
    0, 1, 2, 3, 7, 8, 255, 65535, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64,
    10**30, -1, -(2**63),
)  # fmt: skip


def _arrays() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "weight": rng.standard_normal((3, 5)).astype(np.float32),
        "half": rng.standard_normal(7).astype(np.float16),
        "bytes": rng.integers(0, 255, (2, 3, 2)).astype(np.uint8),
        "empty": np.zeros((0, 4), np.int64),
        "scalar": np.array(2.5),
        "truth": np.array([True, False]),
    }


def _use_parameters(path: Path) -> None:
    """Reads a file and all that is in it."""
    for entry in read_parameter_file(path):
        _ = entry.name, entry.length, bytes(entry.metadata)
        if entry.length < 1 << 20:
            bytes(entry.view())


def _use_value(path: Path) -> None:
    with ValueFiles() as files:
        for array in files.arrays(str(path)):
            array.tobytes()
        files.finish()


def _odd_value(rng: random.Random) -> object:
    """A value for a field of a header that expects another."""
    return rng.choice(
        (*EDGES, True, False, None, 1.5, 1e308, float("nan"), "", "x" * rng.choice((1, 300, 20_000)), [], {},
         (), (True,), [1, [2]])
    )  # fmt: skip


# -- .npy and .npz -----------------------------------------------------------------------------------


def _npy_file(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def _npy_header(rng: random.Random) -> bytes:
    """An .npy file whose header says what it should not, with some data behind it."""
    dimensions = rng.choice((0, 1, 1, 2, 3, 32, 33, 64, 65, 70, 1000))
    header: dict[str, object] = {
        "descr": rng.choice(
            ("<f4", "|b1", ">i8", "<V2", "|V1", "<V0", "|S0", "|S5", "<U3", "|O", "<M8[ns]", "<f3", "<c64",
             "f", "", "<f4,<i2", "(2,)f4",
             [("a", "<f4")], [("a", "<f4", (2, 2))], [], [("", "")], "<e", "=f4", "<f16", "x" * 4000, None, 7)
        ),
        "fortran_order": rng.choice((True, False, False, False, 0, 1, "no", None)),
        "shape": tuple(rng.choice((0, 1, 2, 3, *EDGES)) if rng.random() < 0.3 else 1 for _ in range(dimensions)),
    }  # fmt: skip
    for _ in range(rng.choice((0, 1, 1, 2))):
        key = rng.choice((*header, "more", ""))
        header[key] = _odd_value(rng)
    if rng.random() < 0.1:
        header.pop(rng.choice(list(header)))
    text = repr(header)
    if rng.random() < 0.2:
        at = rng.randrange(len(text))
        text = (
            text[:at]
            + rng.choice(("(", "\\", "\0", "L", "{" * 50, "[" * 300, "-" * 3000, "é", "#", "1" * 5000))
            + text[at:]
        )
    data = text.encode("utf-8", "replace") + rng.choice((b"\n", b"", b" " * 64 + b"\n"))
    version = rng.choice(((1, 0), (1, 0), (2, 0), (3, 0), (0, 0), (255, 9)))
    length = struct.pack("<H", len(data) & 0xFFFF) if version == (1, 0) else struct.pack("<I", len(data))
    return npy.MAGIC_PREFIX + bytes(version) + length + data + bytes(rng.choice((0, 4, 60, 64)))


def _npz_file(members: dict[str, bytes], rng: random.Random | None = None) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in members.items():
            kind = zipfile.ZIP_STORED if rng is None else rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
            archive.writestr(zipfile.ZipInfo(name or "x"), data, kind)
    return file.getvalue()


def _forged_npz(rng: random.Random) -> bytes:
    names = (
        "a.npy", "b", "../c.npy", "/d.npy", "e" * 300 + ".npy", "\x1b[2J.npy", "f.npy/", "a.npy.npy", "ü.npy",
        ".npy",
    )  # fmt: skip
    members = {rng.choice(names): _npy_header(rng) for _ in range(rng.choice((1, 1, 2, 3)))}
    return _npz_file(members, rng)


def open_npy(folder: Path) -> Cases:
    files = [_npy_file(array) for array in _arrays().values()]
    return FileCases(folder, files, "value.npy", _use_value, forge=_npy_header, forged=0.6)


def open_picture(folder: Path) -> Cases:
    """PNG and JPEG files of several modes, brought into formats that suit them and into some that do not."""
    grey = np.arange(48, dtype=np.uint8).reshape(6, 8)
    pictures = [
        Image.fromarray(grey),
        Image.fromarray(grey.astype(np.uint16) * 1000),
        Image.fromarray(np.dstack([grey] * 3)),
        Image.fromarray(np.dstack([grey] * 4)),
        Image.fromarray(grey).convert("P"),
        Image.fromarray(grey).convert("1"),
    ]
    files = []
    for picture in pictures:
        target = io.BytesIO()
        picture.save(target, "PNG")
        files.append(target.getvalue())
    target = io.BytesIO()
    pictures[2].save(target, "JPEG")
    files.append(target.getvalue())

    def use(path: Path) -> None:
        data = path.read_bytes()
        image_format = FORMATS[len(data) % len(FORMATS)]
        array = picture_to_array(decode_picture(data, "fuzz"), image_format, "fuzz")
        texels_to_picture(to_texels(array, image_format), image_format, "fuzz")

    return FileCases(folder, files, "picture.png", use)


def open_npy_parameters(folder: Path) -> Cases:
    files = [_npy_file(array) for array in _arrays().values()]
    return FileCases(folder, files, "parameter.npy", _use_parameters, forge=_npy_header, forged=0.6)


def open_npz(folder: Path) -> Cases:
    files = [_npz_file({f"{name}.npy": _npy_file(array) for name, array in _arrays().items()})]
    return FileCases(folder, files, "parameters.npz", _use_parameters, forge=_forged_npz, forged=0.5)


# -- .safetensors, .gguf, .irpa ----------------------------------------------------------------------


def _safetensors_file(rng: random.Random | None = None) -> bytes:
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    body = b""
    types = {"float32": "F32", "float16": "F16", "uint8": "U8", "int64": "I64", "float64": "F64", "bool": "BOOL"}
    for name, array in _arrays().items():
        data = array.tobytes()
        shape: object = list(array.shape)
        header[name] = {
            "dtype": types[str(array.dtype)],
            "shape": shape,
            "data_offsets": [len(body), len(body) + len(data)],
        }
        body += data
    if rng is not None:
        for _ in range(rng.choice((1, 1, 2))):
            name = rng.choice(list(header))
            where = header[name] if isinstance(header[name], dict) else {}
            key = rng.choice((*where, "more"))
            where[key] = one_of(
                rng,
                _odd_value,
                lambda rng: [rng.choice(EDGES) for _ in range(rng.choice((0, 1, 2, 3, 70)))],
                lambda rng: rng.choice(("F32", "F4", "BF16", "F8_E4M3", "C64", "f32", "I128")),
            )
            header[rng.choice((name, "", "__metadata__", "é" * 200))] = where
    text = json.dumps(header)
    if rng is not None and rng.random() < 0.15:
        text = text[:-1] + rng.choice((',"a":{}}', ',"weight":1}', "}" * 3, "[" * 3000, ',"x":NaN}', ',"x":1e999}', ""))
    data = text.encode()
    length = len(data)
    if rng is not None and rng.random() < 0.2:
        length = rng.choice((0, 1, length - 1, length + 1, 10**8, 2**63, 2**64 - 1))
    return struct.pack("<Q", length) + data + body


def open_safetensors(folder: Path) -> Cases:
    return FileCases(
        folder, [_safetensors_file()], "p.safetensors", _use_parameters, forge=_safetensors_file, forged=0.5
    )


def _string(text: bytes) -> bytes:
    return struct.pack("<Q", len(text)) + text


def _gguf_file(rng: random.Random | None = None) -> bytes:
    def odd(value: int) -> int:
        return value if rng is None or rng.random() > 0.06 else rng.choice(EDGES) & 0xFFFFFFFFFFFFFFFF

    pairs = [
        _string(b"general.alignment") + struct.pack("<II", 4, odd(32) & 0xFFFFFFFF),
        _string(b"answer") + struct.pack("<II", odd(4) & 0xFFFFFFFF, 42),
        _string(b"flag") + struct.pack("<IB", 7, odd(1) & 0xFF),
        _string(b"tokens")
        + struct.pack("<IIQ", 9, odd(8) & 0xFFFFFFFF, odd(2))
        + _string(b"a")
        + _string("é".encode()),
        _string(b"nested") + struct.pack("<IIQ", 9, 9, odd(1)) + struct.pack("<IQ", 4, odd(2)) + bytes(8),
    ]
    tensors, offset = [], 0
    for number, (name, array) in enumerate(_arrays().items()):
        shape = [odd(extent) for extent in reversed(array.shape)]
        code = 0 if rng is None else rng.choice((0, 0, 0, 1, 2, 8, 24, 28, 30, 39, 200))
        tensors.append(
            _string(name.encode())
            + struct.pack("<I", odd(len(shape)) & 0xFFFFFFFF)
            + b"".join(struct.pack("<Q", extent) for extent in shape)
            + struct.pack("<IQ", odd(code) & 0xFFFFFFFF, odd(offset))
        )
        offset += 96 + 32 * number
    head = b"GGUF" + struct.pack("<IQQ", odd(3) & 0xFFFFFFFF, odd(len(tensors)), odd(len(pairs)))
    data = head + b"".join(pairs) + b"".join(tensors)
    return data + bytes(-len(data) % 32) + bytes(offset + 256)


def open_gguf(folder: Path) -> Cases:
    return FileCases(folder, [_gguf_file()], "p.gguf", _use_parameters, forge=_gguf_file, forged=0.5)


def open_irpa(folder: Path) -> Cases:
    path = folder / "good.irpa"
    ParameterIndex.from_arrays(_arrays()).save(path)
    return FileCases(folder, [path.read_bytes()], "p.irpa", _use_parameters)


# -- results ------------------------------------------------------------------------------------------


def _results_file(folder: Path) -> bytes:
    CliRunner().invoke(main, [*small_study(folder), "--device", "vulkan"])
    return (folder / RESULTS_FILE).read_bytes()


class ResultsCases(SeededCases[bytes]):
    """Results databases: damaged bytes, and rows, columns and tables that are not what a study writes."""

    def __init__(self, folder: Path) -> None:
        self.data = _results_file(folder / "good")
        self.folder = folder / "results"
        self.folder.mkdir()
        self.base = plain_base("results", self.data)

    def input(self, seed: int, index: int) -> bytes:
        rng = random.Random(f"{seed}/{index}/results")
        if rng.random() < 0.5:
            return mutate([self.base], seed, index, "file").data
        with tempfile.NamedTemporaryFile(dir=self.folder.parent, suffix=".sqlite") as file:
            file.write(self.data)
            file.flush()
            connection = sqlite3.connect(file.name, isolation_level=None)
            connection.execute("PRAGMA journal_mode = DELETE")
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
                connection.execute(f'DROP TRIGGER "{name}"')
            for _ in range(rng.choice((1, 1, 2, 4))):
                self._alter(rng, connection)
            connection.close()
            return Path(file.name).read_bytes()

    def _alter(self, rng: random.Random, connection: sqlite3.Connection) -> None:
        tables = [
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            if not name.startswith("sqlite_")
        ]
        if not tables:
            return
        table = rng.choice(tables)
        columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
        column = rng.choice(columns)
        odd = rng.choice(
            (None, -1, 0, 2**63 - 1, -(2**63), 1.5, float("inf"), "", "x" * 20_000, "{", "[]", "{}", "null",
             '{"a": NaN}', "[" * 5000,
             b"\xff\0", "\x1b[2J", "done", "1", '{"n": "x"}', "1e999")
        )  # fmt: skip
        statement = rng.choice(
            (
                f'UPDATE "{table}" SET "{column}" = ?1',
                f'UPDATE "{table}" SET "{column}" = ?1 WHERE rowid = 1',
                f'DELETE FROM "{table}" WHERE ?1 IS ?1',
                f'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO gone_{rng.randrange(99)}',
                f'DROP TABLE "{table}"',
                f'INSERT INTO "{table}" DEFAULT VALUES',
                f'INSERT INTO "{table}" SELECT * FROM "{table}"',
                f"PRAGMA user_version = {rng.choice((0, 1, 2, 99, -1))}",
                f"PRAGMA application_id = {rng.choice((0, 1, 2**31 - 1))}",
            )
        )
        try:
            connection.execute("PRAGMA ignore_check_constraints = ON")
            connection.execute(statement, (odd,) if "?1" in statement else ())
        except sqlite3.Error:
            return

    def run(self, seed: int, index: int) -> Outcome:
        for one in self.folder.iterdir():
            one.unlink()
        (self.folder / RESULTS_FILE).write_bytes(self.input(seed, index))
        if index % 4 == 0:
            command = random.Random(f"{seed}/{index}/command").choice(self.COMMANDS)
            outcome = judged_command([*command, str(self.folder)], statuses=(0, 1, 2, 3, 4))
        else:
            outcome = judged(self._read)
        kept = os.environ.get("PUMICE_FUZZ_KEEP")
        if outcome.result == "bug" and kept:
            Path(kept).mkdir(parents=True, exist_ok=True)
            copy = shutil.copy(self.folder / RESULTS_FILE, Path(kept) / f"results-{seed}-{index}.sqlite")
            return Outcome(outcome.stage, outcome.result, f"{copy}: {outcome.detail}")
        return outcome

    COMMANDS = (
        ("study", "show"), ("study", "show", "--json"), ("study", "list"), ("study", "report"),
        ("study", "export", "--csv", "-"), ("study", "export", "--json", "-", "--raw"),
        ("study", "export", "--markdown", "-"),
    )  # fmt: skip

    def _read(self) -> None:
        with Results.open(self.folder) as results:
            _ = results.runs, results.devices, results.clocks, results.references, results.peaks, results.notes
            for point in results.points:
                point.read_rows()
                for phase in ("sample", "warmup", "first"):
                    point.samples(phase)
                    point.values("total", phase)
                point.medians()
                results.figures(point)
            results.as_study()
        Store.open(self.folder).close()
