"""The accuracy lines of a spec: what they bound, and what a plan says it reaches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from privspec.certify.loss import read_loss
from privspec.certify.measures import Finding
from privspec.certify.motion import Array, NotUnderstood, Scene
from privspec.certify.promises import claim
from privspec.certify.report import Claim
from privspec.certify.subject import Subject
from privspec.language import syntax

SAME = 1e-9
"""Relative difference of figures that were computed in doubles."""


@dataclass(frozen=True, eq=False, slots=True)
class Instance:
    """One instance of an accuracy line: the squares of `rows` (r, k) sum to at most `bound` on average."""

    line: int
    text: str
    bound: float
    rows: Array


def instances(subject: Subject, moves: Array, seeds: Mapping[str, Array] | None = None) -> list[Instance]:
    """Every instance of every accuracy line, with how its error terms move.

    Raises: NotUnderstood for what is not a bound on expected squares.
    """
    if not subject.model.accuracy:
        return []
    outputs = subject.split(moves)
    scene = subject.system.response({**(seeds or {}), **outputs}, outputs)
    found: list[Instance] = []
    for accuracy in subject.model.accuracy:
        if accuracy.target.probability is not None:
            raise NotUnderstood("accuracy with a probability")
        for place in _places(accuracy.target, scene):
            errors = read_loss(accuracy.target.left, place)
            bound = float(place.number(accuracy.target.right))
            for group in range(int(errors.group.max()) + 1 if errors.worst else 1):
                rows = errors.rows[errors.group == group] if errors.worst else errors.rows
                found.append(Instance(accuracy.line, accuracy.text, bound, rows))
    return found


def _places(target: syntax.Target, scene: Scene) -> list[Scene]:
    if target.variable is None:
        return [scene]
    return list(scene.each(syntax.Comprehension(target.left, target.variable, target.domain)))


def targets(subject: Subject) -> Iterator[Claim]:
    """Every accuracy line holds, and its figures in the plan are those of the noise that is executed."""
    listed = subject.plan.get("accuracy")
    stated = [] if listed is None else listed.items()
    derived = instances(subject, subject.noise_map)
    if len(stated) != len(derived):
        yield Claim("accuracy", "failed", f"{len(derived)} accuracy targets in the spec, {len(stated)} in the plan")
        return
    for item, instance in zip(stated, derived, strict=True):
        value = float(np.einsum("rk,rk->", instance.rows, instance.rows))
        said = item["value"].double()
        same = abs(said - value) <= SAME * value and item["bound"].double() == instance.bound
        same = same and item["line"].integer() == instance.line and item["text"].text() == instance.text
        if not same or value > instance.bound * (1 + 2 * SAME):
            text = f"line {instance.line}: re-derived {value:.10g}, asked for at most {instance.bound:.10g}"
            yield Claim("accuracy", "failed", text)
            return
    if derived:
        text = f"{len(derived)} accuracy targets, each met by the noise that is executed"
        yield claim("accuracy", Finding(True, text))
