"""The plots of the pages, each with words for those who do not see it and a table of the same numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from privspec.explain import drawing
from privspec.explain.curves import Curve
from privspec.explain.document import Plot, Table
from privspec.explain.facts import ClaimFact, Facts, SiteFact, same_loss
from privspec.explain.noise import Frontier
from privspec.explain.quantities import Rounding, percent, rounded
from privspec.model.reports import listing

MOST_BARS = 64
MOST_PANELS = 6
TRADEOFF_MARKS = tuple(Fraction(n, 100) for n in (1, 2, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90))


def noise_plot(facts: Facts) -> Plot | None:
    """The standard deviation of the noise at every site by position (in groups where there are many)."""
    sites = [s for s in facts.sites if s.deviations][:MOST_PANELS]
    if not sites:
        return None
    panels, rows = [], []
    for site in sites:
        labels, values = grouped(site.deviations)
        # a range is too wide for an axis, where the first of it says enough
        panels.append(drawing.Bars(_site_title(site), values, [label.partition("–")[0] for label in labels]))
        rows += [(site.at, label, rounded(value).text) for label, value in zip(labels, values, strict=True)]
    xlabel = "position (of the first in a bar)" if any(bar_size(len(s.deviations)) > 1 for s in sites) else "position"
    widest = max(sites, key=lambda s: s.largest.value)
    return Plot(
        name="noise",
        draw=lambda: drawing.bar_chart(panels, "deviation", xlabel, "noise"),
        alt=f"Bars of the noise deviation at {listing([s.at for s in sites])}; "
        f"the largest is {widest.largest}, at {widest.at}.",
        caption=_noise_caption(sites),
        twin=Table(
            "Standard deviation of the noise, the numbers of the plot",
            ("Site", "Position", "Deviation"),
            tuple(rows),
            numeric=frozenset({2}),
        ),
    )


def _noise_caption(sites: Sequence[SiteFact]) -> str:
    """What a bar stands for at each site."""
    words = "Standard deviation of the noise in each number, in the order in which the numbers are laid out."
    for site in sites:
        size = bar_size(len(site.deviations))
        if size > 1:
            rest = len(site.deviations) % size
            tail = f", the last bar that of {rest}" if rest else ""
            words += f" At {site.at} each bar is the root mean square of {size} numbers in a row{tail}."
    return words


def bar_size(count: int, most: int = MOST_BARS) -> int:
    """How many values share a bar."""
    return -(-count // most)


def grouped(values: Sequence[float], most: int = MOST_BARS) -> tuple[list[str], list[float]]:
    """At most `most` bars with labels: single values, or root mean squares of runs of neighbours."""
    size = bar_size(len(values), most)
    labels, heights = [], []
    for start in range(0, len(values), size):
        part = values[start : start + size]
        last = start + len(part)
        labels.append(f"{start + 1:,}" if len(part) == 1 else f"{start + 1:,}–{last:,}")
        heights.append((sum(v * v for v in part) / len(part)) ** 0.5)
    return labels, heights


def _site_title(site: SiteFact) -> str:
    return f"{site.at}: {site.law}{', correlated' if site.correlated else ''}"


def tradeoff_plot(facts: Facts, fact: ClaimFact, number: int) -> Plot | None:
    """False alarms against misses: what is executed allows, and what the statement alone would.

    Where there are several guarantees, the plot says which one it shows, by its number.
    """
    claim, total = fact.claim, len(facts.claims)
    if fact.shown is None:
        return None
    curves: dict[str, Curve] = {}
    if claim.achieved is not None and claim.achieved_parameter is not None:
        name, value = claim.achieved_parameter
        exact = claim.achieved.exact
        curves[facts.mechanism.exact_curve if exact else f"what {name} ≤ {value} allows"] = claim.achieved
    if claim.promised is not None and not _same(claim.promised, claim.achieved):
        curves[f"what {claim.statement} alone allows"] = claim.promised
    grid = [i / 400 for i in range(401)]
    lines = [
        drawing.Line(label, grid, [c.misses(a) for a in grid], dashed=not c.exact, second=position > 0)
        for position, (label, c) in enumerate(curves.items())
    ]
    known = tuple(curves.values())
    error = fact.shown.odds.error
    header = ("False alarms", *(f"Misses at least: {label}" for label in curves))
    rows = tuple(
        (
            percent(a).text,
            *(percent(max(0.0, c.misses(float(a)) - 1e-12), 3, Rounding.DOWN).text for c in known),
        )
        for a in TRADEOFF_MARKS
    )
    share = float(error.text) / 100
    title = f"Guarantee {number} of {total}: {_observer(fact)}" if total > 1 else ""
    scope = f"For {fact.question.scope}. " if fact.question.scope else ""
    return Plot(
        name=f"tradeoff{number}",
        draw=lambda: drawing.tradeoff_chart(
            lines,
            [(share, share, f"equal mistakes: {error.text} %")],
            *fact.question.axes,
            f"tradeoff{number}",
            title,
        ),
        alt=f"Trade-off curve of {claim.sentence}; at equal mistakes the best observer errs in {error} % of cases.",
        caption=f"{title}{'. ' if title else ''}{scope}The nearer to the dotted diagonal, the better the protection.",
        twin=Table(
            f"{title}{'. ' if title else ''}Least misses at given false alarms, numbers of the plot",
            header,
            rows,
            numeric=frozenset(range(1 + len(known))),
        ),
    )


def _observer(fact: ClaimFact) -> str:
    """Who sees what under a guarantee: "press, who see press_release"."""
    claim = fact.claim
    sees = "sees" if claim.observer == "anyone" else "see"
    return f"{claim.observer}, who {sees} {listing(claim.outputs)}"


def _same(one: Curve, other: Curve | None) -> bool:
    """Whether two curves could not be told apart in a drawing."""
    return type(one) is type(other) and other is not None and abs(one.equal_error() - other.equal_error()) < 1e-6


def frontier_plot(frontier: Frontier) -> Plot:
    """Privacy against loss by the exact scaling of the plan, with the chosen point."""
    points = frontier.points
    chosen = next((p for p in points if p.chosen), None)
    line = drawing.Line("loss", [p.parameter.value for p in points], [p.loss.value for p in points])
    return Plot(
        name="frontier",
        draw=lambda: drawing.frontier_chart(
            line,
            (chosen.parameter.value, chosen.loss.value, f"this plan: {chosen.loss}") if chosen else None,
            frontier.axis,
            "loss",
            "frontier",
        ),
        alt=f"Loss against {frontier.axis}: from {points[0].loss} at {points[0].parameter} "
        f"down to {points[-1].loss} at {points[-1].parameter}.",
        caption="The diamond marks this plan.",
        twin=Table(
            f"Loss of this plan rescaled to other guarantees ({frontier.law}), numbers of the plot",
            (frontier.axis, "Loss", "Remark"),
            tuple((p.parameter.text, p.loss.text, "this plan" if p.chosen else "") for p in points),
            numeric=frozenset({0, 1}),
        ),
    )


def alternatives_plot(facts: Facts) -> Plot | None:
    """The loss of this plan and of the designs that were not chosen."""
    loss = facts.loss
    if loss is None or not facts.alternatives or loss.value.value <= 0:
        return None
    items = [drawing.Dot("this plan", loss.value.value, loss.value.text, strong=True)]
    items += [
        drawing.Dot(a.name, a.loss.value, a.loss.text, hollow=not a.admissible)
        for a in sorted(facts.alternatives, key=lambda a: a.loss.value)
        if a.loss.value > 0
    ]
    bound = loss.lower_bound
    lower = "certified lower bound" if facts.bound_certified else "lower bound, not certified"
    error = loss.error.text if loss.error else ""
    rows = [("this plan", loss.value.text, "1", error, "yes", "chosen")]
    rows += [
        (
            a.name,
            a.loss.text,
            "the same loss" if same_loss(a, facts) else a.times.text,
            a.error.text if a.error else "",
            "yes" if a.admissible else "no",
            a.reason,
        )
        for a in sorted(facts.alternatives, key=lambda a: a.loss.value)
    ]
    if bound is not None:
        rows.append((lower, bound.text, "", "", "", loss.among))
    return Plot(
        name="alternatives",
        draw=lambda: drawing.dot_chart(
            items,
            f"loss (dashed: {lower})" if bound else "loss",
            "alternatives",
            (bound.value, bound.text) if bound is not None and bound.value > 0 else None,
        ),
        alt="Losses side by side: "
        + ", ".join(f"{item.label} {item.text}{' (not admissible)' if item.hollow else ''}" for item in items)
        + ".",
        caption="Hollow marks: not admissible under the options of the spec."
        if any(item.hollow for item in items)
        else "All of these are admissible.",
        twin=Table(
            "Designs considered at the same guarantee, numbers of the plot (reported by the compiler, not certified)",
            ("Design", "Loss", "Times this plan", "Error ±", "Admissible", "Reason"),
            tuple(rows),
            numeric=frozenset({1, 2, 3}),
        ),
    )


def sweep_plot(rows: Sequence[Mapping[str, Any]], parameter: str | None = None) -> str:
    """Loss against the swept parameter with its certified lower bound, as a complete SVG file.

    A loss that is negative everywhere (how many rounds of votes fit, say) is drawn as the amount that is gained.

    Args: rows with the parameter, "loss" and, where known, "lower_bound"; without `parameter` the
        first key is it. Rows without a loss (infeasible settings) are left out.
    Raises: ValueError if no row has a positive parameter and a loss that can be drawn.
    """
    name = parameter or next(iter(rows[0])) if rows else "epsilon"
    solved = [r for r in rows if r.get("loss") is not None]
    gained = bool(solved) and all(float(r["loss"]) < 0 for r in solved)
    sign, label, limit = (-1, "minus the loss", "upper") if gained else (1, "loss", "lower")
    points = sorted(
        (float(r[name]), sign * float(r["loss"]), r.get("lower_bound"))
        for r in solved
        if sign * float(r["loss"]) > 0 and float(r[name]) > 0
    )
    if not points:
        raise ValueError("nothing to draw: no setting has a loss")
    bounds = [(x, sign * float(low)) for x, _, low in points if low is not None and sign * float(low) > 0]
    xs, ys = [b[0] for b in bounds], [b[1] for b in bounds]
    return drawing.frontier_chart(
        drawing.Line(label, [p[0] for p in points], [p[1] for p in points]),
        None,
        name,
        label,
        "sweep",
        bound=drawing.Line(f"certified {limit} bound", xs, ys) if bounds else None,
        inline=False,
    )
