"""Reports of instrumented shaders, and their form in memory.

A report is a storage buffer of 32-bit words, the same for all invocations of a pipeline:

- words 0 to 3 are written by the host: the number of the kernel, an unused word, and the address of its table of
  ranges;
- each site has ``SITE_WORDS`` words after these, by its number in the table that the pass returns.

The words of a site are

- word 0: 0 while there is nothing to report, else the kind in its low byte and the site's number above it;
- words 1 to 3: the global invocation id of a wrong access;
- words 4 and 5: an index, its low word first, and word 6 the limit that it exceeds.

An invocation reports its first failure only, and a site has the report of one invocation. The sites show the failure
that comes first in the program.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ...base.lazy_dataclass import dataclass
from .printed import PrintSite

#: The words of a report that hold the address of the table of ranges.
TABLE_WORDS: Final = (2, 3)
#: The word of a report that holds the number of the kernel for its prints.
KERNEL_WORD: Final = 0
#: The words of a report before those of its sites.
HOST_WORDS: Final = 4
SITE_WORDS: Final = 8
#: The number of bits at the start of a table that are the number of its ranges.
COUNT_BITS: Final = 12
MAX_RANGES: Final = (1 << COUNT_BITS) - 1
#: The number of a site lies above the kind.
KIND_BITS: Final = 8
_FORMAT: Final = struct.Struct("<7I")
_SIGN: Final = 1 << 63
_AXES: Final = "xyz"


class ReportKind(enum.IntEnum):
    """The kind of a report."""

    LOOPS_CUT = 1
    OUT_OF_BOUNDS = 2
    WILD_ADDRESS = 3
    UNINITIALISED = 4


@dataclass(frozen=True, slots=True)
class Site:
    """The place in a module that a report is about.

    Attributes:
        kind: the kind of report.
        name: the name of the binding, variable or function; empty if stripped.
        rule: the check that an access failed: ``index``, ``byte``, ``descriptor``, ``coordinate``, ``level``,
            ``sample``; ``null``, ``wild``, ``misaligned``; ``read``.
        binding: the descriptor set and binding of an access, if it has them.
        file, line: the position in the source, empty and 0 if stripped.
        order: the place among the sites in the order in which an invocation comes to them.
    """

    kind: ReportKind
    name: str = ""
    file: str = ""
    line: int = 0
    rule: str = ""
    binding: tuple[int, int] | None = None
    order: int = 0

    def __str__(self) -> str:
        if self.line:
            return f"{self.file or 'line'}{':' if self.file else ' '}{self.line}"
        return self.name


@dataclass(frozen=True, slots=True)
class Report:
    """One report, as the host reads it.

    Attributes:
        site: the place in the module.
        invocation: the global invocation id.
        index, limit: the accessed index, and the length.
        others: the number of other sites that failed.
    """

    site: Site
    invocation: tuple[int, int, int]
    index: int
    limit: int
    others: int = 0

    @classmethod
    def read(cls, data: bytes | memoryview, sites: Sequence[Site]) -> Report | None:
        """Returns the report of the first site in the program that failed, ``None`` if none did."""
        failed = []
        for number, site in enumerate(sites):
            word, x, y, z, low, high, limit = _FORMAT.unpack_from(data, 4 * (HOST_WORDS + SITE_WORDS * number))
            if word:
                failed.append((site.order, cls(site, (x, y, z), low | high << 32, limit)))
        if not failed:
            return None
        _, first = min(failed, key=lambda item: item[0])
        return replace(first, others=len(failed) - 1)


@dataclass(frozen=True, slots=True)
class Instrumented:
    """A module that reports.

    Attributes:
        code: the module.
        set, binding: the descriptor of its report, a storage buffer of ``report_bytes`` zeros.
        sites: the places by their number in a report.
        unwatched: the descriptions of accesses that ``sanitize`` does not check in this module.
        prints: the prints by their number in a record. If there are any, the ring is the binding after the report.
    """

    code: bytes
    set: int
    binding: int
    sites: tuple[Site, ...]
    unwatched: tuple[str, ...] = ()
    prints: tuple[PrintSite, ...] = ()

    @property
    def report_bytes(self) -> int:
        return report_bytes(len(self.sites))

    @property
    def bindings(self) -> tuple[int, ...]:
        """The bindings of its report and ring."""
        return (self.binding, self.binding + 1) if self.prints else (self.binding,)


def report_bytes(sites: int) -> int:
    """Returns the bytes of a report of a number of sites."""
    return 4 * (HOST_WORDS + SITE_WORDS * sites)


def access_message(report: Report) -> str:
    """Returns a clause that describes an access's fault."""
    site, limit = report.site, report.limit
    name = site.name or "an unnamed variable"
    if site.binding is not None:
        name += f" (set {site.binding[0]}, binding {site.binding[1]})"
    index = report.index - (1 << 64) if report.index & _SIGN else report.index
    match site.rule:
        case "byte":
            clause = f"byte {index} of {name}, of which {limit:,} bytes are bound, is accessed"
        case "descriptor":
            clause = f"descriptor {index} of {name}, an array of {limit}, is used"
        case "coordinate":
            value = index & 0xFFFFFFFF
            value -= (value >> 31) << 32
            clause = f"{_AXES[(index >> 32) % 3]} = {value} of image {name}, which is {limit} there, is accessed"
        case "level" | "sample":
            clause = f"{site.rule} {index} of image {name}, which has {limit}, is accessed"
        case "null":
            clause = f"a null device address{f' + {index:,}' if index else ''} is accessed as {name}"
        case "misaligned":
            clause = f"the device address {report.index:#x}, no multiple of {limit}, is accessed as {name}"
        case "wild":
            clause = (
                f"{limit} bytes at the device address {report.index:#x}, which no buffer has, are accessed as {name}"
            )
        case "read":
            clause = f"element {index} of {name} in workgroup memory is read before anything is written to it"
        case _:
            wrapped = f" ({index - (1 << 32)} as a signed integer)" if 1 << 31 <= index < 1 << 32 else ""
            clause = f"element {index}{wrapped} of {name}, which has {limit}, is accessed"
    return clause
