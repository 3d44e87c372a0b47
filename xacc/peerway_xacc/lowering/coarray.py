"""Lowers coarrays: `x[n]:[*]` in a declaration, `#pragma xmp coarray`, and assignments with another image's
section on one side. Locks are coarrays of xmp_lock_t.
"""

from __future__ import annotations

from dataclasses import dataclass

from peerway_xacc.analysis import explained_paths
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.diagnostics import Place, Refused, counted
from peerway_xacc.frontend.source import Range, Variable
from peerway_xacc.frontend.tokens import Span, Text, scan
from peerway_xacc.lowering import data_regions, images
from peerway_xacc.lowering.c_text import at, numbers
from peerway_xacc.lowering.sections import Section, remaining, run_time_section, section, variable_of
from peerway_xacc.lowering.shapes import sizes_of
from peerway_xacc.lowering.table import Declares, Lowering
from peerway_xacc.lowering.unit import Unit

_BEFORE_STATEMENT = (";", "{", "}", ")", ":", "else", "do")


@dataclass(frozen=True)
class Declared:
    """A coarray that is declared by `:[*]` after the declarator.

    `start` is the offset of the name, `mark` the range of the part that is not C. `images` are the sizes of
    the dimensions of images, without the last.
    """

    name: str
    start: int
    mark: Range
    images: list[str]


@dataclass(frozen=True)
class Transfer:
    """An assignment `local = remote:[image];`, or the other way round if `put`, as tokens of the text.

    `images` has one subscript for each dimension of images.
    """

    statement: Range
    local: list[Span]
    remote: list[Span]
    images: list[list[Span]]
    put: bool


def find(text: Text) -> tuple[list[Declared], list[Transfer]]:
    """Find all declarations and assignments with `:[`, which C has nowhere."""
    spans = _without_directives(text)
    declared: list[Declared] = []
    transfers: list[Transfer] = []
    for number in range(1, len(spans) - 1):
        if spans[number].text != ":" or spans[number + 1].text != "[":
            continue
        first = _begin(text, spans, number - 1)
        end, groups = images.groups(text, spans, number + 1)
        if [span.text for span in groups[-1]] == ["*"]:
            mark = Range(spans[number].start, spans[end].end)
            sizes = [images.written(text, group) for group in groups[:-1]]
            declared.append(Declared(spans[first].text, spans[first].start, mark, sizes))
        else:
            transfers.append(_transfer(text, spans, first, number, end, groups))
    return declared, transfers


def _without_directives(text: Text) -> list[Span]:
    spans = []
    end = 0
    for span in scan(text.text):
        if span.start < end:
            continue
        if span.text == "#" and not text.text[text.line_start(text.line_of(span.start)) : span.start].strip():
            end = text.logical_end(span.start)
            continue
        spans.append(span)
    return spans


def _begin(text: Text, spans: list[Span], last: int) -> int:
    """The index of the name before the brackets that end at `last`."""
    at_ = last
    while spans[at_].text == "]":
        depth = 0
        while at_ >= 0:
            depth += (spans[at_].text == "]") - (spans[at_].text == "[")
            at_ -= 1
            if depth == 0:
                break
    if at_ < 0 or spans[at_].kind != "name":
        raise Refused(text.place(spans[last].start), "expected the name of a coarray before ':['")
    return at_


def _transfer(
    text: Text, spans: list[Span], first: int, colon: int, end: int, there: list[list[Span]]
) -> Transfer:
    remote = spans[first:colon]
    wanted = "expected 'local = coarray:[image];' or 'coarray:[image] = local;'"
    stop = next((number for number in range(end, len(spans)) if spans[number].text == ";"), None)
    if stop is None:
        raise Refused(text.place(spans[first].start, spans[end].end), wanted)
    if end + 1 < stop and spans[end + 1].text == "=":
        _check_statement(text, spans, first)
        statement = Range(spans[first].start, spans[stop].end)
        return Transfer(statement, spans[end + 2 : stop], remote, there, True)
    if stop != end + 1 or first < 2 or spans[first - 1].text != "=":
        raise Refused(text.place(spans[first].start, spans[end].end), wanted)
    begin = _begin(text, spans, first - 2)
    _check_statement(text, spans, begin)
    return Transfer(
        Range(spans[begin].start, spans[stop].end), spans[begin : first - 1], remote, there, False
    )


def _check_statement(text: Text, spans: list[Span], begin: int) -> None:
    """Refuse a transfer in a declaration, or one whose left side is no plain variable.

    The text of the assignment alone is replaced, so it must be a whole statement.
    """
    if begin > 0 and spans[begin - 1].text not in _BEFORE_STATEMENT:
        name, place = spans[begin].text, text.place(spans[begin].start, spans[begin].end)
        message = (
            f"expected a transfer of a coarray as a statement, which begins with the name of a variable, "
            f"found '{spans[begin - 1].text}' before '{name}'; declare a variable first, and assign to it"
        )
        raise Refused(place, message)


def generate(unit: Unit, declared: list[Declared], transfers: list[Transfer]) -> None:
    """Write descriptors for the coarrays of the file, and calls for the transfers."""
    for coarray in declared:
        with unit.diagnostics.collecting():
            _declare(unit, coarray)
    for transfer in transfers:
        with unit.diagnostics.collecting():
            _generate(unit, transfer)


def lower(unit: Unit, directive: d.Coarray) -> None:
    """Declare the coarrays of a `#pragma xmp coarray`."""
    for name in directive.names:
        _make(unit, name.text, name.place, directive.start, [size.text for size in directive.images])


def _declare(unit: Unit, coarray: Declared) -> None:
    unit.output.edits.replace(coarray.mark.start, coarray.mark.end, "")
    place = unit.text.place(coarray.start, coarray.start + len(coarray.name))
    _make(unit, coarray.name, place, coarray.mark.end, coarray.images)


def _make(unit: Unit, name: str, place: Place, offset: int, sizes_of_images: list[str]) -> None:
    variable = unit.syntax.variable(name, unit.file, offset)
    if variable is None:
        raise Refused(place, f"'{name}' is not declared")
    if not variable.file_scope or variable.pointee is not None or variable.external:
        raise Refused(
            place,
            f"coarray '{name}' must be an array or a scalar outside functions; others are not supported yet",
        )
    if unit.scopes.of_variable(variable):
        raise Refused(place, f"'{name}' is a distributed array and cannot be a coarray")
    if id(variable) in unit.coarrays.names:
        raise Refused(place, f"'{name}' is already a coarray")
    unit.coarrays.names[id(variable)] = f"{name}__c"
    unit.coarrays.image_sizes[id(variable)] = sizes_of_images
    rank = len(variable.sizes)
    if variable.element.split()[-1] == "xmp_lock_t":
        count = " * ".join(f"({size})" for size in sizes_of(unit, variable)) if rank else "1"
        unit.output.top.append(f"static pwx_locks {name}__c;")
        unit.output.setup_last.append(
            f'(void){name}; pwx_locks_init(&{name}__c, "{name}", {count}, {at(place)});'
        )
        return
    sizes = numbers(sizes_of(unit, variable)) if rank else "0"
    unit.output.top.append(f"static pwx_coarray {name}__c;")
    unit.output.setup_last += [
        f"{name}__c.base = {'(void *)' + name if rank else '&' + name};",
        f'pwx_coarray_init(&{name}__c, "{name}", sizeof({name}{"[0]" * rank}), {rank}, {sizes}, '
        f"{at(place)});",
    ]


def _generate(unit: Unit, transfer: Transfer) -> None:
    text = unit.text
    remote, end = section(text, transfer.remote)
    place = text.place(remote.range.start, remote.range.end)
    if end != len(transfer.remote):
        raise Refused(place, "expected a coarray or a section of one")
    variable = variable_of(unit, remote.name, remote.range)
    descriptor = unit.coarrays.names.get(id(variable))
    if descriptor is None:
        raise Refused(place, f"'{remote.name}' is not a coarray; declare it with ':[*]'")
    if variable.element.split()[-1] == "xmp_lock_t":
        raise Refused(place, f"'{remote.name}' is a lock; only the directives lock and unlock change it")
    places = _places(unit, transfer, variable, descriptor)
    image = images.number_of(
        text, remote.name, unit.coarrays.image_sizes[id(variable)], transfer.images, place
    )
    triplets = _triplets(unit, remote, variable)
    local, opened = _local(unit, transfer, variable)
    if transfer.put:
        call = f"pwx_coarray_put(&{descriptor}, {image}, {triplets}, {local}, {places}, {at(place)});"
    else:
        call = f"pwx_coarray_get({local}, &{descriptor}, {image}, {triplets}, {places}, {at(place)});"
    newlines = text.text.count("\n", transfer.statement.start, transfer.statement.end)
    unit.output.edits.replace(
        transfer.statement.start, transfer.statement.end, f"{{ {opened}{call} }}" + "\n" * newlines
    )
    memory = {"0": ""}.get(places, ", of the GPUs' memory")
    verb = "put to" if transfer.put else "get from"
    there = "][".join(images.written(text, group) for group in transfer.images)
    unit.output.explained.append((place, f"coarray {verb} image {there}{memory}"))
    far = explained_paths.Transfer("elements", "put" if transfer.put else "get", on_gpu=bool(memory))
    unit.output.communications.append(
        (place, explained_paths.Communication(f"coarray {verb} {remote.name}", (far,)))
    )


def _places(unit: Unit, transfer: Transfer, variable: Variable, descriptor: str) -> str:
    """The flags that say which sides of a transfer are on GPUs: those that a host_data around it names."""
    there, here = "0", "0"
    place = unit.text.place(transfer.remote[0].start, transfer.images[-1][-1].end + 1)
    for directive in unit.directives_in():
        if not isinstance(directive, d.Acc) or directive.construct != "host_data":
            continue
        function = unit.function_of(directive)
        statement = function and unit.syntax.statement_after(directive.file, directive.end, function)
        # If a transfer is the whole statement, libclang sees only its semicolon.
        if not statement or not directive.end <= transfer.statement.start < statement.end:
            continue
        for on_device in directive.named_variables("use_device"):
            if on_device.text not in (variable.name, transfer.local[0].text):
                continue
            if unit.foreign_acc:
                message = (
                    f"a transfer of coarray '{variable.name}' between memories of GPUs is not supported with "
                    f"another OpenACC compiler; update '{on_device.text}' on the host, and transfer that"
                )
                raise Refused(place, message, (on_device.place, f"'{on_device.text}' is the GPU's here"))
            if on_device.text == variable.name:
                there = f"({data_regions.on_gpu(unit, directive)} ? PWX_COARRAY_THERE : 0)"
            if on_device.text == transfer.local[0].text:
                here = f"({data_regions.on_gpu(unit, directive)} ? PWX_COARRAY_HERE : 0)"
    if there != "0" and descriptor not in unit.coarrays.on_gpus:
        unit.coarrays.on_gpus.add(descriptor)
        unit.output.setup_last.append(f"pwx_coarray_on_gpus(&{descriptor}, {at(place)});")
    return "0" if there == here else " | ".join(part for part in (there, here) if part != "0")


def _local(unit: Unit, transfer: Transfer, remote: Variable) -> tuple[str, str]:
    """The section of the local side, and C text before the call, which stores a value in a variable first."""
    spans = transfer.local
    text = unit.text.text[spans[0].start : spans[-1].end]
    place = unit.text.place(spans[0].start, spans[-1].end)
    if spans[0].kind == "name":
        local, end = section(unit.text, spans)
        variable = unit.syntax.variable(local.name, unit.file, spans[0].start)
        if variable and end == len(spans) and (variable.pointee is None or not local.dimensions):
            array = unit.scopes.of_variable(variable)
            if array:
                raise Refused(
                    place, f"distributed array '{local.name}' in a coarray assignment is not supported yet"
                )
            return run_time_section(unit, local, variable, None), ""
    if not transfer.put:
        raise Refused(place, "expected a variable or a section of an array")
    name = unit.output.new_name("value")
    opened = f"__typeof__({remote.name}{'[0]' * len(remote.sizes)}) {name} = {text}; "
    return f"&(const pwx_section){{.base = &{name}, .element_bytes = sizeof({name}), .ndims = 0}}", opened


def _triplets(unit: Unit, remote: Section, variable: Variable) -> str:
    rank = len(variable.sizes)
    place = unit.text.place(remote.range.start, remote.range.end)
    if not rank:
        return "0"
    if remote.dimensions and len(remote.dimensions) != rank:
        raise Refused(
            place,
            f"'{remote.name}' has {counted(rank, 'dimension')}, "
            f"and {counted(len(remote.dimensions), 'subscript')} here",
        )
    parts = []
    for number, size in enumerate(sizes_of(unit, variable)):
        if not remote.dimensions:
            parts.append(f"{{0, {size}, 1, 0}}")
            continue
        dimension = remote.dimensions[number]
        if dimension.index is not None:
            parts.append(f"{{{dimension.index}, 1, 1, 1}}")
        else:
            count = dimension.length or remaining(dimension, size)
            parts.append(f"{{{dimension.first or '0'}, {count}, {dimension.step}, 0}}")
    return f"(const pwx_triplet[]){{{', '.join(parts)}}}"


LOWERINGS: dict[str, Lowering] = {
    "xmp coarray": Declares(lower),
}
