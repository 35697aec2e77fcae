"""A plan of a system as a mechanism that can be run: every part reads its own inputs and draws its own noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from operator import ge, gt, le, lt, ne
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privspec.core.columns import Cells
from privspec.core.records import dataclass, replace
from privspec.execute import family
from privspec.execute.keeper import DataOwnerReport
from privspec.kernel.systems import DRAWN
from privspec.model.targets import labels_of
from privspec.noise.samplers import Randomness
from privspec.problem.systems import part_names, parts_of
from privspec.registry import family_of_plan

if TYPE_CHECKING:
    from privspec.model.graph import Model


def part_plans(plan: family.Plan) -> tuple[dict[str, Any], ...]:
    """The plan of each part, as if it stood alone: about its problem, in which each line asks for the part's share.

    Raises: KeyError, ValueError if they are not of that form.
    """
    (block,) = plan["problem"]["blocks"]
    found = list[dict[str, Any]]()
    for part, name in zip(block["parts"], part_names(plan), strict=True):
        made = plan["mechanism"]["components"][name]
        asked = zip(part["problem"]["obligations"], made["shares"], strict=True)
        problem = part["problem"] | {"obligations": [one | {"measure": share} for one, share in asked]}
        own = {key: value for key, value in made.items() if key != "shares"}
        digest = _digest_of_part(str(plan.get("digest", "")), len(found))
        found.append({"format": plan["format"], "spec": plan["spec"], **own, "problem": problem, "digest": digest})
    return tuple(found)


def _digest_of_part(digest: str, number: int) -> str:
    """What messages of a part are made under: masks of parts that share keys are not alike."""
    return f"{digest} part {number + 1}"


SIGNS = {"!=": ne, ">=": ge, ">": gt, "<=": le, "<": lt}
Runs = tuple[int, str | None, str, Fraction]
"""How often a part is drawn, and what is released that has to compare with a number for it to be drawn."""


@dataclass(frozen=True, eq=False, slots=True)
class SystemMechanism(family.FamilyMechanism):
    """The mechanisms of the parts, the inputs that each reads, how often each is drawn, and on what condition.

    `sets`: who holds the inputs of each part.
    """

    parts: tuple[family.Mechanism, ...]
    inputs: tuple[tuple[str, ...], ...]
    runs: tuple[Runs, ...]
    sets: tuple[tuple[str, ...], ...]

    @classmethod
    def of_plan(cls, plan: family.Plan) -> SystemMechanism:
        plans = part_plans(plan)
        read = tuple(tuple(str(one["name"]) for one in part["problem"]["data"]) for part in plans)
        (block,) = plan["problem"]["blocks"]
        runs = tuple(
            (int(part["times"]), part["only_if"], str(part.get("sign", "!=")), Fraction(str(part.get("limit", 0))))
            for part in block["parts"]
        )
        sets = tuple(tuple(dict.fromkeys(str(one["party"]) for one in part["problem"]["data"])) for part in plans)
        return cls(tuple(family_of_plan(part).executes().of_plan(part) for part in plans), read, runs, sets)

    @staticmethod
    def fit(model: Model, data: Mapping[str, Any], circumstances: family.RunContext) -> None:
        parts = parts_of(model)
        for part in parts if model.drawn is None else parts[-1:]:
            names = [node.name for node in part.model.inputs]
            own = {name: data[name] for name in names if name in data}
            part.family.fits(part.model, own, replace(circumstances, model=part.model))

    @property
    def outputs(self) -> tuple[str, ...]:
        """What the parts release, one part after another."""
        return tuple(name for part in self.parts for name in part.outputs)

    def read(self, data: Mapping[str, Any], circumstances: family.RunContext) -> family.Secret:
        """Every part reads its own inputs; one that several parts have is read by each.

        Raises: as the parts do; DataError PS0801 for data of no part.
        """
        known = dict.fromkeys(name for names in self.inputs for name in names)
        family.refuse_unknown(data, tuple(known))
        models = _models(circumstances.model, len(self.parts))
        cases = dict.fromkeys(range(1, len(self.parts) - 1)) if self.of_cases else {}
        # only beyond the widest limits data do not fit: what single cases do with them is not known before the draw
        quiet = replace(circumstances, keeper=DataOwnerReport(), strict=False)
        return _Secrets(
            tuple(
                part.read(
                    {name: data[name] for name in names if name in data},
                    replace(quiet if i in cases else circumstances, model=model),
                )
                for i, (part, names, model) in enumerate(zip(self.parts, self.inputs, models, strict=True))
            ),
            self.runs,
            tuple(part.outputs for part in self.parts),
            models,
        )

    @property
    def by_messages(self) -> bool:
        """Whether every part is, and is drawn just once."""
        return all(part.by_messages for part in self.parts) and {one[:2] for one in self.runs} == {(1, None)}

    def of_party(self, party: str, keys: family.Keys | None = None) -> family.Mechanism:
        """What one party says in all parts of whose inputs it holds some; one key masks all of it.

        Raises: UsageError PS0844 where a keeper makes a part, or there is no such party, PS0850, PS0857.
        """
        if not self.by_messages:
            raise family.no_messages(
                "a keeper makes some of its parts, or they are drawn several times, or on a condition"
            )
        own = [(i, name) for i in range(len(self.parts)) if (name := self._name_in(i, party)) is not None]
        if not own:
            raise family.no_messages(f"there is no party {party}: say which, as in {min(min(self.sets))}:1")
        masked = [self.parts[i].masked for i, _ in own]
        if keys is not None and not any(masked):
            family.refuse_keys(keys)
        made = tuple(
            (i, self.parts[i].of_party(name, replace(keys, called=party.removesuffix(name)) if mask and keys else None))
            for (i, name), mask in zip(own, masked, strict=True)
        )
        return PartySystem(made, self.inputs, self._index, party)

    @property
    def _index(self) -> str:
        """What parties are called."""
        every = {name for names in self.sets for name in names}
        return min(every) if len(every) == 1 else family.PARTY

    def _name_in(self, number: int, party: str) -> str | None:
        """What a party is called in a part; None where it holds nothing of it."""
        index, _, own = party.rpartition(":")
        sets = self.sets[number]
        if self._index != family.PARTY:
            return party
        return None if index not in sets else own if len(sets) == 1 else party

    def combine(self, digest: str, messages: Sequence[Mapping[str, Any]]) -> family.Drawn:
        """The releases of all parts, from what all parties say in each.

        Raises: UsageError PS0844; DataError PS0811, PS0842, PS0843.
        """
        if not self.by_messages:
            raise family.no_messages(
                "a keeper makes some of its parts, or they are drawn several times, or on a condition"
            )

        def read(outputs: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
            (who,) = outputs[self._index]
            return str(who), outputs

        def flaw(who: str, outputs: Mapping[str, Any]) -> str:
            own = [i for i in range(len(self.parts)) if self._name_in(i, who) is not None]
            said = {name.partition(" ")[2] for name in outputs if name != self._index}
            return "" if own and said == {str(i + 1) for i in own} else f"does not say what this {self._index} says"

        said = family.messages_by_party(digest, messages, self._index, read, flaw)
        released: list[family.Drawn] = []
        for i, part in enumerate(self.parts):
            under = _digest_of_part(digest, i)
            sent = [
                {"plan_sha256": under, "outputs": self._said(i, name, outputs)}
                for who, outputs in said.items()
                if (name := self._name_in(i, who)) is not None
            ]
            released.append(part.combine(under, sent))
        found = {name: values for one in released for name, values in one.outputs.items()}
        return replace(_beside(released), outputs=found)

    def _said(self, number: int, name: str, outputs: Mapping[str, Any]) -> dict[str, Any]:
        """What a party says in one part."""
        index = self.sets[number][0] if len(self.sets[number]) == 1 else family.PARTY
        tail = f" {number + 1}"
        own = {key.removesuffix(tail): value for key, value in outputs.items() if key.endswith(tail)}
        return {**own, index: [name]}

    def errors(self, draws: int, seed: int) -> Mapping[str, NDArray[np.float64]]:
        """Those of parts that are drawn once."""
        found: dict[str, NDArray[np.float64]] = {}
        for i, (part, runs) in enumerate(zip(self.parts, self.runs, strict=True)):
            found |= part.errors(draws, seed + i) if runs[:2] == (1, None) else {}
        return found

    def simulate(self, asked: family.Simulation) -> NDArray[np.float64]:
        """Draws of every run from a seed of its own, side by side (repetitions, m); those on a condition as well."""
        given = asked.base if isinstance(asked.base, Mapping) else None
        if self.of_cases:
            return self._simulated_case(asked, given)
        found: list[NDArray[np.float64]] = []
        for part, names, (times, *_) in zip(self.parts, self.inputs, self.runs, strict=True):
            own = None if given is None else {name: given[name] for name in names if name in given}
            for _run in range(times):
                drawn = part.simulate(replace(asked, seed=asked.seed + len(found), base=own))
                found.append(drawn.reshape(asked.repetitions, -1))
        return np.hstack(found)

    @property
    def of_cases(self) -> bool:
        """Whether all parts but the first are cases of what it draws, of which one is drawn."""
        return self.runs[-1][2] == DRAWN

    def _simulated_case(self, asked: family.Simulation, given: Mapping[str, Any] | None) -> NDArray[np.float64]:
        """What is drawn first, and the case that follows it; one with fewer numbers than another has zeros behind."""
        drawn = [
            part.simulate(
                replace(
                    asked,
                    seed=asked.seed + i,
                    base=None if given is None else {name: given[name] for name in names if name in given},
                )
            ).reshape(asked.repetitions, -1)
            for i, (part, names) in enumerate(zip(self.parts, self.inputs, strict=True))
        ]
        found = np.zeros((asked.repetitions, 1 + max(one.shape[1] for one in drawn[1:])))
        found[:, 0] = drawn[0][:, 0]
        for (*_, limit), one in zip(self.runs[1:], drawn[1:], strict=True):
            own = found[:, 0] == float(limit)
            found[own, 1 : 1 + one.shape[1]] = one[own]
        return found


@dataclass(frozen=True, eq=False, slots=True)
class PartySystem(family.Mechanism):
    """The parts of which one party holds some, each by its number and for that party."""

    parts: tuple[tuple[int, family.Mechanism], ...]
    inputs: tuple[tuple[str, ...], ...]
    index: str
    party: str

    @property
    def outputs(self) -> tuple[str, ...]:
        """Who it is from, and what it says in each part."""
        said = (f"{name} {i + 1}" for i, part in self.parts for name in part.outputs[1:])
        return (self.index, *said)

    def read(self, data: Mapping[str, Any], circumstances: family.RunContext) -> family.Secret:
        """The party's own data, part by part.

        Raises: as the parts do; DataError PS0801 for data of no part.
        """
        family.refuse_unknown(data, tuple(dict.fromkeys(name for i, _ in self.parts for name in self.inputs[i])))
        models = _models(circumstances.model, len(self.inputs))
        return _OwnSecrets(
            tuple(
                part.read(
                    {name: data[name] for name in self.inputs[i] if name in data},
                    replace(circumstances, model=models[i]),
                )
                for i, part in self.parts
            ),
            self,
        )

    def simulate(self, asked: family.Simulation) -> NDArray[np.float64]:
        raise family.no_messages("a message is simulated as part of a run")


@dataclass(frozen=True, eq=False, slots=True)
class _OfParts(family.Secret):
    """The data of every part, read."""

    parts: tuple[family.Secret, ...]

    @property
    def rules(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(rule for part in self.parts for rule in part.rules))


@dataclass(frozen=True, eq=False, slots=True)
class _OwnSecrets(_OfParts):
    mechanism: PartySystem

    def draw(self, randomness: Randomness) -> family.Drawn:
        found: dict[str, NDArray[Any]] = {self.mechanism.index: np.array([self.mechanism.party], dtype=object)}
        for (i, made), secret in zip(self.mechanism.parts, self.parts, strict=True):
            drawn = secret.draw(randomness).outputs
            found |= {f"{name} {i + 1}": drawn[name] for name in made.outputs[1:]}
        return family.Drawn(found)


def _models(model: Model | None, count: int) -> tuple[Model | None, ...]:
    return (None,) * count if model is None else tuple(part.model for part in parts_of(model))


@dataclass(frozen=True, eq=False, slots=True)
class _Secrets(_OfParts):
    """How often each part is drawn and on what condition, what each gives, and its spec where that is known."""

    runs: tuple[Runs, ...]
    names: tuple[tuple[str, ...], ...]
    models: tuple[Model | None, ...]

    def draw(self, randomness: Randomness) -> family.Drawn:
        """Parts without a condition first; a part whose condition is not met is not drawn, and has no entry."""
        order = sorted(range(len(self.parts)), key=lambda i: self.runs[i][1] is not None)
        found: dict[str, NDArray[Any]] = {}
        columns: dict[str, tuple[str, ...]] = {}
        released: list[family.Drawn] = []
        for i in order:
            times, condition, sign, limit = self.runs[i]
            if condition is not None and not _met(found[condition], sign, limit):
                continue
            drawn = [self.parts[i].draw(randomness) for _ in range(times)]
            for name in drawn[0].outputs:
                found[name] = _stacked([one.outputs[name] for one in drawn])
            columns |= drawn[0].columns if times == 1 else {}
            released += drawn if times == 1 else []
            if sign == DRAWN:
                released.append(self._of_case(i, drawn[0]))
        every = list(dict.fromkeys(name for names in self.names for name in names))
        kept, skipped = [name for name in every if name in found], [name for name in every if name not in found]
        outputs = {name: found[name] for name in kept}
        return replace(_beside(released), outputs=outputs, columns=columns, skipped=tuple(skipped))

    def _of_case(self, number: int, drawn: family.Drawn) -> family.Drawn:
        """What stands beside the values of the case that is carried out: it differs from case to case."""
        model = self.models[number]
        labels: dict[str, Mapping[str, Any]] = dict(drawn.labels)
        if model is not None:
            shapes = {name: model.nodes[name].type.shape for name in self.names[number]}
            labels = {name: labels_of(model, name, shape) for name, shape in shapes.items()} | labels
        return family.Drawn({}, labels=labels, deviations={**self.parts[number].deviations(), **drawn.deviations})

    def longest(self) -> Mapping[str, NDArray[Any]]:
        found: dict[str, NDArray[Any]] = {}
        for part, (times, *_) in zip(self.parts, self.runs, strict=True):
            for name, values in part.longest().items():
                stacked = _stacked([values] * times)
                if name not in found or stacked.size > found[name].size:
                    found[name] = stacked
        return found

    def deviations(self) -> Mapping[str, Cells]:
        """Those of cases are known once it is drawn which of them follows."""
        sure = [one for one in zip(self.parts, self.runs, strict=True) if one[1][2] != DRAWN]
        return {
            name: _stacked([values] * times) for part, (times, *_) in sure for name, values in part.deviations().items()
        }


def _met(released: NDArray[Any], sign: str, limit: Fraction) -> bool:
    """Whether what was released compares with a number; one of several values is released as the nearest double."""
    value = float(np.asarray(released).item())
    return value == float(limit) if sign == DRAWN else bool(SIGNS[sign](Fraction(value), limit))


def _beside(drawn: Sequence[family.Drawn]) -> family.Drawn:
    """What stands beside the values of parts that were drawn once: what each is about, and its standard error."""
    labels = {name: one.labels[name] for one in drawn for name in one.labels}
    return family.Drawn(
        {}, labels=labels, deviations={name: one.deviations[name] for one in drawn for name in one.deviations}
    )


def _stacked(values: list[Any]) -> Any:
    """What several runs gave, one after another; of one run, what it gave."""
    return values[0] if len(values) == 1 else np.stack([np.squeeze(one) for one in values])
