"""From the graph to a linear system: the numbers of `problem.linear_lowering` with the views of every requirement."""

from __future__ import annotations

from collections.abc import Sequence

from privspec.compile.infeasible import Infeasible
from privspec.compile.program import AccuracyLimit, LinearSystem
from privspec.compile.views import check_sizes, moves, nothing_secret, protected_views
from privspec.model.graph import Model
from privspec.model.reports import Failure
from privspec.problem.linear_lowering import check_priced, lowered, noisy_site_map, raise_failure
from privspec.problem.linear_lowering import site_map as map_of_site
from privspec.solvers.programs import Site


def lower(model: Model) -> LinearSystem | Infeasible:
    """The linear system of a spec, or why no finite noise can do.

    Raises: SpecError PS05xx with every construct that cannot be computed yet, PS02xx for a value that has none.
    """
    found = lowered(model)
    try:
        views = protected_views(model, found.outputs)
    except Failure as failure:
        raise_failure(model, failure)
    if isinstance(views, Infeasible):
        return views
    if not any(moves(view, found.target) for view in views):
        raise nothing_secret(model)
    check_priced(model, found)
    scaled = found.errors.scaled
    check_sizes(model, views, found.target, scaled)
    return LinearSystem(
        lowered=found,
        error_map=scaled,
        views=tuple(views),
        limits=tuple(
            AccuracyLimit(limit.errors.scaled, float(limit.bound), limit.line, limit.text, limit.span)
            for limit in found.limits
        ),
    )


def site_maps(model: Model, system: LinearSystem, names: Sequence[str]) -> tuple[Site, ...]:
    """How unit noise at each named node reaches the outputs, each node by itself (m, size of the node).

    Raises: SpecError PS0505 if noise at a node reaches no output, PS0506 if it reaches one and costs nothing.
    """
    return tuple(Site(name, noisy_site_map(model, system.lowered, name)) for name in names)


def site_map(model: Model, system: LinearSystem, name: str) -> Site:
    """How unit noise at a node reaches the outputs; all zero where it does not."""
    return Site(name, map_of_site(model, system.lowered, name))
