"""One Fortran file becomes generated Fortran and a file of C. The phases are those of `peerway cc`."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peerway_xacc.analysis.explained_paths import Communication
from peerway_xacc.analysis.mapping import TemplateOf
from peerway_xacc.fortran import (
    acc,
    allocation,
    array_on,
    arrays,
    coarrays,
    communication,
    components,
    gmove,
    image_sets,
    inquiry,
    local_alias,
    loops,
    scopes,
    tasks,
    transformations,
    uses,
)
from peerway_xacc.fortran.generated import Generated
from peerway_xacc.fortran.grammar import Arguments, CoarrayOn, End, ImageOn, LocalAlias, Read, read
from peerway_xacc.fortran.source import Form, FortranText, logical_lines
from peerway_xacc.fortran.structure import Scope, Structure
from peerway_xacc.fortran.unit import FortranOutput, FortranScopes, FortranSyntax, FortranUnit, linkage
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.diagnostics import Diagnostics, HasErrors, Place, Refused
from peerway_xacc.frontend.preprocess import Texts
from peerway_xacc.lowering import communication as messages
from peerway_xacc.lowering import declare

_MAPPING: dict[type, Callable[[FortranUnit, Any], None]] = {
    d.Nodes: declare.nodes,
    d.Template: declare.template,
    d.Distribute: declare.distribute,
    d.Align: declare.align,
    d.Shadow: declare.shadow,
    d.StaticDesc: declare.static_desc,
}
_LOWERING: dict[type, Callable[[FortranUnit, Any], None]] = {
    d.TemplateFix: declare.template_fix,
    LocalAlias: local_alias.lower,
    CoarrayOn: image_sets.coarray_on,
    ImageOn: image_sets.image_on,
    d.Reflect: communication.reflect,
    d.Barrier: messages.barrier,
    d.WaitAsync: messages.wait_async,
    d.Post: messages.post,
    d.Wait: messages.wait,
    d.Reduction: communication.reduction,
    d.Bcast: communication.bcast,
    d.Gmove: gmove.gmove,
    d.ArrayOn: array_on.array_on,
    d.Loop: loops.loop,
    d.Task: tasks.task,
    d.Tasks: lambda _unit, _directive: None,
    End: tasks.ends,
    d.Acc: lambda _unit, _directive: None,
}


_OF_ACC = ["#include <peerway/xacc/acc.h>"]
_OF_OPENACC = ["#include <peerway/xacc/acc.h>", "#include <peerway/xacc/outside.h>", "#include <openacc.h>"]


@dataclass(frozen=True)
class Translated:
    """The generated texts, and for --explain what was generated for each line of the source."""

    fortran: str
    companion: str  # C
    kernels: str  # C with directives of acc, which peerway cc translates; empty without any
    structure: Structure
    explained: list[tuple[Place, str]]
    communications: list[tuple[Place, Communication]]


def translate(
    file: str, text: FortranText, form: Form, diagnostics: Diagnostics, foreign_acc: bool
) -> Translated:
    """Translate a file whose lines are read. With `foreign_acc` another compiler reads the acc directives."""
    unit = _unit(file, text, form, diagnostics, foreign_acc)
    components.declare(unit)
    for kinds in (_MAPPING, _LOWERING):
        for directive in unit.directives:
            _lower(unit, kinds, directive)
        if kinds is _MAPPING:
            for array in unit.scopes.arrays():
                with diagnostics.collecting():
                    arrays.check(array)
            if diagnostics:
                raise HasErrors
    kernels = "" if foreign_acc else acc.lower(unit).c_text
    allocation.allocations(unit)
    coarrays.coarrays(unit)
    transformations.transformations(unit)
    inquiry.inquiries(unit)
    uses.uses(unit)
    if diagnostics:
        raise HasErrors
    scopes.set_up(unit)
    _place_calls(unit)
    arrays.declare_pointers(unit)
    scopes.declare(unit)
    if diagnostics:
        raise HasErrors
    return Translated(
        unit.generated.fortran(),
        _companion(unit),
        kernels,
        unit.structure,
        unit.output.explained,
        unit.output.communications,
    )


def _unit(
    file: str, text: FortranText, form: Form, diagnostics: Diagnostics, foreign_acc: bool
) -> FortranUnit:
    logicals = logical_lines(text, form)
    structure = Structure(text, logicals)
    syntax = FortranSyntax(structure)
    shared = {scope.number: Arguments(f"pwf_v{scope.suffix}") for scope in structure.scopes}
    reads: list[Read] = []
    for number, logical in enumerate(logicals):
        if logical.model not in ("xmp", "acc"):
            continue
        with diagnostics.collecting():
            scope = syntax.function_at(file, logical.start)
            if scope is None:
                raise Refused(text.place(logical.start), "this directive is in no program unit")
            reads.append(read(text, logical, number, shared[scope.number]))
    texts = Texts()
    texts.keep(text)
    generated = Generated(text, logicals, form)
    return FortranUnit(
        file, texts, text, syntax, tuple(item.directive for item in reads), diagnostics, foreign_acc,
        scopes=FortranScopes(syntax), output=FortranOutput(file, text), structure=structure,
        generated=generated, reads={id(item.directive): item for item in reads}, prefix=_prefix(file),
        shared=shared,
    )  # fmt: skip


def _prefix(file: str) -> str:
    """How the names of a file's functions begin."""
    stem = re.sub(r"\W", "_", Path(file).stem.lower(), flags=re.ASCII)[:16]
    return f"pwf_{stem}_{zlib.crc32(str(Path(file).resolve()).encode(errors='surrogateescape')):08x}"


def _lower(
    unit: FortranUnit, kinds: dict[type, Callable[[FortranUnit, Any], None]], directive: d.Directive
) -> None:
    lower = kinds.get(type(directive))
    if lower is None:
        if type(directive) not in (*_MAPPING, *_LOWERING) and kinds is _LOWERING:
            unit.diagnostics.error(directive.place, "this directive is not supported in Fortran yet")
        return
    try:
        lower(unit, directive)
    except Refused as refused:
        unit.diagnostics.add(refused)
        unit.diagnostics.leave_unfinished(name.text for name in d.declared_names(directive))


def _place_calls(unit: FortranUnit) -> None:
    """The calls of directives whose lines of C the phases of `peerway cc` have written."""
    for directive in unit.directives:
        lines = unit.output_lines(directive)
        if not lines or isinstance(directive, scopes.MAPPING):
            continue
        scope = unit.scope_of(directive)
        making: list[str] = []
        pointers: list[str] = []
        if isinstance(directive, d.TemplateFix):
            assert directive.template is not None
            making, waiting = scopes.fixed(unit, unit.get(TemplateOf, directive.template, directive))
            pointers = [line for array in waiting for line in arrays.attach(unit, scope, array)]
        arguments = unit.reads[id(directive)].arguments
        call = scopes.call_of(unit, "do", [*lines, *making], arguments, directive)
        unit.generated.before(unit.number_of(directive), unit.generated.call(scope, call), *pointers)


def _companion(unit: FortranUnit) -> str:
    generated = unit.generated
    shared = [
        f"{linkage(scope)}int64_t {arguments.array}[{max(1, len(arguments.texts))}];"
        for scope in unit.structure.scopes
        if (arguments := unit.shared[scope.number]).texts
    ]
    setups = [*unit.program_setups, *(f"pwf_module_{name}();" for name in unit.module_setups)]
    ending = []
    if setups:
        ending += _module_setups(unit)
        calls = " ".join(setups)
        ending += [
            f"static void pwx__set_up(void) {{ {calls} }}",
            "static pwx_unit pwx__unit = {pwx__set_up, 0, 0};",
        ]
    if setups or unit.output.one_sided:
        one_sided = "pwx_gmove_one_sided(); " if unit.output.one_sided else ""
        add = "pwx_unit_add(&pwx__unit); " if setups else ""
        ending.append(f"__attribute__((constructor)) static void pwx__add(void) {{ {one_sided}{add}}}")
    return "\n".join([
        "#include <peerway/xacc/fortran.h>",
        *(_OF_OPENACC if unit.foreign_acc else _OF_ACC), *generated.top, *shared,
        *(call.c_text() for call in generated.calls), *generated.ending, *ending, "",
    ])  # fmt: skip


def _module_setups(unit: FortranUnit) -> list[str]:
    """Functions of C that set a module up once, behind those that it uses."""
    mapped = {
        unit.scope_of(directive).name
        for directive in unit.directives
        if isinstance(directive, scopes.MAPPING)
    }
    lines = []
    for scope in unit.structure.scopes:
        if scope.kind != "module" or scope.name not in unit.module_setups:
            continue
        used = sorted(_used(unit, scope, set()) & mapped)
        name = unit.module_setups[scope.name]
        lines += [f"void pwf_module_{other}(void);" for other in [*used, scope.name]]
        calls = " ".join([*(f"pwf_module_{other}();" for other in used), f"{name}();"])
        lines += [
            f"void {name}(void);",
            f"void pwf_module_{scope.name}(void) {{",
            f"  static int begun; if (begun) return; begun = 1; {calls}",
            "}",
        ]
    return lines


def _used(unit: FortranUnit, scope: Scope, seen: set[str]) -> set[str]:
    """The modules that a module uses, those used by them too."""
    for name, _only in scope.modules:
        module = unit.fortran.module(name)
        if module and name not in seen:
            seen.add(name)
            _used(unit, module, seen)
    return seen
