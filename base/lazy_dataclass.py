"""A drop-in ``dataclass`` whose methods are compiled at their first call.

The standard library compiles six methods of every class when the class is defined. That takes half a millisecond per
class, a third of the time to import this package, although most runs never instantiate, compare or print most classes
(``docs/design/start.md``). Classes behave like standard dataclasses, and ``dataclasses.fields``, ``replace`` and
``asdict`` accept them; ``frozen``, ``slots``, ``kw_only``, ``eq``, ``repr`` and ``init`` are supported.

Calling the standard decorator later is not an alternative: it handles whole classes only and takes three times as long.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    import dataclasses
    from dataclasses import MISSING, FrozenInstanceError
    from reprlib import recursive_repr

    def dataclass(cls=None, /, *, init=True, repr=True, eq=True, frozen=False, slots=False, kw_only=False):
        """Works like ``dataclasses.dataclass``."""

        def wrap(constructor):
            own = vars(constructor)
            if constructor.__doc__ is None:
                constructor.__doc__ = constructor.__name__  # otherwise the standard library computes the signature
            hashable = "__hash__" in own and not (own["__hash__"] is None and "__eq__" in own)
            made = dataclasses.dataclass(constructor, init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)
            wanted = {"__init__": init, "__repr__": repr, "__eq__": eq, "__hash__": eq and frozen and not hashable}
            for name, is_wanted in wanted.items():
                # `eq` hides only an inherited hash; a hash defined in the class stays.
                if is_wanted and (name not in own or name == "__hash__"):
                    setattr(made, name, _deferred(made, name, frozen))
            if eq and not frozen and not hashable:
                made.__hash__ = None
            if frozen:
                _freeze(made, slots)
            return made

        return wrap if cls is None else wrap(cls)

    def _deferred(cls, name, frozen):
        """Returns a method that replaces itself by the compiled method at its first call."""
        write = _WRITERS[name]

        def method(self, *args, **kwargs):
            real = write(cls, frozen)
            real.__qualname__ = f"{cls.__qualname__}.{name}"
            real.__module__ = cls.__module__
            setattr(cls, name, real)
            return real(self, *args, **kwargs)

        method.__name__ = name
        method.__qualname__ = f"{cls.__qualname__}.{name}"
        return method

    def _freeze(cls, slots):
        names = frozenset(cls.__dataclass_fields__)

        def __setattr__(self, name, value):
            if type(self) is cls or name in names:
                raise FrozenInstanceError(f"cannot assign to field {name!r}")
            super(cls, self).__setattr__(name, value)

        def __delattr__(self, name):
            if type(self) is cls or name in names:
                raise FrozenInstanceError(f"cannot delete field {name!r}")
            super(cls, self).__delattr__(name)

        cls.__setattr__, cls.__delattr__ = __setattr__, __delattr__
        if slots and "__getstate__" not in vars(cls):
            cls.__getstate__, cls.__setstate__ = _getstate, _setstate

    def _getstate(self):
        return [getattr(self, field.name) for field in dataclasses.fields(self)]

    def _setstate(self, state):
        for field, value in zip(dataclasses.fields(self), state, strict=True):
            object.__setattr__(self, field.name, value)

    def _written(name, parameters, lines, values):
        """Compiles a function with this body; ``values`` are the values of the names that it uses."""
        body = "\n  ".join(lines) or "pass"
        source = f"def make({', '.join(values)}):\n def {name}({', '.join(parameters)}):\n  {body}\n return {name}"
        space = {}
        exec(source, space)
        return space["make"](**values)

    def _write_init(cls, frozen):
        values = {"__missing": MISSING, "__put": object.__setattr__}
        positional, keywords, lines = ["self"], [], []
        for field in dataclasses.fields(cls):
            name, parameter, value = field.name, field.name, field.name
            if field.default_factory is not MISSING:
                values[f"__factory_{name}"] = field.default_factory
                parameter = f"{name}=__missing"
                value = (
                    f"__factory_{name}() if {name} is __missing else {name}" if field.init else f"__factory_{name}()"
                )
            elif field.default is not MISSING:
                values[f"__default_{name}"] = field.default
                parameter = f"{name}=__default_{name}"
                if not field.init:
                    value = f"__default_{name}"
            elif not field.init:
                continue
            if field.init:
                (keywords if field.kw_only else positional).append(parameter)
            lines.append(f"__put(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
        if hasattr(cls, "__post_init__"):
            lines.append("self.__post_init__()")
        return _written("__init__", [*positional, *(["*", *keywords] if keywords else ())], lines, values)

    def _tuple(names, owner):
        return f"({''.join(f'{owner}.{name}, ' for name in names)})"

    def _write_eq(cls, frozen):
        names = [field.name for field in dataclasses.fields(cls) if field.compare]
        lines = [
            "if other.__class__ is self.__class__:",
            f"    return {_tuple(names, 'self')} == {_tuple(names, 'other')}",
            "return NotImplemented",
        ]
        return _written("__eq__", ["self", "other"], lines, {})

    def _write_hash(cls, frozen):
        names = [
            field.name for field in dataclasses.fields(cls) if (field.compare if field.hash is None else field.hash)
        ]
        return _written("__hash__", ["self"], [f"return __hash({_tuple(names, 'self')})"], {"__hash": hash})

    def _write_repr(cls, frozen):
        names = [field.name for field in dataclasses.fields(cls) if field.repr]
        texts = ", ".join(f"{name}={{self.{name}!r}}" for name in names)
        written = _written("__repr__", ["self"], [f"return f'{{self.__class__.__qualname__}}({texts})'"], {})
        return recursive_repr("...")(written)

    _WRITERS = {"__init__": _write_init, "__repr__": _write_repr, "__eq__": _write_eq, "__hash__": _write_hash}
