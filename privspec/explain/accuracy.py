"""The accuracy lines of a spec: what they ask for and what the plan is expected to reach."""

from __future__ import annotations

from privspec.explain.document import Table
from privspec.explain.facts import AccuracyFact, Facts


def accuracy_tables(facts: Facts) -> tuple[Table, ...]:
    """One table of all accuracy lines; none where the spec has no such line."""
    if not facts.accuracy:
        return ()
    return (
        Table(
            "Accuracy lines of the spec: the most that is asked for and what is expected, where least room is left",
            ("Spec line", "Line", "Instances", "Asked: at most", "Expected", "Share of the bound"),
            tuple(
                (str(a.line.number), a.line.text, a.instances.text, a.asked.text, a.expected.text, a.used.text)
                for a in facts.accuracy
            ),
            numeric=frozenset({0, 2, 3, 4, 5}),
        ),
    )


def accuracy_words(facts: Facts) -> str:
    """The accuracy line with least room left: "2.2 expected, at most 2.2 asked for (line 14, tightest of 6)"."""
    if not facts.accuracy:
        return ""
    tightest = max(facts.accuracy, key=lambda a: a.used.value)
    instances = sum(int(a.instances.value) for a in facts.accuracy)
    return f"{tightest.expected} expected, at most {tightest.asked} asked for{_where(tightest, instances)}"


def _where(fact: AccuracyFact, instances: int) -> str:
    return f" (line {fact.line.number}{f', the tightest of {instances:,}' if instances > 1 else ''})"
