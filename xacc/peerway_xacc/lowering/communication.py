"""Lowers communication: each directive becomes one call of the run-time library."""

from __future__ import annotations

from peerway_xacc.analysis.explained_paths import Transfer
from peerway_xacc.analysis.mapping import DistributedArray
from peerway_xacc.frontend import clauses
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.diagnostics import Refused
from peerway_xacc.frontend.source import Variable
from peerway_xacc.frontend.tokens import quoted
from peerway_xacc.lowering.c_text import reference, where
from peerway_xacc.lowering.loops import text_of
from peerway_xacc.lowering.table import Lowering, StandsAlone
from peerway_xacc.lowering.types import OPERATORS, run_time_type
from peerway_xacc.lowering.unit import Unit


def reduction(unit: Unit, directive: d.Reduction) -> None:
    """Lower `reduction`: values of all nodes are combined, and every node gets the result."""
    on = reference(unit, directive.on, directive)
    for operand in directive.reduced:
        variable = _variable(unit, directive, operand.name)
        kind = run_time_type(variable, operand.name.place, operand.operator)
        operator = OPERATORS[operand.operator]
        array = unit.scopes.of_variable(variable)
        if array:
            call = f"pwx_reduce_array({on}, {operator}, {kind}, {array.address}, {where(directive)});"
            call = through_host(unit, directive, [array], call) if directive.accelerator else call
        else:
            address, count = _memory(variable, operand.name)
            if directive.accelerator:
                if (use := f"pwx_preload_reduction({operator}, {kind});") not in unit.output.setup:
                    unit.output.setup.append(use)
                call = on_device(
                    unit,
                    directive,
                    "pwx_reduce_device",
                    f"{on}, {operator}, {kind}",
                    operand.name,
                    address,
                    count,
                )
            else:
                call = f"pwx_reduce({on}, {operator}, {kind}, {address}, {count}, {where(directive)});"
        unit.put(directive, [call])
        bytes_ = variable.bytes if not array and variable.bytes > 0 else None
        _sent(unit, directive, f"reduction of {operand.name.text}", bytes_)
    names = ", ".join(operand.name.text for operand in directive.reduced)
    unit.explain(directive, f"reduction of {names} over {text_of(directive.on)}")


def _sent(unit: Unit, directive: d.Communication, verb: str, bytes_: int | None) -> None:
    """Say for --explain how the data is sent: with acc by a plan between GPUs, otherwise in messages."""
    op = "send" if directive.accelerator else "put"
    unit.communicates(directive, verb, Transfer("messages", op, bytes_, on_gpu=directive.accelerator))


def through_host(unit: Unit, directive: d.Directive, arrays: list[DistributedArray], call: str) -> str:
    """A call with acc that runs on the host: it copies the arrays from the GPU before, and back after."""
    if unit.foreign_acc:
        sections = [f"{array.symbol}__b[0:pwx_memory_bytes({array.address})]" for array in arrays]
        opened = " ".join(
            f"__attribute__((unused)) char *const {array.symbol}__b = pwx_memory({array.address}); "
            f"pwx_written({array.address});"
            for array in arrays
        )
        return (
            f"{{ {opened}\n#pragma acc update self({', '.join(sections)})\n{call}\n"
            f"#pragma acc update device({', '.join(sections)})\n}}"
        )
    unit.output.on_gpu = True
    parts = ", ".join(
        f"{{PWX_DATA_PRESENT, {quoted(array.name)}, {array.address}, 0, 0}}" for array in arrays
    )
    moved = f"{len(arrays)}, (const pwx_data[]){{{parts}}}, 0, PWX_QUEUE_SYNC, {where(directive)});"
    written = "".join(f" pwx_written({array.address});" for array in arrays)  # the host's halos, too
    return f"{{{written} pwx_update_host({moved} {call} pwx_update_device({moved} }}"


def on_device(
    unit: Unit,
    directive: d.Communication,
    call: str,
    name_text: str,
    name: clauses.Name,
    address: str,
    count: str,
) -> str:
    """A call with acc that works on the copy of a variable on the GPU."""
    unit.output.on_gpu = True
    if unit.foreign_acc:
        plain = call.removesuffix("_device")
        return (
            f"{{ void *const at__q = (acc_wait_all(), acc_deviceptr((void *){address})); "
            f"if (at__q == (void *){address}) {plain}({name_text}, {address}, {count}, {where(directive)}); "
            f"else {{ {call}({name_text}, at__q, {count}, {where(directive)}); "
            f"pwx_acc_wait(0, 0, PWX_QUEUE_SYNC, {where(directive)}); }} }}"
        )
    known = unit.output.new_name("known")
    text = f"pwx_device(&{known}, {address}, {quoted(name.text)}, {where(directive)})"
    return f"{{ static pwx_known {known}; {call}({name_text}, {text}, {count}, {where(directive)}); }}"


def _variable(unit: Unit, directive: d.Directive, name: clauses.Name) -> Variable:
    variable = unit.syntax.variable(name.text, directive.file, directive.start)
    if variable is None:
        raise Refused(name.place, f"'{name.text}' is not declared")
    return variable


def _memory(variable: Variable, name: clauses.Name) -> tuple[str, str]:
    """The address of a variable's value and its number of elements, as C text."""
    if variable.pointee is not None:
        raise Refused(name.place, f"'{name.text}' is a pointer; only variables and arrays have a size here")
    if not variable.sizes:
        return f"&{name.text}", "1"
    if variable.parameter:
        if None in variable.sizes:
            raise Refused(name.place, f"the size of parameter '{name.text}' is not known here")
        count = 1
        for size in variable.sizes:
            count *= size or 1
        return name.text, str(count)
    return name.text, f"sizeof({name.text}) / sizeof({name.text}{'[0]' * len(variable.sizes)})"


def bcast(unit: Unit, directive: d.Bcast) -> None:
    """Lower `bcast`: one node's values are sent to all."""
    on, source = reference(unit, directive.on, directive), reference(unit, directive.source, directive)
    for name in directive.names:
        variable = _variable(unit, directive, name)
        if unit.scopes.of_variable(variable):
            raise Refused(
                name.place, f"'{name.text}' is a distributed array; bcast of it is not supported yet"
            )
        address, count = _memory(variable, name)
        size = f"sizeof({name.text}{'[0]' * len(variable.sizes)})"
        if directive.accelerator:
            which = f"{on}, {source}"
            call = on_device(unit, directive, "pwx_bcast_device", which, name, address, f"({count}) * {size}")
        else:
            call = f"pwx_bcast({on}, {source}, {address}, ({count}) * {size}, {where(directive)});"
        unit.put(directive, [call])
        _sent(unit, directive, f"bcast of {name.text}", variable.bytes if variable.bytes > 0 else None)


def barrier(unit: Unit, directive: d.Barrier) -> None:
    """Lower `barrier`."""
    if directive.asynchronous:
        raise Refused(directive.asynchronous.place, "a barrier has no clause async")
    call = f"pwx_barrier({reference(unit, directive.on, directive)}, {where(directive)});"
    if directive.accelerator and unit.foreign_acc:
        call = f"{{ acc_wait_all(); {call} }}"
    elif directive.accelerator:
        unit.output.on_gpu = True
        call = f"{{ pwx_acc_wait(0, 0, PWX_QUEUE_SYNC, {where(directive)}); {call} }}"
    unit.put(directive, [call])
    unit.explain(
        directive, f"barrier of {text_of(directive.on)}: signals without data, in log2 of the nodes rounds"
    )


def wait_async(unit: Unit, directive: d.WaitAsync) -> None:
    """Lower `wait_async`. With `on`, only its nodes wait."""
    calls = [f"pwx_wait_async({number.text}, {where(directive)});" for number in directive.ids]
    if directive.on:
        name = unit.output.new_name("waits")
        nodes = reference(unit, directive.on, directive)
        begin = f"const pwx_task {name} = pwx_task_begin({nodes}, 1, {where(directive)});"
        calls = [f"{{ {begin} if ({name}.inside) {{ {' '.join(calls)} }} }}"]
    unit.put(directive, calls)
    unit.explain(directive, f"wait_async {', '.join(number.text for number in directive.ids)}: sends nothing")


def post(unit: Unit, directive: d.Post) -> None:
    """Lower `post`: tell a node that data put to it before has arrived."""
    assert directive.tag is not None
    node = reference(unit, directive.node, directive)
    unit.put(directive, [f"pwx_post({node}, {directive.tag.text}, {where(directive)});"])
    unit.communicates(directive, f"post to {text_of(directive.node)}", Transfer("1 message", "put", 8))


def wait(unit: Unit, directive: d.Wait) -> None:
    """Lower `wait`: wait for a post."""
    tag = f"0, {directive.tag.text}" if directive.tag else "1, 0"
    unit.put(
        directive, [f"pwx_wait({reference(unit, directive.node, directive)}, {tag}, {where(directive)});"]
    )
    unit.explain(directive, "wait: for a post, sends nothing")


LOWERINGS: dict[str, Lowering] = {
    "xmp reduction": StandsAlone(reduction),
    "xmp bcast": StandsAlone(bcast),
    "xmp barrier": StandsAlone(barrier),
    "xmp wait_async": StandsAlone(wait_async),
    "xmp post": StandsAlone(post),
    "xmp wait": StandsAlone(wait),
}
