"""Communication: each directive becomes one call of the run-time library."""

from __future__ import annotations

from peerway.cc import directives as d
from peerway.cc.diagnostics import Refused, counted
from peerway.cc.generated import quoted, reference, where
from peerway.cc.mapping import DistributedArray
from peerway.cc.syntax import Variable
from peerway.cc.tokens import scan
from peerway.cc.types import run_time_type
from peerway.cc.unit import Unit
from peerway.cc.work import OPERATORS, text_of


def reflect(unit: Unit, made: d.Reflect) -> None:
    """reflect, reflect_init, reflect_do, reduce_shadow."""
    arrays = _reflected(unit, made)
    which = _which(arrays)
    names = ", ".join(array.name for array in arrays)
    if made.kind == "reflect_wait":
        unit.explain(made, f"reflect_wait {names}: the end of those with nowait")
        unit.put(made, [f"pwx_reflect_wait({which}, {where(made)});"])
        return
    corners = "no corners" if made.orthogonal else "corners too"
    faces = "; ".join(_faces(made, array) for array in arrays)
    plan = "one plan"
    run = unit.runs.get(id(made), [made])
    if made is not run[0]:
        plan = f"in the plan of line {run[0].place.line}"
    free = _when_free(unit, arrays) if made.kind in ("reflect", "reflect_do") else ""
    unit.explain(made, f"{made.kind} {names}, {plan}, {corners}: {faces}{free}")
    widths = _widths(made)
    shape = f"{widths}, {_flags(unit, made)}"
    if made.kind == "reduce_shadow":
        _reduce_shadow(unit, made, arrays, widths)
    elif made.kind == "reflect_init":
        unit.put(made, [f"pwx_reflect_init({which}, {shape}, {where(made)});"])
    elif made is not run[-1]:
        pass  # the last of a run does all
    elif made.kind == "reflect_do":
        which = _which([array for one in run for array in _reflected(unit, one)])
        unit.put(made, [f"pwx_reflect_do({which}, {where(run[0])});"])
    elif len(run) > 1:
        _together(unit, run)
    else:
        number = f", {made.asynchronous.text}" if made.asynchronous else ""
        call = "pwx_reflect_async" if number else "pwx_reflect_start" if made.nowait else "pwx_reflect"
        halo = unit.new_name("halo")
        unit.put(made, [
            f"{{ static pwx_halo {halo}; {call}(&{halo}, {which}, {shape}{number}, {where(made)}); }}"
        ])  # fmt: skip


def _together(unit: Unit, run: list[d.Reflect]) -> None:
    """Directives that follow one another become one call, in the place of the last."""
    halo = unit.new_name("halo")
    arrays = [(array, one) for one in run for array in _reflected(unit, one)]
    widths = ", ".join(_widths(one) for _, one in arrays)
    flags = [
        name
        for name in (*(_flags(unit, one) for one in run), "PWX_REFLECT_NOWAIT" if run[0].nowait else "0")
        if name != "0"
    ]
    unit.put(run[-1], [
        f"{{ static pwx_halo {halo}; pwx_reflect_each(&{halo}, {_which([array for array, _ in arrays])}, "
        f"(const pwx_width *const[]){{{widths}}}, {' | '.join(flags) or '0'}, {where(run[0])}); }}"
    ])  # fmt: skip


def runs_of(unit: Unit) -> dict[int, list[d.Reflect]]:
    """Reflects between which nothing stands: each with all of its run, by its id."""
    found: dict[int, list[d.Reflect]] = {}
    before: d.Directive | None = None
    for made in unit.directives:
        joins = (
            isinstance(made, d.Reflect)
            and isinstance(before, d.Reflect)
            and made.kind == before.kind
            and made.kind in ("reflect", "reflect_do")
            and made.file == before.file == unit.file
            and not scan(unit.text.text, before.end, made.start)
            and (made.orthogonal, made.accelerator, made.nowait)
            == (before.orthogonal, before.accelerator, before.nowait)
            and not made.asynchronous and not before.asynchronous
        )  # fmt: skip
        if isinstance(made, d.Reflect):
            run = found[id(before)] if joins else []
            names = {name.text for one in run for name in one.arrays}
            run = [] if names & {name.text for name in made.arrays} else run
            run.append(made)
            found[id(made)] = run
        before = made
    return found


def _reflected(unit: Unit, made: d.Reflect) -> list[DistributedArray]:
    arrays = [unit.array(name, made) for name in made.arrays]
    for name, array in zip(made.arrays, arrays, strict=True):
        _check_shadow(made, name, array)
    return arrays


def _which(arrays: list[DistributedArray]) -> str:
    return f"{len(arrays)}, (pwx_array *const[]){{{', '.join(array.address for array in arrays)}}}"


def _widths(made: d.Reflect) -> str:
    if made.widths is None:
        return "0"
    return f"(const pwx_width[]){{{', '.join(_width(width) for width in made.widths)}}}"


def _flags(unit: Unit, made: d.Reflect) -> str:
    flags = ["PWX_REFLECT_ORTHOGONAL"] if made.orthogonal else []
    if made.accelerator and unit.acc_left:
        flags += [outside(array, made) for array in _reflected(unit, made)]
    elif made.accelerator:
        flags.append("PWX_REFLECT_ACC")
    return " | ".join(flags) or "0"


def outside(array: DistributedArray, made: d.Directive) -> str:
    """Where an OpenACC compiler has its copy of an array: gives the flag of a reflect, as C text."""
    at = f"(acc_wait_all(), acc_deviceptr(pwx_memory({array.address})))"
    return f"pwx_outside({array.address}, {at}, {where(made)})"


def _when_free(unit: Unit, arrays: list[DistributedArray]) -> str:
    """When a reflect costs nothing, as --explain shows it."""
    always = [array for array in arrays if unit.written.why(array)]
    if always:
        reasons = "; ".join(f"{array.name}: {unit.written.why(array)}" for array in always)
        return f"; always done ({reasons})"
    return "; free when nothing wrote since the last one"


def _faces(made: d.Reflect, array: DistributedArray) -> str:
    """Which layers come from which side, as --explain shows them."""
    assert array.template is not None
    found = []
    for dimension, aligned in enumerate(array.dimensions):
        lower, upper = array.shadow(dimension)
        periodic = ""
        if made.widths is not None and made.kind != "reflect_do":
            width = made.widths[dimension]
            lower = width.lower.text if width.lower else "0"
            upper = width.upper.text if width.upper else "0"
            periodic = ", periodic" if width.periodic else ""
        if aligned is None or (lower, upper) == ("0", "0"):
            continue
        layers = "all layers" if lower == "-1" else f"{lower} below and {upper} above"
        found.append(f"{layers} in dimension {dimension}{periodic} ({array.template.share(aligned[0])})")
    return f"{array.name} {', '.join(found) or 'nothing'}"


def _reduce_shadow(unit: Unit, made: d.Reflect, arrays: list[DistributedArray], widths: str) -> None:
    if made.orthogonal or made.asynchronous:
        raise Refused(made.place, "the clauses orthogonal and async of reduce_shadow not supported yet")
    for name, array in zip(made.arrays, arrays, strict=True):
        assert array.variable is not None
        kind = run_time_type(array.variable, name.place, "+")
        call = f"pwx_reduce_shadow({array.address}, {kind}, {widths}, {where(made)});"
        unit.put(made, [through_host(unit, made, [array], call) if made.accelerator else call])


def _check_shadow(made: d.Reflect, name: d.Name, array: DistributedArray) -> None:
    assert array.variable is not None
    if not array.widths:
        note = (array.place, f"'{name.text}' is aligned here")
        raise Refused(name.place, f"'{name.text}' has no shadow; declare one with '#pragma xmp shadow'", note)
    if made.widths is None:
        return
    rank = len(array.variable.sizes)
    if len(made.widths) != rank:
        raise Refused(
            made.widths[0].place,
            f"{counted(len(made.widths), 'width')} for '{name.text}', which has {counted(rank, 'dimension')}",
        )
    for dimension, width in enumerate(made.widths):
        lower, upper = array.shadow_values(dimension)
        for asked, there in ((width.lower, lower), (width.upper, upper)):
            if asked is None or there is None or there < 0 or asked.value is None:
                continue  # the run-time library compares them
            if asked.value > there or asked.value < 0:
                assert array.shadow_place is not None
                message = (
                    f"width {asked.value} is {'larger than' if asked.value > 0 else 'no width for'} "
                    f"the shadow of '{name.text}' in dimension {dimension} ({lower}:{upper})"
                )
                raise Refused(asked.place, message, (array.shadow_place, "the shadow is declared here"))


def _width(width: d.Width) -> str:
    assert width.lower is not None
    assert width.upper is not None
    return f"{{{width.lower.text}, {width.upper.text}, {int(width.periodic)}}}"


def reduction(unit: Unit, made: d.Reduction) -> None:
    """Values of all nodes become one, everywhere."""
    on = reference(unit, made.on, made)
    for one in made.reduced:
        variable = _variable(unit, made, one.name)
        kind = run_time_type(variable, one.name.place, one.operator)
        operator = OPERATORS[one.operator]
        array = unit.scopes.of_variable(variable)
        if array:
            call = f"pwx_reduce_array({on}, {operator}, {kind}, {array.address}, {where(made)});"
            call = through_host(unit, made, [array], call) if made.accelerator else call
        else:
            address, count = _memory(variable, one.name)
            if made.accelerator:
                call = on_device(
                    unit, made, "pwx_reduce_device", f"{on}, {operator}, {kind}", one.name, address, count
                )
            else:
                call = f"pwx_reduce({on}, {operator}, {kind}, {address}, {count}, {where(made)});"
        unit.put(made, [call])
    names = ", ".join(one.name.text for one in made.reduced)
    unit.explain(made, f"reduction of {names} over {text_of(made.on)}")


def through_host(unit: Unit, made: d.Directive, arrays: list[DistributedArray], call: str) -> str:
    """A call with acc that is done on the host: the arrays come from the GPU before and go back behind."""
    if unit.acc_left:
        sections = [f"{array.name}__b[0:pwx_memory_bytes({array.address})]" for array in arrays]
        opened = " ".join(
            f"__attribute__((unused)) char *const {array.name}__b = pwx_memory({array.address}); "
            f"pwx_written({array.address});"
            for array in arrays
        )
        return (
            f"{{ {opened}\n#pragma acc update self({', '.join(sections)})\n{call}\n"
            f"#pragma acc update device({', '.join(sections)})\n}}"
        )
    unit.on_gpu = True
    parts = ", ".join(
        f"{{PWX_DATA_PRESENT, {quoted(array.name)}, {array.address}, 0, 0}}" for array in arrays
    )
    moved = f"{len(arrays)}, (const pwx_data[]){{{parts}}}, 0, PWX_QUEUE_SYNC, {where(made)});"
    written = "".join(f" pwx_written({array.address});" for array in arrays)  # the host's halos, too
    return f"{{{written} pwx_update_host({moved} {call} pwx_update_device({moved} }}"


def on_device(
    unit: Unit, made: d.Communication, call: str, what: str, name: d.Name, address: str, count: str
) -> str:
    """A call with acc, about the copy of a variable on the GPU."""
    unit.on_gpu = True
    if unit.acc_left:
        plain = call.removesuffix("_device")
        return (
            f"{{ void *const at__q = (acc_wait_all(), acc_deviceptr((void *){address})); "
            f"if (at__q == (void *){address}) {plain}({what}, {address}, {count}, {where(made)}); "
            f"else {{ {call}({what}, at__q, {count}, {where(made)}); "
            f"pwx_acc_wait(0, 0, PWX_QUEUE_SYNC, {where(made)}); }} }}"
        )
    known = unit.new_name("known")
    found = f"pwx_device(&{known}, {address}, {quoted(name.text)}, {where(made)})"
    return f"{{ static pwx_known {known}; {call}({what}, {found}, {count}, {where(made)}); }}"


def _variable(unit: Unit, made: d.Directive, name: d.Name) -> Variable:
    variable = unit.syntax.variable(name.text, made.file, made.start)
    if variable is None:
        raise Refused(name.place, f"'{name.text}' is not declared")
    return variable


def _memory(variable: Variable, name: d.Name) -> tuple[str, str]:
    """Where a variable's value is, and how many elements it has."""
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


def bcast(unit: Unit, made: d.Bcast) -> None:
    """The values of one node go to all."""
    on, source = reference(unit, made.on, made), reference(unit, made.source, made)
    for name in made.names:
        variable = _variable(unit, made, name)
        if unit.scopes.of_variable(variable):
            raise Refused(name.place, f"'{name.text}' is a distributed array; bcast of it not supported yet")
        address, count = _memory(variable, name)
        size = f"sizeof({name.text}{'[0]' * len(variable.sizes)})"
        if made.accelerator:
            which = f"{on}, {source}"
            call = on_device(unit, made, "pwx_bcast_device", which, name, address, f"({count}) * {size}")
        else:
            call = f"pwx_bcast({on}, {source}, {address}, ({count}) * {size}, {where(made)});"
        unit.put(made, [call])


def barrier(unit: Unit, made: d.Barrier) -> None:
    """Wait for one another."""
    if made.asynchronous:
        raise Refused(made.asynchronous.place, "a barrier has no clause async")
    call = f"pwx_barrier({reference(unit, made.on, made)}, {where(made)});"
    if made.accelerator and unit.acc_left:
        call = f"{{ acc_wait_all(); {call} }}"
    elif made.accelerator:
        unit.on_gpu = True
        call = f"{{ pwx_acc_wait(0, 0, PWX_QUEUE_SYNC, {where(made)}); {call} }}"
    unit.put(made, [call])


def wait_async(unit: Unit, made: d.WaitAsync) -> None:
    """Wait until communications of these numbers are complete."""
    if made.on:
        raise Refused(made.on.name.place, "the clause on of wait_async not supported yet")
    unit.put(made, [f"pwx_wait_async({number.text}, {where(made)});" for number in made.ids])


def post(unit: Unit, made: d.Post) -> None:
    """Tell a node that what was put to it before is there."""
    assert made.tag is not None
    unit.put(made, [f"pwx_post({reference(unit, made.node, made)}, {made.tag.text}, {where(made)});"])


def wait(unit: Unit, made: d.Wait) -> None:
    """Wait for a post."""
    tag = f"0, {made.tag.text}" if made.tag else "1, 0"
    unit.put(made, [f"pwx_wait({reference(unit, made.node, made)}, {tag}, {where(made)});"])
