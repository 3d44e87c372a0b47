"""Which loop's body declares a scalar that a construct changes: the innermost parallel one with all uses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from peerway_xacc.fortran.blocks import Assign, CallOf, If, Loop, Node
from peerway_xacc.fortran.words import Word

_Around = tuple[Loop, ...]  # the parallel loops around a place, the outermost first


@dataclass
class _Uses:
    places: dict[str, list[_Around]] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)

    def note(self, words: Iterable[Word], around: _Around) -> None:
        """These names are used within these loops."""
        for word in words:
            self.places.setdefault(word.text, []).append(around)

    def visit(self, nodes: list[Node], around: _Around) -> None:
        """Note what statements use."""
        for node in nodes:
            if isinstance(node, Loop):
                self._loop(node, around)
            elif isinstance(node, If):
                for _, condition, body in node.branches:
                    self.note(condition or (), around)
                    self.visit(body, around)
            elif isinstance(node, Assign):
                if len(node.target) == 1 or node.target[1].kind == "component":
                    self.changed.add(node.target[0].text)
                self.note((*node.target, *node.value), around)
            elif isinstance(node, CallOf):
                self.changed |= node.changed
                self.note((word for part in node.arguments for word in part), around)

    def _loop(self, node: Loop, around: _Around) -> None:
        if node.do:
            self.changed.add(node.do.index.text)
            self.note((*node.do.first, *node.do.last, *node.do.step), around)
            if not node.parallel:
                self.note([node.do.index], around)
        self.note(node.condition, around)
        for clause in node.acc.all("reduction") if node.acc else ():
            self.note((item.word for item in clause.items), around)
        self.visit(node.body, (*around, node) if node.parallel else around)


def _common(places: list[_Around]) -> _Around:
    """The loops around all of these places."""
    shared = places[0] if places else ()
    for place in places[1:]:
        count = 0
        while count < min(len(shared), len(place)) and shared[count] is place[count]:
            count += 1
        shared = shared[:count]
    return shared


def placed(nodes: list[Node], taken: set[str]) -> dict[int, list[str]]:
    """The scalars that the body of each parallel loop declares, by the loop's id. `taken` are names that
    belong to the whole construct.
    """
    uses = _Uses()
    uses.visit(nodes, ())
    own: dict[int, list[str]] = {}
    for name in sorted(uses.changed - taken):
        around = _common(uses.places.get(name, []))
        if around and not any(loop.do and loop.do.index.text == name for loop in around):
            own.setdefault(id(around[-1]), []).append(name)
    return own
