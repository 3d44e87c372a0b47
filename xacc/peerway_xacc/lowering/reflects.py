"""Reflects and reduce_shadow: halos of distributed arrays. Reflects that follow one another are one call."""

from __future__ import annotations

from peerway_xacc.analysis.mapping import DistributedArray
from peerway_xacc.analysis.paths import Transfer, faces, of_one_plan
from peerway_xacc.analysis.unit import Unit
from peerway_xacc.frontend import clauses
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.diagnostics import Refused, counted
from peerway_xacc.frontend.tokens import scan
from peerway_xacc.lowering.c_text import where
from peerway_xacc.lowering.communication import through_host
from peerway_xacc.lowering.types import run_time_type


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
    if made is run[0] and made.kind != "reflect_do":
        _sent(unit, made, run)
    if made.kind == "reflect":
        _warn_of_corners(unit, made)
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


def _sent(unit: Unit, made: d.Reflect, run: list[d.Reflect]) -> None:
    """What --explain says of the bytes."""
    arrays = [(array, one) for one in run for array in _reflected(unit, one)]
    names = ", ".join(array.name for array, _ in arrays)
    if made.kind == "reduce_shadow":
        unit.communicates(made, f"reduce_shadow {names}", Transfer("messages", "put"))
        return
    unit.halo_plans += 1
    found = [
        face
        for array, one in arrays
        for face in faces(array, one.widths, not made.orthogonal, made.accelerator)
    ]
    if found:
        head = f"{made.kind} {names}: halo plan {unit.halo_plans}"
        unit.communicates(made, head, *dict.fromkeys(of_one_plan(found)))


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


def _warn_of_corners(unit: Unit, made: d.Reflect) -> None:
    """Two reflects of an array in other dimensions, with nothing but barriers between them: people may expect
    that the second brings the corners.
    """
    at = next(number for number, one in enumerate(unit.directives) if one is made)
    for before in reversed(unit.directives[:at]):
        if not isinstance(before, d.Reflect | d.Barrier) or unit.function_of(before) is not unit.function_of(
            made
        ):
            return
        if not isinstance(before, d.Reflect) or before.orthogonal or made.orthogonal:
            continue
        names = {name.text for name in before.arrays} & {name.text for name in made.arrays}
        both = _brought(before) & _brought(made)
        if names and _brought(before) and _brought(made) and not both:
            name = sorted(names)[0]
            unit.found.warn(
                made.place,
                f"the corners of the shadow of '{name}' stay as they are: this reflect and the one in line "
                f"{before.place.line} each bring the halo of other dimensions; one reflect of all of them "
                "brings the corners, too",
            )
            return


def _brought(made: d.Reflect) -> set[int]:
    """The dimensions of which a reflect brings the halo; none where that is known at run time alone."""
    found = set()
    for dimension, width in enumerate(made.widths or []):
        values = [expr.value if expr else 0 for expr in (width.lower, width.upper)]
        if None in values:
            return set()
        if any(values):
            found.add(dimension)
    return found


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
        raise Refused(made.place, "the clauses orthogonal and async of reduce_shadow are not supported yet")
    for name, array in zip(made.arrays, arrays, strict=True):
        assert array.variable is not None
        kind = run_time_type(array.variable, name.place, "+")
        call = f"pwx_reduce_shadow({array.address}, {kind}, {widths}, {where(made)});"
        unit.put(made, [through_host(unit, made, [array], call) if made.accelerator else call])


def _check_shadow(made: d.Reflect, name: clauses.Name, array: DistributedArray) -> None:
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


def _width(width: clauses.Width) -> str:
    assert width.lower is not None
    assert width.upper is not None
    return f"{{{width.lower.text}, {width.upper.text}, {int(width.periodic)}}}"
