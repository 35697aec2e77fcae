"""The accuracy and fairness lines of a spec: what they ask for and what the plan reaches."""

from __future__ import annotations

from privspec.explain.document import Block, Points, Table
from privspec.explain.facts import AccuracyFact, Facts
from privspec.explain.sentences import CertificateEntry, Note, asserted, proved


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


def fairness_blocks(facts: Facts) -> tuple[Block, ...]:
    """Each fairness line with what it allows, what was reached, and the margin between them."""
    rows = tuple(
        (
            str(f.line.number),
            f.line.text,
            f.tolerance.text,
            f.achieved.text,
            f.margin.text if f.met else "none: not met",
        )
        for f in facts.fairness
    )
    sentences = tuple(
        proved(
            f"Line {f.line.number} is met: the largest difference in total variation is {f.achieved}.",
            f.line,
            CertificateEntry("fairness"),
            Note("tables"),
        )
        if f.met
        else asserted(f"Line {f.line.number} asks for at most {f.tolerance}; {f.achieved} was reached.", f.line)
        for f in facts.fairness
    )
    header = ("Spec line", "Line", "Allowed", "Reached", "Margin")
    caption = "Fairness lines of the spec: the largest difference between groups, in total variation"
    return Table(caption, header, rows, numeric=frozenset({0, 2, 3, 4})), Points(sentences)


def accuracy_words(facts: Facts) -> str:
    """The accuracy line with least room left: "2.2 expected, at most 2.2 asked for (line 14, tightest of 6)"."""
    if not facts.accuracy:
        return ""
    tightest = max(facts.accuracy, key=lambda a: a.used.value)
    instances = sum(int(a.instances.value) for a in facts.accuracy)
    if tightest.line.text.lstrip().startswith("manipulation("):
        return f"{_lies(tightest)}{_where(tightest, instances)}"
    return f"{tightest.expected} expected, at most {tightest.asked} asked for{_where(tightest, instances)}"


def _lies(fact: AccuracyFact) -> str:
    """What a ballot that is not the true one can bring."""
    if not fact.expected.value:
        return "no voter gains by a lie"
    return f"a lie adds at most {fact.expected} to the chances of what a voter wants, at most {fact.asked} asked for"


def _where(fact: AccuracyFact, instances: int) -> str:
    return f" (line {fact.line.number}{f', the tightest of {instances:,}' if instances > 1 else ''})"
