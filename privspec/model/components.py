"""Specs that are parts of another one: a spec with components is read as one flat spec.

A part stands in a file of its own, or below the whole in the same file.

What a part declares is called `part.name` there. Its parameters are bound to what it is given; its inputs and index
sets are those of the whole, passed or of the same name. Nothing after this module knows that there were several files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from posixpath import dirname, join, normpath
from typing import Any

from privspec.core.diagnostics import SpecError
from privspec.core.records import dataclass, field, replace
from privspec.core.spans import Source, Span
from privspec.language import syntax
from privspec.language.walk import free_names, names_used, regular, with_children
from privspec.model.graph import Component
from privspec.model.reports import Failure, Report, listing, suggestion

PARTS = 64
"""Parts of one spec, those of its parts among them."""
SECTIONS = ("parameters", "parties", "variables", "background", "accuracy", "privacy", "fairness")
"""Sections of a part that are added to those of the whole."""
SETTINGS = ("trust", "times", "only_if")
"""What may be set of a part beside its own names."""
HEAD = "\n# --- {} ---\n"
"""Between two files of one text."""
Names = Mapping[str, syntax.Expr]
Beside = Mapping[str, tuple[syntax.Spec, int, Source]]
"""The further specs of a file, by name, the offset at which the file starts, and the file."""


@dataclass(frozen=True, slots=True)
class Whole:
    """A spec without components; `texts`: those of the files of its parts, by name beside the main one."""

    spec: syntax.Spec
    source: Source
    components: tuple[Component, ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)
    said: tuple[Callable[[Report], None], ...] = ()
    """What is wrong, for the report of the whole."""


def assembled(spec: syntax.Spec, source: Source, base: Path | None, texts: Mapping[str, str] | None = None) -> Whole:
    """The flat spec of one with components; one that cannot be read stays among them.

    Args: base, the folder of the files; texts, what stands in them, in place of the disk.
    """
    spec = regular(spec)
    return _Assembler(source, base, texts).whole(spec) if spec.components else Whole(spec, source)


@dataclass(frozen=True, slots=True)
class _Part:
    """A component that was read: its flat spec under the names of the whole, and what its own names are there."""

    told: Component
    spec: syntax.Spec
    names: Names
    needs: tuple[syntax.Variable | syntax.Party, ...]
    """Inputs and index sets that the whole does not declare."""


class _Assembler:
    """Reads files one behind another into one text, whose spans all trees share."""

    def __init__(self, source: Source, base: Path | None, texts: Mapping[str, str] | None) -> None:
        self.source, self.base, self.given = source, base, texts
        self.texts: dict[str, str] = {}
        self.files, self.text = [(0, source)], [source.text]
        self.told: list[Component] = []
        self.said: list[Callable[[Report], None]] = []

    def whole(self, spec: syntax.Spec) -> Whole:
        """All files as one."""
        flat = self._flat(spec, "", (self._key(Path(self.source.name).name),), _beside(spec, 0, self.source))
        source = Source(self.source.name, "".join(self.text), tuple(self.files))
        return Whole(flat, source, tuple(self.told), self.texts, tuple(self.said))

    def _key(self, name: str) -> str:
        """What a file is known by."""
        return name if self.given is not None or self.base is None else str((self.base / name).resolve())

    def _wrong(self, failure: Failure) -> None:
        self.said.append(lambda report: report.failure(failure))

    # -- a level

    def _flat(self, spec: syntax.Spec, folder: str, above: tuple[str, ...], beside: Beside) -> syntax.Spec:
        """A spec with its components in it; `beside`: the further specs of its file."""
        parts: dict[str, _Part] = {}
        declared = {one.name: one for one in _declared(spec)}
        broken = []
        for component in spec.components:
            try:
                if component.name in parts or component.name in declared:
                    raise Failure("PS0202", component.span, f"{component.name} is declared twice")
                parts[component.name] = self._part(component, parts, declared, folder, above, beside)
                for new in parts[component.name].needs:
                    declared[_target(new)] = _Declared(_target(new), _what(new), new.span, component.name)
            except Failure as failure:
                broken.append(component)
                self._wrong(failure)
            except SpecError as error:
                broken.append(component)
                self._errors_of(component, error)
        inside = _Inside(parts, self._wrong)
        own = inside.of(replace(spec, components=(), within=()))
        assert isinstance(own, syntax.Spec)
        merged = {name: list(getattr(own, name)) for name in SECTIONS}
        for part in parts.values():
            for new in part.needs:
                merged["parties" if isinstance(new, syntax.Party) else "variables"].append(new)
            for name in SECTIONS:
                models = [one for one in merged[name] if isinstance(one, syntax.Relation) and one.op == "~"]
                merged[name] += [one for one in getattr(part.spec, name) if one not in models]
        options = self._options(own, [*parts.values()])
        sections: dict[str, Any] = {section: tuple(some) for section, some in merged.items()}
        return replace(own, **sections, options=options, components=tuple(broken))

    def _errors_of(self, component: syntax.Component, error: SpecError) -> None:
        message = f"the spec of {component.name} has errors: {error.diagnostics[0].message}"

        def say(report: Report) -> None:
            report.error("PS0422", component.call.span, message, help="`privspec check` on that file shows them")
            report.diagnostics.extend(found for found in error.diagnostics if found.source is not None)

        self.said.append(say)

    def _options(self, own: syntax.Spec, parts: list[_Part]) -> tuple[syntax.Option, ...]:
        """The options of all; places and families of noise of a part would bind the others.

        Whom a part trusts it says of its own outputs (`Component.stated`).
        """
        for part in parts:
            for option in part.spec.options:
                if not isinstance(option, syntax.Trust):
                    message = f"{part.told.name} says where its noise goes, and is only a part here"
                    hint = "leave the line out there, and say it here for all outputs"
                    self._wrong(Failure("PS0424", option.span, message, help=hint))
        return own.options

    # -- a part

    def _part(
        self,
        component: syntax.Component,
        parts: Mapping[str, _Part],
        declared: Mapping[str, _Declared],
        folder: str,
        above: tuple[str, ...],
        beside: Beside,
    ) -> _Part:
        """A component under the names of the spec that it is in.

        Raises: Failure, SpecError.
        """
        name, before, tree = component.name, len(self.told), _named(component, beside)
        file = self._file(component, folder) if tree is None else str(tree.name)
        key, span = self._key(file) if tree is None else f"{above[0]}\n{file}", component.call.arguments[0].span
        if key in above:
            raise Failure("PS0420", span, f"{file} uses itself as a component")
        if tree is None:
            tree, folder = self._read(file, span), dirname(file)
            beside = _beside(tree, *self.files[-1])
        else:
            _, offset, source = beside[file]
            first, last = tree.span.start - offset, tree.span.end - offset
            rest = Source(source.name, source.text[first:last], skipped=source.text.count("\n", 0, first))
            tree = _moved(tree, self._added(rest, file, span) - first - offset, "")
        inner = self._flat(tree, folder, (*above, key), beside)
        given = self._settings(component, inner)
        values = {key: _Inside(parts, self._wrong).of(one.value) for key, one in given.items()}
        names: dict[str, syntax.Expr] = {}
        links: dict[str, str] = {}
        by_name, needs, domains = [], [], {}
        for one in _declared(inner):
            value = values.get(one.name)
            if one.what in ("input", "party"):
                links[one.name] = self._link(component, one, value, declared)
                names[one.name] = syntax.Name(links[one.name])
                if value is None:
                    by_name.append(one.name)
            elif one.what == "parameter" and value is not None:
                names[one.name] = value
            else:
                names[one.name] = syntax.Name(f"{name}.{one.name}")
        condition = values.get("only_if")
        outputs = {one.name for one in declared.values() if one.what == "output"}
        outputs |= {one.target.name for part in parts.values() for one in part.spec.variables if _what(one) == "output"}
        used = () if condition is None else names_used(condition)
        shown = next((syntax.Name(one) for one in used if one in outputs), None)
        if condition is not None and shown is None:
            text = "a condition is an output, or compares one, as in only_if = first.O, or only_if = (first.O > 20)"
            raise Failure("PS0425", given["only_if"].span, text)
        self._captured(component, inner, names, declared)
        renamed = _Renamer(names, inner)
        kept: dict[str, list[Any]] = {section: [] for section in SECTIONS}
        for section in SECTIONS:
            for statement in getattr(inner, section):
                target = _target(statement)
                if section == "parameters" and target in values:
                    continue
                found = renamed.of(statement)
                if target in links and section in ("variables", "parties"):
                    domains[links[target]] = found.domain
                    if links[target] not in declared:
                        needs.append(found)
                elif isinstance(statement, syntax.Membership) and target in links:
                    domains[links[target]] = found.domain
                elif isinstance(found, syntax.Variable) and target in values:
                    kept[section].append(replace(found, value=values[target]))
                else:
                    kept[section].append(_seen_with(found, shown))
        options = tuple(renamed.of(option) for option in inner.options)
        stated = next((one for one in options if isinstance(one, syntax.Trust)), None)
        if "trust" in values:
            stated = syntax.Trust(values["trust"], span=given["trust"].span)
            options = (*(one for one in options if not isinstance(one, syntax.Trust)), stated)
            self.told[before:] = [replace(one, stated=stated) for one in self.told[before:]]
        loss = None if inner.loss is None else renamed.of(inner.loss)
        sections: dict[str, Any] = {section: tuple(some) for section, some in kept.items()}
        flat = replace(inner, **sections, loss=loss, options=options)
        settings = {key: value for key, value in values.items() if key not in links}
        told = Component(name, file, links, tuple(by_name), settings, domains, component.span, stated=stated)
        self.told[before:] = [told, *(renamed.told(name, one) for one in self.told[before:])]
        return _Part(told, flat, names, tuple(needs))

    def _file(self, component: syntax.Component, folder: str) -> str:
        """The name of the file beside the main one.

        Raises: Failure.
        """
        call = component.call
        if call.function != "spec":
            raise Failure("PS0420", call.span, 'a component is written name = spec("file.priv", ...)')
        match call.arguments:
            case (syntax.String(value=name, span=span), *_) if name and "\0" not in name:
                pass
            case (syntax.Name(id=name, span=span), *_):
                way_out = f'write spec {name} and its sections below, or give a file: spec("{name}.priv")'
                raise Failure("PS0420", span, f"this file has no further spec {name}", help=way_out)
            case _:
                raise Failure("PS0420", call.span, "the first argument of spec(...) is a file name in quotes")
        file = normpath(join(folder, name))
        if self.given is not None:
            if file not in self.given:
                raise Failure("PS0420", span, f"the spec {name} does not exist")
            return file
        path = Path(file) if self.base is None else self.base / file
        if not path.is_file() and _template(file) is None:
            beside = path.parent.iterdir() if path.parent.is_dir() else ()
            hint = suggestion(path.name, (p.name for p in beside if p.suffix == ".priv"))
            raise Failure("PS0420", span, f"the spec {name} does not exist", help=hint)
        return file

    def _read(self, file: str, span: Span) -> syntax.Spec:
        """The tree of a file, with the spans of the text of all.

        Raises: Failure, SpecError.
        """
        from privspec.language.parser import parse

        path = Path(file) if self.base is None else self.base / file
        try:
            known = self.given[file] if self.given is not None else None if path.is_file() else _template(file)
            text = path.read_text(encoding="utf-8-sig") if known is None else known
        except (OSError, UnicodeDecodeError) as error:
            raise Failure("PS0420", span, f"{file} cannot be read as text") from error
        source = Source(str(path), text)
        tree: syntax.Spec = _moved(regular(parse(source)), self._added(source, file, span), dirname(file))
        self.texts[file] = text
        return tree

    def _added(self, source: Source, name: str, span: Span) -> int:
        """Where the text of a part starts; each part has its own, also where several stand in one file.

        Raises: Failure.
        """
        if len(self.files) > PARTS:
            raise Failure("PS0420", span, f"a spec has at most {PARTS} parts, theirs among them")
        head = HEAD.format(" ".join(name.split()))
        offset = sum(map(len, self.text)) + len(head)
        self.files.append((offset, replace(source)))
        self.text += [head, source.text]
        return offset

    def _settings(self, component: syntax.Component, inner: syntax.Spec) -> dict[str, syntax.Keyword]:
        """What stands behind the file name, each of it once and known to the part.

        Raises: Failure.
        """
        found: dict[str, syntax.Keyword] = {}
        settable = ("parameter", "input", "party", "constant")
        known = [one.name for one in _declared(inner) if one.what in settable]
        for argument in component.call.arguments[1:]:
            if not isinstance(argument, syntax.Keyword):
                raise Failure("PS0421", argument.span, "after the file name, write name = expression")
            if argument.name in found:
                raise Failure("PS0421", argument.span, f"{argument.name} is set twice")
            if argument.name not in (*known, *SETTINGS):
                near = suggestion(argument.name, (*known, *SETTINGS))
                hint = near or (f"it has {', '.join(known)}" if known else None)
                raise Failure("PS0421", argument.span, f"the part has no parameter or input {argument.name}", help=hint)
            found[argument.name] = argument
        return found

    def _link(
        self, component: syntax.Component, own: _Declared, value: syntax.Expr | None, declared: Mapping[str, _Declared]
    ) -> str:
        """The input or index set of the whole that one of the part is.

        Raises: Failure.
        """
        part, what = component.name, "index set" if own.what == "party" else own.what
        there = [name for name, one in declared.items() if one.what == own.what]
        if value is not None:
            if isinstance(value, syntax.Name) and value.id in there:
                return value.id
            message = f"{own.name} is an {what} of {part}; it takes one of the {what}s declared here"
            raise Failure("PS0421", value.span, message, help=f"these are {', '.join(there)}" if there else None)
        same = declared.get(own.name)
        if same is None:
            return own.name
        if same.what != own.what:
            message = f"{own.name} is an {what} of {part}, and something else here"
            hint = f"pass the {what}: {own.name} = ..." if there else "give one of them another name"
            raise Failure("PS0421", component.span, message, others=((same.span, "declared here"),), help=hint)
        if own.what == "input":
            message = f"the input {own.name} of {part} is taken to be the {own.name} "
            message += f"of {same.part}" if same.part else "declared here"
            others, hint = ((same.span, "this one"),), f"write {own.name} = {own.name} to say so"
            self.said.append(lambda report: report.warn("PS0423", component.span, message, others=others, help=hint))
        return own.name

    def _captured(
        self, component: syntax.Component, inner: syntax.Spec, names: Names, declared: Mapping[str, _Declared]
    ) -> None:
        """A word that means nothing in the part must not come to mean something of the whole.

        Raises: Failure.
        """
        for used, bound in free_names(replace(inner, options=())):
            there = declared.get(used.id)
            if there is not None and used.id not in bound and used.id not in names:
                message = f"{used.id} is a word of {component.name} that it does not declare, and is declared here"
                hint = f"give what is called {used.id} here another name"
                others = ((there.span, "declared here"),)
                raise Failure("PS0424", used.span, message, others=others, help=hint)


def _beside(spec: syntax.Spec, offset: int, source: Source) -> Beside:
    return {one.name: (one, offset, source) for one in spec.within if one.name is not None}


def _named(component: syntax.Component, beside: Beside) -> syntax.Spec | None:
    """The further spec of the file that `spec(name)` without quotes names."""
    match component.call:
        case syntax.Call(function="spec", arguments=(syntax.Name(id=name), *_)):
            return beside[name][0] if name in beside else None
        case _:
            return None


def _template(name: str) -> str | None:
    """The text of a built-in spec, by its name without an ending; None if there is none."""
    found = files("privspec.specs").joinpath(f"{name}.priv")
    return found.read_text(encoding="utf-8") if name.isidentifier() and found.is_file() else None


# --- declarations ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Declared:
    """A name, the kind of what it stands for ("input", "party", ...), and the part that brought it, if one did."""

    name: str
    what: str
    span: Span
    part: str = ""


def _declared(spec: syntax.Spec) -> Iterator[_Declared]:
    """Everything that a spec declares."""
    known = set()
    for one in (*spec.parties, *spec.parameters, *spec.variables):
        known.add(_target(one))
        yield _Declared(_target(one), _what(one), one.span)
    for statement in spec.background:
        match statement:
            case syntax.Membership(left=syntax.Name(id=name)) if name not in known:
                known.add(name)
                yield _Declared(name, "choose", statement.span)


def _what(one: syntax.Node) -> str:
    return one.kind.value if isinstance(one, syntax.Variable) else type(one).__name__.lower()


def _target(statement: syntax.Node) -> str:
    """The name that a declaration, or a line about a domain, is about."""
    match statement:
        case syntax.Parameter(target=target) | syntax.Variable(target=target):
            return target.name
        case syntax.Party(name=name) | syntax.Membership(left=syntax.Name(id=name)):
            return name
        case _:
            return ""


# --- trees ----------------------------------------------------------------------------------------------


def _moved(node: syntax.Node, offset: int, folder: str) -> Any:
    """A tree whose text starts at an offset of another one, and whose files are in a folder."""
    changes: dict[str, Any] = {"span": Span(node.span.start + offset, node.span.end + offset)}
    match node:
        case syntax.Ref(name_span=span):
            changes["name_span"] = Span(span.start + offset, span.end + offset)
        case syntax.Call(function="csv" | "npy", arguments=(syntax.String(value=name) as file, *rest)) if folder:
            node = replace(node, arguments=(replace(file, value=normpath(join(folder, name))), *rest))
    return replace(with_children(node, lambda child: _moved(child, offset, folder)), **changes)


@dataclass(frozen=True, slots=True)
class _Inside:
    """Puts what a spec says of its parts (`part.O`, `part.loss`) into the names of the whole."""

    parts: Mapping[str, _Part]
    wrong: Callable[[Failure], None]

    def of(self, node: syntax.Node) -> Any:
        """The node without attributes of parts."""
        match node:
            case syntax.Attribute() if (path := _path(node)) and path[0] in self.parts:
                return self._named(self.parts[path[0]], ".".join(path[1:]), node)
            case syntax.Name(id=name) if name in self.parts:
                hint = f"write {name}.loss for its loss, or {name}.O for its output O"
                self.wrong(Failure("PS0203", node.span, f"{name} is another spec", help=hint))
                return node
            case syntax.Ref(name=name, attribute=str() as attribute) if name in self.parts:
                found = self._named(self.parts[name], attribute, node)
                inner: Any = with_children(node, self.of)
                return replace(inner, name=found.id, attribute=None) if isinstance(found, syntax.Name) else inner
            case _:
                return with_children(node, self.of)

    def _named(self, part: _Part, name: str, node: Any) -> syntax.Expr:
        loss = part.spec.loss
        if name == "loss" and loss is not None:
            return loss
        found = part.names.get(name)
        if name != "loss" and found is not None:
            return replace(found, span=node.span)
        outputs = [one.name for one in _declared(part.spec) if one.what == "output"]
        known = (*(one.removeprefix(f"{part.told.name}.") for one in outputs), *(() if loss is None else ("loss",)))
        hint = suggestion(name, known) or (f"it has {listing(known)}" if known else None)
        self.wrong(Failure("PS0229", node.span, f"{part.told.name} has no {name}", help=hint))
        return node  # type: ignore[no-any-return]


def _path(node: syntax.Node) -> tuple[str, ...]:
    """`a`, `b`, `O` of `a.b.O`; nothing for other expressions."""
    match node:
        case syntax.Name(id=name):
            return (name,)
        case syntax.Attribute(base=base, name=name) if before := _path(base):
            return (*before, name)
        case _:
            return ()


def _seen_with(line: Any, condition: syntax.Name | None) -> Any:
    """A line of a part that shows by running at all what its condition is: it holds of both together."""
    if condition is None or not isinstance(line, syntax.Requirement) or not isinstance(line.subjects, syntax.Refs):
        return line
    if any(one.name == condition.id for one in line.subjects.items):
        return line
    also = syntax.Ref(condition.id, span=line.subjects.span)
    return replace(line, subjects=replace(line.subjects, items=(also, *line.subjects.items)))


class _Renamer:
    """Puts the names of the whole in place of those of a part."""

    def __init__(self, names: Names, inner: syntax.Spec) -> None:
        self.names = names
        kinds = {one.name: one.what for one in _declared(inner)}
        self.parties = {name for name, what in kinds.items() if what == "party"}
        self.values = {name for name, what in kinds.items() if what in ("parameter", "constant")}
        self.all = {kind: tuple(name for name, what in kinds.items() if what == kind) for kind in ("input", "output")}

    def of(self, node: syntax.Node, bound: frozenset[str] = frozenset()) -> Any:
        """The node as the whole says it; `bound`: variables of `for` in force."""
        match node:
            case syntax.Name(id=name):
                found = self.names.get(name)
                return node if found is None or name in bound else replace(found, span=node.span)
            case syntax.SetOf(items=items):
                # a bare word in braces is a symbol unless a parameter has that name
                words = [isinstance(one, syntax.Name) and one.id not in self.values for one in items]
                pairs = zip(items, words, strict=True)
                return replace(node, items=tuple(one if word else self.of(one, bound) for one, word in pairs))
            case syntax.Comprehension(variable=name) | syntax.Target(variable=str() as name):
                if name in self.parties:
                    return replace(self._inside(node, bound - {name}), variable=self._word(name))
                return self._inside(node, bound | {name})
            case syntax.Ref(name=name):
                return replace(self._inside(node, bound), name=self._word(name))
            case syntax.Refs():
                return self._refs(self._inside(node, bound).items, node.span)
            case syntax.AllOf(what=what):
                return self._refs(
                    (syntax.Ref(self._word(one), span=node.span) for one in self.all[what[:-1]]), node.span
                )
            case syntax.OneUnit(name=name) | syntax.UpToUnits(name=name) if name not in self.parties:
                return self._inside(node, bound)
            case syntax.Party(name=name) | syntax.OneUnit(name=name) | syntax.UpToUnits(name=name):
                return replace(self._inside(node, bound), name=self._word(name))
            case syntax.SeenBy() | syntax.NoiseFamily():
                return node
            case _:
                return self._inside(node, bound)

    def told(self, part: str, inner: Component) -> Component:
        """A part of a part."""
        return replace(
            inner,
            name=f"{part}.{inner.name}",
            links={own: self._word(name) for own, name in inner.links.items()},
            settings={own: self.of(value) for own, value in inner.settings.items()},
            domains={self._word(name): self.of(domain) for name, domain in inner.domains.items()},
        )

    def _inside(self, node: Any, bound: frozenset[str]) -> Any:
        return with_children(node, lambda child: self.of(child, bound))

    def _word(self, name: str) -> str:
        found = self.names.get(name)
        return found.id if isinstance(found, syntax.Name) else name

    def _refs(self, items: Iterable[syntax.Ref], span: Span) -> syntax.Refs:
        """Two inputs of a part may be one of the whole."""
        return syntax.Refs(tuple({(one.name, one.attribute): one for one in items}.values()), span=span)
