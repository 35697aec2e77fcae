"""Learning weights from pairwise choices (Wang et al. 2019)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from privspec.functions.probit import probit_routes
from privspec.model.domains import Ball
from privspec.model.library import Arguments, Bound, Function, FunctionError, NotComputableError
from privspec.model.types import Numbers, Type


def _bind_probit_mle(arguments: Arguments) -> Bound:
    kind = arguments[0].type
    if not isinstance(kind.element, Numbers) or len(kind.shape) != 2:
        raise FunctionError(
            f"probit_mle takes one row a choice (n x d: chosen minus rejected), and this is {kind.describe()}",
            0,
            code="PS0207",
        )
    dimension = kind.shape[1]
    within = arguments.keywords.get("within")
    domain = None
    if within is not None:
        domain = within.domain
        if not isinstance(domain, Ball):
            raise FunctionError("within must be a ball: l1_ball(r, d) or l2_ball(r, d)", "within")
        if domain.dimension != dimension:
            raise FunctionError(
                f"the ball has {domain.dimension} dimensions and the choices have {dimension} features",
                "within",
                code="PS0207",
            )

    def apply(_: Any) -> Any:
        raise NotComputableError("the probit estimate is computed by its routes only")

    return Bound(Type((dimension,)), apply, domain=domain)


FUNCTIONS: Mapping[str, Function] = {
    "probit_mle": Function(
        "probit_mle",
        "probit_mle(V, within = l1_ball(B, d))",
        "The weights under which the choices V (one row each, chosen minus rejected alternative) are most probable "
        "in a probit model, looked for in a ball.",
        _bind_probit_mle,
        keywords=("within",),
        note="probit-routes",
        routes=probit_routes,
    )
}
