"""The mutants of a module, one change of one expression each, for `scripts/mutate.py`."""

from __future__ import annotations

import ast
import difflib
import hashlib
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

# Keyword arguments that change no result: guards against mistakes, default encodings, prose, looks,
# and the sizes of figures at the scales of `make reproduce`.
UNSEEN = set(
    "strict stacklevel timeout encoding help caption paper quick tiny alpha capsize color colors "
    "c cmap edgecolor facecolor fontsize figsize "
    "linewidth linewidths linestyle lw ls marker markersize ms s zorder pad labelpad rotation loc "
    "bbox_inches dpi frameon padding handlelength width height margin sizing_mode min_width "
    "min_height "
    "max_width styles stylesheets css_classes align daemon".split()
)
AXES = {"axis", "axes", "in_axes", "out_axes", "axis1", "axis2", "source", "destination"}
# Calls whose arguments are not swapped: nothing would change, or nothing would run.
SYMMETRIC = {"min", "max", "minimum", "maximum", "hypot", "add", "multiply", "gcd", "isinstance"}
SYMMETRIC |= {"issubclass", "allclose", "array_equal", "logical_and", "logical_or", "hasattr"}
# Calls that place text and panels.
LOOKS = {"text", "annotate", "legend", "subplots_adjust", "tight_layout", "savefig", "add_axes"}
LOOKS |= {"subplots", "GridSpec", "add_gridspec", "tick_params", "set_visible"}
# Calls that remain valid with one positional argument less.
VARIADIC = {"min", "max", "range", "get", "getattr", "pop", "round", "slice", "clip", "next"}


@dataclass(frozen=True)
class Mutant:
    """One change: `source[start:end]` of a module becomes `new`."""

    module: str  # relative to the package
    function: str
    code: str  # the line on which it begins
    line: int
    kind: str
    start: int
    end: int
    old: str
    new: str
    occurrence: int = 0

    @property
    def id(self) -> str:
        """A name that survives edits of other lines."""
        parts = (self.module, self.function, self.code, self.old, self.new, self.occurrence)
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]

    @property
    def room(self) -> str:
        """The folder of the module, or the module itself where it is in none."""
        return Path(self.module).parts[0].removesuffix(".py")

    def apply(self, source: bytes) -> bytes:
        """The module with the change."""
        return source[: self.start] + self.new.encode() + source[self.end :]

    def is_valid(self, source: bytes) -> bool:
        """Whether the result is a program, and another one."""
        try:
            return ast.dump(ast.parse(self.apply(source))) != ast.dump(ast.parse(source))
        except SyntaxError:
            return False

    def diff(self, source: bytes) -> str:
        """The changed lines."""
        before, after = source.decode().splitlines(), self.apply(source).decode().splitlines()
        return "\n".join(list(difflib.unified_diff(before, after, lineterm="", n=0))[3:])


def is_text(node: ast.AST) -> bool:
    """Whether an expression is a literal text."""
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))
    )


class _Finder(ast.NodeVisitor):
    """All mutants of one module."""

    FLIPS = {
        ast.Lt: ("<", ["<=", ">"]),
        ast.LtE: ("<=", ["<", ">"]),
        ast.Gt: (">", [">=", "<"]),
        ast.GtE: (">=", [">", "<"]),
        ast.Eq: ("==", ["!="]),
        ast.NotEq: ("!=", ["=="]),
        ast.Is: ("is", ["is not"]),
        ast.IsNot: ("is not", ["is"]),
        ast.In: ("in", ["not in"]),
        ast.NotIn: ("not in", ["in"]),
    }
    ARITHMETIC = {
        ast.Add: ("+", "-", "sign"),
        ast.Sub: ("-", "+", "sign"),
        ast.Mult: ("*", "/", "factor"),
        ast.Div: ("/", "*", "factor"),
        ast.Pow: ("**", "*", "factor"),
        ast.FloorDiv: ("//", "*", "factor"),
    }

    def __init__(self, module: str, source: bytes):
        """Parse and visit `source`."""
        self.module, self.source = module, source
        self.starts = [0]
        for line in source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.scope: list[str] = []
        self.mutants: list[Mutant] = []
        self.seen: Counter = Counter()
        self.inside_arithmetic = False
        self.visit(ast.parse(source))

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Where a node is, in bytes."""
        start = self.starts[node.lineno - 1] + node.col_offset
        return start, self.starts[node.end_lineno - 1] + node.end_col_offset

    def text(self, node: ast.AST) -> str:
        """A node as it was written."""
        start, end = self.span(node)
        return self.source[start:end].decode()

    def add(self, kind: str, node: ast.AST, new: str, span: tuple[int, int] | None = None) -> None:
        """Note a change."""
        start, end = span or self.span(node)
        old = self.source[start:end].decode()
        function, line = ".".join(self.scope), self.source[:start].count(b"\n")
        code = self.source[self.starts[line] : self.starts[line + 1]].decode().strip()
        context = (function, code, old, new)
        mutant = Mutant(
            self.module,
            function,
            code,
            line + 1,
            kind,
            start,
            end,
            old,
            new,
            self.seen[context],
        )
        self.seen[context] += 1
        self.mutants.append(mutant)

    def replace_operator(self, kind, node, left, right, old: str, new: str) -> None:
        """Replace an operator between two operands."""
        start, end = self.span(left)[1], self.span(right)[0]
        gap = self.source[start:end].decode()
        operator = re.search(rf"(?<![\w*/<>=!]){re.escape(old)}(?![\w*/=])", gap)
        if operator:
            at = start + len(gap[: operator.start()].encode())
            self.add(kind, node, new, (at, at + len(old)))

    def visit_scope(self, node) -> None:
        if node.name == "__repr__":
            return
        self.scope.append(node.name)
        # Of a function: decorators, defaults and body, not annotations.
        for child in node.decorator_list:
            self.visit(child)
        if not isinstance(node, ast.ClassDef):
            self.visit_defaults(node.args)
        for child in node.body:
            self.visit(child)
        self.scope.pop()

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_scope

    def visit_defaults(self, arguments: ast.arguments) -> None:
        for default in [*arguments.defaults, *arguments.kw_defaults]:
            if default is not None:
                self.visit(default)

    def visit_Dict(self, node) -> None:
        for key, value in zip(node.keys, node.values, strict=True):
            if not (isinstance(key, ast.Constant) and key.value in UNSEEN):
                self.visit(value)

    def visit_Lambda(self, node) -> None:
        self.visit_defaults(node.args)
        self.visit(node.body)

    def visit_AnnAssign(self, node) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Assign(self, node) -> None:
        if not any(
            isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets
        ):
            self.generic_visit(node)

    def visit_JoinedStr(self, node) -> None:
        pass  # Positions inside are known from Python 3.12 on only.

    def visit_If(self, node) -> None:
        if self.text(node.test) != "TYPE_CHECKING":
            self.negate(node.test)
            self.generic_visit(node)

    def visit_While(self, node) -> None:
        self.negate(node.test)
        self.generic_visit(node)

    visit_IfExp = visit_While

    def visit_comprehension(self, node) -> None:
        for test in node.ifs:
            self.negate(test)
        self.generic_visit(node)

    def negate(self, test: ast.AST) -> None:
        if not isinstance(test, (ast.Compare, ast.UnaryOp, ast.Constant)):
            self.add("comparison", test, f"(not ({self.text(test)}))")

    def visit_BinOp(self, node) -> None:
        outermost, self.inside_arithmetic = not self.inside_arithmetic, True
        literals = (ast.List, ast.Tuple, ast.ListComp, ast.Dict)
        plain = not any(
            isinstance(side, literals) or is_text(side) for side in (node.left, node.right)
        )
        if plain and type(node.op) in self.ARITHMETIC:
            old, new, kind = self.ARITHMETIC[type(node.op)]
            self.replace_operator(kind, node, node.left, node.right, old, new)
            if outermost and kind == "factor":
                self.add("factor", node, f"(2 * ({self.text(node)}))")
        elif isinstance(node.op, ast.MatMult):
            self.add("factor", node, f"(2 * ({self.text(node)}))")
            self.add("swap", node, f"(({self.text(node.right)}) @ ({self.text(node.left)}))")
        self.visit(node.left)
        self.visit(node.right)
        self.inside_arithmetic = not outermost

    def visit_AugAssign(self, node) -> None:
        literals = (ast.JoinedStr, ast.List, ast.Tuple, ast.ListComp)
        if type(node.op) in self.ARITHMETIC and not isinstance(node.value, literals):
            old, new, kind = self.ARITHMETIC[type(node.op)]
            start, end = self.span(node.target)[1], self.span(node.value)[0]
            gap = self.source[start:end].decode()
            self.add(kind, node, gap.replace(f"{old}=", f"{new}="), (start, end))
        self.generic_visit(node)

    def visit_UnaryOp(self, node) -> None:
        if isinstance(node.op, ast.USub):
            self.add("sign", node, f"({self.text(node.operand)})")
        elif isinstance(node.op, ast.Not):
            self.add("comparison", node, f"bool({self.text(node.operand)})")
        self.generic_visit(node)

    def visit_Compare(self, node) -> None:
        sides = [node.left, *node.comparators]
        for operator, left, right in zip(node.ops, sides[:-1], sides[1:], strict=True):
            old, others = self.FLIPS[type(operator)]
            for new in others:
                self.replace_operator("comparison", node, left, right, old, new)
        self.generic_visit(node)

    def visit_BoolOp(self, node) -> None:
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values[:-1], node.values[1:], strict=True):
            self.replace_operator("comparison", node, left, right, old, new)
        self.generic_visit(node)

    def visit_Constant(self, node) -> None:
        value = node.value
        if isinstance(value, bool):
            self.add("comparison", node, str(not value))
        elif isinstance(value, int):
            self.add("off by one", node, str(value + 1))
        elif isinstance(value, float) and value:
            self.add("factor", node, repr(2 * value))

    def visit_Attribute(self, node) -> None:
        if node.attr in ("T", "mT"):
            self.add("axis", node, self.text(node.value))
        self.generic_visit(node)

    def visit_Subscript(self, node) -> None:
        index = node.slice
        if isinstance(index, ast.Tuple) and any(isinstance(i, ast.Slice) for i in index.elts):
            self.add("axis", index, ", ".join(self.text(i) for i in reversed(index.elts)))
        self.generic_visit(node)

    def visit_Call(self, node) -> None:
        outer, self.inside_arithmetic = self.inside_arithmetic, False
        name = self.text(node.func).rpartition(".")[2]
        if name not in LOOKS | {"cast", "TypeVar"}:
            plain = [a for a in node.args if not isinstance(a, ast.Starred)]
            if len(plain) == len(node.args):
                for left, right in zip(plain[:-1], plain[1:], strict=True):
                    if name in SYMMETRIC or is_text(left) != is_text(right):
                        continue  # a text for a number would not run
                    span = self.span(left)[0], self.span(right)[1]
                    between = self.source[self.span(left)[1] : self.span(right)[0]].decode()
                    self.add("swap", node, self.text(right) + between + self.text(left), span)
                if len(plain) > 1 and name in VARIADIC:
                    self.add(
                        "dropped", node, "", (self.span(plain[-2])[1], self.span(plain[-1])[1])
                    )
            for keyword in node.keywords:
                if keyword.arg is not None and keyword.arg not in UNSEEN:
                    self.drop_keyword(node, keyword)
            self.visit(node.func)
            for argument in plain:
                self.visit(argument)
            for keyword in node.keywords:
                self.visit_keyword_value(keyword)
        self.inside_arithmetic = outer

    def drop_keyword(self, call: ast.Call, keyword: ast.keyword) -> None:
        start, end = self.span(keyword)
        following = re.match(rb"\s*,\s*", self.source[end:])
        self.add("dropped", call, "", (start, end + (following.end() if following else 0)))

    def visit_keyword_value(self, keyword: ast.keyword) -> None:
        if keyword.arg in UNSEEN:
            return
        try:
            value = ast.literal_eval(keyword.value)
        except (ValueError, TypeError):
            value = None
        if keyword.arg in AXES and type(value) is int:
            self.add("axis", keyword.value, "-1" if value == 0 else "0")
        else:
            self.visit(keyword.value)


def find_mutants(module: str, source: bytes) -> list[Mutant]:
    """All mutants of a module, in the order of its lines."""
    return _Finder(module, source).mutants
