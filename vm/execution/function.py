"""Functions of modules in a context, as they are looked up and invoked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..bytecode.calling_convention import CallingConvention
from ..bytecode.declaration import FunctionDeclaration
from .bytecode_module import ContextFunction

if TYPE_CHECKING:
    from .context import Context

__all__ = ["Function"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Function:
    """An exported function of a module in a context; ``Context.lookup`` makes it, one for each export.

    Attributes:
        context: the context.
        module_name, name: of the module and the export.
        convention: its calling convention.
        attributes: reflection attributes; empty for native functions.
        declaration: types of the source program, where the module has them.
        bytecode: the function of a bytecode module, bound to the context.
        native: the Python function of a native module, bound to its state.
    """

    context: Context
    module_name: str
    name: str
    convention: CallingConvention
    attributes: Mapping[str, str] = field(default_factory=dict)
    declaration: FunctionDeclaration | None = None
    bytecode: ContextFunction | None = None
    native: Callable[..., Any] | None = None

    @property
    def full_name(self) -> str:
        """``module.function``."""
        return f"{self.module_name}.{self.name}"

    def __repr__(self) -> str:
        return f"<Function {self.full_name} {self.convention.text}>"
