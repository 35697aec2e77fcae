"""Every example of the language reference builds a model."""

from fractions import Fraction

import model_specs as specs
import numpy as np
import pytest

from privspec.kernel.measures import APPROXIMATE
from privspec.kernel.trust import CURATOR, NOBODY
from privspec.model.domains import L1Ball
from privspec.model.measures import MeasureAt, Personalised
from privspec.model.requirements import TrustIn
from privspec.model.targets import target

EXAMPLES = {
    name: getattr(specs, name)
    for name in (
        "SHOPS", "SHAPING", "CROWD", "DICTATOR", "ACCURACY", "WHOLE", "FAIR", "MEASURES", "TABLE",
    )
}  # fmt: skip


@pytest.mark.parametrize("name", EXAMPLES)
def test_checks(name, tmp_path):
    model = specs.load(EXAMPLES[name], specs.folder(tmp_path))
    assert model.requirements
    assert all(node.type.known for node in model.nodes.values())


def test_the_first_example(tmp_path):
    model = specs.load(specs.SHOPS, specs.folder(tmp_path), constants={"b": np.ones(32)})
    assert model.name == "shop_queries"
    assert model.size == 64
    assert model.noise_at == ("x", "y")
    assert model.trust == TrustIn(CURATOR)
    assert {n: node.secret for n, node in model.nodes.items()} == {
        "x": True, "A": False, "b": False, "y": True, "O": False,
    }  # fmt: skip
    assert model.nodes["O"].type.shape == (32,)
    assert set(model.graph.edges) == {("x", "y"), ("A", "y"), ("b", "y"), ("y", "O")}
    (requirement,) = model.requirements
    assert requirement.measure == MeasureAt(APPROXIMATE, (Fraction(1), Fraction(1, 10**6)))
    assert requirement.neighbours.describe() == "replacing one entry"
    assert requirement.line == 17
    assert requirement.text == "O is (epsilon, delta)-DP wrt x, replacing one entry"
    u = np.linspace(0, 1, 64)
    np.testing.assert_allclose(target(model, "O", u), specs.queries() @ u + 1)


def test_a_constant_without_a_value_is_missed_only_when_it_is_needed(tmp_path):
    from privspec.model.reports import Failure

    model = specs.load(specs.SHOPS, specs.folder(tmp_path))
    with pytest.raises(Failure, match="b has no value"):
        target(model, "y", np.zeros(64))
    np.testing.assert_allclose(target(model, "y", np.zeros(64), {"b": np.full(32, 2.0)}), np.full(32, 2.0))


def test_files_may_be_given_in_place_of_the_disk():
    model = specs.load(specs.SHOPS, None, files={"csv:queries.csv": specs.queries() * 2})
    np.testing.assert_array_equal(model.values["A"], specs.queries() * 2)


def test_files_that_were_read_are_kept(tmp_path):
    model = specs.load(specs.SHOPS, specs.folder(tmp_path))
    assert list(model.files) == ["csv:queries.csv"]


def test_parameters_are_overridden_by_text(tmp_path):
    model = specs.load(specs.SHOPS, specs.folder(tmp_path), parameters={"epsilon": "1/3", "delta": Fraction(1, 100)})
    assert model.requirements[0].measure == MeasureAt(APPROXIMATE, (Fraction(1, 3), Fraction(1, 100)))


def test_local_privacy_implies_trusting_nobody():
    model = specs.load(specs.SHAPING)
    assert model.trust == TrustIn(NOBODY)
    assert [node.name for node in model.choices] == ["B", "alpha"]
    assert len(model.constraints) == 2
    assert model.nodes["estimate"].secret is False


def test_people_index_collections():
    model = specs.load(specs.CROWD)
    assert model.nodes["V"].type.shape == (20, 5, 3)
    assert model.nodes["beta"].type.shape == (20, 3)
    assert model.nodes["beta"].domain == L1Ball(Fraction(2), 3)
    assert model.nodes["O"].type.shape == (3,)
    (block,) = model.blocks
    assert block.size // block.party_length == 20
    assert block.size // block.record_length == 100


def test_default_units():
    model = specs.load(specs.MEASURES)
    relations = [r.neighbours.describe() for r in model.requirements]
    assert relations[0] == "replacing one record"
    assert relations[8] == "replacing everything"
    assert relations[10] == "replacing one record of x or one voter of V"
    assert model.requirements[0].unit_by_default
    assert not model.requirements[1].unit_by_default
    personal = model.requirements[7].measure
    assert isinstance(personal, Personalised)
    assert personal.describe() == "1-DP to 3-DP, by voter"
    assert model.requirements[11].observers == ("auditors",)


def test_gaussian_allowances():
    model = specs.load(specs.MEASURES)
    allowed = [r.measure.gaussian_mu_down() for r in model.requirements]
    assert allowed[0] is None
    assert float(allowed[1]) == pytest.approx(0.2367, abs=1e-4)
    assert allowed[2] == allowed[3] == allowed[4] == 1


def test_accuracy_gives_an_output_its_meaning(tmp_path):
    model = specs.load(specs.ACCURACY, specs.folder(tmp_path))
    assert model.nodes["O"].type.shape == (32,)
    assert model.requirements[0].measure.name == "epsilon-DP"
    assert "chosen" in model.requirements[0].measure.describe()


def test_parts(tmp_path):
    model = specs.load(specs.WHOLE, specs.folder(tmp_path))
    assert [part.name for part in model.components] == ["average", "counts"]
    assert model.components[0].links == {"x": "x"}
    assert model.requirements[0].outputs == ("average.O", "counts.O")


def test_tables_are_cell_counts():
    model = specs.load(specs.TABLE)
    (block,) = model.blocks
    assert (block.layout, block.size) == ("cells", 40)
    assert [name for name, _ in block.schema] == ["age", "sex", "ok"]
    counts = np.arange(40.0)
    cells = counts.reshape(10, 2, 2)
    expected = [cells.sum((1, 2)), cells.sum((0, 2)), cells.sum((0, 1)), cells.sum(2).ravel()]
    np.testing.assert_allclose(target(model, "O", counts), np.concatenate(expected))
    assert model.requirements[0].neighbours.describe() == "replacing one record"


def test_huge_domains_are_named_but_not_laid_out():
    text = specs.TABLE.replace("0..9", "0..99999999").replace("marginals(people, 1, {age, sex})", "count(people)")
    model = specs.load(text)
    assert model.size == 10**8  # no question is about sex and ok
    from privspec.core.diagnostics import SpecError

    with pytest.raises(SpecError, match="100,000,000 cells"):
        _ = model.block("people").lower
