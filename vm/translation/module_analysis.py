"""Facts about a whole module, for the translation of its functions."""

from __future__ import annotations

from functools import cached_property
from typing import Final

from ..bytecode.calling_convention import CallingConvention
from ..bytecode.isa import CALLS, IMPORT_BIT
from ..bytecode.verifier import VerifiedModule

_MAX_LEAF_DEPTH: Final = 4


class ModuleAnalysis:
    """Facts about a verified module, computed on first use."""

    def __init__(self, verified: VerifiedModule) -> None:
        self._verified = verified

    @cached_property
    def conventions(self) -> dict[int, CallingConvention]:
        """Calling conventions by function ordinal; those of imports by their ordinal with ``IMPORT_BIT``."""
        conventions = {function.ordinal: function.signature for function in self._verified.functions}
        conventions |= {IMPORT_BIT | ordinal: convention for ordinal, convention in enumerate(self._verified.imports)}
        return conventions

    @cached_property
    def leaves(self) -> frozenset[int]:
        """Functions that neither yield nor call a function that may suspend, up to a small depth of calls."""
        leaves: set[int] = set()
        for _ in range(_MAX_LEAF_DEPTH):
            leaves |= {
                ordinal for ordinal, called in enumerate(self._called) if called is not None and called <= leaves
            }
        return frozenset(leaves)

    @cached_property
    def _called(self) -> list[frozenset[int] | None]:
        """The functions that each function calls; ``None`` if it yields or calls an import."""
        called: list[frozenset[int] | None] = []
        for function in self._verified.functions:
            ordinals: set[int] = set()
            suspends = False
            for instruction in function.instructions:
                mnemonic = instruction.operation.mnemonic
                if mnemonic in CALLS:
                    ordinals.add(int(instruction.values[0]))  # type: ignore[arg-type]
                elif mnemonic == "yield":
                    suspends = True
            called.append(
                None
                if suspends or any(called_ordinal & IMPORT_BIT for called_ordinal in ordinals)
                else frozenset(ordinals)
            )
        return called

    @cached_property
    def typed_globals(self) -> frozenset[int]:
        """Reference globals that are only accessed as one type, which is checked at stores and not at loads."""
        types: dict[int, set[int]] = {}
        for function in self._verified.functions:
            for instruction in function.instructions:
                mnemonic = instruction.operation.mnemonic
                if mnemonic == "global.store.indirect.ref":
                    return frozenset()
                if mnemonic in ("global.load.ref", "global.store.ref"):
                    index, type_index = instruction.values[0], instruction.values[1]
                    types.setdefault(int(index), set()).add(int(type_index))  # type: ignore[arg-type]
        return frozenset(index for index, used in types.items() if len(used) == 1)
