"""Who is asked about records: a database, Parquet files where they lie, Spark, or a frame that is read whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Any

from privspec.core.diagnostics import DataError
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


@contextmanager
def opened_meanwhile(inputs: Mapping[str, Any]) -> Iterator[None]:
    """Parquet files and their database are opened while something else is done, so that they are ready after it.

    Of the files it is read what columns they have, and no row. What is wrong with them is said when they are read.
    """
    paths = {name: Path(source) for name, source in inputs.items() if isinstance(source, str | Path)}
    parquet = {name: path for name, path in paths.items() if path.suffix.lower() == ".parquet" or path.is_dir()}

    def opened() -> None:
        for name, path in parquet.items():
            with suppress(DataError):
                _ = records_of(name, Folder.of(name, path) if path.is_dir() else path).names

    thread = Thread(target=opened)
    if parquet:
        thread.start()
    try:
        yield
    finally:
        if parquet:
            thread.join()
