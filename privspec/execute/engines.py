"""Who is asked about records: a database, Parquet files where they lie, Spark, or a frame that is read whole."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from privspec.execute.sources import Folder, is_text, load_frame
from privspec.execute.spark import OfSpark
from privspec.execute.warehouse import OfFrame, OfParquet, OfTable, Records, Table, in_spark


def records_of(name: str, source: Any, columns: Sequence[str] | None = None) -> Records:
    """The records of a path, a table of a database, a folder or a frame.

    Args: columns, the names of a text file that has no header, in their order.
    Raises: DataError (PS0803).
    """
    if isinstance(source, Table):
        return OfTable(name, source)
    if in_spark(source):
        return OfSpark(name, source)
    if isinstance(source, Path) and source.suffix.lower() == ".parquet":
        source = Folder((source,), source.parent)
    if isinstance(source, Folder):
        return OfParquet(name, source)
    return OfFrame(name, load_frame(name, source, columns), not isinstance(source, Path) or not is_text(source))
