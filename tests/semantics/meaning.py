"""What a spec means, written from the language's reference alone: every world of a tiny data set is listed.

A world gives every input a value: a number, a word, or a tuple of values; one that parties hold is the tuple of what
each of them holds, a table the sorted tuple of its records; None stands for a unit that is not there. Nothing here is
fast, and nothing knows how a spec is compiled. Intervals and balls stand for their extreme points.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property, reduce
from itertools import chain, combinations, combinations_with_replacement, permutations, product
from math import prod
from typing import Any

from privspec.core.spans import Source
from privspec.language import syntax
from privspec.language.parser import parse
from privspec.language.syntax import VariableKind
from privspec.language.walk import every, items_of

World = Mapping[str, Any]
Law = Mapping[Any, Fraction]
"""Of the joint value of all outputs, in the order in which they are declared."""
Laws = Callable[[World], Law]
Mixture = list[tuple[Fraction, Law]]
MOST_RECORDS = 2
"""How many records a table has at most, where their number is secret."""
FAR = 10**6
COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {"<": operator.lt, ">=": operator.ge, ">": operator.gt}
ZERO = Fraction(0)
ARITHMETIC: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "^": lambda a, b: a ** int(b),
}


def flat(value: Any) -> list[Any]:
    """The entries of a value in row-major order."""
    return [entry for part in value for entry in flat(part)] if isinstance(value, tuple) else [value]


def shaped(entries: Sequence[Any], extents: Sequence[int]) -> Any:
    """Entries in row-major order as a value."""
    if not extents:
        return entries[0]
    step = len(entries) // extents[0]
    return tuple(shaped(entries[i : i + step], extents[1:]) for i in range(0, len(entries), step))


def entrywise(apply: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    """A rule for numbers on two values of one shape; a number goes with every entry."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return tuple(entrywise(apply, x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, tuple):
        return tuple(entrywise(apply, x, b) for x in a)
    return tuple(entrywise(apply, a, y) for y in b) if isinstance(b, tuple) else apply(a, b)


def added(values: Sequence[Any]) -> Any:
    return reduce(lambda a, b: entrywise(operator.add, a, b), values)


def times(a: Any, b: Any) -> Any:
    if isinstance(a[0], tuple):
        return tuple(times(row, b) for row in a)
    if isinstance(b[0], tuple):
        return tuple(times(a, column) for column in zip(*b, strict=True))
    return added([x * y for x, y in zip(a, b, strict=True)])


def variation(a: Law, b: Law) -> Fraction:
    return sum((max(a.get(k, ZERO) - b.get(k, ZERO), ZERO) for k in {*a, *b}), ZERO)


def gathered(keys: Sequence[Any], law: Sequence[Fraction]) -> dict[Any, Fraction]:
    found: dict[Any, Fraction] = {}
    for key, p in zip(keys, law, strict=True):
        found[key] = found.get(key, ZERO) + p
    return found


class Meaning:
    """A spec, to be asked what it means."""

    def __init__(self, text: str) -> None:
        self.spec = parse(Source("spec.priv", text))
        self.variables = {variable.target.name: variable for variable in self.spec.variables}
        self.inputs = [name for name, one in self.variables.items() if one.kind is VariableKind.INPUT]
        self.outputs = [name for name, one in self.variables.items() if one.kind is VariableKind.OUTPUT]

    @cached_property
    def public(self) -> dict[str, Any]:
        return {one.target.name: self.value(one.value, {}) for one in self.spec.parameters}

    def party(self, name: str) -> str | None:
        return next((index.id for index in self.variables[name].target.indices), None)

    def values(self, domain: syntax.Domain) -> list[Any]:
        match domain:
            case syntax.RangeOf():
                low, high = (int(self.value(end, self.public)) for end in (domain.low, domain.high))
                return [Fraction(k) for k in range(low, high + 1)]
            case syntax.Interval():
                return sorted({self.value(domain.low, self.public), self.value(domain.high, self.public)})
            case syntax.SetOf(items=items):
                return [item.id if isinstance(item, syntax.Name) else self.value(item, self.public) for item in items]
            case syntax.RankingOf(alternatives=alternatives):
                return list(permutations(self.values(alternatives)))
            case syntax.Power(base=base):
                extents = [int(self.value(e, self.public)) for e in domain.exponents]
                if self.columns(domain):
                    return list(combinations_with_replacement(self.values(base), prod(extents)))
                return reduce(lambda inner, n: list(product(inner, repeat=n)), reversed(extents), self.values(base))
            case syntax.Call(function="grid"):
                low, high, step = (self.value(end, self.public) for end in domain.arguments)
                return [low + k * step for k in range(int((high - low) / step) + 1)]
            case syntax.Call(function="l1_ball" | "l2_ball"):
                radius, d = (self.value(end, self.public) for end in domain.arguments)
                axes = range(int(d))
                return [tuple(sign * radius * (i == j) for j in axes) for i in axes for sign in (1, -1)]
            case syntax.Call(function="table"):
                return list(product(*(self.values(values) for _, values in self.columns(domain))))
        raise NotImplementedError(str(domain))

    def columns(self, domain: syntax.Domain) -> list[tuple[str, syntax.Domain]]:
        base = domain.base if isinstance(domain, syntax.Power) else domain
        table = isinstance(base, syntax.Call) and base.function == "table"
        return [(item.name, item.domain) for item in base.arguments] if table else []

    def column(self, table: str, name: str, record: Any) -> Any:
        """What a record has in a column, which it holds or which follows from what it holds."""
        names = [column for column, _ in self.columns(self.variables[table].domain)]
        if name in names:
            return record[names.index(name)]
        expr = self.follows(table, name)
        if isinstance(expr, syntax.Condition):
            left, right = (self.value(side, {table: record}) for side in (expr.left, expr.right))
            return "yes" if COMPARED[expr.op](left, right) else "no"
        if isinstance(expr, syntax.Call) and expr.function == "cut":
            value, points = (self.value(one, {table: record}) for one in expr.arguments)
            base = self.variables[table].domain
            each = self.values(base.base if isinstance(base, syntax.Power) else base)
            most = max(self.value(expr.arguments[0], {table: other}) for other in each)
            # the place of its label; a last number that closes the range begins no class
            return Fraction(sum(value >= point for point in points if point < most or points[-1] > most))
        if isinstance(expr, syntax.Call) and expr.function == "lookup":
            of, *sets = expr.arguments
            value = self.value(of, {table: record})
            return next(one.name for one in sets if value in {item.id for item in items_of(one.value)})
        return self.value(expr, {table: record})

    def follows(self, table: str, name: str) -> Any:
        left = syntax.Attribute(syntax.Name(table), name)
        return next(line.right for line in self.spec.background if line.left == left)

    def order(self, table: str) -> list[str]:
        """The columns of a table, those that follow from others last."""
        lefts = [line.left for line in self.spec.background if isinstance(line.left, syntax.Attribute)]
        own = [name for name, _ in self.columns(self.variables[table].domain)]
        return own + [left.name for left in lefts if left.base == syntax.Name(table)]

    def listed(self, table: str, name: str) -> list[Any]:
        """The values of a column in order, those that no record has among them where they are whole numbers."""
        domain = self.variables[table].domain
        known = dict(self.columns(domain))
        if name in known:
            return self.values(known[name])
        base = domain.base if isinstance(domain, syntax.Power) else domain
        found = {self.column(table, name, record) for record in self.values(base)}
        if isinstance(self.follows(table, name), syntax.Condition):
            return ["no", "yes"]
        if isinstance(found_by := self.follows(table, name), syntax.Call) and found_by.function == "lookup":
            return [one.name for one in found_by.arguments[1:]]
        return [Fraction(k) for k in range(int(min(found)), int(max(found)) + 1)]

    def held(self, name: str, adding: bool) -> list[Any]:
        """Every value of an input; where units come and go, also those that lack some."""
        domain, party, absent = self.variables[name].domain, self.party(name), [None] * adding
        base = domain.base if isinstance(domain, syntax.Power) else domain
        if party:
            return list(product([*self.values(domain), *absent], repeat=len(self.people(party))))
        if self.columns(domain) and (adding or domain is base):
            sizes = range(MOST_RECORDS + 1)
            return [some for n in sizes for some in combinations_with_replacement(self.values(base), n)]
        if isinstance(domain, syntax.Power) and adding:
            first, rest = domain.exponents[0], domain.exponents[1:]
            inner = self.values(syntax.Power(base, rest) if rest else base)
            return list(product([*inner, None], repeat=int(self.value(first, self.public))))
        return [*self.values(domain), *absent]

    def worlds(self, adding: bool = False) -> list[World]:
        spaces = [self.held(name, adding) for name in self.inputs]
        every = (dict(zip(self.inputs, values, strict=True)) for values in product(*spaces))
        return [world for world in every if all(self.true(fact, world) for fact in self.facts)]

    @cached_property
    def facts(self) -> list[syntax.Relation]:
        """What is said of all data: comparisons that are about no average, and define nothing."""
        lines = (line for line in self.spec.background if isinstance(line, syntax.Relation) and line.op != "~")
        plain = (line for line in lines if not any(every(line.left, syntax.Over)))
        return [line for line in plain if line.op != "=" or isinstance(line.left, syntax.Call | syntax.Binary)]

    def true(self, fact: syntax.Relation, world: World) -> bool:
        running = [(item.name, item.domain) for item in getattr(fact, "running", ())]
        sides = [flat(self.terms(side, running, world)) for side in (fact.left, fact.right)]
        width = max(map(len, sides))
        one, other = (side * (width // len(side)) for side in sides)
        holds = {"=": operator.eq, "<=": operator.le, ">=": operator.ge}[fact.op]
        return all(map(holds, one, other))

    def value(self, expr: syntax.Node, at: World) -> Any:
        """The value of an expression where some names have values; norms are taken squared only, so all is exact."""
        match expr:
            case syntax.Number():
                return expr.value
            case syntax.Name(id=name):
                return self.named(name, at)
            case syntax.Vector(items=items):
                return tuple(self.value(item, at) for item in items)
            case syntax.Negate(operand=operand):
                return -self.value(operand, at)
            case syntax.Absolute(operand=operand):
                return abs(self.value(operand, at))
            case syntax.Binary(op="^", left=syntax.Norm(order="2", operand=operand)):
                return sum((entry**2 for entry in flat(self.value(operand, at))), ZERO)
            case syntax.Binary(op="@"):
                return times(self.value(expr.left, at), self.value(expr.right, at))
            case syntax.Binary(op=op):
                return entrywise(ARITHMETIC[op], self.value(expr.left, at), self.value(expr.right, at))
            case syntax.Attribute(base=syntax.Name(id=table), name=name):
                return self.column(table, name, at[table])
            case syntax.Index(base=base, indices=indices):
                return self.entries(base, indices, at)
            case syntax.Slice(base=base, places=places):
                return self.entries(base, places, at)
            case syntax.Each(terms=terms):
                return self.terms(terms.body, [(terms.variable, terms.domain)], at)
            case syntax.Call():
                return self.call(expr, at)
        raise NotImplementedError(str(expr))

    def named(self, name: str, at: World) -> Any:
        """The value of a name: given, public, or computed; what is not there counts as zero."""
        if name not in at:
            return self.public[name] if name in self.public else self.computed(name, at)
        found = at[name]
        if found is None:
            return entrywise(operator.mul, self.held(name, False)[0], 0)
        if name in self.inputs and isinstance(found, tuple) and None in found:
            zero = entrywise(operator.mul, self.held(name, False)[0][0], 0)
            return tuple(zero if part is None else part for part in found)
        return found

    def terms(self, body: syntax.Node, running: Sequence[tuple[str, Any]], at: World) -> Any:
        """What a body is for all that its letters run through, the first of them outermost."""
        if not running:
            return self.value(body, at)
        (letter, domain), *inner = running
        places = self.people(letter) if domain is None else self.run(domain, at)
        return tuple(self.terms(body, inner, {**at, letter: place}) for place in places)

    def run(self, domain: syntax.Domain, at: World) -> list[Any]:
        if isinstance(domain, syntax.Name):
            return self.people(domain.id)
        low, high = (int(self.value(end, at)) for end in (domain.low, domain.high))
        return [Fraction(k) for k in range(low, high + 1)]

    def indexed(self, name: str) -> syntax.Indexed | None:
        lines = (line for line in self.spec.background if isinstance(line, syntax.Indexed))
        return next((line for line in lines if line.left.base == syntax.Name(name)), None)

    def entries(self, base: syntax.Node, places: Sequence[Any], at: World) -> Any:
        """Entries by number, those of an indexed definition as it numbers them; all of them where a range stands."""
        line = self.indexed(base.id) if isinstance(base, syntax.Name) else None
        firsts = [int(self.run(item.domain, at)[0]) for item in line.running] if line else []

        def taken(found: Any, left: Sequence[Any], starts: Sequence[int]) -> Any:
            if not left:
                return found
            first = starts[0] if starts else 1
            if isinstance(left[0], syntax.RangeOf):
                return tuple(taken(found[int(k) - first], left[1:], starts[1:]) for k in self.run(left[0], at))
            return taken(found[self.place(left[0], at) - first], left[1:], starts[1:])

        return taken(self.value(base, at), places, firsts)

    def place(self, index: syntax.Node, at: World) -> int:
        """An index as a number: a word is as manieth as in the set that it is from."""
        found = self.value(index, at)
        if not isinstance(found, str):
            return int(found)
        name = index.base.id if isinstance(index, syntax.Index) else index.id
        domain = self.variables[name].domain
        return self.values(domain.base if isinstance(domain, syntax.Power) else domain).index(found) + 1

    def computed(self, name: str, at: World) -> Any:
        lines = [line for line in self.spec.background if isinstance(line, syntax.Relation) and line.op == "="]
        if line := self.indexed(name):
            return self.terms(line.right, [(item.name, item.domain) for item in line.running], at)
        party = self.party(name)
        if party:
            body = next(
                line.right for line in lines if line.left == syntax.Index(syntax.Name(name), (syntax.Name(party),))
            )
            return tuple(self.value(body, {**at, party: one}) for one in self.people(party))
        return self.value(next(line.right for line in lines if line.left == syntax.Name(name)), at)

    def people(self, party: str) -> list[Any]:
        return next(self.values(one.domain) for one in self.spec.parties if one.name == party)

    def call(self, expr: syntax.Call, at: World) -> Any:
        """The library, as far as specs of tests use it; a winner that is drawn is a law."""
        rule, first = expr.function, expr.arguments[0]
        if rule == "sum" and isinstance(first, syntax.Attribute):
            return sum((self.column(first.base.id, first.name, record) for record in at[first.base.id]), ZERO)
        if rule == "histogram" and len(expr.arguments) > 1:
            names = sorted((item.id for item in expr.arguments[1].value.items), key=self.order(first.id).index)
            rows = [tuple(self.column(first.id, name, record) for name in names) for record in at[first.id]]
            return tuple(
                Fraction(rows.count(cell)) for cell in product(*(self.listed(first.id, name) for name in names))
            )
        if rule == "histogram" and not self.columns(self.variables[first.id].domain):
            domain, held = self.variables[first.id].domain, self.named(first.id, at)
            each = self.values(domain.base if isinstance(domain, syntax.Power) else domain)
            return tuple(Fraction(held.count(value)) for value in each)
        if rule in ("histogram", "marginals"):
            columns = self.columns(self.variables[first.id].domain)
            kept = {item.id for item in expr.arguments[1].items} if rule == "marginals" else dict(columns)
            places = [i for i, (column, _) in enumerate(columns) if column in kept]
            seen = [tuple(record[i] for i in places) for record in at[first.id]]
            cells = product(*(self.values(columns[i][1]) for i in places))
            return tuple(Fraction(seen.count(cell)) for cell in cells)
        if isinstance(first, syntax.Comprehension):
            terms = list(self.terms(first.body, [(first.variable, first.domain)], at))
        else:
            terms = [self.value(argument, at) for argument in expr.arguments]
        several = terms[0] if len(terms) == 1 and isinstance(terms[0], tuple) else tuple(terms)
        match rule:
            case "sum":
                return added(several)
            case "mean":
                return entrywise(operator.truediv, added(several), Fraction(len(several)))
            case "mismatch":
                drawn = isinstance(terms[1], dict)
                return 1 - terms[1][terms[0]] if drawn else entrywise(lambda a, b: Fraction(a != b), *terms)
            case "max" | "min" if len(terms) > 1:
                return reduce(lambda a, b: entrywise(max if rule == "max" else min, a, b), terms)
            case "at_least":
                return entrywise(lambda a, b: Fraction(a >= b), *terms)
            case "prefix_sums":
                return tuple(added(several[: i + 1]) for i in range(len(several)))
        points = [self.points(rule, first.id, vote) for vote in (None, *several)]
        total = {a: sum((ballot[a] for ballot in points), ZERO) for a in points[0]}
        whole = sum(total.values())
        return {a: total[a] / whole if whole else Fraction(1, len(total)) for a in total}

    def points(self, rule: str, name: str, vote: Any) -> dict[Any, Fraction]:
        """What a ballot gives to each alternative: one for the first; with Borda, one for each that it beats."""
        domain = self.variables[name].domain
        ranked = isinstance(domain, syntax.RankingOf)
        alternatives = self.values(domain.alternatives if ranked else domain)
        if vote is not None and rule == "borda_lottery":
            return {a: Fraction(len(alternatives) - 1 - vote.index(a)) for a in alternatives}
        return {a: Fraction(a == (vote[0] if ranked and vote else vote)) for a in alternatives}

    def names(self, written: syntax.Refs) -> tuple[str, ...]:
        return tuple(item.name for item in written.items)

    def units(self, line: syntax.Requirement) -> tuple[dict[str, list[str]], bool, int]:
        """Kinds of units with the inputs that each is of, whether they come and go, and how many change at most.

        Without a unit in the line: one party where parties hold the input, else one record of a power or a table, else
        everything; a report, or what a distance compares, is all that one party holds.
        """
        wrt = self.names(line.wrt)
        clause = next((c for c in line.clauses if isinstance(c, syntax.Replacing | syntax.AddingOrRemoving)), None)
        adding = isinstance(clause, syntax.AddingOrRemoving)
        match clause and clause.unit:
            case syntax.OneUnit(name=name):
                return {name: [*wrt]}, adding, 1
            case syntax.UpToUnits(name=name, amount=amount):
                words = ("entry", "record", *(party.name for party in self.spec.parties))
                kind = next(w for w in words if name in (w, w + "s", w[:-1] + "ies"))
                return {kind: [*wrt]}, adding, int(self.value(amount.items[0], self.public))
            case syntax.Everything():
                return {"everything": [*wrt]}, False, 1
            case syntax.ByNeighbour(name=name, one=one):
                return {name if one else "everything": [*wrt]}, False, 1
        report = line.measure in ("LDP", "metric-DP", "Lipschitz")
        kinds: dict[str, list[str]] = {}
        for name in wrt:
            domain = self.variables[name].domain
            record = not report and (isinstance(domain, syntax.Power) or self.columns(domain))
            kinds.setdefault(self.party(name) or ("record" if record else "everything"), []).append(name)
        return {"everything": [*wrt]} if report and len(kinds) > 1 else kinds, False, 1

    def moved(self, kind: str, names: list[str], adding: bool, a: World, b: World) -> int:
        """How many units of one kind change: entries and records each by itself, others in all inputs at once."""
        each = [self.pairs(name, kind, adding, a[name], b[name]) for name in names]
        alone = kind in ("entry", "record")
        joint = [[pair] for pairs in each for pair in pairs] if alone else [*zip(*each, strict=True)]
        sides = [(*zip(*some, strict=True),) for some in joint]
        changed = [(x, y) for x, y in sides if x != y]
        fits = not any(None in x or None in y for x, y in changed)
        if adding:
            fits = all({None} in (set(x), set(y)) for x, y in changed)
        return len(changed) if fits else FAR

    def pairs(self, name: str, kind: str, adding: bool, a: Any, b: Any) -> list[tuple[Any, Any]]:
        """The units of an input in two worlds, side by side; of a table the records that differ."""
        domain, party = self.variables[name].domain, self.party(name)
        power = isinstance(domain, syntax.Power)
        if self.columns(domain) and kind == "record":
            gone, come = ([*(Counter(x) - Counter(y)).elements()] for x, y in ((a, b), (b, a)))
            if not adding and len(gone) == len(come):
                return [*zip(gone, come, strict=True)]
            return [*((record, None) for record in gone), *((None, record) for record in come)]
        if kind == "everything" or (kind == "record" and not party and not power):
            return [(a, b)]
        if kind == "entry":
            a, b = flat(a), flat(b)
        elif kind == "record" and party and power:
            a, b = chain(*a), chain(*b)
        return [*zip(a, b, strict=True)]

    def compared(self, line: syntax.Requirement) -> Iterator[tuple[World, World, Fraction]]:
        """Every two worlds that a line compares, each way, with the square of their distance (1 without distances)."""
        kinds, adding, most = self.units(line)
        metric = next((clause.metric for clause in line.clauses if isinstance(clause, syntax.Distance)), None)
        others = [name for name in self.inputs if not any(name in names for names in kinds.values())]
        for a, b in product(self.worlds(adding), repeat=2):
            if all(a[name] == b[name] for name in others):
                units = sum(self.moved(kind, names, adding, a, b) for kind, names in kinds.items())
                if 1 <= units <= most and self.joined(line, a, b):
                    yield a, b, self.distance(metric, self.names(line.wrt), a, b) if metric else Fraction(1)

    def joined(self, line: syntax.Requirement, a: World, b: World) -> bool:
        """Whether the graph of a line, if it has one, joins what differs."""
        units = (clause.unit for clause in line.clauses if isinstance(clause, syntax.Replacing))
        unit = next((unit for unit in units if isinstance(unit, syntax.ByNeighbour)), None)
        if unit is None:
            return True
        (name,) = self.names(line.wrt)
        pairs = [*zip(flat(a[name]), flat(b[name]), strict=True)] if unit.one else [(a[name], b[name])]
        sets = [self.values(one) if isinstance(one, syntax.SetOf) else self.value(one, {}) for one in unit.graph.items]
        return any({x, y} <= {*some} for x, y in pairs if x != y for some in sets)

    def distance(self, metric: syntax.Expr, wrt: Sequence[str], a: World, b: World) -> Fraction:
        """The square of the distance of two worlds: of all the numbers named, one after the other."""
        both = zip(*([entry for name in wrt for entry in flat(world[name])] for world in (a, b)), strict=True)
        steps = [abs(x - y) if isinstance(x, Fraction) else Fraction(x != y) for x, y in both]
        squares = {"euclidean": sum(step**2 for step in steps), "manhattan": sum(steps) ** 2}
        squares |= {"chebyshev": max(steps) ** 2, "hamming": sum(step != 0 for step in steps) ** 2}
        return Fraction(squares[metric.id])

    def seen(self, line: syntax.Requirement) -> set[str]:
        """What the observer of a line sees of the outputs: those named; everything where every message is public."""
        local = any(one.measure == "LDP" for one in self.spec.privacy)
        for option in self.spec.options:
            local = option.model.id == "nobody" if isinstance(option, syntax.Trust) else local
        return {*self.outputs} if local else {*self.names(line.subjects)}

    def chance(self, world: World) -> Fraction:
        """How likely a world is; 1 where the data have no model."""
        models = [line for line in self.spec.background if isinstance(line, syntax.Relation) and line.op == "~"]
        return prod((self.likelihood(line, world) for line in models), start=1 / self.existing)

    @cached_property
    def existing(self) -> Fraction:
        """How likely it is that all facts are true."""
        models = [line for line in self.spec.background if isinstance(line, syntax.Relation) and line.op == "~"]
        every = self.worlds() if self.facts else []
        likely = (prod((self.likelihood(line, one) for line in models), start=Fraction(1)) for one in every)
        return sum(likely, ZERO) or Fraction(1)

    def likelihood(self, line: syntax.Relation, world: World) -> Fraction:
        """Of the input that a model is of; records and parties are independent of each other."""
        call = line.right if isinstance(line.right, syntax.Call) else None
        if isinstance(line.left, syntax.TupleOf) or (call and call.function == "proportional"):
            names = [one.id for one in line.left.items] if isinstance(line.left, syntax.TupleOf) else [line.left.id]
            values = list(product(*(self.held(name, False) for name in names)))
            own, (argument,) = tuple(world[name] for name in names), call.arguments
            if call.function == "proportional":
                weights = [self.value(argument, dict(zip(names, one, strict=True))) for one in values]
            else:
                weights = flat(self.value(argument, self.public))
            return weights[values.index(own)] / sum(weights)
        name = line.left.id
        if isinstance(call and call.arguments[0], syntax.Index):
            return self.given(name, call.arguments[0], world)
        domain, items = self.variables[name].domain, [world[name]]
        if isinstance(domain, syntax.Power) or self.party(name):
            domain, items = domain.base if isinstance(domain, syntax.Power) else domain, world[name]
        values = self.values(domain)
        weights = [Fraction(1)] * len(values)
        if isinstance(line.right, syntax.Call) and line.right.function == "categorical":
            weights = flat(self.value(line.right.arguments[0], self.public))
        return prod((weights[values.index(item)] / sum(weights) for item in items), start=Fraction(1))

    def given(self, name: str, weights: syntax.Index, world: World) -> Fraction:
        """Of an input that is drawn given others: they stand in a table of weights as the manieth of their values."""
        law = self.value(weights.base, self.public)
        for other in weights.indices:
            law = law[self.held(other.id, False).index(world[other.id])]
        return law[self.held(name, False).index(world[name])] / sum(law)

    def hidden(self, line: syntax.Requirement) -> list[Callable[[World], Any]]:
        """What a line hides that counts on the model, one thing after another, as functions of a world."""
        names, kinds = self.names(line.wrt), self.units(line)[0] if line.wrt.items[0].name in self.inputs else {}
        if not kinds:
            return [lambda world: self.named(names[0], world)]
        if "everything" in kinds:
            return [lambda world: tuple(world[name] for name in names)]
        ((kind, wrt),) = kinds.items()
        if kind == "voter":
            people = range(len(self.people("voter")))
            return [lambda world, i=i: tuple(world[name][i] for name in wrt) for i in people]
        places = [(name, i) for name in wrt for i in range(len(flat(self.held(name, False)[0])))]
        return [lambda world, name=name, i=i: flat(world[name])[i] for name, i in places]

    def mean(self, body: syntax.Expr, world: World, law: Law) -> Fraction:
        """The average over noise in one world; the total variation of an output's law from that of a drawn winner."""
        if isinstance(body, syntax.Call) and body.function == "total_variation":
            own, winner = (argument.id for argument in body.arguments)
            shown = self.shown((own,), [(Fraction(1), law)])
            return variation({drawn: p for (drawn,), p in shown.items()}, self.named(winner, world))
        each = ((p, dict(zip(self.outputs, drawn, strict=True))) for drawn, p in law.items())
        return sum((p * self.value(body, {**world, **drawn}) for p, drawn in each), ZERO)

    def averages(self, line: syntax.Relation, laws: Laws) -> list[Fraction]:
        """The left side less the right one for all values that averages are given, where somebody has each of them."""
        worlds = [world for world in self.worlds() if self.chance(world)]
        overs = [*every(line, syntax.Over)]
        items = [item for over in overs for item in getattr(over.given, "items", (over.given,))]
        names = dict.fromkeys(item.id for item in items if isinstance(item, syntax.Name))
        found = []
        for joint in dict.fromkeys(tuple(self.named(name, world) for name in names) for world in worlds):
            known = dict(zip(names, joint, strict=True))
            try:
                left, right = (self.average(side, known, worlds, laws) for side in (line.left, line.right))
                found.append(left - right)
            except ZeroDivisionError:
                continue
        return found

    def average(self, expr: syntax.Expr, known: World, worlds: list[World], laws: Laws) -> Fraction:
        match expr:
            case syntax.Binary(op=op):
                return ARITHMETIC[op](*(self.average(one, known, worlds, laws) for one in (expr.left, expr.right)))
            case syntax.Over(body=body, given=given):
                for item in getattr(given, "items", (given,)):
                    name = item.id if isinstance(item, syntax.Name) else item.name.id
                    wanted = known[name] if isinstance(item, syntax.Name) else self.values(item.value)[0]
                    worlds = [world for world in worlds if self.named(name, world) == wanted]
                each = (self.chance(world) * self.mean(body, world, laws(world)) for world in worlds)
                return sum(each, ZERO) / sum((self.chance(world) for world in worlds), ZERO)
        return self.value(expr, known)

    def shown(self, names: Sequence[str], mixture: Mixture) -> Law:
        places, total = [self.outputs.index(name) for name in names], sum(weight for weight, _ in mixture)
        drawn = [(tuple(one[i] for i in places), w * p / total) for w, law in mixture for one, p in law.items()]
        return gathered(*zip(*drawn, strict=True))

    def loss(self, laws: Laws, expr: syntax.Expr | None = None, only: World | None = None) -> Fraction:
        """An amount of a mechanism, the loss if no other: averages and worst cases over all worlds, or at one."""
        expr = self.spec.loss if expr is None else expr
        match expr:
            case syntax.Over(body=body) if only is not None:
                return self.mean(body, only, laws(only))
            case syntax.Over(operator="E", body=body):
                return sum((self.chance(w) * self.mean(body, w, laws(w)) for w in self.worlds()), ZERO)
            case syntax.Over(body=body):
                return max(self.mean(body, w, laws(w)) for w in self.worlds())
            case syntax.Binary(op=op):
                return ARITHMETIC[op](self.loss(laws, expr.left, only), self.loss(laws, expr.right, only))
        return self.value(expr, self.public)

    def unfairness(self, line: syntax.Independence | syntax.Requirement, laws: Laws) -> Fraction:
        """The most by which the square of a total variation is beyond what a line of fairness allows; 0 if nowhere."""
        compared: list[tuple[Mixture, Mixture, Fraction]] = []
        if isinstance(line, syntax.Requirement):
            factor = self.value(line.amount.items[0], self.public) ** 2
            for a, b, square in self.compared(line):
                compared.append(([(Fraction(1), laws(a))], [(Fraction(1), laws(b))], factor * square))
        else:
            bound = self.value(line.tolerance, self.public) if line.tolerance else ZERO
            groups: dict[Any, dict[Any, Mixture]] = {}
            for world in self.worlds():
                given = tuple(self.named(one.name, world) for one in line.given.items) if line.given else None
                if self.chance(world):
                    group = groups.setdefault(given, {}).setdefault(self.named(line.of.name, world), [])
                    group.append((self.chance(world), laws(world)))
            compared = [(*some, bound**2) for inner in groups.values() for some in combinations(inner.values(), 2)]
        names = self.names(line.subjects)
        gaps = (variation(self.shown(names, a), self.shown(names, b)) ** 2 - most for a, b, most in compared)
        return max((ZERO, *gaps))
