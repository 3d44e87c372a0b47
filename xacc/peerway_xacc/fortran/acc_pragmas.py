"""Writes the directives of acc of a construct as those of C, with the data that the construct uses."""

from __future__ import annotations

from dataclasses import dataclass

from peerway_xacc.fortran import acc_data
from peerway_xacc.fortran.acc_clauses import AccClause, AccDirective
from peerway_xacc.fortran.blocks import Loop, walk
from peerway_xacc.fortran.c_names import c_name
from peerway_xacc.fortran.kernel_names import KernelNames
from peerway_xacc.fortran.words import Word, split
from peerway_xacc.frontend import grammar_acc
from peerway_xacc.frontend.diagnostics import Refused

COPIED = (
    *("copy", "copyin", "copyout", "create", "no_create", "present"),
    *grammar_acc.OLDER,
)
_PLAIN = ("seq", "auto", "independent")
WITH_VALUES = ("collapse", "gang", "worker", "vector", "num_gangs", "num_workers", "vector_length", "async",
                "wait", "tile")  # fmt: skip
_CONDITIONS = ("if", "self")


@dataclass
class Heads:
    """Writes directives of C."""

    names: KernelNames
    directive: AccDirective
    all_clauses: list[AccClause]
    own: dict[int, list[str]]
    shared: set[str]  # scalars of which all iterations have the same one

    def pragma(self, directive: AccDirective, loop: Loop) -> str:
        """The directive of a loop."""
        if directive is self.directive or directive.construct != "loop":
            text = self.clauses(self.all_clauses, loop)
            return f"#pragma acc {directive.construct} {text} PW_DATA"
        return f"#pragma acc loop {self.clauses(directive.clauses, loop)}".rstrip()

    def clauses(self, clauses: list[AccClause], loop: Loop | None) -> str:
        """Clauses of C, but for those of data, which are known when the statements are written."""
        return " ".join(text for clause in clauses if (text := self._clause(clause, loop)))

    def _clause(self, clause: AccClause, loop: Loop | None) -> str:
        if clause.name in _PLAIN:
            return clause.name
        if clause.name == "reduction":
            listed = ", ".join(self._scalar(item.word, "reduction") for item in clause.items)
            return f"reduction({clause.operator} : {listed})"
        if clause.name in ("private", "firstprivate"):
            inner = set(self.own.get(id(loop), ())) if loop else set()
            kept = [item.word for item in clause.items if item.word.text not in inner]
            if clause.name == "private":
                kept = [word for word in kept if word.text not in self.names.local]
            kept = [word for word in kept if not self._is_index(word.text, loop)]
            listed = ", ".join(self._any(word) for word in kept)
            return f"{clause.name}({listed})" if listed else ""
        if clause.name in _CONDITIONS:
            if not clause.words:
                return clause.name
            text = " ".join(word.text for word in clause.words)
            return f"{clause.name}({self.names.value(f'merge(1, 0, {text})')})"
        if clause.name in WITH_VALUES:
            if not clause.words:
                return clause.name
            texts = values_of(self.names, clause)
            return f"{clause.name}({', '.join(texts)})"
        if clause.name == "default":  # _data looks at it
            return ""
        if clause.name in COPIED:
            return ""
        raise Refused(clause.word.place, f"the clause {clause.name} is not supported in Fortran yet")

    def _is_index(self, name: str, loop: Loop | None) -> bool:
        return any(
            isinstance(node, Loop) and node.parallel and node.do is not None and node.do.index.text == name
            for node in (walk([loop]) if loop else ())
        )

    def _scalar(self, word: Word, clause: str) -> str:
        if self.names.is_array(word):
            raise Refused(word.place, f"{clause} of the array '{word.text}' is not possible in a kernel yet")
        kind = self.names.type_of(word)
        if kind.base == "type":
            raise Refused(word.place, f"{clause} of '{word.text}' of {kind.fortran} is not possible")
        self.names.assigned.add(word.text)
        return self.names.scalar(word).text

    def _any(self, word: Word) -> str:
        if self.names.is_array(word):
            self.names.array(word)
            return c_name(word.text)
        return self.names.scalar(word).text


def values_of(names: KernelNames, clause: AccClause) -> list[str]:
    texts = []
    for part in split(list(clause.words or ()), ","):
        words = part[2:] if len(part) > 2 and part[1].text == ":" else part
        texts.append(names.constant_or_value(" ".join(word.text for word in words)).removesuffix("L"))
    return texts


def data_of(names: KernelNames, head: Heads, directives: dict[int, AccDirective]) -> str:
    """The data clauses of a construct: what it names, and the arrays that it uses without naming them."""
    named: dict[str, AccClause] = {}
    sections = {}
    for clause in head.all_clauses:
        for item in clause.items if clause.name in COPIED else ():
            if not names.is_array(item.word):
                continue  # its value comes with the call
            named.setdefault(item.word.text, clause)
            sections[item.word.text] = item
            names.array(item.word)
    default = next((clause.words for clause in head.all_clauses if clause.name == "default"), None)
    present = bool(default) and default is not None and default[0].text == "present"
    texts = [f"copy({c_name(name)})" for name in sorted(head.shared & names.scalars.keys())]
    for name, array in names.arrays.items():
        if name in names.own_arrays:
            continue
        by = named.get(name)
        if default and default[0].text == "none" and by is None:
            around = acc_data.clause_around(name, head.directive, directives)
            if not around:
                message = f"default(none) wants '{name}' in a clause of data"
                raise Refused(default[0].place, message)
        kind = by.name if by else "present" if present else "copy" if name in names.written else "copyin"
        zero = f"{by.modifier}: " if by and by.modifier else ""
        count = array.count
        if by and sections[name].section is not None:
            count = acc_data.whole(names, array, sections[name]) or count
        if not count:
            count = acc_data.count_around(names, array, head.directive, directives)
        if not count:
            message = f"how much of '{name}' the kernel needs is not known; name a section of it in a clause"
            raise Refused(head.directive.place, f"{message}, as in {kind}({name}(1:n))")
        texts.append(f"{kind}({zero}{c_name(name)}[0:{count}])")
    return " ".join(texts)
