"""Views of a database, in words under which no row can make a query fail.

A cast, a sum or a date that fails on one cell ends a whole query, so that the exit code would depend on that cell.
Every expression of a view that may fail is put into TRY, which has no value where it fails; views that a view is made
of are put in their places. What is left as it stands are columns, constants, and comparisons between columns of one
kind, which the statistics of the database serve. Where a view adds rows up or numbers them, what is then done with sums
is about many rows, and left as it is but for its casts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from privspec.core.records import dataclass

if TYPE_CHECKING:
    import duckdb

Tree: TypeAlias = "Any"
"""A part of a query in the form of `json_serialize_sql`."""
_NAME = r'(?:"(?:[^"]|"")*"|[^\W\d]\w*)'
_VIEW = re.compile(
    rf"CREATE\s+VIEW\s+(?:IF NOT EXISTS\s+)?{_NAME}(?:\.{_NAME})*\s*(?:\({_NAME}(?:, {_NAME})*\)\s*)?AS\s"
)
_LEAVES = ("COLUMN_REF", "CONSTANT")
_WHOLE = (
    *(*_LEAVES, "FUNCTION", "CAST", "COMPARISON", "CONJUNCTION", "CASE", "OPERATOR", "BETWEEN", "COLLATE", "LAMBDA"),
    "TYPE",
)
"""Of expressions that can be put into TRY: they are about one row."""
_DRAWN = ("random", "uuid", "gen_random_uuid", "uuidv4", "uuidv7")
"""Functions that give something else each time, and never fail."""
_PARTS = ("OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL", "OPERATOR_NOT")
_NUMBERS = frozenset({
    *("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "FLOAT", "DOUBLE"),
})  # fmt: skip
"""Kinds of which each can be compared with each other one, whatever the cells are."""


def _quoted(*names: str) -> str:
    return ".".join('"' + name.replace('"', '""') + '"' for name in names)


class UnknownViewError(Exception):
    """A view that is made of what is not known here."""


@dataclass(eq=False)
class Views:
    """The views of an opened database, called `data`."""

    database: duckdb.DuckDBPyConnection
    mended: bool = False
    """Whether anything of a view had to be said otherwise."""

    def total(self, schema: str, view: str) -> str | None:
        """What stands in place of the view in a query; None of what cannot fail, and of what is no view.

        Raises: UnknownViewError.
        """
        import duckdb

        if (schema, view) not in self._texts:
            return None
        try:
            text = self._text(self._node(schema, view))
            if not self.mended:
                return None
            columns = ", ".join(map(_quoted, self._columns(_quoted("data", schema, view))))
            found = f"({text}) AS {_quoted(view)}({columns})"
            self.database.execute(f"DESCRIBE SELECT * FROM {found}")
        except (duckdb.Error, LookupError, TypeError) as error:
            raise UnknownViewError from error
        return found

    # --- queries as trees

    @cached_property
    def _texts(self) -> dict[tuple[str, str], str]:
        query = "SELECT schema_name, view_name, sql FROM duckdb_views() WHERE database_name = 'data' AND NOT internal"
        return {(schema, name): text for schema, name, text in self.database.execute(query).fetchall()}

    @cached_property
    def _functions(self) -> dict[str, tuple[str, str | None, str | None]]:
        """By name: the kind of a function, the greatest in the alphabet; whether it gives the same; what a macro is."""
        query = (
            "SELECT function_name, max(function_type), max(stability), max(macro_definition) FROM duckdb_functions() "
            "WHERE function_type NOT IN ('table', 'pragma', 'table_macro') GROUP BY 1"
        )
        return {name: (*more,) for name, *more in self.database.execute(query).fetchall()}

    @cached_property
    def _own(self) -> dict[tuple[str, str], str]:
        """The schemas of functions and kinds that the database defines; its views mean them and not those of all."""
        query = (
            "SELECT DISTINCT 'FUNCTION', function_name, schema_name FROM duckdb_functions() "
            "WHERE database_name = 'data' UNION ALL "
            "SELECT 'TYPE', type_name, schema_name FROM duckdb_types() WHERE database_name = 'data' AND NOT internal"
        )
        return {(kind, name.lower()): schema for kind, name, schema in self.database.execute(query).fetchall()}

    def _parsed(self, text: str) -> Tree:
        (found,) = self.database.execute("SELECT json_serialize_sql(CAST(? AS VARCHAR))", [text]).fetchall()
        return json.loads(found[0])["statements"][0]["node"]

    def _text(self, node: Tree) -> str:
        document = {"error": False, "statements": [{"node": node, "named_param_map": []}]}
        (found,) = self.database.execute(
            "SELECT json_deserialize_sql(CAST(? AS JSON))", [json.dumps(document)]
        ).fetchall()
        return str(found[0])

    def _columns(self, source: str) -> dict[str, str]:
        return {name: kind for name, kind, *_ in self.database.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()}

    @cached_property
    def _try(self) -> Tree:
        return self._parsed("SELECT TRY(a)")["select_list"][0]

    # --- what is mended

    def _node(self, schema: str, view: str) -> Tree:
        text = self._texts[schema, view]
        head = _VIEW.match(text)
        if head is None:
            raise LookupError(view)
        parsed = self._parsed(text[head.end() :].rstrip().rstrip(";"))
        for one in _expressions(parsed):
            name = one.get("function_name", one.get("type_name", "")).lower()
            if (where := self._own.get((one["class"], name))) is not None and not one["schema"]:
                one |= {"catalog": "data", "schema": where, "qualified_name": {"path": ["data", where, name]}}
        return self._mended(parsed, None, schema, frozenset())

    def _mended(self, tree: Tree, tables: Tree, schema: str, shadowed: frozenset[str]) -> Tree:
        """The same, in which nothing fails that is about one row.

        Args: tables, what the columns of an expression are those of; shadowed, names that the query gives to tables.
        """
        if isinstance(tree, list):
            return [self._mended(one, tables, schema, shadowed) for one in tree]
        if not isinstance(tree, dict):
            return tree
        kind = tree.get("type")
        if "class" in tree:
            return self._expression(tree, tables, schema, shadowed)
        if "cte_map" in tree:
            shadowed |= {one["key"] for one in tree["cte_map"]["map"]}
        if kind == "BASE_TABLE":
            return self._table(tree, schema, shadowed)
        tree = dict(tree)
        if kind == "TABLE_FUNCTION":
            asked = self._mended(tree["function"]["arguments"], None, schema, shadowed)
            return tree | {"function": tree["function"] | {"arguments": asked}}
        if kind == "SELECT_NODE":
            tables = tree["from_table"] = self._mended(tree["from_table"], None, schema, shadowed)
        elif kind == "JOIN":
            sides = {side: self._mended(tree[side], None, schema, shadowed) for side in ("left", "right")}
            tables = tree | sides | {"condition": None, "ref_type": "CROSS", "join_type": "INNER", "using_columns": []}
            tree |= sides
            if tree["using_columns"] or tree["ref_type"] == "NATURAL":
                self._check_using(tree)
        done = ("from_table", "left", "right")
        return {key: one if key in done else self._mended(one, tables, schema, shadowed) for key, one in tree.items()}

    def _table(self, tree: Tree, schema: str, shadowed: frozenset[str]) -> Tree:
        name, inner = tree["table_name"], tree["schema_name"]
        if name in shadowed and not inner:
            return tree
        if tree["catalog_name"] not in ("", "data"):
            raise LookupError(name)
        (where,) = [one for one in (inner, *([] if inner else [schema, "main"])) if one and self._holds(one, name)][:1]
        if (where, name) not in self._texts:
            path = ["data", where, name]
            return tree | {"catalog_name": "data", "schema_name": where, "qualified_name": {"path": path}}
        self.mended = True
        quoted = _quoted("data", where, name)
        own = tree["column_name_alias"]
        found = dict(self._parsed("SELECT * FROM (SELECT 1) AS v")["from_table"])
        found["subquery"] = found["subquery"] | {"node": self._node(where, name)}
        names = [*own, *list(self._columns(quoted))[len(own) :]]
        return found | {"alias": tree["alias"] or name, "column_name_alias": names, "sample": tree["sample"]}

    def _holds(self, schema: str, name: str) -> bool:
        query = (
            "SELECT 1 FROM duckdb_tables() WHERE database_name = 'data' AND schema_name = ? AND table_name = ? "
            "UNION ALL SELECT 1 FROM duckdb_views() WHERE database_name = 'data' AND schema_name = ? AND view_name = ?"
        )
        return bool(self.database.execute(query, [schema, name] * 2).fetchall())

    def _expression(self, tree: Tree, tables: Tree, schema: str, shadowed: frozenset[str]) -> Tree:
        if tree["class"] in (*_LEAVES, "TYPE") or tree["type"] == "OPERATOR_TRY":
            return tree
        if tree["class"] == "LAMBDA":
            return tree | {"expr": self._mended(tree["expr"], None, schema, shadowed)}
        if tree["class"] == "CONJUNCTION" or tree["type"] in _PARTS:
            return tree | {"children": self._mended(tree["children"], tables, schema, shadowed)}
        if self._about_one_row(tree):
            if tree["class"] in ("COMPARISON", "BETWEEN") and self._of_one_kind(tree, tables):
                return tree
            self.mended = True
            return self._try | {"children": [tree | {"alias": ""}], "alias": tree["alias"]}
        found = {key: self._mended(one, tables, schema, shadowed) for key, one in tree.items()}
        if tree["class"] != "CAST" or tree["try_cast"]:
            return found
        self.mended = True
        return found | {"try_cast": True}

    def _about_one_row(self, tree: Tree) -> bool:
        """Whether it can be put into TRY.

        Raises: LookupError if it says itself where it fails.
        """
        parts = list(_expressions(tree))
        return all(one["class"] in _WHOLE for one in parts) and all(
            self._is_plain(one["function_name"].lower()) for one in parts if one["class"] == "FUNCTION"
        )

    def _is_plain(self, function: str) -> bool:
        kind, stability, macro = self._functions.get(function, ("", "", None))
        plain = kind != "macro" or self._about_one_row(self._parsed(f"SELECT {macro}")["select_list"])
        if not plain or (kind == "scalar" and stability == "VOLATILE" and function not in _DRAWN):
            raise LookupError(function)
        return kind == "macro" or (kind == "scalar" and stability != "VOLATILE")

    def _of_one_kind(self, tree: Tree, tables: Tree) -> bool:
        """Whether what is compared are columns and constants, of which none is turned into another kind."""
        import duckdb

        leaves = [one for key in ("left", "right", "input", "lower", "upper") if (one := tree.get(key)) is not None]
        columns = [one for one in leaves if one["class"] == "COLUMN_REF"]
        if tables is None or any(one["class"] not in _LEAVES for one in leaves):
            return False
        asked = self._parsed("SELECT 1") | {"from_table": tables}
        try:
            kinds = [set(self._columns(f"({self._text(asked | {'select_list': [one]})})").values()) for one in leaves]
        except duckdb.Error:
            return False
        of_columns = {kind for one, own in zip(leaves, kinds, strict=True) if one in columns for kind in own}
        others = {kind for one, own in zip(leaves, kinds, strict=True) if one not in columns for kind in own}
        if of_columns <= _NUMBERS:
            return others <= _NUMBERS | {"VARCHAR"}
        return len(of_columns) == 1 and others <= of_columns | {"VARCHAR"}

    def _check_using(self, join: Tree) -> None:
        whole = self._parsed("SELECT *")
        left, right = (
            self._columns(f"({self._text(whole | {'from_table': join[side]})})") for side in ("left", "right")
        )
        for name in join["using_columns"] or [name for name in left if name in right]:
            if left[name] != right[name] and not {left[name], right[name]} <= _NUMBERS:
                raise LookupError(name)


def _expressions(tree: Tree) -> Iterator[Tree]:
    """An expression and all that it is made of; a subquery as itself."""
    if isinstance(tree, dict):
        if "class" in tree:
            yield tree
        for one in tree.values():
            yield from _expressions(one)
    elif isinstance(tree, Sequence) and not isinstance(tree, str):
        for one in tree:
            yield from _expressions(one)
