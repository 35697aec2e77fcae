"""The rules of each form of block: one registry, and no form that is not in it."""

from __future__ import annotations

from privspec.kernel.cells import CellRules
from privspec.kernel.chains import ChainRules
from privspec.kernel.core.case import Rules
from privspec.kernel.keys import KeyRules
from privspec.kernel.lemmas.statistics import Statistics
from privspec.kernel.lemmas.votes import VoteRules
from privspec.kernel.marginals import MarginalRules
from privspec.kernel.ordered import OrderedRules
from privspec.kernel.personal import PartyRules
from privspec.kernel.points import PointRules
from privspec.kernel.priced import PricedRules
from privspec.kernel.quality.tables import Tables
from privspec.kernel.selection import SelectionRules
from privspec.kernel.systems import SystemRules

LINEAR = PartyRules()
FORMS: dict[str, Rules] = {"linear": LINEAR, "statistics": Statistics(), "table": Tables(), "votes": VoteRules()}
FORMS["priced"] = PricedRules()
FORMS["chain"] = ChainRules()
FORMS["points"] = PointRules()
FORMS["cells"] = CellRules()
FORMS["keys"] = KeyRules()
FORMS["selection"] = SelectionRules()
FORMS["marginals"] = MarginalRules()
FORMS["ordered"] = OrderedRules()
FORMS["system"] = SystemRules(FORMS)
