"""Random small graphs of linear maps, as the text of specs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

from hypothesis import strategies as st

Shape = tuple[int, ...]
FACTORS = ["2", "0.5", "-1", "3/4", "(1 + 2)"]
PREFIXES = {"input": "x", "intermediate": "y", "output": "O"}
NUMBERS = ["0", "1", "-1", "2", "0.5"]


@dataclass
class Graph:
    """A spec that grows line by line."""

    draw: st.DrawFn
    shapes: dict[str, Shape] = field(default_factory=dict)
    variables: list[str] = field(default_factory=list)
    background: list[str] = field(default_factory=list)
    names: Iterator[int] = field(default_factory=lambda: count(1))

    def one(self, options: list[str]) -> str:
        return self.draw(st.sampled_from(options))

    def number(self) -> str:
        return self.one(NUMBERS)

    def literal(self, shape: Shape) -> str:
        """A public array that is not all zero."""
        if not shape:
            return self.one(FACTORS)
        rows = [self.literal(shape[1:]) if len(shape) > 1 else self.number() for _ in range(shape[0])]
        if shape == (1,):
            rows = [self.one(FACTORS)]
        return "[" + ", ".join(rows) + "]"

    def fresh(self, kind: str, shape: Shape, domain: str = "") -> str:
        name = f"{PREFIXES[kind]}{next(self.names)}"
        if kind != "output":
            self.shapes[name] = shape
        self.variables.append(f"{kind} {name}{f' in {domain}' if domain else ''}")
        return name

    def secret(self) -> tuple[str, Shape]:
        name = self.draw(st.sampled_from(sorted(self.shapes)))
        return name, self.shapes[name]

    def term(self) -> tuple[str, Shape]:
        """An expression in one of the variables so far."""
        name, shape = self.secret()
        if not shape:
            forms: list[tuple[str, Shape]] = [
                (f"{self.one(FACTORS)} * {name}", ()),
                (f"{name} / 4 - 1", ()),
                (f"[{name}, 2 * {name}]", (2,)),
                (f"{self.literal((2, 2))} * {name}", (2, 2)),
            ]
            return self.draw(st.sampled_from(forms))
        return self._of_vector(name, shape) if len(shape) == 1 else self._of_matrix(name, shape)

    def _of_vector(self, name: str, shape: Shape) -> tuple[str, Shape]:
        (k,) = shape
        rows = self.draw(st.integers(1, 3))
        at = self.draw(st.integers(1, k))
        by_matrix = (self.literal((rows, k)), (rows,))
        from_left = self.literal((k, rows))
        forms: list[tuple[str, Shape]] = [
            (f"{by_matrix[0]} @ {name}", by_matrix[1]),
            (f"{name} @ {from_left}", (rows,)),
            (f"{self.literal((k,))} @ {name}", ()),
            (f"{self.literal((k,))} * {name}", shape),
            (f"{self.one(FACTORS)} * {name}", shape),
            (f"-{name} / 2 + {self.literal((k,))}", shape),
            (f"{name}[{at}]", ()),
            (f"{name}'", shape),
            (f"sum({name})", ()),
            (f"mean({name})", ()),
            (f"total({name})", ()),
            (f"prefix_sums({name})", shape),
            (f"suffix_sums({name})", shape),
            (f"range_sums({name})", (k * (k + 1) // 2,)),
            (f"sum(i * {name}[i] for i in 1..{at})", ()),
            (f"mean({name}[i] + {name}[{at}] for i in 1..{k})", ()),
            (f"sum({name} * i for i in {{1, 3}})", shape),
            (f"[{name}[{at}], total({name}) / 2, 1]", (3,)),
            (f"[{name}, 2 * {name}]", (2, k)),
            (f"[1, 2] @ [{name}, {self.literal((k,))}]", shape),
            (f"diagonal({name})", (k, k)),
            (f"total(prefix_sums(suffix_sums({name})))", ()),
        ]
        if k > 1:
            forms.append((f"differences({name})", (k - 1,)))
        return self.draw(st.sampled_from(forms))

    def _of_matrix(self, name: str, shape: Shape) -> tuple[str, Shape]:
        p, q = shape
        rows = self.draw(st.integers(1, 3))
        i, j = self.draw(st.integers(1, p)), self.draw(st.integers(1, q))
        left, right = self.literal((rows, p)), self.literal((q, rows))
        forms: list[tuple[str, Shape]] = [
            (f"{left} @ {name}", (rows, q)),
            (f"{name} @ {right}", (p, rows)),
            (f"{left} @ {name} @ {right}", (rows, rows)),
            (f"{name} @ {self.literal((q,))}", (p,)),
            (f"{self.literal((p,))} @ {name}", (q,)),
            (f"({name} @ {right})'", (rows, p)),
            (f"{name}'", (q, p)),
            (f"{name}[{i}, {j}]", ()),
            (f"{name}[{i}]", (q,)),
            (f"{name}'[{j}]", (p,)),
            (f"total({name})", ()),
            (f"sum({name})", (q,)),
            (f"mean({name})", (q,)),
            (f"prefix_sums({name}[{i}])", (q,)),
            (f"sum({name}[{i}, j] * j for j in 1..{q})", ()),
            (f"sum(sum({name}[i, j] for j in 1..{q}) for i in 1..{p})", ()),
            (f"{self.literal(shape)} * {name} - {self.literal(shape)}", shape),
            (f"{name} / 3", shape),
        ]
        return self.draw(st.sampled_from(forms))

    def node(self) -> None:
        """One more intermediate: a term, or the sum of terms of one shape."""
        text, shape = self.term()
        other, same = self.secret()
        if same == shape and self.draw(st.booleans()):
            text = self.one([f"{text} + {other}", f"{other} - ({text})"])
        name = self.fresh("intermediate", shape)
        self.background.append(f"{name} = {text}")


DOMAINS: list[tuple[str, Shape]] = [
    ("[0, 1]", ()),
    ("[0, 1]^1", (1,)),
    ("[-1, 1]^3", (3,)),
    ("[0, 2]^4", (4,)),
    ("[0, 1]^(2, 2)", (2, 2)),
    ("[0, 1]^(3, 2)", (3, 2)),
    ("(0..5)^2", (2,)),
]


@st.composite
def specs(draw: st.DrawFn, outputs: int = 2) -> str:
    """A spec with one or two inputs, up to five computed values, and free outputs that the loss compares with some."""
    graph = Graph(draw)
    for _ in range(draw(st.integers(1, 2))):
        domain, shape = draw(st.sampled_from(DOMAINS))
        graph.fresh("input", shape, domain)
    inputs = list(graph.shapes)
    for _ in range(draw(st.integers(1, 5))):
        graph.node()
    losses, names = [], []
    for _ in range(draw(st.integers(1, outputs))):
        name, shape = draw(st.sampled_from(sorted(graph.shapes.items())))
        out = graph.fresh("output", shape)
        names.append(out)
        losses.append(_loss(draw, out, name, shape))
    wrt = ", ".join(inputs) if len(inputs) == 1 else f"({', '.join(inputs)})"
    seen = names[0] if len(names) == 1 else f"({', '.join(names)})"
    return "\n".join(
        [
            "variables:",
            *graph.variables,
            "background:",
            *graph.background,
            "loss: " + " + ".join(losses),
            f"privacy: {seen} is 1-GDP wrt {wrt}, replacing one entry",
        ]
    )


def _loss(draw: st.DrawFn, out: str, name: str, shape: Shape) -> str:
    weight = draw(st.sampled_from(["", "2 * ", "1/4 * "]))
    if not shape:
        return f"{weight}E[ ({out} - {name})^2 ]"
    forms = [f"E[ ||{out} - {name}||^2 ]"]
    if len(shape) == 1:
        k = shape[0]
        forms += [
            f"sum(j * E[ ({out}[j] - {name}[j])^2 ] for j in 1..{k})",
            f"mean(E[ |{out}[j] - {name}[j]|^2 ] for j in 1..{k}) / 3",
            f"E[ sum(({out} - {name})^2) ]",
            f"mean(E[ ({name} - {out})^2 ])",
        ]
    else:
        forms += [f"E[ sum(||{out}[i] - {name}[i]||^2 for i in 1..{shape[0]}) ]"]
    return weight + draw(st.sampled_from(forms))
