"""Which statements begin and end program units, modules and procedures."""

from __future__ import annotations

import re

from peerway_xacc.fortran.declarations import INTRINSIC

_PREFIXES = ("recursive", "pure", "elemental", "impure", "module", "non_recursive")


def unit_header(texts: list[str]) -> tuple[str, int]:
    """The kind of program unit that a statement opens, and the number of the word that names it."""
    if texts[0] == "program" and len(texts) == 2:
        return "program", 1
    if texts[0] == "module" and len(texts) == 2:
        return "module", 1
    if texts[0] == "submodule":
        return "submodule", len(texts) - 1
    if texts[0] == "blockdata" or texts[:2] == ["block", "data"]:
        return "block data", len(texts) - 1
    for number, text in enumerate(texts[:-1] if len(texts) > 1 else []):
        if text in ("subroutine", "function") and re.match(r"[a-z]", texts[number + 1]):
            before = texts[:number]
            if before and before[0] not in (*_PREFIXES, *INTRINSIC):
                return "", 0
            if text == "function" and texts[number + 2 : number + 3] != ["("]:
                return "", 0
            if "," in _outside(before) or "=" in _outside(before) or "end" in before:
                return "", 0
            return text, number + 1
        if text == "(" and number > 0 and texts[0] not in (*_PREFIXES, *INTRINSIC):
            return "", 0
    return "", 0


def _outside(texts: list[str]) -> list[str]:
    depth, outside = 0, []
    for text in texts:
        depth += (text == "(") - (text == ")")
        if depth == 0:
            outside.append(text)
    return outside


def is_end_of_unit(texts: list[str]) -> bool:
    """Does a statement end a program unit or a procedure?"""
    if texts == ["end"]:
        return True
    if texts[0] == "end" and len(texts) <= 3:
        return texts[1] in ("program", "module", "subroutine", "function", "procedure", "submodule") or texts[
            1:3
        ] == ["block", "data"]
    return len(texts) <= 2 and texts[0] in (
        "endprogram", "endmodule", "endsubroutine", "endfunction", "endprocedure", "endsubmodule",
    )  # fmt: skip
