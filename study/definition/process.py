"""The process that a side of a study is measured in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from ...base.lazy_dataclass import dataclass
from ...status import InvalidArgumentError, shown


@dataclass(frozen=True, slots=True)
class Process:
    """A separate process that measures.

    Attributes:
        python: the interpreter of another installation of pumice, by its path or name; empty for the interpreter that
            runs the study.
        variables: additional environment variables.

    Raises:
        InvalidArgumentError: not a text, or not the name of a variable.
    """

    python: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.python, str) or "\0" in self.python:
            raise InvalidArgumentError(f"expected an interpreter, got {shown(self.python)}", location="python")
        if not isinstance(self.variables, Mapping):
            raise InvalidArgumentError(f"expected variables by name, got {shown(self.variables)}", location="variables")
        for name, value in self.variables.items():
            texts = isinstance(name, str) and isinstance(value, str)
            if not texts or not name or "=" in name or "\0" in name + value:
                raise InvalidArgumentError(
                    f"expected texts by the names of variables, got {shown(name)} = {shown(value)}",
                    location="variables",
                )
        object.__setattr__(self, "variables", dict(self.variables))

    def __str__(self) -> str:
        by = f", by {self.python}" if self.python else ""
        return f"in processes of its own{by}" + "".join(f", {name}={value}" for name, value in self.variables.items())
