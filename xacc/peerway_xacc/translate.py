"""Translates one source file into one generated file. README.md says what each phase passes to the next."""

from __future__ import annotations

from dataclasses import dataclass, replace

from peerway_xacc import lower_directives, surroundings
from peerway_xacc.analysis.explained_paths import Communication
from peerway_xacc.device_loops import loops as device_loops
from peerway_xacc.device_loops.loops import DeviceLoops
from peerway_xacc.directive_table import lowerings_of
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.diagnostics import Diagnostics, HasErrors, Place, Refused
from peerway_xacc.frontend.parsed import Parsed
from peerway_xacc.frontend.preprocess import Texts
from peerway_xacc.lowering import (
    arrays,
    coarray,
    dataflow,
    descriptors,
    initialisers,
    macros,
    reflects,
)
from peerway_xacc.lowering.output import Output
from peerway_xacc.lowering.table import Declares
from peerway_xacc.lowering.unit import Unit
from peerway_xacc.reading import read


@dataclass(frozen=True)
class Translated:
    """The generated text, and for --explain what was generated for each directive."""

    text: str
    explained: list[tuple[Place, str]]
    communications: list[tuple[Place, Communication]]
    has_main: bool


def translate(
    file: str,
    preprocessor: list[str],
    arguments: list[str],
    diagnostics: Diagnostics,
    foreign_acc: bool = False,
) -> Translated:
    """Translate a file. `preprocessor` is the C compiler with its options, `arguments` are libclang's.

    With `foreign_acc` the acc directives stay, for an OpenACC compiler. Raises HasErrors if the program has
    errors, which are then in `diagnostics`.
    """
    texts = Texts()
    source = read(texts, file, preprocessor, arguments, diagnostics, foreign_acc)
    unit = _declared(source.parsed)
    text = macros.expanded(unit, preprocessor) if not diagnostics else None
    if text is not None:
        texts.put(file, text)
        source = read(texts, file, preprocessor, arguments, diagnostics, foreign_acc)
        unit = _declared(source.parsed)
    loops = device_loops.written(unit) if not (diagnostics or foreign_acc) else DeviceLoops(None, [])
    if loops.text is not None:
        texts.keep(loops.text)
        seen = [*arguments, "-include", "peerway/xacc/acc.h"]  # what the loops for the device call
        source = read(texts, file, preprocessor, seen, diagnostics, foreign_acc)
        unit = _declared(source.parsed)
        unit.output.has_loops = True
    unit.output.explained.extend(loops.explained)
    unit = replace(unit, writes=dataflow.writes(unit, source.described))
    unit = replace(unit, reflect_runs=reflects.runs_of(unit))
    coarray.generate(unit, source.coarrays, source.transfers)
    lower_directives.lower(unit)
    initialisers.check(unit)
    arrays.generate(unit)
    descriptors.generate(unit, source.described)
    if not diagnostics:
        surroundings.surround(unit)
    if diagnostics:
        raise HasErrors
    has_main = any(function.name == "main" for function in unit.syntax.functions)
    output = unit.output
    return Translated(output.finish(unit.directives), output.explained, output.communications, has_main)


def _declared(parsed: Parsed) -> Unit:
    """Read the mapping directives of a file: nodes, templates, aligned arrays and coarrays."""
    unit = Unit(**vars(parsed), output=Output(parsed.file, parsed.text))
    lowerings = lowerings_of(unit)
    for directive in unit.directives:
        lowering = lowerings.get(directive.spelling)
        if isinstance(lowering, Declares):
            try:
                lowering.lower(unit, directive)
            except Refused as refused:
                diagnostics = unit.diagnostics
                diagnostics.add(refused)
                diagnostics.leave_unfinished(name.text for name in d.declared_names(directive))
    return unit
