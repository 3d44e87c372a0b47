"""Adds text around that of a file: declarations before it, and after it the calls that set it up."""

from __future__ import annotations

from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.tokens import quoted
from peerway_xacc.lowering import template_fix
from peerway_xacc.lowering.unit import Unit


def surround(unit: Unit) -> None:
    """Put the descriptors before the first declaration, and after the text the function that fills them."""
    output = unit.output
    start = unit.syntax.first_declaration(unit.file)
    for directive in unit.directives:
        if directive.file == unit.file and not isinstance(directive, d.Omp):
            start = min(start, directive.start)
            break
    start = unit.text.text.rfind("\n", 0, start) + 1
    line = unit.text.place(start).line
    here = f"#define PWX_HERE(line) &(const pwx_where){{{quoted(unit.file)}, line}}"
    headers = ["loops.h", "acc.h"] if output.on_gpu else ["loops.h"]
    includes = [f"#include <peerway/xacc/{name}>" for name in headers]
    if unit.foreign_acc:
        routines = '#define PWX_ROUTINE _Pragma("acc routine seq")'
        includes = [routines, *includes, "#include <peerway/xacc/outside.h>", "#include <openacc.h>"]
    top = [*includes, here, *output.top]
    output.edits.before(start, "\n".join(top) + f"\n#line {line} {quoted(unit.file)}\n")
    hooks = template_fix.set_up(unit)
    output.setup += output.setup_last
    if output.setup or unit.compute.kernel_names or output.one_sided or output.has_zero:
        kernels = ", ".join(f"&{name}" for name in unit.compute.kernel_names)
        listed = f"static pwx_kernel *const pwx__kernels[] = {{{kernels}, 0}};"
        add = ("pwx_gmove_one_sided(); " if output.one_sided else "") + "pwx_unit_add(&pwx__unit);"
        add = ("pwx_has_loops(); " if output.has_loops else "") + add
        add = ("pwx_data_zero(); " if output.has_zero else "") + add
        output.ending = "\n".join([
            *hooks, "", "static void pwx__set_up(void) {", *("  " + line for line in output.setup), "}",
            *([listed] if kernels else []),
            f"static pwx_unit pwx__unit = {{pwx__set_up, 0, {'pwx__kernels' if kernels else '0'}}};",
            f"__attribute__((constructor)) static void pwx__add(void) {{ {add} }}", "",
        ])  # fmt: skip
