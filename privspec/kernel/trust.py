"""Whose word is taken: who is trusted, what all see beside outputs, who draws noise, and what an author asserts."""

from __future__ import annotations

from privspec.kernel.core.reading import Refused, Size, frozen


@frozen
class TrustModel:
    """Who is trusted, by a name as a spec writes it, and what follows.

    `public`: every message, or every sum of them, is seen by all; `alone`: each party draws noise for what it holds
    itself; `shared`: all parties add shares of one noise. `described` is a sentence for authors, `stated` one for
    auditors of a problem; `shown` what is seen of so many answers; `held` who holds an input without an index, of which
    linear answers are released. `register`: what the register of deployments has.
    """

    name: str
    described: str
    stated: str
    register: str
    public: bool = False
    alone: bool = False
    shared: bool = False
    shown: str = "{seen} of {answers} noisy answers{mixed}"
    held: str = "one keeper or person holds all of it"

    @property
    def by_parties(self) -> bool:
        """Whether parties add noise, and no keeper does."""
        return self.alone or self.shared

    @property
    def central(self) -> bool:
        """Whether one keeper sees all data and adds the noise, and nobody else sees more than outputs."""
        return not (self.public or self.by_parties)

    @property
    def written(self) -> str:
        """As a spec asks for it."""
        return f"trust {self.name}"


CURATOR = TrustModel(
    "curator",
    "one keeper sees all raw data; everybody else sees only the outputs",
    "One keeper sees all data; everybody else sees outputs only.",
    "Central",
)
SECURE_SUM = TrustModel(
    "secure_sum",
    "parties add shares of noise, and everybody sees only the sum",
    "Parties add shares of the noise, and everybody sees the sum only.",
    "Federated",
    public=True,
    shared=True,
    shown="the sums of what all parties add ({answers} in number), and {colluding} shares of each",
    held="each record of it is held by a person, who adds a share of the noise",
)
NOBODY = TrustModel(
    "nobody",
    "nobody sees another's raw data; each party adds its own noise before it sends anything",
    "Nobody sees another's data: every message of every party is public.",
    "Local",
    public=True,
    alone=True,
    shown="all {answers} messages",
    held="each number of it is held by a party of its own",
)
KINDS = {model.name: model for model in (CURATOR, SECURE_SUM, NOBODY)}
"""Whoever is trusted most stands first."""
PARTS = "parts"
"""Of a system: each part says whom it trusts."""
WORDS = {"Trust.kind": (*KINDS, PARTS), "Asserted.norm": ("l1", "l2", "linf")}
NORMS = {"l1": "sum of absolute values", "l2": "Euclidean length", "linf": "largest entry"}


@frozen
class Trust:
    """Who is trusted; `colluding` parties of a secure sum pool what they know."""

    kind: str
    colluding: int

    def __post_init__(self) -> None:
        if self.colluding and not self.means.shared:
            raise Refused("has parties who collude about no shares")

    @property
    def means(self) -> TrustModel:
        """What follows from it; refused where only parts say so."""
        if self.kind not in KINDS:
            raise Refused("trusts nobody in particular: only parts of a system do")
        return KINDS[self.kind]

    def holds_part(self, part: Trust) -> bool:
        """Whether a system under it may have a part under another one."""
        return self.kind == PARTS or part == self

    def shown(self, **figures: object) -> str:
        """What is seen of noisy answers, in words."""
        return self.means.shown.format(colluding=self.colluding, **figures)


@frozen
class Asserted:
    """Of a function that nobody here sees into: a unit, `neighbours` in words, moves its values by at most `amount`."""

    function: str
    norm: str
    amount: Size
    neighbours: str
    line: int
