"""A plan of a system as a mechanism that can be run: every part reads its own inputs and draws its own noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privspec.execute.family import Circumstances, Drawn, Exposure, Mechanism, Plan, Secret, Simulation, refuse_unknown
from privspec.noise.samplers import Randomness
from privspec.problem.systems import part_names, parts_of
from privspec.registry import family_of_plan

if TYPE_CHECKING:
    from privspec.model.graph import Model


def part_plans(plan: Plan) -> tuple[dict[str, Any], ...]:
    """The plan of each part, as if it stood alone: about its problem, in which each line asks for the part's share.

    Raises: KeyError, ValueError if they are not of that form.
    """
    (block,) = plan["problem"]["blocks"]
    found = []
    for part, name in zip(block["parts"], part_names(plan), strict=True):
        made = plan["mechanism"]["components"][name]
        asked = zip(part["problem"]["obligations"], made["shares"], strict=True)
        problem = part["problem"] | {"obligations": [one | {"measure": share} for one, share in asked]}
        own = {key: value for key, value in made.items() if key != "shares"}
        found.append({"format": plan["format"], "spec": plan["spec"], **own, "problem": problem})
    return tuple(found)


@dataclass(frozen=True, eq=False, slots=True)
class SystemMechanism(Mechanism):
    """The mechanisms of the parts, the inputs that each reads, how often each is drawn, and on what condition."""

    parts: tuple[Mechanism, ...]
    inputs: tuple[tuple[str, ...], ...]
    runs: tuple[tuple[int, str | None], ...]

    @classmethod
    def of_plan(cls, plan: Plan) -> SystemMechanism:
        """Raises: KeyError, TypeError, ValueError, UsageError if this version cannot execute a part."""
        plans = part_plans(plan)
        read = tuple(tuple(str(one["name"]) for one in part["problem"]["data"]) for part in plans)
        (block,) = plan["problem"]["blocks"]
        runs = tuple((int(part["times"]), part["only_if"]) for part in block["parts"])
        return cls(tuple(family_of_plan(part).executes().of_plan(part) for part in plans), read, runs)

    @property
    def outputs(self) -> tuple[str, ...]:
        """What the parts release, one part after another."""
        return tuple(name for part in self.parts for name in part.outputs)

    def read(self, data: Mapping[str, Any], circumstances: Circumstances) -> Secret:
        """Every part reads its own inputs; one that several parts have is read by each.

        Raises: as the parts do; DataError PS0801 for data of no part.
        """
        known = dict.fromkeys(name for names in self.inputs for name in names)
        refuse_unknown(data, tuple(known))
        models = _models(circumstances.model, len(self.parts))
        return _Secrets(
            tuple(
                part.read({name: data[name] for name in names if name in data}, replace(circumstances, model=model))
                for part, names, model in zip(self.parts, self.inputs, models, strict=True)
            ),
            self.runs,
            tuple(part.outputs for part in self.parts),
        )

    def simulate(self, asked: Simulation) -> NDArray[np.float64]:
        """Draws of every run from a seed of its own, side by side (repetitions, m); those on a condition as well."""
        given = asked.base if isinstance(asked.base, Mapping) else None
        found: list[NDArray[np.float64]] = []
        for part, names, (times, _) in zip(self.parts, self.inputs, self.runs, strict=True):
            own = None if given is None else {name: given[name] for name in names if name in given}
            for _run in range(times):
                drawn = part.simulate(replace(asked, seed=asked.seed + len(found), base=own))
                found.append(drawn.reshape(asked.repetitions, -1))
        return np.hstack(found)


def _models(model: Model | None, count: int) -> tuple[Model | None, ...]:
    return (None,) * count if model is None else tuple(part.model for part in parts_of(model))


@dataclass(frozen=True, eq=False, slots=True)
class _Secrets(Secret):
    """The data of every part, read; how often each is drawn and on what condition, and what each gives."""

    parts: tuple[Secret, ...]
    runs: tuple[tuple[int, str | None], ...]
    names: tuple[tuple[str, ...], ...]

    @property
    def rules(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(rule for part in self.parts for rule in part.rules))

    def draw(self, randomness: Randomness) -> Drawn:
        """Parts without a condition first; a part whose condition is 0 is not drawn, and has no entry."""
        order = sorted(range(len(self.parts)), key=lambda i: self.runs[i][1] is not None)
        found: dict[str, NDArray[Any]] = {}
        columns: dict[str, tuple[str, ...]] = {}
        for i in order:
            times, condition = self.runs[i]
            if condition is not None and not np.any(np.asarray(found[condition], dtype=np.float64)):
                continue
            drawn = [self.parts[i].draw(randomness) for _ in range(times)]
            for name in drawn[0].outputs:
                found[name] = _stacked([one.outputs[name] for one in drawn])
            columns |= drawn[0].columns if times == 1 else {}
        every = [name for names in self.names for name in names]
        kept, skipped = [name for name in every if name in found], [name for name in every if name not in found]
        return Drawn({name: found[name] for name in kept}, columns=columns, skipped=tuple(skipped))

    def deviations(self) -> Mapping[str, NDArray[np.float64]]:
        found: dict[str, NDArray[np.float64]] = {}
        for part, (times, _) in zip(self.parts, self.runs, strict=True):
            found |= {name: _stacked([values] * times) for name, values in part.deviations().items()}
        return found


def _stacked(values: list[NDArray[Any]]) -> NDArray[Any]:
    """What several runs gave, one after another; of one run, what it gave."""
    return values[0] if len(values) == 1 else np.stack([np.squeeze(one) for one in values])


class SystemExposure(Exposure):
    """All parts are released together."""

    @property
    def outputs(self) -> frozenset[str]:
        return frozenset().union(*(family_of_plan(part).exposes()(part).outputs for part in part_plans(self.plan)))


def fit(model: Model, data: Mapping[str, Any], circumstances: Circumstances) -> None:
    """How data fit the spec, told to the keeper; nothing is solved and nothing released.

    Raises: DataError where their structure does not fit, as a run does.
    """
    for part in parts_of(model):
        names = [node.name for node in part.model.inputs]
        own = {name: data[name] for name in names if name in data}
        part.family.fits(part.model, own, replace(circumstances, model=part.model))
