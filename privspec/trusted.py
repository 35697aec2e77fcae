"""What one plan's privacy rests on: the functions of the kernel that its verdict entered, and the notes behind it.

The kernel judges the plan once more while the interpreter says which functions it enters. What it enters after its last
statement about privacy can only refuse the plan, so that it does not have to be believed; of each file that is entered,
what stands outside of functions does.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import privspec.kernel
from privspec.core.records import dataclass
from privspec.kernel import judge
from privspec.kernel.core.problem import PlanUnderCheck

KERNEL = Path(privspec.kernel.__file__).parent
NOTES = "noise/notes"
WORTH = frozenset(
    (
        "accuracy",
        "alternatives",
        "bias",
        "bound",
        "choices",
        "composition",
        "conditions",
        "fairness",
        "loss",
        "unbiased",
    )
)
"""Claims about what a mechanism is worth, on which no privacy rests; whatever else is claimed counts as privacy."""
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


@dataclass(frozen=True, slots=True)
class Function:
    """A function or method with its first and last line, and its tokens without comments and docstrings."""

    name: str
    first: int
    last: int
    tokens: int


@dataclass(frozen=True, slots=True)
class TrustedFile:
    """A file of the kernel: the functions that were entered, in that order, and the tokens outside of all functions."""

    path: str
    entered: tuple[Function, ...]
    outside: int
    imports: tuple[str, ...]

    @property
    def tokens(self) -> int:
        """What there is to read."""
        return self.outside + sum(one.tokens for one in self.entered)


@dataclass(frozen=True, slots=True)
class Trusted:
    """What a plan's privacy rests on, in reading order: notes by their names, then files."""

    notes: Mapping[str, str]
    files: tuple[TrustedFile, ...]

    @property
    def tokens(self) -> int:
        """What there is to read of code."""
        return sum(one.tokens for one in self.files)

    @property
    def imports(self) -> tuple[str, ...]:
        """Modules of others that the files import."""
        return tuple(sorted({name for one in self.files for name in one.imports}))

    def text(self) -> str:
        """What `privspec verify --trusted` prints."""
        functions = [one for file in self.files for one in file.entered]
        inside = sum(one.tokens for one in functions)
        proofs = "1 proof" if len(self.notes) == 1 else f"{len(self.notes)} proofs"
        lines = [
            "what this plan's privacy rests on, measured while the kernel derived it again:",
            f"{proofs}, and {self.tokens:,} tokens of code in {len(self.files)} files: "
            f"{inside:,} in {len(functions)} functions, {self.tokens - inside:,} outside of functions",
            "(tokens without comments, docstrings and imports)",
            "",
            f"proofs, in privspec/{NOTES}",
            *(f"  {name + '.md':<28}{title}" for name, title in self.notes.items()),
        ]
        for one in self.files:
            lines += ["", f"{one.path}: {one.tokens:,} tokens"]
            lines.append(f"  {'':<12}{one.outside:>6}  outside of functions")
            lines += [f"  {f'{f.first}-{f.last}':<12}{f.tokens:>6}  {f.name}" for f in one.entered]
        lines += ["", f"and Python with the modules {', '.join(self.imports)}"]
        return "\n".join(lines) + "\n"

    def document(self) -> dict[str, Any]:
        """The same as JSON."""
        listed = [
            {
                "path": one.path,
                "tokens": one.tokens,
                "outside": one.outside,
                "functions": [{"name": f.name, "lines": [f.first, f.last], "tokens": f.tokens} for f in one.entered],
            }
            for one in self.files
        ]
        return {"tokens": self.tokens, "notes": list(self.notes), "files": listed, "imports": list(self.imports)}


def trusted(text: str, notes: tuple[str, ...]) -> Trusted:
    """What the privacy of a verified plan rests on.

    Args: text, the plan's JSON; notes, those that its guarantees name, in order.
    """
    judge(text, worth=False)  # so that all modules are loaded: what they import and define is listed with their files
    _forget()
    entered = _entered(text)
    by_file: dict[str, list[CodeType]] = {}
    for code in entered:
        by_file.setdefault(code.co_filename, []).append(code)
    found = tuple(_file(Path(name), codes) for name, codes in by_file.items())
    return Trusted({name: _title(name) for name in dict.fromkeys(notes)}, found)


def _forget() -> None:
    """Drop what functions of the kernel have kept of earlier calls, which they would not be entered for again."""
    for name, module in list(sys.modules.items()):
        if name.startswith("privspec.kernel"):
            for value in list(vars(module).values()):
                if hasattr(value, "cache_clear"):
                    value.cache_clear()


def _entered(text: str) -> list[CodeType]:
    """The kernel's own code that is entered until its last statement about privacy, in order."""
    inside, says = f"{KERNEL}/", PlanUnderCheck.says.__code__
    entered: dict[CodeType, None] = {}
    last = 0

    def called(frame: FrameType, event: str, _: object) -> None:
        nonlocal last
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(inside):
            entered.setdefault(code)
            if code is says and frame.f_locals["name"] not in WORTH:
                last = len(entered)

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        judge(text, worth=False)
    finally:
        sys.setprofile(before)
    return list(entered)[:last]


def _file(path: Path, entered: list[CodeType]) -> TrustedFile:
    source = path.read_text("utf-8")
    tree = ast.parse(source)
    by_line = _tokens_by_line(source, tree)
    functions = [_function(name, node, by_line) for name, node in _functions(tree)]
    outside = sum(by_line.values()) - sum(one.tokens for one in functions)
    found: dict[Function, None] = {}
    for code in entered:  # a comprehension or lambda is part of the function that it stands in
        found.update(dict.fromkeys(one for one in functions if one.first <= code.co_firstlineno <= one.last))
    shown = "/".join(("privspec", "kernel", *path.relative_to(KERNEL).parts))
    return TrustedFile(shown, tuple(found), outside, _imports(tree))


def _functions(tree: ast.AST, inside: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    """Functions and methods with their names; those inside a function are part of it."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            yield f"{inside}{node.name}", node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{inside}{node.name}.")
        elif not isinstance(node, ast.expr):
            yield from _functions(node, inside)


def _function(name: str, node: ast.FunctionDef, by_line: Mapping[int, int]) -> Function:
    first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
    last = node.end_lineno or node.lineno
    return Function(name, first, last, sum(by_line.get(line, 0) for line in range(first, last + 1)))


def _tokens_by_line(source: str, tree: ast.AST) -> dict[int, int]:
    """How many tokens begin on each line, without comments, docstrings and imports."""
    left_out: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom) or (isinstance(node, ast.Expr) and _is_text(node.value)):
            left_out.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    found: dict[int, int] = {}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in LAYOUT and token.start[0] not in left_out:
            found[token.start[0]] = found.get(token.start[0], 0) + 1
    return found


def _is_text(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _imports(tree: ast.AST) -> tuple[str, ...]:
    """Modules of others that a file imports."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return tuple(sorted(names - {"__future__"} - {name for name in names if name.startswith("privspec")}))


def _title(note: str) -> str:
    """The heading of a note."""
    text = files("privspec").joinpath(NOTES, f"{note}.md").read_text("utf-8")
    return text.partition("\n")[0].removeprefix("# ")
