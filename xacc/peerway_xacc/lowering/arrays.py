"""Lowers distributed arrays: their declarations, functions' pointers to them, and their uses."""

from __future__ import annotations

from peerway_xacc.analysis.blocks import statement_behind
from peerway_xacc.analysis.mapping import DistributedArray
from peerway_xacc.frontend.diagnostics import Place, Refused, counted
from peerway_xacc.frontend.source import Function, Use, Variable
from peerway_xacc.frontend.tokens import quoted
from peerway_xacc.lowering import subscripts, template_fix
from peerway_xacc.lowering.c_text import at
from peerway_xacc.lowering.checks import Checks, checks_of
from peerway_xacc.lowering.declarators import become_pointer
from peerway_xacc.lowering.host_data import is_on_device
from peerway_xacc.lowering.shapes import access, check_extents, description, element, shape
from peerway_xacc.lowering.unit import Unit


def generate(unit: Unit) -> None:
    """Write the code that every distributed array needs, and check all uses of them."""
    for array in unit.scopes.arrays():
        assert array.variable is not None
        with unit.diagnostics.collecting():
            if array.variable.pointee is not None:
                _pointer(unit, array)
            elif array.variable.file_scope:
                _file_scope(unit, array)
            elif array.variable.parameter:
                _parameter(unit, array)
            else:
                _local(unit, array)
    checks = checks_of(unit)
    for function in unit.syntax.functions:
        with unit.diagnostics.collecting():
            _function(unit, function)
        if function.file != unit.file:
            continue  # what it uses stands in another text
        for use in function.uses:
            used = unit.scopes.of_variable(use.variable)
            if used:
                with unit.diagnostics.collecting():
                    _use(unit, used, use, checks)


def _watch(unit: Unit, array: DistributedArray) -> str:
    """Tell the run-time library whether all writes of an array are marked: it can then skip reflects."""
    return f"pwx_array_watch({array.address}, {2 if unit.writes.why(array) else 1});"


def _file_scope(unit: Unit, array: DistributedArray) -> None:
    variable = array.variable
    assert variable is not None
    all_declared = unit.syntax.globals[(variable.base or variable).name]
    here_declared = [declared for declared in all_declared if declared.file == unit.file]
    defined = any(not declared.external for declared in all_declared)
    unit.output.setup.append(_watch(unit, array))
    storage = "static " if variable.static else "" if defined else "extern "
    unit.output.top.append(f"{storage}pwx_array {array.descriptor};")
    # The declaration of a header's array or a struct's member stays in the text, but nothing uses it: the
    # memory gets a pointer with a name of its own.
    pointer = f"{storage}__typeof__({variable.name}{'[0]' * len(variable.sizes)}) *{array.memory};"
    if not here_declared or (variable.base and here_declared != all_declared):
        unit.output.top.append(pointer)
    elif variable.base:
        end = statement_behind(unit.text, here_declared[-1].declarator.start).end
        unit.output.edits.behind(end, f" {pointer}")
    else:
        for declared in here_declared:
            is_extern = declared.external and not variable.static
            become_pointer(unit, declared, array.memory, "extern " if is_extern else storage)
    if defined:
        here = at(array.place)
        lines = [
            f"pwx_array_init({array.address}, {description(unit, array)}, {here});",
            *check_extents(array, here),
            f"{array.memory} = {array.descriptor}.memory;",
        ]
        if not array.waits:
            unit.output.setup += lines
        else:
            array.fixed_at = _when_fixed(unit, array, lines)


def _when_fixed(unit: Unit, array: DistributedArray, lines: list[str]) -> int | None:
    """Add calls for the time when a file-scope array's open template is fixed.

    Returns the offset of the template_fix, if this file has it.
    """
    unit.output.when_fixed.setdefault(id(array.template), []).extend(lines)
    fix = unit.fixes.get(id(array.template))
    return fix.start if fix else None


def _own_pointer(array: DistributedArray) -> str:
    """The declaration of a function's own pointer to an array, and of the bases of its subscripts."""
    unused = "__attribute__((unused)) "  # it may be named only in directives
    pointer = shape(array, array.symbol, "const ")
    lines = [f"__typeof__({element(array)}) {pointer} = (void *){array.memory};"]
    lines += [declared for _, declared in subscripts.bases_of(array)]
    return " ".join(unused + line for line in lines)


def _pointer(unit: Unit, array: DistributedArray) -> None:
    """Lower a pointer that the program sets with xmp_malloc: its declaration stays as it is."""
    variable = array.variable
    assert variable is not None
    line = f"pwx_array_open({array.address}, {description(unit, array)}, {at(array.place)});"
    if variable.file_scope:
        unit.output.top.append(f"static pwx_array {array.descriptor};")
        unit.output.setup.append(_watch(unit, array))
        if array.waits:
            _when_fixed(unit, array, [line])
        else:
            unit.output.setup.append(line)
    else:
        unit.declare_in_block(array.last_directive, "pwx_array", array.descriptor, "pwx_array_free")
        template_fix.put_local(unit, array, [_watch(unit, array)], [line])


def _parameter(unit: Unit, array: DistributedArray) -> None:
    variable = array.variable
    assert variable is not None
    start = variable.declarator.start
    unit.output.edits.replace(start, start + len(variable.name), array.memory)
    here = at(array.place)
    unit.output.put_at(array.last_directive, [
        f"static pwx_array {array.descriptor};",
        f"pwx_bind({array.address}, (void *){array.memory}, {description(unit, array)}, {here});",
        *check_extents(array, here),
        _own_pointer(array),
    ])  # fmt: skip


def _local(unit: Unit, array: DistributedArray) -> None:
    variable = array.variable
    assert variable is not None
    here = at(array.place)
    call = "pwx_array_init" if variable.static else "pwx_array_enter"
    text = f"{call}({array.address}, {description(unit, array)}, {here});"
    pointer = _own_pointer(array)
    pointers = []
    if variable.base:
        storage = "static " if variable.static else ""
        kind = f"__typeof__({variable.name}{'[0]' * len(variable.sizes)})"
        pointers = [f"{storage}{kind} *{array.memory};"]
    else:
        become_pointer(unit, variable, array.memory, "static " if variable.static else "")
    memory = [text, *check_extents(array, here), f"{array.memory} = {array.descriptor}.memory;"]
    if variable.static:
        declared = [*pointers, f"static pwx_array {array.descriptor};"]
        assert array.template is not None
        memory = [f"if (!{array.descriptor}.memory) {{", _watch(unit, array), *memory, "}"]
        memory.append(f"{array.descriptor}.on = {array.template.address};")  # the descriptor of this call
    else:
        unit.declare_in_block(array.last_directive, "pwx_array", array.descriptor, "pwx_array_leave")
        declared = [*pointers, _watch(unit, array)]
    template_fix.put_local(unit, array, declared, [*memory, pointer])


def _function(unit: Unit, function: Function) -> None:
    """Write the first lines of a function: in main the start of the run-time library; array pointers."""
    lines = []
    if function.name == "main" and function.file == unit.file:
        names = [variable.name for variable in function.parameters]
        arguments = [f"&{names[0]}", f"&{names[1]}"] if len(names) > 1 else ["0", "0"]
        lines.append(f"pwx_begin({', '.join(arguments)});")
    for array, uses in _used_file_scope(unit, function):
        if not array.waits or function.file != unit.file:
            lines.append(_own_pointer(array))
            continue
        assert array.template is not None
        spots, unreached = template_fix.spots(unit, function, array.template, uses)
        for spot in spots:
            first = min(use for use in uses if use >= spot.reach.start)
            template_fix.put(
                unit,
                spot,
                [*([] if spot.directive else [_check_memory(unit, array, first)]), _own_pointer(array)],
            )
        if unreached:
            lines += [_check_memory(unit, array, unreached[0]), _own_pointer(array)]
    if not lines:
        return
    if function.file != unit.file:
        place = unit.texts.of(function.file).place(function.whole.start)
        raise Refused(
            place, f"'{function.name}' in a header uses a distributed array; that is not supported yet"
        )
    start = function.body.start + 1
    line = unit.text.place(start).line
    text = "\n" + "\n".join(lines) + f"\n#line {line} {quoted(unit.file)}\n"
    unit.output.edits.before(start, text)


def _used_file_scope(unit: Unit, function: Function) -> list[tuple[DistributedArray, list[int]]]:
    """The file-scope arrays (not pointers) that a function uses, with the offsets of the uses."""
    by_array: dict[int, tuple[DistributedArray, list[int]]] = {}
    for use in function.uses:
        used = unit.scopes.of_variable(use.variable)
        if used and use.variable.file_scope and use.variable.pointee is None:
            by_array.setdefault(id(used), (used, []))[1].append(use.range.start)
    for array, offset in unit.subscripts.needed:  # used by code that libclang did not see
        of_file = array.variable and array.variable.file_scope and array.variable.pointee is None
        inside = function.file == unit.file and function.body.start < offset < function.body.end
        if of_file and inside:
            by_array.setdefault(id(array), (array, []))[1].append(offset)
    return list(by_array.values())


def _check_memory(unit: Unit, array: DistributedArray, offset: int) -> str:
    """A check at run time that an array has memory, with the line of its use."""
    return f"pwx_need_array({array.address}, {quoted(array.name)}, {at(unit.text.place(offset))});"


def _fixed_in(array: DistributedArray, function: Function) -> bool:
    """Does this function fix the array's template? It then gets its pointer to the array after that."""
    return array.fixed_at is not None and function.body.start < array.fixed_at < function.body.end


def _use(unit: Unit, array: DistributedArray, use: Use, checks: Checks) -> None:
    place = unit.texts.of(use.function.file).place(use.range.start, use.range.end)
    variable = array.variable
    assert variable is not None
    if not variable.file_scope and use.range.start < array.last_directive:
        note = (unit.text.place(array.last_directive), "it is given its mapping here")
        raise Refused(place, f"'{array.name}' is used before its last align or shadow", note)
    if array.fixed_at is not None and _fixed_in(array, use.function) and use.range.start < array.fixed_at:
        note = (unit.text.place(array.fixed_at), "its template is fixed here")
        raise Refused(place, f"'{array.name}' is used before its template is fixed", note)
    if subscripts.hidden(unit, array, use):
        raise Refused(
            place, f"brackets or a macro hide this use of '{array.name}'; write '{array.name}[...]'"
        )
    rank = len(variable.sizes)
    count = 0
    while count < min(rank, len(use.subscripts)) and use.subscripts[count].start >= 0:
        count += 1
    if count == 0:
        _without_subscripts(unit, array, use, place)
        return
    for dimension in range(count, rank):
        if array.kind_of(dimension) != "*":
            message = (
                f"'{array.name}' has {rank} dimensions and {counted(count, 'subscript')}; "
                "a row that is distributed has no address"
            )
            raise Refused(place, message)
    _name(unit, array, use)
    is_foreign = any(region.start <= use.range.start < region.end for region in unit.compute.foreign)
    subscripts.translate(unit, unit.output.edits, array, use, unit.subscripts.translated, is_foreign, checks)


def _name(unit: Unit, array: DistributedArray, use: Use) -> None:
    """Replace the name of a struct's member, or of a pointer that needs other strides."""
    assert array.variable is not None
    name = access(array)
    if name == array.name or (array.variable.pointee is not None and not use.subscripts):
        return
    unit.output.edits.replace(use.range.start, use.range.end, name)


def _without_subscripts(unit: Unit, array: DistributedArray, use: Use, place: Place) -> None:
    """Lower a use without subscripts, which must be an argument of a function that knows the mapping."""
    if array.variable and array.variable.pointee is not None and use.subscripts and not use.in_sizeof:
        message = f"an element of distributed array '{array.name}' is written '{array.name}[i]', without '*'"
        raise Refused(place, message)
    if array.variable and array.variable.pointee is not None and use.argument is None:
        return  # the pointer itself
    if not use.in_sizeof and is_on_device(unit, use):
        return  # a pointer to this node's part on the GPU
    if use.argument is None or use.in_sizeof:
        subject = "measured by sizeof" if use.in_sizeof else "used here"
        message = (
            f"distributed array '{array.name}' is {subject} without subscripts; only a function whose "
            "parameter is aligned can take it so"
        )
        raise Refused(place, message)
    if array.variable and array.variable.pointee is not None and use.callee == "free":
        # The run-time library owns the memory, and the pointer may not be its start: free gets a null
        # pointer.
        freed = f"(pwx_array_free({array.address}), (void *)0)"
        unit.output.edits.replace(use.argument.start, use.argument.end, freed)
        return
    parameters = unit.syntax.functions_known.get(use.callee)
    if parameters is None:
        message = (
            f"'{use.callee}' cannot take distributed array '{array.name}': it knows nothing of its mapping"
        )
        raise Refused(place, message)
    called = next((function for function in unit.syntax.functions if function.name == use.callee), None)
    if called and use.position < len(called.parameters):
        parameter: Variable = called.parameters[use.position]
        if unit.scopes.of_variable(parameter) is None:
            start, end = parameter.declarator.start, parameter.declarator.end
            note = (unit.texts.of(parameter.file).place(start, end), f"'{parameter.name}' is declared here")
            message = (
                f"distributed array '{array.name}' is passed to '{parameter.name}', which is not aligned"
            )
            raise Refused(place, message, note)
    _name(unit, array, use)
    unit.output.edits.before(use.range.start if use.macro else use.argument.start, "(void *)")
