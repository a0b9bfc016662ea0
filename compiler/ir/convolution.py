"""The dimension numbers of a convolution: ``[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .attributes import CONVOLUTION_SIDES, StructAttr

if TYPE_CHECKING:
    from .scanner import Scanner


def convolution_dimensions(scanner: Scanner, name: str) -> StructAttr:
    """Reads dimension numbers in either form, up to the closing angle bracket."""
    if scanner.accept_word("raw"):
        fields: dict[str, object] = {}
        while not scanner.accept(">"):
            key = scanner.word("a field's name")
            scanner.expect("=")
            if scanner.accept("["):
                items = []
                while not scanner.accept("]"):
                    items.append(scanner.integer())
                    scanner.accept(",")
                fields[key] = tuple(items)
            else:
                fields[key] = scanner.integer()
            scanner.accept(",")
        return StructAttr(name, fields)
    sides = convolution_sides(scanner, name)
    scanner.expect(">")
    return sides


def convolution_sides(scanner: Scanner, name: str) -> StructAttr:
    """Reads the three lists of the short form."""
    fields: dict[str, object] = {}
    for (side, *letters), before in zip(CONVOLUTION_SIDES, ("", "x", "->"), strict=True):
        if before:
            scanner.expect(before)
        scanner.expect("[")
        start = scanner.here()
        spatial: dict[int, int] = {}
        named: dict[str, int] = {}
        for position, _ in enumerate(scanner.items("]")):
            if scanner.peek_word():
                named[scanner.word("a dimension")] = position
            elif scanner.accept("?"):
                pass
            else:
                number = scanner.integer()
                if number in spatial:
                    scanner.error(f"the dimension {number} is given twice", start)
                spatial[number] = position
        first, first_name, second, second_name = letters
        if set(named) != {first, second} or sorted(spatial) != list(range(len(spatial))):
            scanner.error(f"expected the dimensions {first}, {second} and 0, 1, … in some order", start)
        fields[f"{side}_{first_name}_dimension"] = named[first]
        fields[f"{side}_{second_name}_dimension"] = named[second]
        fields[f"{side}_spatial_dimensions"] = tuple(spatial[number] for number in sorted(spatial))
    return StructAttr(name, fields)
