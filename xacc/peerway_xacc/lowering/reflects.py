"""Lowers reflect and reduce_shadow, which exchange halos. Adjacent reflects become one call."""

from __future__ import annotations

from peerway_xacc.analysis.explained_paths import Transfer, faces, of_one_plan
from peerway_xacc.analysis.mapping import DistributedArray
from peerway_xacc.frontend import clauses
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.diagnostics import Refused, counted
from peerway_xacc.frontend.tokens import scan
from peerway_xacc.lowering.c_text import where
from peerway_xacc.lowering.communication import through_host
from peerway_xacc.lowering.table import Lowering, StandsAlone
from peerway_xacc.lowering.types import run_time_type
from peerway_xacc.lowering.unit import Unit


def reflect(unit: Unit, directive: d.Reflect) -> None:
    """Lower reflect, reflect_init, reflect_do, reflect_wait or reduce_shadow."""
    arrays = reflected(unit, directive)
    which = _pointers(arrays)
    names = ", ".join(array.name for array in arrays)
    if directive.kind == "reflect_wait":
        unit.explain(directive, f"reflect_wait {names}: the end of those with nowait")
        unit.put(directive, [f"pwx_reflect_wait({which}, {where(directive)});"])
        return
    corners = "no corners" if directive.orthogonal else "corners too"
    faces = "; ".join(_faces(directive, array) for array in arrays)
    plan = "one plan"
    run = unit.reflect_runs.get(id(directive), [directive])
    if directive is not run[0]:
        plan = f"in the plan of line {run[0].place.line}"
    free = _when_free(unit, arrays) if directive.kind in ("reflect", "reflect_do") else ""
    unit.explain(directive, f"{directive.kind} {names}, {plan}, {corners}: {faces}{free}")
    if directive is run[0] and directive.kind != "reflect_do":
        _sent(unit, directive, run)
    if directive.kind == "reflect":
        _warn_of_corners(unit, directive)
    widths = widths_of(directive)
    shape = f"{widths}, {_flags(unit, directive)}"
    if directive.kind == "reduce_shadow":
        _reduce_shadow(unit, directive, arrays, widths)
    elif directive.kind == "reflect_init":
        unit.put(directive, [f"pwx_reflect_init({which}, {shape}, {where(directive)});"])
    elif directive is not run[-1]:
        pass  # the last of a run does the work of all
    elif directive.kind == "reflect_do":
        which = _pointers([array for following in run for array in reflected(unit, following)])
        unit.put(directive, [f"pwx_reflect_do({which}, {where(run[0])});"])
    elif len(run) > 1:
        _one_call(unit, run)
    else:
        number = f", {directive.asynchronous.text}" if directive.asynchronous else ""
        call = "pwx_reflect_async" if number else "pwx_reflect_start" if directive.nowait else "pwx_reflect"
        halo = unit.output.new_name("halo")
        unit.put(directive, [
            f"{{ static pwx_halo {halo}; {call}(&{halo}, {which}, {shape}{number}, {where(directive)}); }}"
        ])  # fmt: skip


def _sent(unit: Unit, directive: d.Reflect, run: list[d.Reflect]) -> None:
    """Say for --explain how many bytes a reflect sends."""
    arrays = [(array, following) for following in run for array in reflected(unit, following)]
    names = ", ".join(array.name for array, _ in arrays)
    if directive.kind == "reduce_shadow":
        unit.communicates(directive, f"reduce_shadow {names}", Transfer("messages", "put"))
        return
    if not unit.text.is_inserted(directive.start):  # in the copy of a loop
        unit.output.halo_plans += 1
    transfers = [
        face
        for array, following in arrays
        for face in faces(array, following.widths, not directive.orthogonal, directive.accelerator)
    ]
    if transfers:
        head = f"{directive.kind} {names}: halo plan {unit.output.halo_plans}"
        unit.communicates(directive, head, *dict.fromkeys(of_one_plan(transfers)))


def _one_call(unit: Unit, run: list[d.Reflect]) -> None:
    """Write one call for a run of adjacent directives, in the place of the last."""
    halo = unit.output.new_name("halo")
    arrays = [(array, following) for following in run for array in reflected(unit, following)]
    widths = ", ".join(widths_of(following) for _, following in arrays)
    flags = [
        name
        for name in (
            *(_flags(unit, following) for following in run),
            "PWX_REFLECT_NOWAIT" if run[0].nowait else "0",
        )
        if name != "0"
    ]
    unit.put(run[-1], [
        f"{{ static pwx_halo {halo}; pwx_reflect_each(&{halo}, {_pointers([array for array, _ in arrays])}, "
        f"(const pwx_width *const[]){{{widths}}}, {' | '.join(flags) or '0'}, {where(run[0])}); }}"
    ])  # fmt: skip


def runs_of(unit: Unit) -> dict[int, list[d.Reflect]]:
    """Find runs of reflects with no code in between.

    Returns the run of each directive, by the directive's id().
    """
    runs: dict[int, list[d.Reflect]] = {}
    before: d.Directive | None = None
    for directive in unit.directives:
        joins = (
            isinstance(directive, d.Reflect)
            and isinstance(before, d.Reflect)
            and directive.kind == before.kind
            and directive.kind in ("reflect", "reflect_do")
            and directive.file == before.file == unit.file
            and not scan(unit.text.text, before.end, directive.start)
            and (directive.orthogonal, directive.accelerator, directive.nowait)
            == (before.orthogonal, before.accelerator, before.nowait)
            and not directive.asynchronous and not before.asynchronous
        )  # fmt: skip
        if isinstance(directive, d.Reflect):
            run = runs[id(before)] if joins else []
            names = {name.text for following in run for name in following.arrays}
            run = [] if names & {name.text for name in directive.arrays} else run
            run.append(directive)
            runs[id(directive)] = run
        before = directive
    return runs


def reflected(unit: Unit, directive: d.Reflect) -> list[DistributedArray]:
    """The arrays of a reflect, their shadows checked."""
    arrays = [unit.array(name, directive) for name in directive.arrays]
    for name, array in zip(directive.arrays, arrays, strict=True):
        _check_shadow(directive, name, array, unit.scopes.sentinel)
    return arrays


def _warn_of_corners(unit: Unit, directive: d.Reflect) -> None:
    """Warn if two reflects with only barriers between them refresh different dimensions of an array.

    Users may expect that the second one brings the corners, too.
    """
    at = next(number for number, earlier in enumerate(unit.directives) if earlier is directive)
    for before in reversed(unit.directives[:at]):
        if not isinstance(before, d.Reflect | d.Barrier) or unit.function_of(before) is not unit.function_of(
            directive
        ):
            return
        if not isinstance(before, d.Reflect) or before.orthogonal or directive.orthogonal:
            continue
        names = {name.text for name in before.arrays} & {name.text for name in directive.arrays}
        both = _refreshed(before) & _refreshed(directive)
        if names and _refreshed(before) and _refreshed(directive) and not both:
            name = sorted(names)[0]
            unit.diagnostics.warn(
                directive.place,
                f"the corners of the shadow of '{name}' stay as they are: this reflect and the one in line "
                f"{before.place.line} each bring the halo of other dimensions; one reflect of all of them "
                "brings the corners, too",
            )
            return


def _refreshed(directive: d.Reflect) -> set[int]:
    """The dimensions whose halo a reflect refreshes; none if that is known only at run time."""
    brought = set()
    for dimension, width in enumerate(directive.widths or []):
        values = [expr.value if expr else 0 for expr in (width.lower, width.upper)]
        if None in values:
            return set()
        if any(values):
            brought.add(dimension)
    return brought


def _pointers(arrays: list[DistributedArray]) -> str:
    return f"{len(arrays)}, (pwx_array *const[]){{{', '.join(array.address for array in arrays)}}}"


def widths_of(directive: d.Reflect) -> str:
    """The widths of a reflect, as C text."""
    if directive.widths is None:
        return "0"
    return f"(const pwx_width[]){{{', '.join(_width(width) for width in directive.widths)}}}"


def _flags(unit: Unit, directive: d.Reflect) -> str:
    flags = ["PWX_REFLECT_ORTHOGONAL"] if directive.orthogonal else []
    if directive.accelerator and unit.foreign_acc:
        flags += [outside(array, directive) for array in reflected(unit, directive)]
    elif directive.accelerator:
        flags.append("PWX_REFLECT_ACC")
    return " | ".join(flags) or "0"


def outside(array: DistributedArray, directive: d.Directive) -> str:
    """The flag of a reflect, as C text; evaluating it passes the OpenACC compiler's copy of an array."""
    at = f"(acc_wait_all(), acc_deviceptr(pwx_memory({array.address})))"
    return f"pwx_outside({array.address}, {at}, {where(directive)})"


def _when_free(unit: Unit, arrays: list[DistributedArray]) -> str:
    """Say for --explain when a reflect costs nothing."""
    always = [array for array in arrays if unit.writes.why(array)]
    if always:
        reasons = "; ".join(f"{array.name}: {unit.writes.why(array)}" for array in always)
        return f"; always done ({reasons})"
    return "; free when nothing wrote since the last one"


def _faces(directive: d.Reflect, array: DistributedArray) -> str:
    """Say for --explain which layers come from which side."""
    assert array.template is not None
    faces = []
    for dimension, aligned in enumerate(array.dimensions):
        lower, upper = array.shadow(dimension)
        periodic = ""
        if directive.widths is not None and directive.kind != "reflect_do":
            width = directive.widths[dimension]
            lower = width.lower.text if width.lower else "0"
            upper = width.upper.text if width.upper else "0"
            periodic = ", periodic" if width.periodic else ""
        if aligned is None or (lower, upper) == ("0", "0"):
            continue
        layers = "all layers" if lower == "-1" else f"{lower} below and {upper} above"
        faces.append(
            f"{layers} in dimension {array.spoken(dimension)}{periodic} ({array.template.share(aligned[0])})"
        )
    return f"{array.name} {', '.join(faces) or 'nothing'}"


def _reduce_shadow(unit: Unit, directive: d.Reflect, arrays: list[DistributedArray], widths: str) -> None:
    for name, array in zip(directive.arrays, arrays, strict=True):
        assert array.variable is not None
        kind = run_time_type(array.variable, name.place, "+")
        call = reduce_shadow_call(directive, array, kind, widths)
        unit.put(directive, [through_host(unit, directive, [array], call) if directive.accelerator else call])


def reduce_shadow_call(directive: d.Reflect, array: DistributedArray, kind: str, widths: str) -> str:
    """The call for one array. With async it is complete before the wait_async, which then has no work."""
    flags = "PWX_REFLECT_ORTHOGONAL" if directive.orthogonal else "0"
    return f"pwx_reduce_shadow({array.address}, {kind}, {widths}, {flags}, {where(directive)});"


def _check_shadow(directive: d.Reflect, name: clauses.Name, array: DistributedArray, sentinel: str) -> None:
    assert array.variable is not None
    if not array.widths:
        note = (array.place, f"'{name.text}' is aligned here")
        raise Refused(name.place, f"'{name.text}' has no shadow; declare one with '{sentinel} shadow'", note)
    if directive.widths is None:
        return
    rank = len(array.variable.sizes)
    if len(directive.widths) != rank:
        raise Refused(
            directive.widths[0].place,
            f"{counted(len(directive.widths), 'width')} for '{name.text}', "
            f"which has {counted(rank, 'dimension')}",
        )
    for dimension, width in enumerate(directive.widths):
        lower, upper = array.shadow_values(dimension)
        for side, there in ((width.lower, lower), (width.upper, upper)):
            if side is None or there is None or there < 0 or side.value is None:
                continue  # the run-time library compares them
            if side.value > there or side.value < 0:
                assert array.shadow_place is not None
                message = (
                    f"width {side.value} is {'larger than' if side.value > 0 else 'no width for'} "
                    f"the shadow of '{name.text}' in dimension {array.spoken(dimension)} ({lower}:{upper})"
                )
                raise Refused(side.place, message, (array.shadow_place, "the shadow is declared here"))


def _width(width: clauses.Width) -> str:
    assert width.lower is not None
    assert width.upper is not None
    return f"{{{width.lower.text}, {width.upper.text}, {int(width.periodic)}}}"


LOWERINGS: dict[str, Lowering] = {
    "xmp reflect": StandsAlone(reflect),
    "xmp reflect_init": StandsAlone(reflect),
    "xmp reflect_do": StandsAlone(reflect),
    "xmp reflect_wait": StandsAlone(reflect),
    "xmp reduce_shadow": StandsAlone(reflect),
}
