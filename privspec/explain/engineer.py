"""The page for engineers: sites, variances, solver, gap, alternatives, prices, and how to reproduce them."""

from __future__ import annotations

from shlex import quote

from privspec.explain import plots
from privspec.explain.auditor import changed_blocks, exposure_blocks
from privspec.explain.document import Block, Document, Listing, Picture, Points, assumed, reported, sections, table
from privspec.explain.facts import Facts, Rows
from privspec.explain.graph_svg import graph_svg
from privspec.explain.graph_words import describe_graph
from privspec.explain.summary import accuracy_tables, change_words, fairness_blocks


def engineer_page(facts: Facts) -> Document:
    """Everything one needs to judge, change and rebuild the plan."""
    graph: tuple[Block, ...] = ()
    if (model := facts.model) is not None:
        picture = Picture(lambda: graph_svg(model), "The graph of the spec; the same in words below")
        graph = picture, Listing("", describe_graph(model))
    return Document(
        title=f"Engineering report: {facts.name}",
        subtitle=facts.title,
        reader="engineer",
        shows_basis=True,
        sections=(
            *sections(("Result", _result(facts)), ("What no guarantee covers", exposure_blocks(facts))),
            *facts.mechanism.engineer_sections(facts),
            *sections(
                ("Accuracy", accuracy_tables(facts)),
                ("Fairness", fairness_blocks(facts)),
                ("Guarantees", _guarantees(facts)),
                ("Alternatives", (plots.alternatives_plot(facts),)),
                ("What binds", _binding(facts)),
                ("Privacy against loss", (plots.frontier_plot(facts.frontier),) if facts.frontier else ()),
                ("Execution", facts.mechanism.execution(facts)),
                ("Assumptions", (Points(facts.assumptions),) if facts.assumptions else ()),
                ("Graph", graph),
                ("Reproduce", (_commands(facts),)),
            ),
        ),
        footer=facts.footer,
    )


def _result(facts: Facts) -> tuple[Block, ...]:
    loss, solver, unknown = facts.loss, facts.solver, "not stated"
    among_all = "" if facts.design is None else f" by itself; of all that could be chosen: {facts.design.verdict}"
    rows: Rows = [("Status", f"{facts.status}{among_all}"), ("Family", facts.family)]
    if loss is not None:
        # what the bound is about, where there is one; else what the mechanism was chosen from
        among = "The bound is about" if loss.lower_bound is not None else "Chosen among"
        rows += [
            ("Loss", f"{loss.value} {loss.units}".strip()),
            ("Loss expression", loss.expression),
            (
                "Certified lower bound" if facts.bound_certified else "Lower bound, not certified",
                str(loss.lower_bound or "none"),
            ),
            ("Relative gap", str(loss.gap or "none")),
            *([("Optimal among" if facts.status == "optimal" else among, loss.among)] if loss.among else []),
        ]
        if loss.standard_error is not None:
            rows.append(("Standard error of the simulated loss", str(loss.standard_error)))
        if loss.error is not None:
            error = f"± {loss.error} (root mean square; variance {loss.variance})"
            rows.append((loss.error_label, error))
    rows += [
        *((f"Ties in {name}", taken) for name, taken in facts.context.ties.items()),
        ("Solver", solver.name),
        ("Iterations", str(solver.iterations or unknown)),
        ("Seconds", str(solver.seconds or unknown)),
        ("Versions", ", ".join(f"{k} {v}" for k, v in solver.versions) or unknown),
        *((f"Parameter {name}", value) for name, value in facts.parameter_words),
    ]
    gaps = tuple(assumed(gap, facts.context.trust_because) for gap in facts.gaps)
    plan = table("The plan at a glance", "Item | Value", rows)
    return (plan, *changed_blocks(facts), *((Points(gaps),) if gaps else ()))


def _guarantees(facts: Facts) -> tuple[Block, ...]:
    rows, found = [], []
    for number, fact in enumerate(facts.claims, start=1):
        shown, reached = fact.shown, fact.claim.achieved_parameter
        scope = f", for {fact.question.scope}" if fact.question.scope else ""
        odds = (f"{shown.odds.pair}{scope}", shown.advantage) if shown else ("unknown", "unknown")
        figure = "{} = {}".format(*reached) if reached else "as stated"
        rows.append((fact.claim.sentence, figure, *odds, fact.claim.line.number))
        plot = plots.tradeoff_plot(facts, fact, number)
        found += [plot] if plot else []
    classic = (
        (c.epsilon, c.delta, c.classic, c.needed, c.ratio, c.true_delta, c.enough)
        for fact in facts.claims
        if (c := fact.calibration) is not None
    )
    beside = table(
        "The classic calibration sqrt(2 ln(1.25/δ))/ε beside the exact one (deviations per unit of sensitivity)",
        "ε | δ | Classic | Exact | Variance ratio | δ of the classic noise | Enough",
        classic,
        *range(6),
    )
    header = "Guarantee | Reached | Odds | Advantage at most | Spec line"
    return (
        table("Guarantees as executed", header, rows, 3, 4),
        *found,
        *(block for fact in facts.claims for block in fact.question.details()),
        *((beside,) if beside.rows else ()),
    )


def _binding(facts: Facts) -> tuple[Block, ...]:
    found = []
    for item in facts.binding:
        error = f" (the error by {item.error_change})" if item.error_change else ""
        verb = "lowers" if item.lowers else "raises"
        about, tail = ("about ", ", to first order") if item.about else ("", "")
        text = f"Line {item.line.number} limits the loss: {change_words(item.change)} {verb} the loss by"
        found.append(reported(f"{text} {about}{item.loss_change}{error}{tail}.", item.line))
    return (Points(tuple(found)),) if found else ()


def _commands(facts: Facts) -> Listing:
    written = {name for name, words in facts.parameter_words if " = " in words}
    given = ((k, v) for k, v in facts.parameters if " " not in v and "[" not in v and k not in written)
    sets = "".join(f" --set {k}={quote(v)}" for k, v in given)
    spec, plan = quote(facts.spec_file), quote(facts.plan_file)
    run = "\n".join(facts.mechanism.run_commands(facts, plan))
    solve = f"privspec solve {spec}{sets} -o {plan}"
    return Listing("", f"privspec check {spec}\n{solve}\nprivspec verify {plan}\n{run}")
