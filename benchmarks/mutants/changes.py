"""Small changes to a source file, one at a time: each is a mistake that the tests should find.

Sums become differences, limits move by one, comparisons include what they left out, sides change places, arguments and
numbers in sentences disappear. Texts, annotations, decorators and what is raised or asserted stay as they are.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

OPERATORS: dict[type[ast.AST], tuple[type[ast.AST], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div,),
    ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Mult,),
    ast.Mod: (ast.FloorDiv,),
    ast.Pow: (ast.Mult,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
    ast.BitXor: (ast.BitAnd,),
    ast.MatMult: (ast.Mult,),
    ast.LShift: (ast.RShift,),
    ast.RShift: (ast.LShift,),
    ast.And: (ast.Or,),
    ast.Or: (ast.And,),
}
PAIRS = (
    ("min", "max"),
    ("minimum", "maximum"),
    ("argmin", "argmax"),
    ("ceil", "floor"),
    ("any", "all"),
    ("lower", "upper"),
    ("low", "high"),
    ("below", "above"),
    ("least", "most"),
    ("bisect_left", "bisect_right"),
    ("inf", "nan"),
    ("zeros", "ones"),
    ("zeros_like", "ones_like"),
    ("logical_and", "logical_or"),
    ("first", "last"),
    ("left", "right"),
)
SWAPS = {one: other for pair in PAIRS for one, other in (pair, pair[::-1])}
"""Names of functions, attributes and options that are easily taken for each other."""
QUIET_ARGUMENTS = {"strict", "dtype", "stacklevel", "copy", "kind", "maxsize"}
"""Arguments that only check, or choose how the same numbers are held."""
UNTOUCHED = (ast.Raise, ast.Assert, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal)


@dataclass(frozen=True)
class Change:
    """One node of a syntax tree and what takes its place.

    ``function`` is where it is, by name; ``line`` its line; ``head`` the statement, without its body.
    """

    owner: Any
    field: str
    at: int | None
    new: Any
    function: str
    line: int
    head: ast.AST
    default: bool = False

    def swap(self) -> Callable[[], None]:
        """Make the change; return what undoes it."""
        if self.at is None:
            old = getattr(self.owner, self.field)
            setattr(self.owner, self.field, self.new)
            return lambda: setattr(self.owner, self.field, old)
        listed = getattr(self.owner, self.field)
        old = listed[self.at]
        listed[self.at] = self.new

        def undo() -> None:
            listed[self.at] = old

        return undo

    def described(self) -> str:
        """Return the statement with ``⟦before → after⟧`` where it changes."""
        before = _head(self.head)
        undo = self.swap()
        after = _head(self.head)
        undo()
        start = 0
        while start < min(len(before), len(after)) and before[start] == after[start]:
            start += 1
        end = 0
        while end < min(len(before), len(after)) - start and before[-1 - end] == after[-1 - end]:
            end += 1
        while start and (before[start - 1].isalnum() or before[start - 1] in "._"):
            start -= 1
        while start and before[start - 1] in "<>=!*/":
            start -= 1
        while end and (before[-end].isalnum() or before[-end] in "._<>=!*/"):
            end -= 1
        old, new = before[start : len(before) - end], after[start : len(after) - end]
        left, right = before[max(0, start - 48) : start], before[len(before) - end :][:40]
        return f"{'…' if start > 48 else ''}{left}⟦{old} → {new}⟧{right}{'…' if end > 40 else ''}"


def changes(tree: ast.Module) -> list[tuple[str, Change]]:
    """Return every change of a file, with a name that stays the same while its statement does."""
    seen: Counter[tuple[str, str]] = Counter()
    found = []
    for change in _of_body(tree, "body", ""):
        said = change.described()
        seen[change.function, said] += 1
        again = seen[change.function, said]
        found.append((f"{change.function}: {said}" + (f" #{again}" if again > 1 else ""), change))
    return found


def _of_body(owner: Any, field: str, function: str) -> Iterator[Change]:
    listed = getattr(owner, field)
    for at, statement in enumerate(listed):
        if isinstance(statement, UNTOUCHED):
            continue
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            inner = f"{function}.{statement.name}".lstrip(".")
            if isinstance(statement, ast.FunctionDef):
                if any(
                    isinstance(d, ast.Name) and d.id in ("abstractmethod", "overload") for d in statement.decorator_list
                ):
                    continue
                yield from _of_defaults(statement, inner)
            yield from _of_body(statement, "body", inner)
            continue
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            continue  # a docstring
        yield from _of_statement(owner, field, at, statement, function)
        for part in ("body", "orelse", "finalbody"):
            if isinstance(getattr(statement, part, None), list):
                yield from _of_body(statement, part, function)
        for case in [*getattr(statement, "cases", []), *getattr(statement, "handlers", [])]:
            yield from _of_body(case, "body", function)


def _of_defaults(statement: ast.FunctionDef, function: str) -> Iterator[Change]:
    for field in ("defaults", "kw_defaults"):
        for at, node in enumerate(getattr(statement.args, field)):
            if node is not None:
                for own in _of_expression(statement.args, field, at, node):
                    yield Change(*own, function, node.lineno, statement.args, default=True)


def _of_statement(owner: Any, field: str, at: int, statement: Any, function: str) -> Iterator[Change]:
    def change(*own: Any) -> Change:
        return Change(*own, function, statement.lineno, statement)

    whole = Change(owner, field, at, ast.copy_location(ast.Pass(), statement), function, statement.lineno, statement)
    if (
        isinstance(statement, ast.AugAssign | ast.Break | ast.Continue)
        or (isinstance(statement, ast.Expr) and not isinstance(statement.value, ast.Yield | ast.YieldFrom))
        or (isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Attribute | ast.Subscript))
    ):
        yield _Removed(**vars(whole))
    if isinstance(statement, ast.AugAssign):
        for kind in OPERATORS.get(type(statement.op), ()):
            yield change(statement, "op", None, kind())
    if isinstance(statement, ast.Return) and statement.value is not None and not _is_none(statement.value):
        yield change(statement, "value", None, ast.copy_location(ast.Constant(None), statement.value))
    if isinstance(statement, ast.If | ast.While) and not isinstance(statement.test, ast.Compare):
        yield change(statement, "test", None, _negated(statement.test))
    for part in ("value", "test", "iter", "subject"):
        node = getattr(statement, part, None)
        if isinstance(node, ast.expr):
            for own in _of_expression(statement, part, None, node):
                yield change(*own)
    if isinstance(statement, ast.Assign):
        for at_target, target in enumerate(statement.targets):
            if isinstance(target, ast.Subscript):
                for own in _of_expression(statement, "targets", at_target, target):
                    yield change(*own)


class _Removed(Change):
    """A statement that is left out."""

    def described(self) -> str:
        return f"⟦{_head(self.head)[:120]} → nothing⟧"


def _of_expression(owner: Any, field: str, at: int | None, node: Any) -> Iterator[tuple[Any, str, int | None, Any]]:
    """Yield where each change goes and what it puts there, for an expression and all that is in it."""
    place = (owner, field, at)

    def put(new: ast.AST) -> tuple[Any, str, int | None, Any]:
        return (*place, ast.fix_missing_locations(ast.copy_location(new, node)))

    if isinstance(node, ast.Constant):
        value = node.value
        if isinstance(value, bool):
            yield put(ast.Constant(not value))
        elif isinstance(value, int):
            yield put(ast.Constant(value + 1))
            yield put(ast.Constant(value - 1))
        elif isinstance(value, float):
            yield put(ast.Constant(2 * value if value else 1.0))
        elif isinstance(value, str) and value in SWAPS:
            yield put(ast.Constant(SWAPS[value]))
        return
    if isinstance(node, ast.Name | ast.Attribute):
        name = node.id if isinstance(node, ast.Name) else node.attr
        if name == "inf" and isinstance(node, ast.Attribute):
            yield put(ast.UnaryOp(ast.USub(), node))
        elif name in SWAPS and isinstance(node, ast.Attribute):
            yield put(ast.Attribute(node.value, SWAPS[name], node.ctx))
        elif name in SWAPS and isinstance(node.ctx, ast.Load) and name in ("min", "max", "any", "all", "bisect_left"):
            yield put(ast.Name(SWAPS[name], node.ctx))
    if isinstance(node, ast.BinOp | ast.BoolOp):
        for kind in OPERATORS.get(type(node.op), ()):
            yield node, "op", None, kind()
    if isinstance(node, ast.Compare):
        for i, op in enumerate(node.ops):
            for kind in OPERATORS.get(type(op), ()):
                yield node, "ops", i, kind()
    if (isinstance(node, ast.UnaryOp) and not isinstance(node.operand, ast.Constant | ast.Attribute)) or (
        isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub)
    ):
        yield put(node.operand)
    if isinstance(node, ast.IfExp) and not isinstance(node.test, ast.Compare):
        yield node, "test", None, _negated(node.test)
    if isinstance(node, ast.Call):
        for i, keyword in enumerate(node.keywords):
            if keyword.arg is not None and keyword.arg not in QUIET_ARGUMENTS:
                rest = [k for j, k in enumerate(node.keywords) if j != i]
                yield node, "keywords", None, rest
    if isinstance(node, ast.keyword) and node.arg in QUIET_ARGUMENTS:
        return
    if isinstance(node, ast.JoinedStr):
        for i, value in enumerate(node.values):
            if isinstance(value, ast.FormattedValue):
                if value.conversion == -1:
                    yield node, "values", i, ast.copy_location(ast.Constant(""), value)
                yield from _of_expression(value, "value", None, value.value)
        return
    if isinstance(node, ast.comprehension):
        yield from _of_expression(node, "iter", None, node.iter)
        for i, test in enumerate(node.ifs):
            if not isinstance(test, ast.Compare):
                yield node, "ifs", i, _negated(test)
            yield from _of_expression(node, "ifs", i, test)
        return
    if isinstance(node, ast.Lambda):
        yield from _of_expression(node, "body", None, node.body)
        return
    for name, value in ast.iter_fields(node):
        if isinstance(value, ast.expr | ast.comprehension | ast.keyword | ast.Slice):
            yield from _of_expression(node, name, None, value)
        elif isinstance(value, list):
            for i, one in enumerate(value):
                if isinstance(one, ast.expr | ast.comprehension | ast.keyword):
                    yield from _of_expression(node, name, i, one)


def _negated(test: ast.expr) -> ast.expr:
    return ast.copy_location(ast.UnaryOp(ast.Not(), test), test)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _head(node: ast.AST) -> str:
    """Return a statement as it is written, or the first line of one that has others inside."""
    if isinstance(node, ast.If | ast.While):
        return f"{type(node).__name__.lower()} {ast.unparse(node.test)}"
    if isinstance(node, ast.For):
        return f"for {ast.unparse(node.target)} in {ast.unparse(node.iter)}"
    return ast.unparse(node)
