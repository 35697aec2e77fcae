"""Diagnostics of verification of plans (PS09xx).

Append an `Entry(code, title, long_text, example)` in order of codes.
"""

from __future__ import annotations

from privspec.core.catalogue.entry import Entry

ENTRIES: tuple[Entry, ...] = (
    Entry(
        "PS0910",
        "a plan that is not verified",
        """
        The independent checker re-derived the claims of the plan from the spec inside it and from the
        exact numbers that would be executed, and at least one of them does not hold: the plan was
        changed, damaged, or written by something that is wrong. It is neither run nor shown. The exit
        code is 7.
        """,
        "privspec verify PLAN              # names the claims that fail\n"
        "privspec solve SPEC               # write the plan again",
    ),
    Entry(
        "PS0911",
        "the spec inside a plan cannot be used",
        """
        A plan carries the text of its spec, its parameters and its public constants, each with a
        SHA-256. One of them is missing, damaged, or not the one that was solved, so nothing that the
        plan says can be traced to a spec.

        Solve the spec again, or ask for the plan as it was written.
        """,
        "privspec solve shops.priv -o shops.plan.json",
    ),
)
