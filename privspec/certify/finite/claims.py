"""What a plan says of its table, its loss and the lines it obeys, each evaluated again on the exact table."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from privspec.certify.finite.averages import Sides, Term, number, terms
from privspec.certify.finite.fairness import findings
from privspec.certify.finite.lies import Lies, about_lies
from privspec.certify.finite.order import order_matters
from privspec.certify.finite.subject import FiniteSubject, label_text
from privspec.certify.finite.sums import total
from privspec.certify.measures import Finding
from privspec.certify.motion import NotUnderstood
from privspec.certify.promises import claim
from privspec.certify.reading import Malformed
from privspec.certify.report import Claim
from privspec.core.spans import Source
from privspec.language import syntax
from privspec.language.parser import parse_expression
from privspec.model.evaluate import places
from privspec.model.pointwise import Pointwise
from privspec.model.requirements import IndependenceRequirement
from privspec.model.targets import environment
from privspec.model.values import Value

ROUNDED = Fraction(1, 2**51)
"""Share of a figure by which its double, rounded up, may lie above it."""


# --- the table -----------------------------------------------------------------------------------------


def table(subject: FiniteSubject) -> Iterator[Claim]:
    """Rows and columns are those of the spec, in order; every row is a law, exactly; choices lie in their domains."""
    rows, found = subject.rows, subject.table
    wrong = [*_counts(subject), *_choices(subject)]
    sums = found.numerators.sum(axis=1)
    broken = [label_text(found.inputs[row]) for row in np.flatnonzero(sums != found.denominator)[:1]]
    wrong.extend(f"the probabilities of {row} do not sum to one" for row in broken)
    _ = subject.columns
    for text in wrong:
        yield Claim("table", "failed", text)
    if not wrong:
        size = f"{rows.size} x {found.shape[1]}"
        text = f"{size} exact probabilities, every row sums to one; rows are all values of {', '.join(found.of)}"
        yield Claim("table", "ok", text)


def _counts(subject: FiniteSubject) -> Iterator[str]:
    """Inputs that are told apart by their counts only: nothing looks at the order of their records."""
    facets = [facet for facet in subject.rows.worlds.facets if facet.part.name in subject.rows.of]
    counted = [facet.part.name for facet in facets if facet.counted]
    stated = subject.plan["mechanism"].get("counted")
    if (stated.list() if stated is not None else []) != counted:
        yield "the plan does not say rightly which inputs are held as counts"
    for name in counted:
        if order_matters(name, subject.model.nodes[name].index, list(_trees(subject))):
            yield f"the table sees how often each value stands in {name}, and the spec looks at their order"


def _trees(subject: FiniteSubject) -> Iterator[syntax.Node]:
    model = subject.model
    if model.loss is not None:
        yield model.loss
    yield from (line.target for line in model.accuracy)
    yield from (line.relation for line in model.constraints)
    yield from (node.definition for node in model.nodes.values() if node.definition is not None)
    for line in model.fairness:
        names = [getattr(line, key, None) for key in ("of", "given")]
        yield from (syntax.Name(name) for name in names if name is not None)


def _choices(subject: FiniteSubject) -> Iterator[str]:
    numbers = {node.name: node for node in subject.chosen_numbers}
    used = {node.name for node in subject.model.choices if subject.uses(node.name)}
    if not set(subject.table.scalars) <= set(numbers) or not used <= {*subject.table.scalars, *subject.laws}:
        yield "the plan does not give a value to what the spec leaves open, one for one"
    for name, value in subject.table.scalars.items():
        node = numbers.get(name)
        if node is not None and (node.domain is None or not node.domain.contains(value)):
            yield f"{name} is not in its domain"


# --- the loss ------------------------------------------------------------------------------------------


def loss(subject: FiniteSubject) -> Iterator[Claim]:
    """The loss of the spec under the exact table and the law that the data models imply."""
    model, stated = subject.model, subject.plan["loss"]
    if model.loss is None:
        raise NotUnderstood("the spec has no loss")
    if parse_expression(Source("plan", stated["expression"].text())) != model.loss:
        yield Claim("loss", "failed", "the loss of the plan is not the loss of the spec")
    yield from _prior(subject)
    if stated.get("standard_error") is not None:
        yield Claim("loss", "failed", "a simulated loss where the exact one is known")
    exact, said = total(subject, model.loss), Fraction(stated["value"].double())
    holds = exact <= said <= exact + abs(exact) * ROUNDED
    yield claim("loss", Finding(holds, f"re-derived {float(exact):.10g} exactly, the plan says {float(said):.10g}"))
    operators = [term.operator for term in terms(subject.scene, model.loss) if isinstance(term, Term)]
    if stated["kind"].text() != ("worst" if operators == ["worst"] else "expected"):
        yield Claim("loss", "failed", f"the loss of the spec is not of the kind {stated['kind'].text()!r}")


def _prior(subject: FiniteSubject) -> Iterator[Claim]:
    said, derived = subject.table.prior, subject.prior
    if said != derived:
        yield Claim("loss", "failed", "the law of the rows is not the one that the data models of the spec imply")


# --- lines that the table must obey --------------------------------------------------------------------


def conditions(subject: FiniteSubject) -> Iterator[Claim]:
    """Every background line on the mechanism holds at every row, exactly."""
    sides = Sides(subject)
    for constraint in subject.model.constraints:
        relation = constraint.relation
        left, right = (np.broadcast_to(sides.at(side), subject.rows.size) for side in (relation.left, relation.right))
        wrong = HOLDS[relation.op](left, right)
        if np.any(wrong):
            row = label_text(subject.table.inputs[int(np.argmax(wrong))])
            yield Claim("conditions", "failed", f"line {constraint.line} does not hold at {row}: {constraint.text}")
        else:
            yield Claim("conditions", "ok", f"line {constraint.line} holds exactly at every row: {constraint.text}")


HOLDS = {
    "=": lambda left, right: left != right,
    "<=": lambda left, right: left > right,
    "≤": lambda left, right: left > right,
    ">=": lambda left, right: left < right,
    "≥": lambda left, right: left < right,
}
"""Where a relation is broken."""


def accuracy(subject: FiniteSubject) -> Iterator[Claim]:
    """Every accuracy line holds, exactly; figures that the plan states are those of the table."""
    derived = [instance for target in subject.model.accuracy for instance in _instances(subject, target)]
    listed = subject.plan.get("accuracy")
    stated = [] if listed is None else listed.items()
    if stated and len(stated) != len(derived):
        yield Claim("accuracy", "failed", f"{len(derived)} accuracy targets in the spec, {len(stated)} in the plan")
        return
    for item, (line, text, value, _) in zip(stated, derived, strict=bool(stated)):
        said = Fraction(item["value"].double())
        same = abs(said - value) <= abs(value) * ROUNDED and item["line"].integer() == line
        if not same or item["text"].text() != text:
            yield Claim("accuracy", "failed", f"line {line}: re-derived {float(value):.10g}, the plan says otherwise")
    for line, _, value, bound in derived:
        text = f"line {line}: {float(value):.10g}, asked for at most {float(bound):.10g}"
        yield claim("accuracy", Finding(value <= bound, text))


def _instances(subject: FiniteSubject, target: Any) -> Iterator[tuple[int, str, Fraction, Fraction]]:
    written = target.target
    if written.probability is not None:
        raise NotUnderstood("accuracy with a probability")
    if about_lies(written.left):
        yield target.line, target.text, Lies(subject, written.left).gained(), number(subject.scene, written.right)
        return
    for scene in _scenes(subject, written):
        yield target.line, target.text, total(subject, written.left, scene), number(scene, written.right)


def _scenes(subject: FiniteSubject, written: syntax.Target) -> Iterator[Pointwise]:
    if written.variable is None:
        yield subject.scene
        return
    each = syntax.Comprehension(written.left, written.variable, written.domain, span=written.span)
    values: Iterator[Value] = places(each, environment(subject.model))
    yield from (subject.scene.bind(written.variable, value) for value in values)


def fairness(subject: FiniteSubject) -> Iterator[Claim]:
    """Every fairness line holds, exactly, and what the plan says of it is not less than there is."""
    listed = subject.plan.get("fairness")
    stated = {item["line"].integer(): item for item in ([] if listed is None else listed.items())}
    known = {line.line: line for line in subject.model.fairness}
    if not set(stated) <= set(known) or len(stated) != (0 if listed is None else len(listed.items())):
        yield Claim("fairness", "failed", "the plan speaks of fairness lines that the spec does not have")
        return
    for found in findings(subject):
        said = stated.get(found.line)
        exact = isinstance(known[found.line], IndependenceRequirement)
        if said is not None and (
            said["text"].text() != found.text
            or (exact and said["tolerance"].exact() != found.tolerance)
            or (exact and said["achieved"].exact() < found.gap)
        ):
            text = f"line {found.line}: re-derived {float(found.gap):.10g}, the plan says otherwise"
            yield Claim("fairness", "failed", text)
        sign = "≤" if found.holds else ">"
        text = f"line {found.line}: largest total variation {float(found.gap):.6g} {sign} {float(found.tolerance):.6g}"
        yield claim("fairness", Finding(found.holds, text))


def binding(subject: FiniteSubject) -> Iterator[Claim]:
    """What a change of a requirement would bring needs the optimum of another program."""
    listed = subject.plan["remarks"].get("binding")
    items = [] if listed is None else listed.items()
    for item in items:
        item["loss_change"].double()
        line, text = item["line"].integer(), item["text"].text()
        model = subject.model
        asked = (*subject.requirements, *model.constraints, *model.accuracy, *model.fairness)
        if not any(r.line == line and r.text == text for r in asked):
            raise Malformed(f"{item.place} is no line of the spec that asks for something")
    if items:
        yield Claim("binding", "not checked", "what a change of a line would do to the loss")
