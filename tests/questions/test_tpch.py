"""Four questions of TPC-H as releases on made data of its schema, beside DuckDB's own answers."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import numpy as np
import pytest

from privspec.api import Problem
from privspec.execute.keeper import DataOwnerReport
from privspec.manual import examples

PAGE = Path(__file__).with_name("tpch.md").read_text("utf-8")
SPECS = {
    int(number): examples(body)[0].text for number, body in re.findall(r"^## (\d+)\..*\n((?:(?!## ).*\n)*)", PAGE, re.M)
}
LINES = 600_000
"""As many as scale factor .1 has."""
NATIONS = "['CHINA', 'INDIA', 'INDONESIA', 'JAPAN', 'VIETNAM', 'elsewhere']"
CUSTOMER = f"""CREATE TABLE customer AS SELECT i AS customer,
  ['AUTOMOBILE', 'BUILDING', 'FURNITURE', 'HOUSEHOLD', 'MACHINERY'][1 + (hash(i) % 5)::INT] AS segment,
  {NATIONS}[1 + (hash(i + 1) % 6)::INT] AS nation FROM range({{customers}}) t(i)"""
LINEITEM = f"""CREATE TABLE lineitem AS SELECT i // 4 AS "order", (hash(i // 4) % {{customers}})::INT AS customer,
  1 + (hash(i // 4 + 2) % 5)::INT AS priority, DATE '1992-01-01' + (hash(i // 4 + 3) % 2406)::INT AS ordered,
  DATE '1992-01-01' + (hash(i // 4 + 3) % 2406)::INT + 1 + (hash(i + 4) % 121)::INT AS ship,
  1 + (hash(i + 5) % 50)::INT AS quantity, 900 + (hash(i + 6) % 9910000) / 100.0 AS price,
  (hash(i + 7) % 11) / 100.0 AS discount, (hash(i + 8) % 9) / 100.0 AS tax,
  {NATIONS}[1 + (hash(i + 9) % 6)::INT] AS supplier, ['A', 'N', 'R'][1 + (hash(i + 10) % 3)::INT] AS flag,
  ['F', 'O'][1 + (hash(i + 11) % 2)::INT] AS status FROM range({{lines}}) t(i)"""
SHIPPED = "FROM lineitem WHERE ship <= DATE '1998-09-02' GROUP BY flag, status ORDER BY flag, status"
TRUE = {
    1: {
        "lines": f"SELECT count(*) {SHIPPED}",
        "quantities": f"SELECT sum(quantity) {SHIPPED}",
        "prices": f"SELECT sum(price) {SHIPPED}",
        "discounted": f"SELECT sum(price * (1 - discount)) {SHIPPED}",
        "charged": f"SELECT sum(price * (1 - discount) * (1 + tax)) {SHIPPED}",
    },
    3: {
        "revenue": "SELECT sum(price * (1 - discount)) FROM lineitem JOIN customer USING (customer) "
        "WHERE segment = 'BUILDING' AND ordered < DATE '1995-03-15' AND ship > DATE '1995-03-15' "
        "GROUP BY priority ORDER BY priority"
    },
    5: {
        "revenue": "SELECT sum(price * (1 - discount)) FROM lineitem JOIN customer USING (customer) "
        "WHERE ordered BETWEEN DATE '1994-01-01' AND DATE '1994-12-31' GROUP BY nation, supplier "
        f"ORDER BY list_position({NATIONS}, nation), list_position({NATIONS}, supplier)"
    },
    6: {
        "revenue": "SELECT sum(price * discount) FROM lineitem WHERE ship BETWEEN DATE '1994-01-01' AND "
        "DATE '1994-12-31' AND discount BETWEEN 0.05 AND 0.07 AND quantity < 24"
    },
}


@pytest.mark.parametrize("lines", [20_000, pytest.param(LINES, marks=pytest.mark.slow)])
@pytest.mark.parametrize("number", SPECS)
def test_a_release_is_what_the_database_says_but_for_its_noise(tmp_path: Path, number: int, lines: int) -> None:
    with duckdb.connect(str(tmp_path / "tpch.duckdb")) as database:
        for made in (CUSTOMER, LINEITEM):
            database.execute(made.format(customers=lines // 40, lines=lines))
        true = {
            name: np.array([float(row[0]) for row in database.execute(query).fetchall()])
            for name, query in TRUE[number].items()
        }
    plan, keeper = Problem(SPECS[number]).solve(), DataOwnerReport()
    assert plan.verify().ok
    tables = {"customers": "customer", "lines": "lineitem", "lineitem": "lineitem"}
    names = [one["name"] for one in plan.document["problem"]["data"]]
    given = {*names, *(("customers",) if "customers" in SPECS[number] else ())}
    data = {name: f"{tmp_path}/tpch.duckdb::{tables[name]}" for name in given}
    release = plan.run(data, seed=number, keeper=keeper).to_json()["outputs"]
    assert not any("are cut" in line for line in keeper.report())
    for name, values in true.items():
        error = np.abs(np.reshape(release[name]["values"], -1) - values)
        # numbers are added up in whole steps, of which each is off by a half at most
        assert (error <= 7 * np.array(release[name]["standard_deviation"]) + lines * 1e-4).all(), name
