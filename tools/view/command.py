"""``pumice view``: the picture of a shader or of a program, in a window or as files."""

from __future__ import annotations

import contextlib
import functools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ..errors import usage, usage_error
from ..options import (
    TIMED_DEVICE_HELP,
    complete_functions,
    complete_named_files,
    complete_timed_devices,
    loop_guard_option,
    parse_defines,
    source_options,
    validation_option,
)
from ..streams import note

if TYPE_CHECKING:
    from ...runtime.device import Device
    from ...viewer.movies import Movie
    from ...viewer.picture import Picture
    from ...viewer.shader import ShaderOptions

_SIZE: Final = re.compile(r"(\d{1,5})x(\d{1,5})")
_PREVIOUS: Final = "previous"
_FILES: Final = ("png", "gif", "mp4")
_PARAMETERS: Final = {"channel": "channels", "push": "pushes", "define": "defines", "include": "include_dirs"}


@click.command()
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option("--session", type=click.Path(path_type=Path), metavar="MODULE", help="Show what a program returns.")
@click.option(
    "--function",
    metavar="NAME",
    shell_complete=complete_functions,
    help="Of a program: the function; not needed where there is one.",
)
@click.option("--size", default="960x540", show_default=True, metavar="WxH", help="Width and height.")
@click.option("--device", metavar="URI", shell_complete=complete_timed_devices, help=TIMED_DEVICE_HELP)
@click.option(
    "--channel",
    "channels",
    multiple=True,
    metavar="N=FILE|previous",
    shell_complete=complete_named_files,
    help="iChannel0 to iChannel3: a PNG or JPEG, or the frame before.",
)
@click.option(
    "--push",
    "pushes",
    multiple=True,
    metavar="NAME=VALUE",
    help="A push constant: a number, or a list such as [1, 0.5]; those with names of Shadertoy's are given.",
)
@click.option("--shown", metavar="NAME", help="The binding that is shown, where a shader writes several.")
@source_options()
@click.option("--overlay/--no-overlay", default=True, help="Frame times over the picture; the key O.")
@click.option("--vsync/--no-vsync", default=True, help="Wait for the display's refresh.")
@click.option(
    "--screenshots",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    default=".",
    metavar="DIR",
    help="Where the key S writes pictures.",
)
@click.option("--seconds", type=click.FloatRange(0, min_open=True), metavar="N", help="Close the window by itself.")
@click.option("--offscreen", is_flag=True, help="Without a window: write frames, the same on each run.")
@click.option("--frames", type=click.IntRange(1), metavar="N", help="Offscreen: how many; 60.")
@click.option("--fps", type=click.FloatRange(0, min_open=True), metavar="N", help="Offscreen: frames a second; 60.")
@click.option("--png", type=click.Path(path_type=Path), metavar="DIR", help="Offscreen: a file for each frame.")
@click.option("--gif", type=click.Path(path_type=Path), metavar="FILE", help="Offscreen: a GIF.")
@click.option("--mp4", type=click.Path(path_type=Path), metavar="FILE", help="Offscreen: an MP4 (H.264).")
@validation_option
@loop_guard_option
def view(file: Path | None, session: Path | None, **options: Any) -> None:
    """Show the picture of FILE, live: a compute shader, or one of Shadertoy's with mainImage.

    \b
      pumice view waves.frag
      pumice view life.comp --size 512x512
      pumice view waves.frag --offscreen --frames 90 --fps 30 --gif waves.gif
      pumice view --session plasma.vmfb

    Shadertoy's names (iTime, iResolution, iMouse, ...) need no declarations. The shader is compiled again when its file
    is saved. Space pauses, ',' and '.' step, Left and Right move the time, Home restarts, O hides the overlay, F fills
    the screen, S saves a picture, Q closes. docs/view.md has the rest.
    """
    path = session or file
    if path is None or (session is not None and file is not None):
        raise usage_error("expected one of FILE and --session MODULE")
    if not path.is_file():
        raise usage_error(f"no such file: {path}")
    include_dirs: Sequence[Path] | None = None
    make: Callable[[Device], Picture]
    if session is None:
        if options["function"] is not None:
            raise usage_error("--function is for programs; give it with --session")
        make = functools.partial(_shader, path, _shader_options(options))
        include_dirs = options["include_dirs"]
    else:
        for option in ("channel", "push", "shown", "define", "include", "language"):
            if options[_PARAMETERS.get(option, option)]:
                raise usage_error(f"--{option} is for shaders")
        make = functools.partial(_program, path, options["function"])
    size = _size(options["size"])
    files = {name: options[name] for name in _FILES if options[name] is not None}
    if options["offscreen"]:
        _render(make, size, files, options)
        return
    for name in (*_FILES, "frames", "fps"):
        if options[name] is not None:
            raise usage_error(f"--{name} goes with --offscreen")
    _show(make, path, size, options, include_dirs)


def _show(
    make: Callable[[Device], Picture],
    path: Path,
    size: tuple[int, int],
    options: Mapping[str, Any],
    include_dirs: Sequence[Path] | None,
) -> None:
    """Opens a window; without ``include_dirs`` the picture is not reloaded."""
    from ...viewer.reloading import Reloader
    from ...viewer.window import Window

    with Window(
        make,
        title=path.name,
        size=size,
        device=options["device"],
        validation=options["validation"],
        vsync=options["vsync"],
        has_overlay=options["overlay"],
        screenshots=options["screenshots"],
    ) as window:
        note(f"showing {path.name} on {window.device.name}")
        again = functools.partial(make, window.device)
        with Reloader(path, again, include_dirs) if include_dirs is not None else contextlib.nullcontext() as reloader:
            window.run(reloader, seconds=options["seconds"])
        for name, (_, median, high, highest) in window.times.rows():
            note(f"{name + ':':<9} median {median:.2f} ms, 95 % {high:.2f} ms, 99 % {highest:.2f} ms")


def _render(
    make: Callable[[Device], Picture], size: tuple[int, int], files: Mapping[str, Path], options: Mapping[str, Any]
) -> None:
    """Writes frames to files."""
    from ...viewer.movies import Gif, Mp4, PngFolder
    from ...viewer.offscreen import render
    from ..reports import open_asked

    if not files:
        raise usage_error("--offscreen needs somewhere to write: --png DIR, --gif FILE or --mp4 FILE")
    rate, frames = options["fps"] or 60.0, options["frames"] or 60
    with contextlib.ExitStack() as stack:
        device = stack.enter_context(open_asked(options["device"], options["validation"]))
        picture = stack.enter_context(make(device))
        kinds: dict[str, Callable[[Path], Movie]] = {
            "png": PngFolder,
            "gif": functools.partial(Gif, rate=rate),
            "mp4": functools.partial(Mp4, rate=rate),
        }
        movies = [stack.enter_context(kinds[name](path)) for name, path in files.items()]
        for frame in render(picture, size, frames, rate):
            for movie in movies:
                movie.add(frame)
        width, height = picture.size
    note(f"wrote {', '.join(map(str, files.values()))}: {frames} frame(s) of {width}x{height}")


def _shader(path: Path, options: ShaderOptions, device: Device) -> Picture:
    from ...viewer.shader import ShaderPicture

    return ShaderPicture(device, path, options)


def _shader_options(options: Mapping[str, Any]) -> ShaderOptions:
    from ...spirv.sources.language import parse_language
    from ...viewer.shader import ShaderOptions

    channels: dict[int, str] = {}
    for text in options["channels"]:
        number, equals, name = text.partition("=")
        if not equals or number not in ("0", "1", "2", "3") or not name:
            raise usage_error(f"--channel: expected a number from 0 to 3 and a file, such as 0=cat.png; got {text!r}")
        if name != _PREVIOUS and not Path(name).is_file():
            raise usage_error(f"--channel {text}: no such file: {name}")
        channels[int(number)] = name
    push: dict[str, Any] = {}
    for text in options["pushes"]:
        name, equals, value = text.partition("=")
        if not equals or not name or name in push:
            raise usage_error(f"--push: expected NAME=VALUE, each name once; got {text!r}")
        try:
            push[name] = json.loads(value)
        except ValueError:
            raise usage_error(f"--push {name}: expected a number or a list of numbers, got {value!r}") from None
    return ShaderOptions(
        defines=parse_defines(options["defines"]),
        include_dirs=options["include_dirs"],
        channels=channels,
        push=push,
        shown=options["shown"],
        language=None if options["language"] is None else parse_language(options["language"]),
    )


def _program(path: Path, function: str | None, device: Device) -> Picture:
    from ...viewer.program import ProgramPicture
    from ..programs import open_program
    from ..run.module import choose_function

    module = open_program(str(path), [device.uri])
    name, _ = choose_function(module, function)
    with usage(str(path)):
        return ProgramPicture(device, module, name)


def _size(text: str) -> tuple[int, int]:
    match = _SIZE.fullmatch(text)
    if match is None or not int(match[1]) or not int(match[2]):
        raise usage_error(f"--size: expected WIDTHxHEIGHT, such as 640x480; got {text!r}")
    return int(match[1]), int(match[2])
