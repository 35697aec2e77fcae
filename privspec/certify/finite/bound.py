"""The lower bound of a plan: the best that any table could do, from the multipliers that the plan lists."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction

from privspec.certify.finite.lagrangian import Lagrangian
from privspec.certify.finite.multipliers import add_privacy
from privspec.certify.finite.rows import Rows, law_of_rows, read_loss
from privspec.certify.finite.search import Search
from privspec.certify.finite.subject import FiniteSubject
from privspec.certify.measures import Finding
from privspec.certify.promises import claim
from privspec.certify.reading import At, Malformed
from privspec.certify.report import Claim
from privspec.core import OPTIMAL_GAP

SAME = 1e-9
"""Relative difference of figures that were computed in doubles from one another."""


def optimality(subject: FiniteSubject) -> Iterator[Claim]:
    """The lower bound from the listed multipliers, and the gap."""
    stated, status = subject.plan["loss"], subject.plan["status"].text()
    proof = subject.plan["claims"].filled()
    said, gap = stated.get("lower_bound"), stated.get("relative_gap")
    if said is None or gap is None or proof is None:
        if status == "optimal" or said is not None or gap is not None:
            yield Claim("optimality", "failed", "a bound is claimed without its proof")
        else:
            yield Claim("optimality", "not checked", "whether a better table exists: no lower bound is claimed")
        return
    value, low = stated["value"].double(), said.double()
    if proof["lower_bound"].double() != low:
        yield Claim("optimality", "failed", "the certificate proves another bound than the plan states")
    yield from _gap(value, low, gap.double(), status)
    among = f"all tables Pr({', '.join(subject.table.releases)} | {', '.join(subject.table.of)})"
    counted = " (its order is not looked at)" if subject.plan["mechanism"].get("counted") is not None else ""
    if stated["among"].text() not in (among, among + counted):
        yield Claim("optimality", "failed", f"the bound is about {among}, not about what the plan says")
    prove = KINDS.get(proof["kind"].text())
    if prove is None or proof["scope"].text() != "tables":
        kind = proof["kind"].text()[:40]
        yield Claim("optimality", "failed", f"a lower bound of the kind {kind!r} proves nothing here")
        return
    derived = prove(subject, proof)
    holds = Fraction(low) <= derived
    sign = "below" if holds else "below the claimed bound proved: only"
    text = f"no table has a loss {sign} {float(min(Fraction(low), derived)):.8g} (this one: {value:.8g})"
    yield claim("optimality", Finding(holds, text))


def _gap(value: float, low: float, share: float, status: str) -> Iterator[Claim]:
    """Loss, bound and gap fit together, and a small gap is what "optimal" means."""
    above = Fraction(value) - Fraction(low)
    real = above / abs(Fraction(value)) if value else Fraction(0)
    if above < 0 or (above and not value) or not abs(share - float(real)) <= 1e-14 + SAME * float(real):
        yield Claim("optimality", "failed", "loss, lower bound and gap do not fit together")
    if status == "optimal" and not max(Fraction(share), real) <= Fraction(OPTIMAL_GAP):
        yield Claim("optimality", "failed", f"with a gap of {max(share, float(real)):.1e} a plan is not optimal")


def lower_bound(subject: FiniteSubject, proof: At) -> Fraction:
    """What the multipliers prove of every table that meets the spec.

    Raises: Malformed, NotUnderstood.
    """
    loss, dual = read_loss(subject), proof["dual"]
    weights, listed = dual.get("loss_weights"), dual["rows"]
    if not isinstance(listed.value, Mapping):
        raise Malformed(f"{listed.place} is not an object")
    reader = Rows(subject, loss)
    rows = {str(name): reader.row(str(name)) for name in listed.value}
    scalars = reader.scalars(rows, epigraphs=weights is None)
    if any(name not in scalars for row in rows.values() for name in row.scalars):
        raise Malformed(f"{listed.place} has a row of a worst case beside weights of the loss")
    lagrangian = Lagrangian(subject.table.shape, loss.constant, scalars)
    if weights is not None:
        if loss.averages or loss.apart or len(loss.worst) != 1:
            raise Malformed(f"{weights.place}: the loss is no single worst case")
        weight, cost = loss.worst[0]
        lagrangian.add_costs(cost, [p * weight for p in _convex(weights, subject.rows.size)])
    for weight, cost in loss.averages:
        lagrangian.add_costs(cost, [p * weight for p in law_of_rows(subject)])
    for item in dual["privacy"].items():
        add_privacy(lagrangian, subject, item)
    for name, row in rows.items():
        lagrangian.add_row(row, Fraction(listed[name].double()), listed.place)
    return lagrangian.value()


def _convex(weights: At, count: int) -> list[Fraction]:
    """Weights of a convex combination of rows: they are divided by their sum."""
    found = [Fraction(v) for v in weights.doubles(count).tolist()]
    if min(found) < 0 or sum(found) <= 0:
        raise Malformed(f"{weights.place} are no weights")
    whole = sum(found)
    return [v / whole for v in found]


KINDS: Mapping[str, Callable[[FiniteSubject, At], Fraction]] = {
    "table": lower_bound,
    "search": lambda subject, proof: Search(subject, proof).value(),
}
"""Proofs of a lower bound by the kind that a certificate names."""
