"""The page for engineers: sites, variances, solver, gap, alternatives, prices, and how to reproduce them."""

from __future__ import annotations

from shlex import quote

from privspec.explain import plots
from privspec.explain.auditor import changed_blocks, exposure_blocks
from privspec.explain.document import (
    Block,
    Document,
    Listing,
    Picture,
    Points,
    Section,
    Sentence,
    Table,
    assumed,
    reported,
)
from privspec.explain.facts import Facts
from privspec.explain.graph_svg import graph_svg
from privspec.explain.graph_words import describe_graph
from privspec.explain.summary import accuracy_tables, change_words, fairness_blocks


def engineer_page(facts: Facts) -> Document:
    """Everything one needs to judge, change and rebuild the plan."""
    sections = [
        Section("Result", _result(facts)),
        Section("What no guarantee covers", exposure_blocks(facts)),
        *facts.mechanism.engineer_sections(facts),
        Section("Accuracy", accuracy_tables(facts)),
        Section("Fairness", fairness_blocks(facts) if facts.fairness else ()),
        Section("Guarantees", _guarantees(facts)),
        Section("Alternatives", _alternatives(facts)),
        Section("What binds", _binding(facts)),
        Section("Privacy against loss", _frontier(facts)),
        Section("Execution", facts.mechanism.execution(facts)),
        Section("Assumptions", (Points(facts.assumptions),) if facts.assumptions else ()),
    ]
    if (model := facts.model) is not None:
        picture = Picture(lambda: graph_svg(model), "The graph of the spec; the same in words below")
        sections.append(Section("Graph", (picture, Listing("", describe_graph(model)))))
    sections.append(Section("Reproduce", (_commands(facts),)))
    return Document(
        title=f"Engineering report: {facts.name}",
        subtitle=facts.title,
        reader="engineer",
        shows_basis=True,
        sections=tuple(s for s in sections if s.blocks),
        footer=f"Plan fingerprint (SHA-256) {facts.digest}; spec fingerprint {facts.spec_sha256}.",
    )


def _among(facts: Facts, among: str) -> list[tuple[str, str]]:
    """What the bound is about, where there is one; else what the mechanism was chosen from."""
    bounded = facts.loss is not None and facts.loss.lower_bound is not None
    label = "Optimal among" if facts.status == "optimal" else "The bound is about" if bounded else "Chosen among"
    return [(label, among)] if among else []


def _result(facts: Facts) -> tuple[Block, ...]:
    loss, solver = facts.loss, facts.solver
    rows = [("Status", facts.status), ("Family", facts.family)]
    if loss is not None:
        rows += [
            ("Loss", f"{loss.value} {loss.units}".strip()),
            ("Loss expression", loss.expression),
            (
                "Certified lower bound" if facts.bound_certified else "Lower bound, not certified",
                loss.lower_bound.text if loss.lower_bound else "none",
            ),
            ("Relative gap", loss.gap.text if loss.gap else "none"),
            *_among(facts, loss.among),
        ]
        if loss.standard_error is not None:
            rows.append(("Standard error of the simulated loss", loss.standard_error.text))
        if loss.error is not None and loss.variance is not None:
            rows.append(
                (
                    f"Expected error, {loss.error_of}",
                    f"± {loss.error} (root mean square; variance {loss.variance})",
                )
            )
    rows += [
        *((f"Ties in {name}", taken) for name, taken in facts.context.ties.items()),
        ("Solver", solver.name),
        ("Iterations", solver.iterations.text if solver.iterations else "not stated"),
        ("Seconds", solver.seconds.text if solver.seconds else "not stated"),
        ("Versions", ", ".join(f"{k} {v}" for k, v in solver.versions) or "not stated"),
        *((f"Parameter {name}", value) for name, value in facts.parameter_words),
    ]
    blocks: list[Block] = [Table("The plan at a glance", ("Item", "Value"), tuple(rows)), *changed_blocks(facts)]
    if facts.gaps:
        blocks.append(Points(tuple(assumed(gap, facts.context.trust_because) for gap in facts.gaps)))
    return tuple(blocks)


def _guarantees(facts: Facts) -> tuple[Block, ...]:
    rows = []
    for fact in facts.claims:
        achieved = fact.claim.achieved_parameter
        shown = fact.shown
        scope = f", for {fact.question.scope}" if fact.question.scope else ""
        rows.append(
            (
                fact.claim.sentence,
                f"{achieved[0]} = {achieved[1]}" if achieved else "as stated",
                f"{shown.odds.pair}{scope}" if shown else "unknown",
                shown.advantage.text if shown else "unknown",
                str(fact.claim.line.number),
            )
        )
    blocks: list[Block] = [
        Table(
            "Guarantees as executed",
            ("Guarantee", "Reached", "Odds", "Advantage at most", "Spec line"),
            tuple(rows),
            numeric=frozenset({3, 4}),
        )
    ]
    blocks += [
        plot
        for number, fact in enumerate(facts.claims, start=1)
        if (plot := plots.tradeoff_plot(facts, fact, number)) is not None
    ]
    blocks += [block for fact in facts.claims for block in fact.question.details()]
    calibrations = [c for c in facts.claims if c.calibration is not None]
    if calibrations:
        blocks.append(
            Table(
                "The classic calibration sqrt(2 ln(1.25/δ))/ε beside the exact one (deviations a unit of sensitivity)",
                ("ε", "δ", "Classic", "Exact", "Variance ratio", "δ of the classic noise", "Enough"),
                tuple(
                    (
                        c.calibration.epsilon.text,
                        c.calibration.delta.text,
                        c.calibration.classic.text,
                        c.calibration.needed.text,
                        c.calibration.ratio.text,
                        c.calibration.true_delta.text,
                        "yes" if c.calibration.enough else "no",
                    )
                    for c in calibrations
                    if c.calibration is not None
                ),
                numeric=frozenset(range(6)),
            )
        )
    return tuple(blocks)


def _alternatives(facts: Facts) -> tuple[Block, ...]:
    plot = plots.alternatives_plot(facts)
    return (plot,) if plot else ()


def _binding(facts: Facts) -> tuple[Block, ...]:
    found: list[Sentence] = []
    for item in facts.binding:
        error = f" (the error by {item.error_change})" if item.error_change else ""
        verb = "lowers" if item.lowers else "raises"
        about, tail = ("about ", ", to first order") if item.about else ("", "")
        text = (
            f"Line {item.line.number} limits the loss: {change_words(item.change)} {verb} the loss by "
            f"{about}{item.loss_change}{error}{tail}."
        )
        found.append(reported(text, item.line))
    return (Points(tuple(found)),) if found else ()


def _frontier(facts: Facts) -> tuple[Block, ...]:
    return (plots.frontier_plot(facts.frontier),) if facts.frontier else ()


def _commands(facts: Facts) -> Listing:
    written = {name for name, words in facts.parameter_words if " = " in words}
    sets = "".join(
        f" --set {k}={quote(v)}" for k, v in facts.parameters if " " not in v and "[" not in v and k not in written
    )
    spec, plan = quote(facts.spec_file), quote(facts.plan_file)
    run = "\n".join(facts.mechanism.run_commands(facts, plan))
    return Listing(
        "",
        f"privspec check {spec}\nprivspec solve {spec}{sets} -o {plan}\nprivspec verify {plan}\n{run}",
    )
