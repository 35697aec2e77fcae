"""Specs of components: one flat spec, whose names, data and diagnostics are those of the files."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from privspec.core.diagnostics import SpecError
from privspec.core.render import diagnostic_to_json
from privspec.core.spans import Source
from privspec.kernel.writing import write
from privspec.language.formatter import format_source
from privspec.language.parser import parse
from privspec.language.spelling import print_spec, spell
from privspec.model.build import load_model
from privspec.model.components import assembled
from privspec.model.graph import Model
from privspec.problem.elaborate import elaborate

MEAN = """spec a_mean
parameters:
  epsilon = 1
  n = 10
variables:
  input x in [0, 1]^n
  intermediate m
  output O
background:
  m = mean(x)
loss: E[ (O - m)^2 ]
privacy: all outputs are (epsilon, 1e-6)-DP wrt all inputs, replacing one record
"""
WHOLE = """components:
  a = spec("mean.priv", epsilon = 0.5)
  b = spec("mean.priv", x = z, epsilon = 2)
variables:
  input x in [0, 1]^10
  input z in [0, 1]^10
loss: a.loss + 4 * b.loss
privacy: (a.O, b.O) is (1, 1e-6)-DP wrt (x, z), replacing one record
"""


def load(folder: Path, text: str, **files: str) -> Model:
    for name, words in {"mean": MEAN, **files}.items():
        (folder / f"{name}.priv").write_text(words, "utf-8")
    return load_model(Source("whole.priv", text), base=folder)


def wrong(folder: Path, text: str, **files: str) -> dict[str, tuple[str, int, str]]:
    """Code, file, line and message of each error."""
    with pytest.raises(SpecError) as caught:
        load(folder, text, **files)
    told = [diagnostic_to_json(one) for one in caught.value.diagnostics if one.is_error]
    return {str(d["code"]): (Path(str(d["file"])).name, d["line"], str(d["message"])) for d in told}  # type: ignore[misc]


def test_a_flat_spec(tmp_path: Path) -> None:
    model = load(tmp_path, WHOLE)
    assert [node.name for node in model.outputs] == ["a.O", "b.O"]
    assert [node.name for node in model.inputs] == ["x", "z"]
    assert spell(model.loss) == "E[ (a.O - a.m)^2 ] + 4 * E[ (b.O - b.m)^2 ]"
    assert [(line.outputs, line.wrt) for line in model.requirements] == [
        (("a.O", "b.O"), ("x", "z")),
        (("a.O",), ("x",)),
        (("b.O",), ("z",)),
    ]
    assert [float(line.measure.amounts["epsilon"]) for line in model.requirements] == [1, 0.5, 2]
    assert model.requirements[1].text.startswith("mean.priv: all outputs are (epsilon, 1e-6)-DP")
    assert [part.links for part in model.components] == [{"x": "x"}, {"x": "z"}]
    assert [part.by_name for part in model.components] == [("x",), ()]
    # what is taken by name is said, what was passed is not; a record is one of x or of z
    assert sorted(d.code for d in model.warnings) == ["PS0326", "PS0423"]


def test_an_input_of_one_name_is_one_input(tmp_path: Path) -> None:
    """Both parts bring x: it is the same data, and a line of the whole can name it."""
    text = """components:
  a = spec("mean.priv")
  b = spec("mean.priv")
loss: a.loss + b.loss
privacy: (a.O, b.O) is (1, 1e-6)-DP wrt x, replacing one record
"""
    model = load(tmp_path, text)
    assert [node.name for node in model.inputs] == ["x"]
    assert [line.wrt for line in model.requirements] == [("x",)] * 3
    assert [d.code for d in model.warnings] == ["PS0423"]


def test_a_part_of_a_part_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "A.csv").write_text("1,0\n1,1\n", "utf-8")
    (tmp_path / "parts" / "inner.priv").write_text(
        """variables:
  input x in [0, 1]^2
  constant A = csv("A.csv")
  output O
loss: E[ ||O - A @ x||^2 ]
privacy: O is 2-DP wrt x
""",
        "utf-8",
    )
    middle = """components: inner = spec("parts/inner.priv", x = data)
variables: input data in [0, 1]^2
loss: 3 * inner.loss
privacy: inner.O is 1-DP wrt data
"""
    whole = 'components: m = spec("middle.priv")\nloss: m.loss\nprivacy: all outputs are 0.5-DP wrt data'
    model = load(tmp_path, whole, middle=middle)
    assert [node.name for node in model.outputs] == ["m.inner.O"]
    assert list(model.files) == ["csv:parts/A.csv"]
    assert [float(line.measure.amounts["epsilon"]) for line in model.requirements] == [0.5, 1, 2]
    assert [(part.name, part.links) for part in model.components] == [
        ("m", {"data": "data"}),
        ("m.inner", {"x": "data"}),
    ]


@pytest.mark.parametrize(
    ("old", "new", "code", "file", "line"),
    [
        ("epsilon = 0.5", "epsilom = 0.5", "PS0421", "whole.priv", 2),
        ("x = z", "x = q", "PS0421", "whole.priv", 3),
        ("epsilon = 2", "epsilon = 2, epsilon = 3", "PS0421", "whole.priv", 3),
        ("epsilon = 2", "epsilon = 0", "PS0304", "mean.priv", 12),
        ("[0, 1]^10\n  input z", "[0, 2]^10\n  input z", "PS0424", "mean.priv", 6),
        ("input x in", "constant x in", "PS0421", "whole.priv", 2),
        ("a.loss +", "a.lost +", "PS0229", "whole.priv", 7),
        ("a.loss +", "a +", "PS0203", "whole.priv", 7),
        ("(a.O, b.O)", "(a.P, b.O)", "PS0229", "whole.priv", 8),
        ("  a = spec", "  b = spec", "PS0202", "whole.priv", 3),
        ("mean.priv\", x", "mein.priv\", x", "PS0420", "whole.priv", 3),
        ("epsilon = 2", "epsilon = 2, times = 0", "PS0425", "whole.priv", 3),
        ("epsilon = 2", "epsilon = 2, times = 13", "PS0425", "whole.priv", 3),
        ("epsilon = 2", "epsilon = 2, times = 1.5", "PS0425", "whole.priv", 3),
        ("epsilon = 2", "epsilon = 2, only_if = 1 + 1", "PS0425", "whole.priv", 3),
        ("epsilon = 2", "epsilon = 2, only_if = x", "PS0425", "whole.priv", 3),
        ("epsilon = 2", "epsilon = 2, only_if = b.O", "PS0425", "whole.priv", 3),
    ],
)  # fmt: skip
def test_each_complaint_stands_where_it_is_wrong(
    tmp_path: Path, old: str, new: str, code: str, file: str, line: int
) -> None:
    assert old in WHOLE
    found = wrong(tmp_path, WHOLE.replace(old, new, 1))
    assert code in found
    assert found[code][:2] == (file, line)


INLINE = """spec whole
components:
  a = spec(a_mean, epsilon = 0.5)
  b = spec(a_mean, x = z, epsilon = 2)
variables:
  input x in [0, 1]^10
  input z in [0, 1]^10
loss: a.loss + 4 * b.loss
privacy: (a.O, b.O) is (1, 1e-6)-DP wrt (x, z), replacing one record
# what both of them are
"""


def meaning(document: object) -> object:
    """A problem without the places in files that it comes from."""
    match document:
        case dict():
            return {key: meaning(value) for key, value in document.items() if key not in ("line", "text")}
        case list():
            return [meaning(value) for value in document]
        case _:
            return document


def test_parts_in_one_file(tmp_path: Path) -> None:
    """A part below the whole means what it means in a file of its own; the file prints and parses as it is."""
    one, several = load(tmp_path, INLINE + MEAN), load(tmp_path, WHOLE)
    assert meaning(write(elaborate(one))) == meaning(write(elaborate(several)))
    assert one.requirements[1].text.startswith("all outputs are (epsilon, 1e-6)-DP")
    tree = parse(Source("whole.priv", INLINE + MEAN))
    assert parse(Source("again", print_spec(tree))) == tree
    formatted = format_source(Source("whole.priv", INLINE + MEAN))
    assert parse(Source("again", formatted)) == tree
    assert format_source(Source("again", formatted)) == formatted
    assert "\n\n# what both of them are\nspec a_mean\n" in formatted


PERSONAL = """spec average
parties: person in 1..4
variables:
  input x[person] in [0, 1]
  output O
loss: E[ (O - mean(x[person] for person))^2 ]
privacy: O is 1-DP wrt x, replacing one person
"""


def test_a_line_of_a_part_in_one_file_is_about_that_part(tmp_path: Path) -> None:
    """Parts that are one spec twice keep their lines apart: what all see of another part is not theirs."""
    whole = """spec whole
components:
  a = spec(average, x = pay, trust = nobody)
  b = spec(average, x = hours, trust = nobody)
parties: person in 1..4
variables:
  input pay[person] in [0, 1]
  input hours[person] in [0, 1]
loss: a.loss + b.loss
privacy: all outputs are 2-DP wrt (pay, hours), replacing one person
"""
    one = load(tmp_path, whole + PERSONAL)
    several = load(tmp_path, whole.replace("(average", '("average.priv"'), average=PERSONAL)
    for model in (one, several):
        name, at = ("whole.priv", 17) if model is one else ("average.priv", 7)
        assert [model.exposed(line) for line in model.requirements] == [("a.O", "b.O"), ("a.O",), ("b.O",)]
        for line in model.requirements[1:]:
            file, span = model.source.place(line.span)
            assert model.source.line(line.line) == "privacy: O is 1-DP wrt x, replacing one person"
            assert (Path(file.name).name, file.position(span.start)) == (name, (at, 10))


def test_a_file_of_parts_is_a_part(tmp_path: Path) -> None:
    """Further specs belong to their file: the whole does not see them, and its own do not reach into files."""
    outer = 'spec outer\ncomponents: all = spec("whole_file.priv")\nloss: all.loss\n'
    outer += "privacy: all outputs are (1, 1e-6)-DP wrt (x, z), replacing one record\n"
    model = load(tmp_path, outer, whole_file=INLINE + MEAN)
    assert [node.name for node in model.outputs] == ["all.a.O", "all.b.O"]
    assert [part.file for part in model.components] == ["whole_file.priv", "a_mean", "a_mean"]
    seen = outer.replace('"whole_file.priv"', "a_mean")
    assert "no further spec a_mean" in wrong(tmp_path, seen)["PS0420"][2]
    assert "no further spec" in wrong(tmp_path, seen.replace("a_mean", "b"), b=MEAN)["PS0420"][2]


@pytest.mark.parametrize(
    ("old", "new", "code", "message"),
    [
        ("spec(a_mean, x", "spec(b_mean, x", "PS0420", "this file has no further spec b_mean"),
        ("  n = 10", "  n = 10\nspec a_mean\nparameters: q = 1", "PS0129", "this file has another spec"),
        ("spec whole\n", "spec a_mean\n", "PS0129", "this file has another spec a_mean"),
        ("spec a_mean\n", "spec a_mean\nspec a_mean\n", "PS0129", "this spec has a name already"),
        ("parameters:\n", "components: c = spec(a_mean)\nparameters:\n", "PS0420", "a_mean uses itself"),
        ("epsilon = 2)", 'epsilon = 2)\n  c = spec("whole.priv")', "PS0420", "whole.priv uses itself"),
    ],
)
def test_wrong_parts_in_one_file(tmp_path: Path, old: str, new: str, code: str, message: str) -> None:
    text = INLINE + MEAN
    assert old in text
    changed = text.replace(old, new, 1)
    assert message in wrong(tmp_path, changed, whole=changed)[code][2]


def test_the_first_spec_of_a_file_needs_no_name(tmp_path: Path) -> None:
    named, bare = (load(tmp_path, text) for text in (INLINE + MEAN, INLINE.replace("spec whole\n", "", 1) + MEAN))
    assert [node.name for node in bare.outputs] == [node.name for node in named.outputs]


def test_a_further_spec_that_nothing_uses(tmp_path: Path) -> None:
    unused = INLINE + MEAN + MEAN.replace("a_mean", "other")
    file, line, message = wrong(tmp_path, unused)["PS0129"]
    assert (file, message) == ("whole.priv", "no component is the spec other")
    assert unused.splitlines()[line - 1] == "spec other"


def test_recursion(tmp_path: Path) -> None:
    one = WHOLE.replace("mean.priv", "two.priv")
    assert "uses itself" in wrong(tmp_path, one, two=one.replace("two.priv", "three.priv"), three=one)["PS0420"][2]
    assert "uses itself" in wrong(tmp_path, one, two=one)["PS0420"][2]
    assert "uses itself" in wrong(tmp_path, one.replace("two", "whole"), whole=one.replace("two", "whole"))["PS0420"][2]


def test_many_parts_of_parts_are_refused(tmp_path: Path) -> None:
    files = {
        f"f{i}": "components:\n" + "".join(f'  c{j} = spec("f{i + 1}.priv")\n' for j in range(9)) for i in range(4)
    }
    assert "at most 64 parts" in wrong(tmp_path, 'components: a = spec("f0.priv")', **files, f4=MEAN)["PS0420"][2]


def test_names_of_the_whole_do_not_reach_into_parts(tmp_path: Path) -> None:
    """A part that says `k` without declaring it does not get the k of whoever uses it."""
    assert "PS0201" in wrong(tmp_path, WHOLE, mean=MEAN.replace("mean(x)", "k * mean(x)"))
    text = WHOLE.replace("  input x", "  constant k = 3\n  input x")
    found = wrong(tmp_path, text, mean=MEAN.replace("mean(x)", "k * mean(x)"))
    assert found["PS0424"][:2] == ("mean.priv", 10)


def test_noise_options_of_a_part_are_refused(tmp_path: Path) -> None:
    found = wrong(tmp_path, WHOLE, mean=MEAN + "options: noise at x\n")
    assert found["PS0424"][:2] == ("mean.priv", 13)


def test_observers_of_a_part_are_those_of_the_whole(tmp_path: Path) -> None:
    model = load(tmp_path, WHOLE, mean=MEAN.rstrip() + ", seen by press\n")
    assert [line.observers for line in model.requirements] == [("anyone",), ("press",), ("press",)]


def test_index_sets_are_shared(tmp_path: Path) -> None:
    part = """parties: voter in 1..N
parameters: N = 5
variables:
  input V[voter] in [0, 1]
  intermediate m
  output O
background: m = mean(V[voter] for voter)
loss: E[ (O - m)^2 ]
privacy: O is 1-DP wrt V, replacing one voter
"""
    text = """components:
  a = spec("voters.priv", N = 5, voter = person, V = held)
parties: person in 1..5
variables: input held[person] in [0, 1]
loss: a.loss
privacy: a.O is 1-DP wrt held, replacing one person
"""
    model = load(tmp_path, text, voters=part)
    assert {line.neighbours.describe() for line in model.requirements} == {"replacing one person"}
    assert [node.index for node in model.inputs] == ["person"]
    assert list(model.parties) == ["person"]


TABLE = """parameters:
  epsilon = 0.7
  low = {young, old}
variables:
  input t in table(age in low, sex in {F, M})
  constant W in real^2
  output O
loss: E[ ||O - marginals(t, {age})||^2 ]
accuracy: E[ (O[j] - marginals(t, {age})[j])^2 ] <= 40 for j in 1..2
privacy:
  O is epsilon-zCDP wrt t, adding or removing one record
  all outputs are (2 * epsilon)-zCDP wrt all inputs, adding or removing up to 2 records, seen by press and auditors
"""
SUMS = """parameters:
  epsilon[voter] = [0.1, 0.2, 0.3]
  c = 2
parties: voter in 1..3
variables:
  input V[voter] in [0, c]^2
  intermediate b[voter]
  intermediate s
  output O
  output Q = O / c
background:
  b[voter] = sum(V[voter][j] / c for j in 1..2)
  s = sum(b[voter] for voter)
  V[voter] ~ uniform
loss: E[ (O - s)^2 ]
privacy: O is 1-zCDP wrt V, replacing one voter
"""


@pytest.mark.parametrize(
    ("part", "arguments", "inputs"),
    [
        (MEAN, "", ["x"]),
        (MEAN, ", n = 2 * 2, epsilon = k", ["x"]),
        (TABLE, ", W = [1, 2]", ["t"]),
        (TABLE, ", W = [1, 2], epsilon = 0.25", ["t"]),
        (SUMS, "", ["V"]),
        (SUMS, ", epsilon = [1, 2, 3] / k", ["V"]),
    ],
)
def test_a_part_means_what_it_means_alone(tmp_path: Path, part: str, arguments: str, inputs: list[str]) -> None:
    """The flat spec, printed under names without dots, is a spec of the same problem."""
    text = f'components: a = spec("part.priv"{arguments})\nparameters: k = 2\nloss: 3 * a.loss\n'
    model = load(tmp_path, text, part=part)
    assert [node.name for node in model.inputs] == inputs
    source = Source("whole.priv", text)
    flat = assembled(parse(source), source, tmp_path).spec
    printed = re.sub(r"\ba\.([A-Za-z])", r"a_\1", print_spec(replace(flat, sections=())))
    again = load_model(Source("flat.priv", printed))

    def plain(found: Model) -> object:
        document = json.loads(json.dumps(write(elaborate(found))).replace("a.", "a_"))
        return {key: _without_places(value) for key, value in document.items() if key != "name"}

    assert plain(again) == plain(model)


def _without_places(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_places(item) for key, item in value.items() if key not in ("line", "text", "lines")}
    return [_without_places(item) for item in value] if isinstance(value, list) else value


def test_a_template_is_a_part_by_its_name(tmp_path: Path) -> None:
    text = 'components: a = spec("pay_study")\nloss: a.loss\nprivacy: all outputs are 1-DP wrt all inputs, replacing '
    model = load(tmp_path, text + "one person")
    assert [node.name for node in model.outputs] == ["a.mean_income"]
    assert list(model.texts) == ["pay_study"]
    assert "does not exist" in wrong(tmp_path, text.replace("pay_study", "pay_studies") + "everything")["PS0420"][2]
    (tmp_path / "pay_study").write_text(MEAN, "utf-8")  # a file comes first
    assert [node.name for node in load(tmp_path, text + "everything").outputs] == ["a.O"]
