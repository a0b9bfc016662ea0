"""Images as values: shapes, formats, views, order of work, what is closed, and wrong input."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
from collections.abc import Callable, Iterator

import ml_dtypes
import numpy as np
import pytest
from support.devices.features import require_features

import pumice
from pumice import DeviceImage, InvalidArgumentError, UnimplementedError, shaders

pytestmark = pytest.mark.vulkan

RANDOM = np.random.default_rng(5)

ADD = """#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(binding = 0, r32f) uniform image2D image;
layout(push_constant) uniform Push { float amount; };
void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    if (all(lessThan(at, imageSize(image)))) imageStore(image, at, imageLoad(image, at) + amount);
}"""

READ = """#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(binding = 0) uniform sampler2D source;
layout(binding = 1, rgba32f) writeonly uniform image2D target;
void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    if (all(lessThan(at, imageSize(target)))) imageStore(target, at, texelFetch(source, at, 0));
}"""


@pytest.fixture(scope="module", params=["mapped", "staging"])
def device(request: pytest.FixtureRequest) -> Iterator[pumice.Device]:
    with pumice.open_device(staging=request.param == "staging") as opened:
        yield opened


@pytest.fixture(scope="module")
def mapped() -> Iterator[pumice.Device]:
    with pumice.open_device() as opened:
        yield opened


# -- shapes and formats ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "dtype", "format", "dim", "found"),
    [
        ((4, 5), "u1", None, None, ("r8unorm", "2d")),
        ((4, 5, 2), "f2", None, None, ("rg16float", "2d")),
        ((4, 5, 4), "u1", "srgb", None, ("rgba8srgb", "2d")),
        ((4, 5, 4), "u2", "uint", None, ("rgba16uint", "2d")),
        ((7,), "f4", None, None, ("r32float", "1d")),
        ((7, 4), "f4", None, "1d", ("rgba32float", "1d")),
        ((3, 7), "i4", None, "1d_array", ("r32sint", "1d_array")),
        ((3, 4, 5), "u4", None, "3d", ("r32uint", "3d")),
        ((3, 4, 5, 4), "i1", None, "2d_array", ("rgba8snorm", "2d_array")),
        ((6, 4, 4), "f4", None, "cube", ("r32float", "cube")),
        ((12, 4, 4, 2), "u1", None, "cube_array", ("rg8unorm", "cube_array")),
        ((4, 5, 4), "u1", "bgra8unorm", None, ("bgra8unorm", "2d")),
        ((4, 5), "u4", "rgb10a2unorm", "2d", ("rgb10a2unorm", "2d")),
    ],
)
def test_arrays_become_images_and_come_back(
    device: pumice.Device,
    shape: tuple[int, ...],
    dtype: str,
    format: str | None,
    dim: str | None,
    found: tuple[str, str],
) -> None:
    array = RANDOM.integers(0, 100, shape).astype(dtype)
    image = device.asimage(array, format, dim=dim)
    assert (image.format.name, image.dim) == found
    if found[0] == "rgb10a2unorm":
        assert image.shape == (4, 5, 4) and image.dtype == np.float32
        assert np.array_equal(image.texels(), array)
        assert np.allclose(image.numpy()[..., 0], (array & 1023) / 1023)
        return
    assert image.shape == shape and image.dtype == np.dtype(dtype) and image.nbytes == array.nbytes
    assert np.array_equal(image.numpy(), array)
    assert np.array_equal(np.asarray(image), array)
    out = np.empty_like(array)
    assert image.numpy(out) is out and np.array_equal(out, array)


def test_red_green_and_blue_get_an_opaque_alpha(mapped: pumice.Device) -> None:
    picture = RANDOM.integers(0, 256, (3, 4, 3), np.uint8)
    assert np.array_equal(mapped.asimage(picture).numpy()[..., 3], np.full((3, 4), 255))
    floats = (picture / 255).astype(np.float32)
    image = mapped.asimage(floats, "rgba8unorm")
    assert np.array_equal(image.numpy()[..., :3], picture) and image.numpy().max() == 255
    assert np.allclose(image.numpy(dtype=np.float64)[..., :3], floats)


def test_blue_lies_before_red_in_memory_only(mapped: pumice.Device) -> None:
    picture = RANDOM.integers(0, 256, (3, 4, 4), np.uint8)
    image = mapped.asimage(picture, "bgra8unorm")
    assert np.array_equal(image.texels(), picture[..., [2, 1, 0, 3]])
    read = mapped.load_kernel(READ)(image, pumice.empty((3, 4, 4), np.float32))
    assert np.allclose(read.numpy() * 255, picture)


def test_views_are_of_the_same_texels(device: pumice.Device) -> None:
    array = RANDOM.random((12, 8, 8), np.float32)
    image = device.asimage(array, dim="cube_array", mips=True)
    assert image.levels == 4
    second = image.view(layers=slice(6, 12), dim="cube")
    assert second.shape == (6, 8, 8) and np.array_equal(second.numpy(), array[6:])
    assert np.array_equal(image.layer(-1).numpy(), array[-1])
    level = image.level(1)
    expected = array.reshape(12, 4, 2, 4, 2).mean((2, 4))
    assert level.shape == (12, 4, 4) and np.allclose(level.numpy(), expected, atol=1e-6)
    part = image.view(levels=slice(1, 3), layers=slice(2, 4))
    assert (part.dim, part.shape, part.levels) == ("2d_array", (2, 4, 4), 2)
    part.copy_from(np.zeros((2, 4, 4), np.float32))
    assert not level.numpy()[2:4].any() and level.numpy()[4].any()
    words = image.layer(0).view(format="r32uint")
    assert np.array_equal(words.numpy().view(np.float32), array[0])


def test_an_image_is_taken_as_it_is_or_converted(device: pumice.Device) -> None:
    image = device.asimage(RANDOM.random((3, 4), np.float32))
    assert device.asimage(image) is image
    half = device.asimage(image, "r16float")
    assert half.format.name == "r16float" and np.allclose(half.numpy(), image.numpy(), atol=1e-3)
    assert np.array_equal(device.asimage(device.asarray(image.numpy())).numpy(), image.numpy())
    other = device.empty_image((3, 4), "r32float").copy_from(image)
    assert np.array_equal(other.numpy(), image.numpy())
    brain = device.asimage(image.numpy().astype(ml_dtypes.bfloat16), "r32float")
    assert np.array_equal(brain.numpy(), image.numpy().astype(ml_dtypes.bfloat16).astype(np.float32))


def test_blocks_of_a_compressed_format(mapped: pumice.Device) -> None:
    require_features(mapped.vulkan, "textureCompressionBC")
    # Red 0 and red 255 (5:6:5), each texel the second colour: a block of BC1 by its specification.
    block = np.frombuffer(bytes([0x00, 0x00, 0x00, 0xF8, 0x55, 0x55, 0x55, 0x55]), np.uint8)
    blocks = np.broadcast_to(block, (2, 3, 8)).copy()
    image = mapped.empty_image((6, 10), "bc1rgbunorm").copy_from(blocks)
    assert image.nbytes == 48 and np.array_equal(image.texels(), blocks)
    read = mapped.load_kernel(READ)(image, pumice.empty((6, 10, 4), np.float32)).numpy()
    assert np.array_equal(read, np.broadcast_to([1, 0, 0, 1], read.shape))
    for use in (image.numpy, lambda: image.copy_from(np.zeros((6, 10, 3), np.float32))):
        with pytest.raises(InvalidArgumentError, match="compressed blocks"):
            use()


# -- order, threads, and the end ---------------------------------------------------------------------


def test_work_on_an_image_runs_in_the_order_of_the_calls(device: pumice.Device) -> None:
    kernel = device.load_kernel(ADD)
    image = device.asimage(np.zeros((64, 64), np.float32))
    for amount in range(20):
        kernel(image, amount=float(amount))
    image.wait(30)
    assert np.array_equal(image.numpy(), np.full((64, 64), 190))
    image.copy_from(np.ones((64, 64), np.float32))
    kernel(image, amount=1.0)
    assert np.array_equal(image.numpy(), np.full((64, 64), 2))


def test_threads_share_an_image_and_a_kernel(mapped: pumice.Device) -> None:
    kernel = mapped.load_kernel(ADD)
    image = mapped.asimage(np.zeros((16, 16), np.float32))
    failures: list[BaseException] = []

    def work(own: bool) -> None:
        try:
            for _ in range(25):
                if own:
                    result = kernel(np.full((8, 8), 3, np.float32), amount=2.0)
                    assert isinstance(result, np.ndarray) and (result == 5).all()
                else:
                    kernel(image, amount=1.0)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(index % 2 == 0,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert (image.numpy() == 50).all()


def test_closing_an_image_while_it_is_used(device: pumice.Device) -> None:
    kernel = device.load_kernel(ADD)
    image = device.asimage(np.zeros((256, 256), np.float32))
    view = image.level(0)
    for _ in range(5):
        kernel(image, amount=1.0)
    image.close()
    image.close()
    assert image.is_closed and view.is_closed and "closed" in repr(image)
    for use in (image.numpy, lambda: kernel(image, amount=1.0), lambda: kernel(view, amount=1.0), image.texels):
        with pytest.raises(pumice.ClosedError, match=r"image of shape \(256, 256\) was closed"):
            use()
    device.wait()


def test_images_are_freed_with_their_last_reference(device: pumice.Device) -> None:
    kernel = device.load_kernel(ADD)
    kernel(device.asimage(np.zeros((8, 8), np.float32)), amount=1.0)
    device.wait()
    gc.collect()
    before = pumice.live_objects()
    for _ in range(10):
        kernel(device.asimage(np.zeros((8, 8), np.float32)), amount=1.0)
        kernel(np.zeros((8, 8), np.float32), amount=1.0)
    device.wait()
    gc.collect()
    kernel(np.zeros((8, 8), np.float32), amount=1.0)
    device.wait()
    device.hal.close_dropped()
    after = pumice.live_objects()
    assert after.get("image", 0) <= before.get("image", 0) + 1
    assert after.get("image view", 0) <= before.get("image view", 0) + 1


def test_images_are_no_arrays(mapped: pumice.Device) -> None:
    image = mapped.asimage(np.zeros((2, 2), np.float32))
    with pytest.raises(TypeError):
        np.ones((2, 2)) + image
    with pytest.raises(TypeError, match=r"pickle x\.numpy\(\)"):
        pickle.dumps(image)
    with pytest.raises(ValueError, match="without a copy"):
        image.__array__(copy=False)
    assert copy.copy(repr(image)) == "DeviceImage(shape=(2, 2), format=r32float, dim=2d)"


# -- wrong input -------------------------------------------------------------------------------------

WRONG_IMAGES: list[tuple[Callable[[pumice.Device], object], str]] = [
    (lambda d: d.asimage(np.zeros((4, 4, 5), np.uint8)), "name one, dim="),
    (lambda d: d.asimage(np.zeros((4, 4, 4, 4), np.uint8)), "name one, dim="),
    (lambda d: d.asimage(np.zeros((4, 4, 3, 4), np.uint8), dim="cube"), "6 square layers"),
    (lambda d: d.asimage(np.zeros((6, 4, 5), np.uint8), dim="cube"), "6 square layers"),
    (lambda d: d.asimage(np.zeros((4, 4), np.uint8), dim="4d"), "dim is one of 1d, "),
    (lambda d: d.asimage(np.zeros((4, 4), np.uint8), "rgba9"), "expected an image format, got 'rgba9'. Known are"),
    (lambda d: d.asimage(np.zeros((4, 4, 4), np.uint16), "rgba8unorm"), "takes no uint16; give uint8 for the bits"),
    (lambda d: d.asimage(np.zeros((4, 4, 4), np.uint8), "rgba32float"), r"a / np\.float32\(255\)"),
    (lambda d: d.asimage(np.full((4, 4), 300), "r8uint"), "holds 0 to 255, got 300 to 300"),
    (lambda d: d.asimage(np.zeros((4, 4, 2), np.uint8), "rgba8unorm"), "dim=|expected 4 channel"),
    (lambda d: d.asimage(np.zeros((4, 4), np.complex64)), "no image format has texels of 1 x complex64"),
    (lambda d: d.asimage(np.zeros((0, 4), np.uint8)), "no length of 0"),
    (lambda d: d.asimage([[1, 2], [3]]), "list cannot become an array"),
    (lambda d: d.asimage(np.array([[object()]])), "no fixed bytes an element"),
    (lambda d: d.asimage(np.zeros((4, 4), np.float32), mips=-1), "a number of levels from 1; got -1"),
    (lambda d: d.asimage(np.zeros((4, 4), np.float32), mips=9), "up to 3 mip levels, got 9"),
    (lambda d: d.asimage(np.zeros((4, 4), ">f4")), "big-endian"),
    (lambda d: d.empty_image((4, -1), "r8unorm"), "must not be negative"),
    (lambda d: d.empty_image((1 << 20, 4), "r8unorm"), "up to .* texels, got 4x1048576"),
    (lambda d: d.empty_image((4, 4), np.uint8), "a format is a name such as 'rgba8unorm'"),
    (lambda d: d.empty_image((4, 4), "rgba8unorm", samples=3), "samples"),
    (lambda d: d.sampler("cubic"), "filter is one of nearest, linear, got 'cubic'"),
    (lambda d: d.sampler(address="wrap"), "address is one of repeat"),
    (lambda d: d.sampler(address=("repeat", "around")), "address is one of repeat"),
    (lambda d: d.sampler(anisotropy=0), "anisotropy is 1"),
    (lambda d: d.sampler(compare="smaller"), "compare is one of never, less"),
    (lambda d: d.sampler(border="red"), "border is one of"),
    (lambda d: d.sampler(min_lod=3, max_lod=1), "max_lod is at least min_lod"),
    (lambda d: d.sampler(unnormalized=True, address="repeat"), "unnormalized coordinates"),
    (lambda d: d.texel_buffer(np.zeros(3, np.uint8), "rgba8unorm"), "no whole texels of rgba8unorm"),
    (lambda d: d.texel_buffer(np.zeros(4, np.float32), "r8unorm"), "r8unorm is stored as uint8, got float32"),
    (lambda d: d.empty_image((4, 4), "rgba8norm"), "got 'rgba8norm'; did you mean rgba8unorm or rgba8snorm"),
    (lambda d: d.asimage(np.zeros((4, 4), np.uint32), mips=True), "texels of r32uint are integers, which no filter"),
    (lambda d: d.texel_buffer("abc", "r8unorm"), "r8unorm is stored as uint8, got <U3"),
    (lambda d: d.texel_buffer(np.zeros(3, np.complex64)), "no image format has texels"),
]


@pytest.mark.parametrize(("make", "match"), WRONG_IMAGES, ids=lambda value: value if isinstance(value, str) else "")
def test_what_no_image_or_sampler_is(
    mapped: pumice.Device, make: Callable[[pumice.Device], object], match: str
) -> None:
    with pytest.raises(pumice.PumiceError, match=match):
        make(mapped)


WRONG_USES: list[tuple[Callable[[DeviceImage], object], str]] = [
    (lambda i: i.view(format="r32float"), "rgba32float has 16 bytes a texel, r32float 4"),
    (lambda i: i.view(levels=7), r"the image has 3 level\(s\), got 7"),
    (lambda i: i.view(levels=slice(2, 2)), "are none"),
    (lambda i: i.layer(0), "a 2d image has no layers"),
    (lambda i: i.view(dim="3d"), "a 2d image cannot be seen as 3d"),
    (lambda i: i.view(dim="cube"), "a 2d image cannot be seen as cube|6 square layers"),
    (lambda i: i.level("0"), "a level is an int or a slice"),
    (lambda i: i.with_sampler("linear"), "with_sampler takes what Device.sampler made, got str"),
    (lambda i: i.numpy(np.empty((4, 4), np.float32)), r"out must be .* of shape \(4, 4, 4\)"),
    (lambda i: i.numpy(dtype=np.uint8), "gives float32 or floats, not uint8"),
    (lambda i: i.copy_from(np.zeros((4, 5, 4), np.float32)), r"expected shape \(4, 4, 4\) for rgba32float"),
    (lambda i: i.view().generate_mips(), "of which this is a view"),
    (lambda i: i.wait(timeout="soon"), "timeout is a number of seconds"),
]


@pytest.mark.parametrize(("use", "match"), WRONG_USES, ids=lambda value: value if isinstance(value, str) else "")
def test_what_an_image_does_not_do(mapped: pumice.Device, use: Callable[[DeviceImage], object], match: str) -> None:
    image = mapped.asimage(np.zeros((4, 4, 4), np.float32), mips=True)
    with pytest.raises(InvalidArgumentError, match=match):
        use(image)


WRONG_CALLS: list[tuple[Callable[[pumice.Device], tuple[object, ...]], str]] = [
    (lambda d: (np.zeros((4, 4), np.uint32), None), "binding 0 .source. takes a 2d image with a sampler, of floats"),
    (lambda d: (d.asimage(np.zeros((4, 4), np.uint32)), ...), "texels of r32uint are read as uints"),
    (lambda d: (d.asimage(np.zeros((4, 4, 4), np.float32), dim="3d"), ...), "takes a 2d image .* got a 3d image"),
    (lambda d: (d.asimage(np.zeros((2, 4, 4), np.float32), dim="2d_array"), ...), "got a 2d_array image of shape"),
    (lambda d: (d.asarray(np.zeros((4, 4), np.float32)), ...), "an array of shape .4, 4. on the device"),
    (lambda d: (d.sampler(), ...), "as an image or a NumPy array; got a sampler"),
    (lambda d: ("cat.png", ...), "got str"),
    (lambda d: (None, ...), "got NoneType"),
    (lambda d: ([[1, 2], [3]], ...), "list cannot become that"),
    (lambda d: (pumice.empty((4, 4), np.float32), ...), "but the kernel only reads it; give it an image or an array"),
    (lambda d: (np.zeros((4, 4, 4, 4), np.float32), ...), "a 2d image has shape"),
    (lambda d: (np.zeros((4, 4), np.float32), np.zeros((4, 4), np.float32)), "expected 4 channel|shape"),
    (
        lambda d: (np.zeros((4, 4), np.float32), d.empty_image((4, 4), "rgba8unorm")),
        "make it with format='rgba32float'",
    ),
    (lambda d: (np.zeros((4, 4), np.float32), d.empty_image((4, 4), "rgba32uint")), r"view\(format='rgba32float'\)"),
    (lambda d: (np.zeros((4, 4), np.float32), (d.empty_image((4, 4), "rgba32float"), d.sampler())), "and no sampler"),
    (lambda d: ((np.zeros((4, 4), np.float32), "linear"), ...), "takes a 2d image"),
    (
        lambda d: (np.zeros((4, 4), np.float32), np.zeros((4, 4, 4), bool)),
        "rgba32float gives float32 or floats",
    ),
    (lambda d: (np.zeros((4, 4), np.float32), pumice.empty((4, 4, 4), np.int64)), "or floats, not int64"),
]


@pytest.mark.parametrize(("arguments", "match"), WRONG_CALLS, ids=lambda value: value if isinstance(value, str) else "")
def test_what_a_kernel_does_not_take(
    mapped: pumice.Device, arguments: Callable[[pumice.Device], tuple[object, ...]], match: str
) -> None:
    kernel = mapped.load_kernel(READ)
    source, target = arguments(mapped)
    if target is ...:
        target = pumice.empty((4, 4, 4), np.float32)
    with pytest.raises(pumice.PumiceError, match=match):
        kernel(source, target)


def test_buffers_take_no_images(mapped: pumice.Device) -> None:
    kernel = mapped.load_kernel(shaders.path("mul"))
    array = np.ones(4, np.float32)
    image = mapped.asimage(array)
    for call in (lambda: kernel(image, array, pumice.empty(4)), lambda: kernel(array, array, out=image)):
        with pytest.raises(
            InvalidArgumentError, match=r"got DeviceImage; it takes any number of float32 .*x\.numpy\(\)"
        ):
            call()
    with pytest.raises(InvalidArgumentError, match=r"got TexelArray; .* give x\.array"):
        kernel(array, mapped.texel_buffer(array), pumice.empty(4))
    with pytest.raises(InvalidArgumentError, match="got Sampler"):
        kernel(array, mapped.sampler(), pumice.empty(4))
    assert np.array_equal(image.numpy(), array)


def test_the_text_of_a_sampler_names_its_device(mapped: pumice.Device) -> None:
    sampler = mapped.sampler()
    assert repr(sampler) == f"<pumice.Sampler of {mapped.name!r}>"
    sampler.close()
    assert repr(sampler).startswith("<closed pumice.Sampler of ")


def test_images_of_another_device(mapped: pumice.Device) -> None:
    kernel = mapped.load_kernel(READ)
    with pumice.open_device() as other:
        image, target = other.asimage(np.zeros((4, 4), np.float32)), mapped.empty_image((4, 4), "rgba32float")
        with pytest.raises(
            InvalidArgumentError, match=r"runs on .* got image on another device, .*: make it with device\.asimage"
        ):
            kernel(image, target)
        with pytest.raises(InvalidArgumentError, match="the sampler is on"):
            image.with_sampler(mapped.sampler())
        moved = mapped.asimage(image)
        assert moved.device is mapped
        kernel(moved, target)


def test_the_reference_device_has_no_images() -> None:
    with pumice.open_device("reference") as device:
        for make in (
            lambda: device.asimage(np.zeros((4, 4), np.float32)),
            lambda: device.empty_image((4, 4), "r32float"),
            lambda: device.sampler(),
        ):
            with pytest.raises(UnimplementedError, match="open a Vulkan device"):
                make()
