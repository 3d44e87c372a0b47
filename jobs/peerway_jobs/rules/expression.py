"""The expression language of rules: Python's grammar of expressions, restricted to what is listed here.

Allowed are numbers, texts, names, `job.field`, comparisons, arithmetic, `and`, `or`, `not`, `a if b else c`,
`x in (...)` and calls of the functions that the caller passes. No attribute of a Python object is ever read,
nothing but those functions is called, and there are no powers. So the worst that an expression can do is to
be wrong.

A value may be None, which means "no data". Anything computed from None is None, except if the rest decides:
`False and None` is False, `True or None` is True. So a rule has no data only if the data would matter.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

MOST_LETTERS = 2000
_DEEPEST = 40

_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.In: lambda item, several: item in several,
    ast.NotIn: lambda item, several: item not in several,
}


class BadExpression(ValueError):
    """An error in an expression, with its line and column (from 1) within the expression."""

    def __init__(self, message: str, line: int = 1, column: int = 1) -> None:
        super().__init__(message)
        self.line, self.column = line, column


class Expression:
    """A parsed and checked expression; `names` are the names that it reads, with `job.cores` as one name."""

    def __init__(
        self,
        text: str,
        functions: Mapping[str, Callable[..., Any]],
        takes_none: frozenset[str] = frozenset(),
        renamed: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Parse and check `text`. Raises BadExpression.

        `takes_none` are functions that are called even if an argument is None. `renamed` maps old names of
        functions, which still work, to their new ones.
        """
        if len(text) > MOST_LETTERS:
            raise BadExpression(f"longer than {MOST_LETTERS} letters: give a part of it a name in `values`")
        self.text = text
        try:
            self._tree = ast.parse(text.strip(), mode="eval").body
        except SyntaxError as error:
            raise BadExpression(error.msg, error.lineno or 1, error.offset or 1) from None
        except (ValueError, RecursionError, MemoryError) as error:
            raise BadExpression(f"cannot be read: {error}") from None
        self._functions, self._takes_none, self._renamed = functions, takes_none, renamed
        self.names: dict[str, tuple[int, int]] = {}
        self.old_names: set[str] = set()  # old names of functions that it uses
        self._check(self._tree, 0)

    def value(self, names: Mapping[str, Any]) -> Any:
        """The value with these names; None for no data. Raises BadExpression if values do not fit."""
        return _plain(self._value(self._tree, names))

    # -- checks

    def _check(self, node: ast.AST, depth: int) -> None:
        if depth > _DEEPEST:
            raise self._refused(node, f"nested deeper than {_DEEPEST}")
        if isinstance(node, (ast.Name, ast.Attribute)):
            self.names.setdefault(self._name(node), (node.lineno, node.col_offset + 1))
            return
        if isinstance(node, ast.Call):
            self._check_call(node)
            children: list[ast.AST] = [*node.args]
        else:
            self._check_kind(node)
            children = [
                child
                for child in ast.iter_child_nodes(node)
                if not isinstance(child, (ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context))
            ]
        for child in children:
            self._check(child, depth + 1)

    def _check_call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id in self._renamed:
            self.old_names.add(node.func.id)
            node.func.id = self._renamed[node.func.id]
        if not isinstance(node.func, ast.Name) or node.func.id not in self._functions:
            name = ast.unparse(node.func)
            raise self._refused(node, f"there is no function {name}; there are {', '.join(self._functions)}")
        if node.keywords or any(isinstance(argument, ast.Starred) for argument in node.args):
            raise self._refused(node, "arguments are given by their place, as in mean(gpu.utilization)")

    def _check_kind(self, node: ast.AST) -> None:
        if isinstance(node, ast.Constant):
            if not isinstance(node.value, (bool, int, float, str)):
                raise self._refused(node, "a value is a number, a text, True or False")
        elif isinstance(node, ast.BinOp):
            if type(node.op) not in _ARITHMETIC:
                raise self._refused(node, "the arithmetic is + - * /")
        elif isinstance(node, ast.Compare):
            if not all(type(op) in _COMPARED for op in node.ops):
                raise self._refused(node, "the comparisons are < <= > >= == != in, not in")
        elif isinstance(node, ast.UnaryOp):
            if not isinstance(node.op, (ast.Not, ast.USub)):
                raise self._refused(node, "before a value stands only - or not")
        elif not isinstance(node, (ast.BoolOp, ast.IfExp, ast.Tuple)):
            kind = type(node).__name__
            raise self._refused(node, f"{kind} is not part of this language (docs: Jobs, Rules)")

    def _name(self, node: ast.AST) -> str:
        if isinstance(node, ast.Name):
            return node.id
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            return f"{node.value.id}.{node.attr}"
        raise self._refused(node, "a name is `word` or `word.word`")

    @staticmethod
    def _refused(node: ast.AST, message: str) -> BadExpression:
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0) + 1
        return BadExpression(message, line, column)

    # -- evaluation

    def _value(self, node: ast.AST, names: Mapping[str, Any]) -> Any:
        match node:
            case ast.Constant():
                return node.value
            case ast.Name() | ast.Attribute():
                return self._named(node, names)
            case ast.BoolOp():
                return self._joined(node, names)
            case ast.IfExp():
                chosen = _truth(self._value(node.test, names))
                if chosen is None:
                    return None
                return self._value(node.body if chosen else node.orelse, names)
            case ast.Tuple():
                return tuple(self._value(each, names) for each in node.elts)
        return self._computed(node, names)

    def _computed(self, node: ast.AST, names: Mapping[str, Any]) -> Any:
        try:
            match node:
                case ast.UnaryOp(op=ast.Not()):
                    value = self._value(node.operand, names)
                    if isinstance(value, np.ndarray):
                        return 1.0 - value
                    return None if value is None else not value
                case ast.UnaryOp():
                    value = self._value(node.operand, names)
                    return None if value is None else -value
                case ast.BinOp():
                    first, second = self._value(node.left, names), self._value(node.right, names)
                    return None if first is None or second is None else _arithmetic(node.op, first, second)
                case ast.Compare():
                    return self._compared(node, names)
                case ast.Call():
                    assert isinstance(node.func, ast.Name)
                    arguments = [self._value(each, names) for each in node.args]
                    if any(each is None for each in arguments) and node.func.id not in self._takes_none:
                        return None
                    return _plain(self._functions[node.func.id](*arguments))
        except (TypeError, ValueError, AttributeError, OverflowError) as error:
            if isinstance(error, BadExpression):
                raise
            raise self._refused(node, f"{ast.unparse(node)}: {error}") from None
        raise AssertionError(node)

    def _named(self, node: ast.AST, names: Mapping[str, Any]) -> Any:
        name = self._name(node)
        if name not in names:
            raise self._refused(node, f"there is no {name} here")
        return _plain(names[name])

    def _joined(self, node: ast.BoolOp, names: Mapping[str, Any]) -> bool | None:
        decides = isinstance(node.op, ast.Or)
        unknown = False
        for each in node.values:
            value = _truth(self._value(each, names))
            if value is None:
                unknown = True
            elif value is decides:
                return decides
        return None if unknown else not decides

    def _compared(self, node: ast.Compare, names: Mapping[str, Any]) -> Any:
        first, holds = self._value(node.left, names), None
        for operation, part in zip(node.ops, node.comparators, strict=True):
            right = self._value(part, names)
            if first is None or right is None:
                return None
            each = _COMPARED[type(operation)](first, right)
            if isinstance(each, np.ndarray):  # one figure per device: 1, 0, or NaN for no data
                each = np.where(np.isnan(first) | np.isnan(right), np.nan, each)
            holds = each if holds is None else holds * each
            first = right
        return holds


def _arithmetic(op: ast.operator, first: Any, second: Any) -> Any:
    """The result of an arithmetic operation; None for a division by 0."""
    if isinstance(op, ast.Div) and not isinstance(second, np.ndarray) and second == 0:
        return None
    if isinstance(first, str) or isinstance(second, str):
        raise TypeError("a text is not a number")
    with np.errstate(all="ignore"):
        return _ARITHMETIC[type(op)](first, second)


def _truth(value: Any) -> bool | None:
    """The value as a condition; None for no data, which includes NaN."""
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return None
    if isinstance(value, np.ndarray):
        raise BadExpression("this has one value a device: say any(...), all(...) or count(...)")
    return bool(value)


def _plain(value: Any) -> Any:
    """The value as a Python type; None if it is NaN or infinite."""
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value
