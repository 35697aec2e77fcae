"""What a plan says of rules that it did not choose: none that is allowed may be better than the plan or its bound."""

from __future__ import annotations

from collections.abc import Iterator

from privspec.certify.lotteries.subject import LotterySubject
from privspec.certify.reading import Malformed
from privspec.certify.report import Claim

SLACK = 1e-9
"""Relative distance of two losses that count as equal."""


def alternatives(subject: LotterySubject) -> Iterator[Claim]:
    """Losses against that of the plan, and the kind of every figure."""
    stated = subject.plan["loss"]
    own, bound = stated["value"].double(), stated.get("lower_bound")
    error = stated.get("standard_error")
    slack = SLACK * abs(own) + (0.0 if error is None else 6 * error.double())
    listed = subject.plan["alternatives"].items()
    for item in listed:
        name, admissible = item["name"].text(), item["admissible"].flag()
        item["reason"].text()
        value = item.get("loss")
        if value is None:
            if admissible:
                yield Claim("alternatives", "failed", f"{name} is said to be possible, without a loss")
            continue
        if admissible and value.double() < own - slack:
            yield Claim("alternatives", "failed", f"{name} is said to be possible and better than the plan")
        if admissible and bound is not None and value.double() < bound.double() * (1 - SLACK):
            yield Claim("alternatives", "failed", f"{name} is said to be better than possible")
        figures = item.get("figures")
        if figures is not None and not isinstance(figures.value, dict):
            raise Malformed(f"{figures.place} is not an object")
    if listed:
        yield Claim("alternatives", "ok", f"{len(listed)} other rules, no admissible one with a smaller loss")
        yield Claim("alternatives", "not checked", "losses and figures of rules whose parameters are not listed")
