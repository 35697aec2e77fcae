"""The built-in specs: list them, show one, copy one out with the files it reads."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.resources import as_file, files
from importlib.resources.abc import Traversable
from pathlib import Path

from privspec.core.diagnostics import UsageError
from privspec.core.files import write_atomically
from privspec.core.spans import Source
from privspec.core.suggest import nearest
from privspec.language.parser import decode_source, read_source


@dataclass(frozen=True, slots=True)
class Template:
    """A built-in spec; `title` is the first line of its description."""

    name: str
    title: str


def spec_source(path: Path) -> tuple[Source, Path]:
    """A spec, and the folder of the files that it names: a file, `-` for standard input, or the name of a template.

    Raises: UsageError if there is none, SpecError if it is not UTF-8.
    """
    if str(path) == "-":
        return decode_source("standard input", sys.stdin.buffer.read()), Path()
    if path.exists() or path.suffix or len(path.parts) != 1:
        return read_source(path), path.parent
    if str(path) not in (names := [one.name for one in list_templates()]):
        near = nearest(str(path), names)
        hint = f"did you mean {near}?" if near else "`privspec templates` lists the built-in specs"
        raise UsageError.of("PS0701", f"there is no file and no built-in spec {path}", help=hint)
    with as_file(files("privspec.specs")) as folder:
        return read_source(folder / f"{path}.priv"), folder


def list_templates() -> tuple[Template, ...]:
    """All built-in specs, by name."""
    found = [
        Template(entry.name.removesuffix(".priv"), _title(entry.read_text(encoding="utf-8")))
        for entry in files("privspec.specs").iterdir()
        if entry.name.endswith(".priv")
    ]
    return tuple(sorted(found, key=lambda t: t.name))


def _title(text: str) -> str:
    start = text.find('"""')
    return text[start + 3 : text.find('"""', start + 3)].strip().split("\n")[0] if start >= 0 else ""


def template_text(name: str) -> str:
    """The text of a built-in spec.

    Raises: UsageError PS0730 if there is none of that name.
    """
    wanted = name.removesuffix(".priv")
    names = [t.name for t in list_templates()]
    if wanted not in names:
        near = nearest(wanted, names)
        hint = f"did you mean {near}?" if near else f"there are {', '.join(names)}"
        raise UsageError.of("PS0730", f"there is no template {name}", help=hint)
    return files("privspec.specs").joinpath(f"{wanted}.priv").read_text(encoding="utf-8")


def _read_by(text: str, beside: list[Traversable]) -> list[Traversable]:
    """The files that a spec names, and those that its parts name."""
    found = [entry for entry in beside if f'"{entry.name}"' in text]
    for entry in [one for one in found if one.name.endswith(".priv")]:
        more = _read_by(entry.read_text(encoding="utf-8"), beside)
        found += [one for one in more if one.name not in {known.name for known in found}]
    return found


def copy_template(name: str, target: Path) -> tuple[Path, ...]:
    """Write a built-in spec to `target` and the files that it reads beside it; the paths written.

    Raises: UsageError PS0730, PS0731 if a file is there already.
    """
    text = template_text(name)
    path = target / f"{name.removesuffix('.priv')}.priv" if target.is_dir() else target
    beside = [entry for entry in files("privspec.specs").iterdir() if entry.name.endswith((".csv", ".priv"))]
    extra = _read_by(text, beside)
    written = (path, *(path.with_name(entry.name) for entry in extra))
    for place in written:
        if place.exists():
            raise UsageError.of("PS0731", f"{place} is there already", help="choose another name with -o")
    write_atomically(path, text.encode("utf-8"))
    for entry, place in zip(extra, written[1:], strict=True):
        write_atomically(place, entry.read_bytes())
    return written
