"""Scripts of both forms as data, and scripts that are wrong."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import numpy as np
import pytest

from pumice.amber.reading import parse, parse_text
from pumice.amber.script import ExpectValues, Extent, Repeat, Run, Subgroups, Tolerance, Write
from pumice.amber.source import ScriptError, UnsupportedScriptError
from pumice.formats.picture import encode_picture
from pumice.status import NotFoundError, PumiceError

SHADER = """#!amber
SHADER compute s GLSL
#version 450
layout(set = 0, binding = 0) buffer B { uint b[]; };
void main() { b[gl_GlobalInvocationID.x] += 1; }
END
"""
BUFFER = SHADER + "BUFFER b DATA_TYPE uint32 SIZE 4 FILL 7\n"
PIPELINE = BUFFER + "PIPELINE compute p\n  ATTACH s\n  BIND BUFFER b AS storage DESCRIPTOR_SET 0 BINDING 0\nEND\n"


def test_a_script_as_data() -> None:
    script = parse_text(
        PIPELINE
        + """
BUFFER v DATA_TYPE vec3<float> DATA  # padded to four
  1 2.5 0x10
  nan inf -1e-3
END
DERIVE_PIPELINE q FROM p
  SUBGROUP s
    FULLY_POPULATED on
    REQUIRED_SIZE MAX
  END
END
REPEAT 3
  RUN q 1 2 \\
    3
END
EXPECT v IDX 16 TOLERANCE 1 0.5% EQ 1 2 3
"""
    )
    assert script.shaders["s"].source.startswith("#version 450")
    assert np.frombuffer(script.buffers["b"].data, np.uint32).tolist() == [7] * 4
    values = np.frombuffer(script.buffers["v"].data, np.float32)
    np.testing.assert_array_equal(values, np.float32([1, 2.5, 16, 0, np.nan, np.inf, -1e-3, 0]))
    repeat, expect = script.commands
    assert isinstance(repeat, Repeat) and isinstance(repeat.commands[0], Run) and isinstance(expect, ExpectValues)
    assert repeat.commands[0].groups == (1, 2, 3)
    assert script.pipelines["q"].subgroups == Subgroups(full=True, size="MAX")
    assert script.pipelines["p"].subgroups == Subgroups()
    assert script.pipelines["q"].bindings == script.pipelines["p"].bindings
    assert expect.tolerances == (Tolerance(1.0, False), Tolerance(0.5, True))
    assert script.expectations == 1


@pytest.mark.parametrize(
    ("declaration", "dtype", "expected"),
    [
        ("int8 SIZE 3 FILL -1", np.int8, [-1, -1, -1]),
        ("uint16 DATA 0xffff 1 END", np.uint16, [0xFFFF, 1]),
        ("int32 DATA 0xffffffff -5 END", np.int32, [-1, -5]),
        ("uint64 SIZE 3 SERIES_FROM 5 INC_BY 10", np.uint64, [5, 15, 25]),
        ("int16 SIZE 3 SERIES_FROM 0 INC_BY -2", np.int16, [0, -2, -4]),
        ("float SIZE 3 SERIES_FROM 0.5 INC_BY 0.25", np.float32, [0.5, 0.75, 1.0]),
        ("double DATA 0.1 END", np.float64, [0.1]),
        ("float16 DATA 65504 0.5 2049 -2051 inf END", np.float16, [65504, 0.5, 2048, -2050, np.inf]),
        ("float16 DATA -0.00400161743164062 END", np.float16, [-0.004001617431640625]),
        ("R8G8B8A8_UNORM DATA 1 2 3 255 END", np.uint8, [1, 2, 3, 255]),
        ("R16G16_SFLOAT DATA 1 -2 END", np.float16, [1, -2]),
        ("A2B10G10R10_UNORM_PACK32 DATA 0xc0000001 END", np.uint32, [0xC0000001]),
    ],
)
def test_contents_of_buffers(declaration: str, dtype: type, expected: list[float]) -> None:
    script = parse_text(f"{SHADER}BUFFER d DATA_TYPE {declaration}\n")
    assert np.frombuffer(script.buffers["d"].data, dtype).tolist() == [dtype(x) for x in expected]


def test_contents_from_files(tmp_path: Path) -> None:
    (tmp_path / "bytes.bin").write_bytes(np.arange(4, dtype=np.float32).tobytes())
    (tmp_path / "text.txt").write_text("1 2  # a comment\n3 4\n")
    (tmp_path / "s.amber").write_text(
        SHADER
        + "BUFFER a DATA_TYPE float SIZE 4 FILE BINARY bytes.bin\nBUFFER b DATA_TYPE int32 SIZE 4 FILE TEXT text.txt\n"
    )
    script = parse(tmp_path / "s.amber")
    assert np.frombuffer(script.buffers["a"].data, np.float32).tolist() == [0, 1, 2, 3]
    assert np.frombuffer(script.buffers["b"].data, np.int32).tolist() == [1, 2, 3, 4]


def test_contents_from_pictures(tmp_path: Path) -> None:
    pytest.importorskip("PIL", reason="pillow is not installed")
    picture = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    (tmp_path / "p.png").write_bytes(encode_picture(picture))
    script = parse_text("#!amber\nBUFFER b FORMAT R8G8B8A8_UNORM FILE PNG p.png", folder=tmp_path)
    assert script.buffers["b"].extent == Extent(2, 3, 2)
    assert script.buffers["b"].data == picture.tobytes()
    (tmp_path / "q.png").write_bytes(b"no picture")
    for name, format, message in (
        ("q.png", "R8G8B8A8_UNORM", "expected a PNG or JPEG picture"),
        ("p.png", "R8_UNORM", "the picture has 4 channel"),
    ):
        with pytest.raises(ScriptError, match=message):
            parse_text(f"#!amber\nBUFFER b FORMAT {format} FILE PNG {name}", folder=tmp_path)


def test_the_older_form() -> None:
    script = parse_text(
        """[require]
VK_KHR_spirv_1_4
shaderInt64
fence_timeout 1500

[compute shader spirv]
OpCapability Shader
[test]
# buffers
ssbo 0:3 64
ssbo 1 subdata vec3 16 1 2 3  4 5 \\
  6
uniform ubo 2 mat2 0 1 2 3 4
uniform int 4 -7
tolerance 0.1%
compute entrypoint other
compute 2 3 4
probe ssbo float 0:3 0 ~= 1.5
"""
    )
    assert [r.name for r in script.requirements] == ["VK_KHR_spirv_1_4", "shaderInt64"]
    assert script.timeout == 1.5 and script.target_env == "spv1.4"
    assert script.shaders["compute"].source == "OpCapability Shader\n" and script.shaders["compute"].first_line == 7
    first, second, third, run, probe = script.commands
    assert isinstance(first, Write) and isinstance(second, Write) and isinstance(third, Write)
    assert np.frombuffer(first.data, np.float32).tolist() == [1, 2, 3, 0, 4, 5, 6, 0] and first.offset == 16
    assert np.frombuffer(second.data, np.float32).tolist() == [1, 2, 0, 0, 3, 4, 0, 0]  # std140
    assert np.frombuffer(third.data, np.int32).tolist() == [-7] and third.offset == 4
    assert {name: len(buffer.data) for name, buffer in script.buffers.items()} == {
        "buffer_0_3": 64,
        "buffer_0_1": 48,
        "buffer_0_2": 32,
        "push_constants": 8,
    }
    assert isinstance(run, Run) and run.entry_point == "other" and run.groups == (2, 3, 4)
    assert isinstance(probe, ExpectValues) and probe.tolerances == (Tolerance(0.1, True),)


OLD = "[compute shader]\n#version 450\nvoid main() {}\n[test]\n"
WRONG = [
    (SHADER + "BUFER b DATA_TYPE int32 SIZE 1 FILL 0", "7:1", "did you mean BUFFER"),
    (SHADER + "BUFFER b DATA_TYPE vec5<float> SIZE 1 FILL 0", "7:20", "did you mean vec"),
    (SHADER + "BUFFER b DATA_TYPE int32 SIZE one FILL 0", "7:31", "an integer from 0"),
    (SHADER + "BUFFER b DATA_TYPE int32 SIZE 1", "7:32", "expected FILL, SERIES_FROM or FILE"),
    (SHADER + "BUFFER b DATA_TYPE int8 DATA\n  1\n  999\nEND", "9:3", r"8-bit integer \(-128 to 255\)"),
    (SHADER + "BUFFER b DATA_TYPE int32 DATA 1 0.5 END", "7:33", "32-bit integer, got '0.5'"),
    (SHADER + "BUFFER b DATA_TYPE vec2<float> DATA 1 2 3 END", "7:41", "expected 2 values an element; the last has 1"),
    (SHADER + "BUFFER b DATA_TYPE int32 DATA 1 2", "7:8", "DATA of b is not closed"),
    (SHADER + "BUFFER b DATA_TYPE vec2<int32> SIZE 2 SERIES_FROM 0 INC_BY 1", "7:1", "SERIES_FROM is for scalars"),
    (BUFFER + "BUFFER b DATA_TYPE int32 SIZE 1 FILL 0", "8:8", "there is a BUFFER 'b' already"),
    (SHADER + "IMAGE i FORMAT R8_UNORM DIM_2D WIDTH 4", "7:7", "needs its HEIGHT"),
    (SHADER + "IMAGE i FORMAT R8_UNORM DIM_4D WIDTH 4", "7:25", "did you mean DIM_"),
    (SHADER + "SAMPLER x MAG_FILTER cubic", "7:22", "there are: nearest, linear"),
    (SHADER + "SAMPLER x MIN_LOD 3", "7:9", "MAX_LOD is below MIN_LOD"),
    (SHADER + "STRUCT t\n  int32 a\n  t b\nEND", "9:3", "cannot hold itself"),
    (SHADER + "STRUCT t\n  int32 a ARRAY_STRIDE 8\nEND", "8:9", "ARRAY_STRIDE is for arrays"),
    ("#!amber\nSHADER compute s GLSL\nvoid main() {}\n", "2:1", "not closed: expected a line END"),
    ("#!amber\nSHADER compute s GLS\nEND\n", "2:18", "did you mean GLSL"),
    (SHADER + "PIPELINE compute p\nEND", "7:1", "attaches no shader"),
    (SHADER + "PIPELINE compute p\n  ATTACH t\nEND", "8:10", "the name of a SHADER, got 't'; there are: s"),
    (SHADER + "PIPELINE compute p\n  ATTACH s\n  VIEWPORT 0 0\nEND", "9:3", "for graphics and ray-tracing pipelines"),
    (SHADER + "PIPELINE compute p\n  ATTACH s SPECIALIZE 0 AS double 1\nEND", "8:28", "a type of 32 bits"),
    (
        BUFFER + "PIPELINE compute p\n  ATTACH s\n  BIND BUFFER b AS stroage DESCRIPTOR_SET 0 BINDING 0\nEND",
        "10:20",
        "did you mean storage",
    ),
    (
        BUFFER + "PIPELINE compute p\n  ATTACH s\n  BIND BUFFER b AS storage DESCRIPTOR_SET 0\nEND",
        "10:44",
        "expected BINDING, got the end of the line",
    ),
    (
        BUFFER + "PIPELINE compute p\n  ATTACH s\n  BIND BUFFER b AS storage_image DESCRIPTOR_SET 0 BINDING 0\nEND",
        "10:20",
        "b is a buffer; declare it as IMAGE",
    ),
    (
        BUFFER + "PIPELINE compute p\n  ATTACH s\n  BIND BUFFER b AS storage DESCRIPTOR_SET 0 BINDING 0 "
        "DESCRIPTOR_OFFSET 16\nEND",
        "10:3",
        "goes past the end of b",
    ),
    (
        BUFFER + "PIPELINE compute p\n  ATTACH s\n  SUBGROUP s\n    REQUIRED_SIZE 12\n  END\nEND",
        "11:19",
        "power of two",
    ),
    (PIPELINE + "RUN p 1 1", "12:10", "the number of workgroups in z"),
    (PIPELINE + "RUN q 1 1 1", "12:5", "there are: p"),
    (PIPELINE + "RUN p DRAW_RECT POS 0 0 SIZE 1 1", "12:7", "p is compute"),
    (PIPELINE + "EXPECT b IDX 2 EQ 7", "12:14", "a multiple of 4"),
    (PIPELINE + "EXPECT b IDX 12 EQ 7 7", "12:14", "past the end of b"),
    (PIPELINE + "EXPECT b IDX 0 LT TOLERANCE 1 7", "12:19", "32-bit integer"),
    (PIPELINE + "EXPECT b IDX 0 TOLERANCE 1 LT 7", "12:1", "TOLERANCE is for EQ, not for LT"),
    (PIPELINE + "EXPECT b IDX 0 EQUALS 7", "12:16", "a comparator, got 'EQUALS'"),
    (PIPELINE + "EXPECT b IDX 0 0 SIZE 1 1 EQ_RGB 0 0 0", "12:1", "b is no image"),
    (PIPELINE + "BUFFER c DATA_TYPE int32 SIZE 4 FILL 0\nEXPECT b EQ_BUFFER c", "13:1", "b is uint32 STD430, c int32"),
    (PIPELINE + "BUFFER c DATA_TYPE uint32 SIZE 5 FILL 0\nCOPY b TO c", "13:1", "one type and size"),
    (PIPELINE + "CLEAR p", "12:1", "for graphics pipelines"),
    (PIPELINE + "REPEAT 2\n  BUFFER c DATA_TYPE int32 SIZE 1 FILL 0\nEND", "13:3", "can be repeated, got 'BUFFER'"),
    (PIPELINE + "REPEAT 2\n  RUN p 1 1 1", "12:1", "REPEAT is not closed"),
    (PIPELINE + 'VIRTUAL_FILE "a b\nEND', "12:14", "quote is not closed"),
    ("BUFFER b DATA_TYPE int32 SIZE 1 FILL 0", "1:1", "expected #!amber on the first line"),
    (OLD + "ssbo 0 subdata ivec5 0 1", "5:16", "did you mean ivec"),
    (OLD + "probe ssbo int 0 0 == 1", "5:16", "no buffer at 0:0; make one with ssbo"),
    (OLD + "ssbo 0 4\nprobe ssbo int 0 4 == 1", "6:1", r"past the buffer's end \(4 bytes\)"),
    (OLD + "ssbo 0 4\nprobe ssbo int 0 0 = 1", "6:20", "a comparison, got '='"),
    (OLD + "ssbo 0 4\nuniform ubo 0 int 0 1", "6:13", "is a storage buffer already"),
    (OLD + "ssbo 0 subdata int 4000000000 1", "5:1", "would have more than"),
    (
        SHADER + "BUFFER b DATA_TYPE double SIZE 4000000000 FILL 0",
        "7:8",
        "32,000,000,000 bytes; 1,073,741,824 is the most",
    ),
    (SHADER + "BUFFER b DATA_TYPE int32[99999999] SIZE 1 FILL 0", "7:20", "expected a data type"),
    (OLD + "comptue 1 1 1", "5:1", "did you mean compute"),
    ("[compute shader\n", "1:16", "expected ]"),
    ("[tests]\n", "1:2", "expected .*, got .tests"),
]


@pytest.mark.parametrize(("text", "place", "message"), WRONG)
def test_wrong_scripts(text: str, place: str, message: str) -> None:
    with pytest.raises(ScriptError, match=message) as caught:
        parse_text(text, "x.amber")
    assert caught.value.location == f"x.amber:{place}"
    head, line, caret = caught.value.message.rsplit("\n", 2)
    number, column = (int(part) for part in place.split(":"))
    assert line.strip() == text.splitlines()[number - 1].strip()
    assert len(caret) == column + 2 and caret.endswith("^")


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("#!amber\nSHADER vertex v PASSTHROUGH\n", "2:8", "graphics pipelines are not run"),
        (SHADER + "PIPELINE graphics g\nEND", "7:10", "graphics pipelines are not run"),
        (SHADER + "PIPELINE raytracing g\nEND", "7:10", "ray tracing is not run"),
        (SHADER + "ACCELERATION_STRUCTURE BOTTOM_LEVEL b", "7:1", "ray tracing is not run"),
        ("#!amber\nSHADER compute c OPENCL-C\nkernel void f() {}\nEND", "2:18", "OpenCL C"),
        (BUFFER + "PIPELINE compute p\n  ATTACH s\n  BIND BUFFER b KERNEL ARG_NAME x\nEND", "10:17", "OpenCL C"),
        (BUFFER + "PIPELINE compute p\n  ATTACH s\n  SET KERNEL ARG_NAME x AS int32 1\nEND", "10:3", "OpenCL C"),
        ("[vertex shader passthrough]\n[test]\ndraw rect 0 0 1 1", "1:2", "graphics pipelines are not run"),
        (OLD + "draw rect -1 -1 2 2", "5:1", "graphics pipelines are not run"),
        (OLD + "relative probe rect rgb (0, 0, 1, 1) (0, 0, 0)", "5:1", "graphics pipelines are not run"),
    ],
)
def test_scripts_that_pumice_does_not_run(text: str, place: str, message: str) -> None:
    with pytest.raises(UnsupportedScriptError, match=message) as caught:
        parse_text(text, "x.amber")
    assert caught.value.location == f"x.amber:{place}"


WORDS = [
    "END", "DATA", "SIZE", "FILL", "SERIES_FROM", "INC_BY", "BUFFER", "IMAGE", "R8G8_UNORM", "vec3<float>[]",
    "STRUCT", "STD140", "-1", "0x", "9e99", "nan", "\\", '"', "#", "BIND", "AS", "storage", "DESCRIPTOR_SET",
    "EXPECT", "IDX", "EQ", "TOLERANCE", "%", "REPEAT", "RUN", "FILE", "..", "\x00", "int32[5]", "HEIGHT",
    "DIM_3D", "probe", "subdata",
]  # fmt: skip


@pytest.mark.slow
def test_damaged_scripts_raise_nothing_but_pumice_errors() -> None:
    rng = random.Random(5)
    texts = [text for text, _, _ in WRONG] + [PIPELINE]
    read = 0
    for _ in range(3000):
        lines = rng.choice(texts).splitlines()
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(lines))
            words = lines[at].split(" ")
            place = rng.randrange(len(words))
            match rng.randrange(5):
                case 0:
                    words[place] = rng.choice(WORDS)
                case 1:
                    words.insert(place, rng.choice(WORDS))
                case 2:
                    del words[place]
                case 3:
                    lines.insert(at, rng.choice(lines))
                case 4:
                    words = words[:place]
            lines[at] = " ".join(words)
        with contextlib.suppress(PumiceError):
            parse_text("\n".join(lines), "x.amber", "/nowhere")
            read += 1
    assert read > 100


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no such file"):
        parse(tmp_path / "none.amber")
    with pytest.raises(NotFoundError, match="data.bin"):
        parse_text(SHADER + "BUFFER b DATA_TYPE int32 SIZE 4 FILE BINARY data.bin", folder=tmp_path)
