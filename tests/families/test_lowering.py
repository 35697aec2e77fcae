"""Lowering against direct evaluation of the definitions, on random graphs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from privspec.core.diagnostics import SpecError
from privspec.families.gaussian.problem import LinearSystem, site_maps
from privspec.model.graph import Model
from privspec.model.targets import target

from .graphs import specs
from .specs import Array, loss_at, lowered, model_of, spec, targets, value_of

SEEDS = st.integers(0, 2**32 - 1)


def lowered_unless_constant(model: Model) -> LinearSystem:
    """The system; a graph without anything to protect must be constant indeed, and is put aside."""
    try:
        return lowered(model)
    except SpecError as error:
        assert [d.code for d in error.diagnostics] == ["PS0511"]
        np.testing.assert_allclose(
            targets(model, point(1, model.size)), targets(model, point(2, model.size)), atol=1e-9
        )
        reject()


def point(seed: int, size: int) -> Array:
    return np.random.default_rng(seed).normal(size=size)


@settings(max_examples=settings().max_examples * 3 // 5)
@given(text=specs(), seed=SEEDS)
def test_target_and_offset_are_what_the_definitions_give(text: str, seed: int) -> None:
    model = model_of(text)
    system = lowered_unless_constant(model)
    for u in (np.zeros(model.size), point(seed, model.size)):
        expected = targets(model, u)
        slack = 1e-9 * (1 + np.abs(expected).max())
        np.testing.assert_allclose(system.target @ u + system.lowered.offset, expected, atol=slack)


@settings(max_examples=settings().max_examples * 3 // 5)
@given(text=specs(), seed=SEEDS)
def test_error_map_gives_the_loss_of_any_error(text: str, seed: int) -> None:
    model = model_of(text)
    system = lowered_unless_constant(model)
    u, noise = point(seed, model.size), point(seed + 1, system.outputs_count)
    rows = (system.error_map @ noise) ** 2
    assert not system.worst
    assert rows.sum() == pytest.approx(loss_at(model, u, targets(model, u) + noise), rel=1e-9, abs=1e-9)


@pytest.mark.slow
@settings(max_examples=settings().max_examples * 3 // 5)
@given(text=specs(), data=st.data())
def test_site_maps_are_finite_differences(text: str, data: st.DataObject) -> None:
    model = model_of(text)
    system = lowered_unless_constant(model)
    u = point(7, model.size)
    name = data.draw(st.sampled_from(system.candidates))
    try:
        (site,) = site_maps(model, system, (name,))
    except SpecError as error:
        assert [d.code for d in error.diagnostics] == ["PS0505"]
        found = np.zeros((system.outputs_count, 1))
    else:
        found = site.map
    np.testing.assert_allclose(found, moved_by(model, name, u, found.shape[1]), atol=1e-8)


def moved_by(model: Model, name: str, u: Array, width: int) -> Array:
    """How the outputs move when each entry of a node moves by one and all else is as it was."""
    still = targets(model, u)
    if name in {node.name for node in model.outputs}:
        out = np.zeros((len(still), width))
        start = 0
        for node in model.outputs:
            size = int(np.prod(node.type.shape, dtype=int))
            if node.name == name:
                out[start : start + size] = np.eye(size)
            start += size
        return out
    columns = []
    for k in range(width):
        block = next((b for b in model.blocks if b.name == name), None)
        if block is not None:
            step = np.zeros(model.size)
            step[block.start + k] = 1.0
            columns.append(targets(model, u + step) - still)
            continue
        base = target(model, name, u)
        step = np.zeros(base.size)
        step[k % base.size] = 1.0
        columns.append(targets(model, u, {name: value_of(base + step.reshape(base.shape))}) - still)
    return np.array(columns).T


# --- by hand -------------------------------------------------------------------------------------

TABLE = "input people in table(age in 0..2, sex in {F, M}, region in {n, s}); intermediate y; output O"


@pytest.mark.parametrize(
    "body",
    ["histogram(people)", "marginals(people, 1, 2)", "prefix_sums(histogram(people))", "2 * marginals(people, 0, 1)"],
)
def test_tables_are_lowered_over_their_cells(body: str) -> None:
    privacy = "O is 1-GDP wrt people, adding or removing one record"
    model = model_of(spec(TABLE, f"y = {body}", privacy=privacy))
    system = lowered(model)
    assert system.inputs_count == 12
    for column in range(12):
        counts = np.eye(12)[column]
        np.testing.assert_allclose(system.target @ counts, targets(model, counts), atol=1e-12)


def test_noise_at_a_table_is_noise_at_its_cells() -> None:
    privacy = "O is 1-GDP wrt people, adding or removing one record"
    model = model_of(spec(TABLE, "y = marginals(people, 1)", privacy=privacy))
    system = lowered(model)
    at_people, at_y = site_maps(model, system, ("people", "y"))
    np.testing.assert_allclose(at_people.map, system.target)
    np.testing.assert_allclose(at_y.map, np.eye(system.outputs_count))


def test_computed_outputs_follow_from_what_they_are_computed_from() -> None:
    model = model_of(
        spec(
            "input x in [0, 1]^3; intermediate y; output O; output Z = prefix_sums(y) + 1",
            "y = [1, 2, 3] * x",
            "E[ ||O - y||^2 ]",
            "(O, Z) is 1-GDP wrt x, replacing one entry",
        )
    )
    system = lowered(model)
    weights = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(system.target, np.vstack([np.diag(weights), np.tril(np.ones((3, 3))) * weights]))
    np.testing.assert_allclose(system.lowered.offset, [0, 0, 0, 1, 1, 1])
    (site,) = site_maps(model, system, ("y",))
    np.testing.assert_allclose(site.map, np.vstack([np.eye(3), np.tril(np.ones((3, 3)))]))


def test_offsets_are_public_and_cost_nothing() -> None:
    plain = lowered(model_of(spec("input x in [0, 1]^2; intermediate y; output O", "y = 3 * x")))
    moved = lowered(model_of(spec("input x in [0, 1]^2; intermediate y; output O", "y = 3 * x + [10, -7]")))
    np.testing.assert_allclose(moved.target, plain.target)
    np.testing.assert_allclose(moved.lowered.offset, [10, -7])
    np.testing.assert_allclose(moved.error_map.toarray(), plain.error_map.toarray())


def test_views_name_rows_and_differences_of_their_requirement() -> None:
    model = model_of(
        spec(
            "input x in [0, 2]^2; input w in [-3, 1]^2; intermediate y; output O; output P",
            "y = x + w",
            "E[ ||O - y||^2 ] + E[ ||P - w||^2 ]",
            "P is 1-GDP wrt w, replacing one entry; (O, P) is 2-GDP wrt (x, w), replacing one entry",
        )
    )
    views = lowered(model).views
    assert [view.index for view in views] == [0, 1, 1]
    assert [None if view.rows is None else view.rows.tolist() for view in views] == [[2, 3], None, None]
    seen = [view.differences.matrix.toarray().T.tolist() for view in views]  # type: ignore[union-attr]
    moved = [[[0, 0, 4, 0], [0, 0, 0, 4]], [[2, 0, 0, 0], [0, 2, 0, 0]]]
    assert seen == [moved[0], moved[1], moved[0]]


def test_a_loss_of_combinations_is_solved_for_the_outputs() -> None:
    text = spec(
        "input x in [0, 1]^2; intermediate y; output O",
        "y = 2 * x + [1, 0]",
        "E[ ||[[1, 1], [3, -3]] @ (O - y)||^2 ]",
    )
    system = lowered(model_of(text))
    np.testing.assert_allclose(system.target, 2 * np.eye(2), atol=1e-12)
    np.testing.assert_allclose(system.lowered.offset, [1, 0], atol=1e-12)
    np.testing.assert_allclose(system.error_map.toarray(), [[1, 1], [3, -3]])


def test_a_group_that_may_lie_in_several_inputs_is_refused() -> None:
    text = spec(
        "input x in [0, 1]^2; input w in [0, 1]^2; output O",
        "",
        "E[ (O - sum(x) - sum(w))^2 ]",
        "O is 1-GDP wrt (x, w), replacing up to 2 entries",
    )
    with pytest.raises(SpecError) as found:
        lowered(model_of(text))
    assert [(one.code, one.message) for one in found.value.diagnostics] == [
        ("PS0501", "solve cannot compute with entries of several inputs that change at once")
    ]
