"""Reference types: the Python classes of the type names in modules (``!hal.buffer``, ``!vm.list<…>``).

Native modules register the classes of their objects; the VM looks up names when it resolves a module's types. Thread
rule: register from any thread; lookups take no lock.
"""

from __future__ import annotations

from typing import Final

from ...status import AlreadyExistsError

ANY_REF: Final = "vm.opaque"

_CLASSES: dict[str, tuple[type, ...]] = {}


def register_ref_type(name: str, *classes: type) -> None:
    """Registers ``classes`` as the reference type ``name``, such as ``hal.buffer`` (without the ``!``).

    Raises:
        AlreadyExistsError: the name stands for other classes.
    """
    known = _CLASSES.setdefault(name, classes)
    if known != classes:
        raise AlreadyExistsError(
            f"reference type {name!r} already stands for {', '.join(c.__qualname__ for c in known)}"
        )


def ref_type_class(name: str) -> tuple[type, ...] | None:
    """Returns the classes of a type name, for ``isinstance``; ``None`` for a name that is not registered.

    ``name`` may be written as modules write it: with a leading ``!`` and, for lists, with the element type.
    """
    bare = name.removeprefix("!")
    if bare == ANY_REF:
        return (object,)
    if bare.startswith("vm.list<"):
        bare = "vm.list"
    return _CLASSES.get(bare)


def ref_type_name(value: object) -> str:
    """Returns the registered type name of an object, or the name of its Python class; ``null`` for ``None``."""
    if value is None:
        return "null"
    for name, classes in _CLASSES.copy().items():  # another thread may register a name
        if isinstance(value, classes):
            return name
    return type(value).__qualname__
