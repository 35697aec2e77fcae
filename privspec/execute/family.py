"""What every family of mechanisms can do when it is run; `mechanism_of` finds the one of a plan."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NoReturn, Protocol, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from privspec.core.diagnostics import UsageError
from privspec.core.records import dataclass, field
from privspec.execute.keeper import STRICT_RULE, DataOwnerReport, refuse
from privspec.execute.sources import AS_USUAL, TextFiles
from privspec.kernel.core.problem import Data, Frame, executed, read_frame
from privspec.kernel.core.reading import JsonNode, Refused, read
from privspec.kernel.promises import SharedBudget
from privspec.kernel.trust import NOBODY, TrustModel
from privspec.noise.samplers import SimulationRandomness
from privspec.registry import family_of_plan

if TYPE_CHECKING:
    import polars as pl

    from privspec.core.columns import Cells
    from privspec.core.matrices import ExactVector
    from privspec.execute.budget import Spend
    from privspec.execute.warehouse import Select
    from privspec.model.graph import Model
    from privspec.noise.samplers import Randomness

Plan: TypeAlias = Mapping[str, Any]
Roll: TypeAlias = "Callable[[pl.Series], pl.Series]"
"""Whether each of these parties, named once each, may take part."""
Progress: TypeAlias = Callable[[str, int, int | None], None]
"""Told what is done, how many records of it, and how many there are in all (None: not known yet)."""


def silent(what: str, done: int, total: int | None) -> None:
    """Progress that nobody watches."""


EXACT_BYTES = 600
"""Bytes of memory of a number that is exact until it is released, with all whole numbers on the way."""
EXACT_LIMIT = 2_000_000
"""`simulate` without `approximate` refuses to draw more noise numbers than this (about 12 microseconds
each)."""


def refuse_long_simulation(draws: int, what: str, remedy: str) -> None:
    """Raises: UsageError PS0822 if there are too many exact draws."""
    if draws > EXACT_LIMIT:
        raise UsageError.of("PS0822", f"{what} are more than a simulation should take", help=remedy)


def _of_the_system() -> Randomness:
    from privspec.noise.samplers import SystemRandomness  # most data are read without a draw

    return SystemRandomness()


@dataclass(frozen=True, eq=False, slots=True)
class RunContext:
    """What a run knows besides plan and data: the spec, and whether misfits are refused.

    `roll` says whose data count, where that is limited; `texts`, how text files are written. `keeper` is told how the
    data fit: nothing that is released or refused depends on it. `constants`: public values that the plan leaves open.
    `selects`: takes what a database would be asked of each input, and then nothing is read.
    """

    model: Model | None = None
    strict: bool = False
    progress: Progress = silent
    roll: Roll | None = None
    texts: TextFiles = AS_USUAL
    keeper: DataOwnerReport = field(default_factory=DataOwnerReport)
    constants: Mapping[str, Any] = field(default_factory=dict)
    randomness: Randomness = field(default_factory=_of_the_system)
    selects: list[tuple[str, Select]] | None = None


@dataclass(frozen=True, slots=True)
class Drawn:
    """Released values by output, the grid they lie on (None for values of finite domains), column names of arrays.

    `reports`: every row of the values is one person's. `skipped`: outputs that were not drawn, as a released one is 0.
    `labels` by output: what each number is about, where that is drawn as well; `deviations`: the standard error of
    each, where it is estimated from what is released.
    """

    outputs: Mapping[str, NDArray[Any]]
    grid: str | None = None
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    reports: bool = False
    skipped: tuple[str, ...] = ()
    labels: Mapping[str, Mapping[str, NDArray[Any]]] = field(default_factory=dict)
    deviations: Mapping[str, Cells] = field(default_factory=dict)


class Secret(ABC):
    """Data that were read and fit the plan; nothing has been drawn yet."""

    @property
    @abstractmethod
    def rules(self) -> tuple[str, ...]:
        """What was done with data that do not fit, in words that say nothing about these data."""

    @abstractmethod
    def draw(self, randomness: Randomness) -> Drawn:
        """One release."""

    def longest(self) -> Mapping[str, NDArray[Any]]:
        """Of outputs that hold other values than numbers of their declared shape: some as long as any that are drawn.

        None where how many there are is secret, as of partitions that are selected.
        """
        return {}

    @property
    def each(self) -> int:
        """Bytes of memory that a number takes while it is drawn, at most, as far as is known."""
        return EXACT_BYTES

    def deviations(self) -> Mapping[str, Cells]:
        """The standard deviation of the noise in each number, by output, where the plan alone fixes it.

        Values of finite domains, and finished statistics, have none to tell: theirs depends on the secret data.
        """
        return {}


@dataclass(frozen=True, eq=False)
class Exposure:
    """What a run of a plan shows to an observer of everything, for the ledger: what guarantees of all outputs cover."""

    plan: Plan

    @property
    def outputs(self) -> frozenset[str]:
        """All that is released."""
        return frozenset(mechanism_of(self.plan).outputs)

    def covers(self, requirement: int, outputs: frozenset[str]) -> bool:
        """Whether a guarantee for these outputs holds for everything released: where it names all of them."""
        return self.outputs <= outputs

    def charged(self, guarantee: Mapping[str, Any]) -> Mapping[str, Any]:
        """The guarantee that a ledger is charged for one of the plan's: one whose amounts add up over releases."""
        return guarantee

    def joint_spend(self, model: Model, requirement: int) -> Spend | None:
        """What everything released costs under the relation of a requirement; None if no bound is known or needed."""
        return None

    @property
    def rounds(self) -> SharedBudget | None:
        """The rounds that share a budget, None where a plan is for one release."""
        return None


@dataclass(frozen=True, eq=False, slots=True)
class LocalReports:
    """A table between people's values and their reports (a `drawing.TableLaw`), with a text for each value."""

    law: Any
    values: tuple[str, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Simulation:
    """So many seeded draws at one value of the secret: `base`, data by input name or a linear base vector, or none.

    Noise is that of a release, from a seed; if `approximate`, from floating-point generators.
    """

    repetitions: int
    seed: int
    base: ExactVector | Mapping[str, Any] | None = None
    approximate: bool = False

    @property
    def data(self) -> Mapping[str, Any] | None:
        """The data by input name, if any are given.

        Raises: TypeError for a base vector, which is one of linear answers.
        """
        if self.base is None or isinstance(self.base, Mapping):
            return self.base
        raise TypeError("only linear answers are simulated at a base vector; others at data by input name")


@dataclass(frozen=True, slots=True)
class Keys:
    """The files of a party's own key, and of the public keys of all: see `privspec keys`.

    `called`: what stands before the names of parties in these files; `taken`: once the own key is used up, for which
    parts of one message it was.
    """

    key: Path
    roster: tuple[Path, ...]
    called: str = ""
    taken: dict[str, Any] = field(default_factory=dict, compare=False)


class Mechanism(ABC):
    """A plan's mechanism, read and checked."""

    @property
    @abstractmethod
    def outputs(self) -> tuple[str, ...]:
        """What it releases."""

    @abstractmethod
    def read(self, data: Mapping[str, Any], circumstances: RunContext) -> Secret:
        """Data by input name: paths or objects in memory.

        Raises: DataError, UsageError; no message holds a value of the data.
        """

    def local_reports(self, model: Model | None) -> LocalReports | None:
        """What stands between a person's value and their report; None if a run is not one report per person."""
        return None

    @property
    def by_messages(self) -> bool:
        """Whether a release is made from messages of parties, by `of_party` and `combine`."""
        return False

    @property
    def masked(self) -> bool:
        """Whether these messages are masked, with the keys of the parties."""
        return False

    def of_party(self, party: str, keys: Keys | None = None) -> Mechanism:
        """What one party does by itself in a run; `keys`, where its message is masked.

        Raises: UsageError PS0844 if the plan is not one of parties that add noise of their own, or masks no messages.
        """
        raise no_messages()

    def combine(self, digest: str, messages: Sequence[Mapping[str, Any]]) -> Drawn:
        """A release from the messages of all parties, made under the plan with that digest.

        Raises: UsageError PS0844, DataError.
        """
        raise no_messages()

    @abstractmethod
    def simulate(self, asked: Simulation) -> NDArray[np.float64]:
        """Many seeded draws at one value of the secret (asked.repetitions, m): never a release."""

    def errors(self, draws: int, seed: int) -> Mapping[str, NDArray[np.float64]]:
        """What outputs (draws, *shape) are more than they stand for, where that does not depend on the data."""
        return {}


class FamilyMechanism(Mechanism):
    """The mechanism of a family's plans, as against that of one party alone."""

    @classmethod
    @abstractmethod
    def of_plan(cls, plan: Plan) -> FamilyMechanism:
        """Raises: UsageError PS0820, or what `readable_plan` says as one, if this version cannot execute the plan."""

    @staticmethod
    @abstractmethod
    def fit(model: Model, data: Mapping[str, Any], circumstances: RunContext) -> None:
        """How data fit a spec, told to the keeper as a run will read them; nothing is solved and nothing released.

        Raises: DataError where their structure does not fit, as a run does.
        """


class Executed(Protocol):
    """What the kernel reads of a plan that has one block."""

    @property
    def block(self) -> Any: ...

    @property
    def outputs(self) -> tuple[str, ...]: ...


E = TypeVar("E", bound=Executed)
C = TypeVar("C")


@dataclass(frozen=True, eq=False)
class BlockMechanism(FamilyMechanism, Generic[E, C]):
    """The mechanism of a plan of one block about one input: `executed` and the `source` as the kernel reads them.

    A family says how it reads a plan, what it keeps of data (the `content`), and what is drawn from that.
    """

    BLOCK: ClassVar[Any]
    """The block of a problem, as the kernel reads it."""
    SECRET: ClassVar[Any]
    """The `BlockSecret` of what was read."""
    REMEDY: ClassVar[str] = "take fewer"
    """What to do where exact draws would take too long."""

    executed: E
    source: Data
    trust: TrustModel

    @staticmethod
    @abstractmethod
    def content(block: Any, source: Data, data: Mapping[str, Any], circumstances: RunContext) -> C:
        """What a run keeps of the data; how they fit is told to the keeper.

        Raises: DataError PS0801 to PS0809.
        """

    @property
    @abstractmethod
    def nothing(self) -> C:
        """What is simulated where no data are given."""

    @classmethod
    def of_plan(cls, plan: Plan) -> Self:
        frame, found = read_plan(plan)
        return cls(found, frame.data[0], frame.trust.means)

    @classmethod
    def fit(cls, model: Model, data: Mapping[str, Any], circumstances: RunContext) -> None:
        from privspec.kernel.writing import write
        from privspec.problem.elaborate import elaborate

        whole = write(elaborate(model))
        block, source = (
            read(cls.BLOCK, JsonNode(whole["blocks"][0], "block")),
            read_frame(JsonNode(whole, "problem")).data[0],
        )
        cls.content(block, source, data, circumstances)

    @property
    def outputs(self) -> tuple[str, ...]:
        return self.executed.outputs

    def kept(self, data: Mapping[str, Any], circumstances: RunContext) -> C:
        """What a run keeps of the data.

        Raises: DataError PS0801 to PS0809.
        """
        refuse_unknown(data, (self.source.name,))
        return self.content(self.executed.block, self.source, data, circumstances)

    def secret(self, content: C, strict: bool) -> BlockSecret[Any, C]:
        """What was read, to be drawn from."""
        found: BlockSecret[Any, C] = self.SECRET(self, content, strict)
        return found

    def read(self, data: Mapping[str, Any], circumstances: RunContext) -> Secret:
        return self.secret(self.kept(data, circumstances), circumstances.strict)

    def simulate(self, asked: Simulation) -> NDArray[np.float64]:
        content = self.nothing if asked.data is None else self.kept(asked.data, RunContext())
        secret = self.secret(content, strict=False)
        if asked.approximate and (found := secret.approximate(asked)) is not None:
            return found
        count = asked.repetitions * secret.size
        refuse_long_simulation(count, f"{count} exact draws", self.REMEDY)
        randomness = SimulationRandomness(asked.seed)
        return np.array([np.reshape(secret.numbers(randomness), -1) for _ in range(asked.repetitions)])


M = TypeVar("M", bound=BlockMechanism[Any, Any])


@dataclass(frozen=True, eq=False)
class BlockSecret(Secret, Generic[M, C]):
    """What was kept of the data, in the terms of the mechanism."""

    RULE: ClassVar[str]
    """What is done with data that do not fit."""

    mechanism: M
    content: C
    strict: bool

    @property
    def rules(self) -> tuple[str, ...]:
        return (STRICT_RULE if self.strict else self.RULE,)

    @property
    @abstractmethod
    def size(self) -> int:
        """How many exact draws make a release."""

    @abstractmethod
    def numbers(self, randomness: Randomness) -> Any:
        """The numbers of one release."""

    def approximate(self, asked: Simulation) -> NDArray[np.float64] | None:
        """Many releases with floating-point noise, which are none; None where only exact ones are drawn."""
        return None


MESSAGE, PARTY = "message", "party"
"""The entries of a message that hold what its party says, and who it is where parties are not of one set."""
Party = TypeVar("Party")
Said = TypeVar("Said")


@dataclass(frozen=True, eq=False, slots=True)
class OwnMessage(Secret):
    """What one party says: who it is, under the name of its set, beside what `say` draws."""

    of: str
    party: str
    say: Callable[[Randomness], Mapping[str, NDArray[Any]]]
    rules: tuple[str, ...]

    def draw(self, randomness: Randomness) -> Drawn:
        return Drawn({self.of: np.array([self.party], dtype=object), **self.say(randomness)})


def refuse_missing(
    found: Container[Any], names: Iterable[tuple[Any, str]], of: str, why: str = "", help_: str | None = None
) -> None:
    """Raises: DataError PS0811 where messages of parties, each known by a key and a name, are not among those found."""
    known = list(names)
    missing = [name for key, name in known if key not in found]
    if missing:
        some = ", ".join(missing[:5]) + (", .." if len(missing) > 5 else "")
        told = f"{len(missing)} of {len(known)} messages are missing: of {of} {some}"
        refuse("PS0811", told, *((why,) if why else ()), help=help_)


def messages_by_party(
    digest: str,
    messages: Sequence[Mapping[str, Any]],
    name: str,
    read: Callable[[Mapping[str, Any]], tuple[Party, Said]],
    flaw: Callable[[Party, Said], str],
) -> dict[Party, Said]:
    """What the parties of a set say in their messages, as `run --party` writes them, in the order of these.

    Args: digest, of the plan; name, of a party; read, from what stands under `outputs` to who it is from and what it
        says, with a ValueError for what is none; flaw, why that does not fit the plan, empty where it does.
    Raises: DataError PS0842 for no message of this plan or the second of a party, PS0843 for one of another plan.
    """
    found: dict[Party, Said] = {}
    for place, message in enumerate(messages, 1):
        try:
            (who, said), plan = read(message["outputs"]), message["plan_sha256"]
        except (KeyError, TypeError, ValueError, UsageError):
            refuse("PS0842", f"message {place} is not one of this plan", help="messages are what `run --party` writes")
        if plan != digest:
            refuse("PS0843", f"message {place} was made under another plan", help="all parties need the same plan")
        if why := flaw(who, said):
            refuse("PS0842", f"message {place} is not one of this plan: it {why}")
        if who in found:
            refuse("PS0842", f"message {place} is from a {name} who has sent one already")
        found[who] = said
    return found


def refuse_unknown(data: Iterable[str], known: Sequence[str]) -> None:
    """Raises: DataError PS0801 for data of an input that a plan has not."""
    for name in data:
        if name not in known:
            inputs = "its input is" if len(known) == 1 else "its inputs are"
            refuse("PS0801", f"the plan has no input {name}", help=f"{inputs} {', '.join(known)}")


def keys_of(key: Path | str | None, roster: Sequence[Path | str]) -> Keys | None:
    """What a party of a secure sum has, or nothing.

    Raises: UsageError PS0844 where one of the two is missing.
    """
    if key is None and not roster:
        return None
    if key is None or not roster:
        raise UsageError.of("PS0844", "--key FILE and --roster FILE go together", help="see `privspec keys --help`")
    return Keys(Path(key), tuple(map(Path, roster)))


def refuse_keys(keys: Keys | None) -> None:
    """Raises: UsageError PS0844 where there are any, and messages are not masked."""
    if keys is not None:
        raise UsageError.of("PS0844", "no message is masked under this plan", help="leave out --key and --roster")


def no_messages(why: str = "") -> UsageError:
    """PS0844: parties make no messages under a plan."""
    return UsageError.of(
        "PS0844",
        "parties make no messages under this plan" + (f": {why}" if why else ""),
        help=f"with `options: {NOBODY.written}` every party adds noise of its own",
    )


@contextmanager
def readable_plan() -> Iterator[None]:
    """Says PS0820 where what a plan executes is not of the form that this version can execute."""
    try:
        yield
    except (Refused, LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise UsageError.of(
            "PS0820",
            "this plan cannot be executed",
            f"no entry {error}" if isinstance(error, KeyError) else str(error),
            help="solve the spec again with this version of privspec",
        ) from error


def read_plan(plan: Plan) -> tuple[Frame, Any]:
    """The problem of a plan without its blocks, and what is executed, as the kernel reads them.

    Raises: UsageError PS0820 if the plan has none that this version can execute.
    """
    with readable_plan():
        frame = read_frame(JsonNode(plan["problem"], "problem"))
        return frame, executed(frame, JsonNode(plan["mechanism"], "mechanism"))


def mechanism_of(plan: Plan) -> Mechanism:
    """The mechanism of a plan.

    Raises: UsageError (PS0820) if the plan has none that this version can execute.
    """
    with readable_plan():
        found: Mechanism = family_of_plan(plan).executes().of_plan(plan)
        return found


def simulate(
    plan: Plan,
    repetitions: int,
    seed: int,
    *,
    base: ExactVector | Mapping[str, Any] | None = None,
    approximate: bool = False,
) -> NDArray[np.float64]:
    """Many seeded draws of a mechanism at one value of the secret: never a release.

    Args: base, data by input name, or a base vector of linear answers; by default data that are all zero, nobody's
        ballots, or the first row of a table.
    Returns: (repetitions, m), outputs one after another; words of a table by their place in its domain.
    Raises: UsageError (PS0822) if that many exact draws would take too long.
    """
    return mechanism_of(plan).simulate(Simulation(repetitions, seed, base, approximate))


def exposure_of(plan: Plan) -> Exposure:
    """What a run of a plan shows."""
    exposes = family_of_plan(plan).exposes()
    found: Exposure = Exposure(plan) if exposes is None else exposes(plan)
    return found


def joint_draw_of(plan: Plan, mechanism: Mechanism, digest: str, transcript: Path, *, private: bool) -> Mechanism:
    """The mechanism of a plan, drawn by a protocol between the voters themselves.

    Args: digest, of the plan; transcript, the file to write; private, whether the run is no simulation.
    Raises: UsageError PS0850 without PyNaCl, PS0851 for a simulation, PS0852 if the plan cannot be drawn so.
    """
    joint = family_of_plan(plan).draws_jointly()
    if joint is None:
        refuse_joint_draw("its mechanism draws no winner")
    found: Mechanism = joint.of(mechanism, digest, transcript, private=private)
    return found


def refuse_joint_draw(why: str) -> NoReturn:
    """Raises: UsageError PS0852."""
    help_ = "a joint draw is for `noise family dictator`, and a public number of voters: `replacing one voter`"
    raise UsageError.of("PS0852", f"this plan cannot be executed by a joint draw: {why}", help=help_)
