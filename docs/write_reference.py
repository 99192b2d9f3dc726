"""The pages of `docs/reference/`, written from the package: `python docs/write_reference.py`.

A name is public if `ferrule.__all__` or a package's `__all__` has it, if it is one of the words (the modules next to
`ferrule/__init__.py`), or if an example of the documents imports it. Each stands on the page of its room, errors on a
page of their own; `tests/test_reference.py` compares the pages with the package. The tables can be read as they are;
`make docs` replaces `::: name` by the signature, the docstring and the members, and each page says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import griffe

ROOT = Path(__file__).parents[1]
FOLDER = Path(__file__).with_name("reference")


@dataclass(frozen=True, slots=True)
class Page:
    """One page: its title, what it is about, and the rooms of the package that it covers."""

    title: str
    about: str
    rooms: tuple[str, ...]


PAGES = {
    "tools": Page(
        "Tools", "Functions as tools: see [tools](../tools.md).", ("tools", "toolspec", "builtin_tools", "arithmetic")
    ),
    "pipelines": Page(
        "Pipelines and sessions",
        "A model with its tools: see [pipelines](../pipeline.md) and [sessions](../sessions.md).",
        ("agent", "session"),
    ),
    "conversations": Page(
        "Conversations",
        "Messages, their parts, files and the store: see [conversations](../conversations.md).",
        ("conversation", "media", "transcript", "capabilities", "blobs", "formats", "store"),
    ),
    "events": Page(
        "Events",
        "What a run emits while it goes on: see [streaming](../pipeline.md#streaming). Each is a frozen dataclass.",
        ("events",),
    ),
    "errors": Page("Errors", "Every error that ferrule raises on purpose is a `FerruleError`.", ("errors",)),
    "models": Page("Models", "What writes messages: see [models](../models.md).", ("models", "embedded")),
    "execution": Page(
        "The executor and policies",
        "How calls are permitted and run: see [the executor](../executor.md) and [policies](../policy.md).",
        ("execution",),
    ),
    "dialects": Page("Dialects", "How model families write calls: see [dialects](../dialects.md).", ("dialects",)),
    "tokens": Page(
        "Tokens and engines",
        "Conversations as ids and masks: see [tokens](../tokens.md) and [the engine](../engine.md).",
        ("tokens", "engines"),
    ),
    "sandbox": Page("The sandbox", "Where a model's code runs: see [the sandbox](../sandbox.md).", ("sandbox",)),
    "mcp": Page("MCP", "Tools of servers, and serving them: see [MCP](../mcp.md).", ("mcp",)),
    "coding": Page("Coding", "Tools for a project, in one workspace: see [coding](../coding.md).", ("coding",)),
    "analysis": Page(
        "Analysis", "Questions about data, answered by plans of tasks: see [analysis](../analysis.md).", ("analysis",)
    ),
    "training": Page("Training data", "Synthetic conversations: see [training](../training.md).", ("training",)),
}
UNBUILT = (
    "`make docs` puts the signature, the docstring and the members in place of each `::: NAME`; "
    "without it, `python -m pydoc NAME` prints those of a class or a function."
)
PAGE_OF = {room: name for name, page in PAGES.items() for room in page.rooms}
_IMPORT = re.compile(r"^(?:>>> |    )*from (ferrule[\w.]*) import (?:\(([^)]*)\)|(.*))$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PublicName:
    """A public name, the module to import it from, and what it is."""

    name: str
    module: str
    entry: griffe.Object

    @property
    def page(self) -> str:
        """The name of its page."""
        if is_error(self.entry):
            return "errors"
        return PAGE_OF[self.entry.path.split(".")[1]]

    @property
    def summary(self) -> str:
        """The first sentence of its docstring."""
        if self.entry.docstring is None:
            return "(no docstring)"
        paragraph = " ".join(self.entry.docstring.value.strip().split("\n\n")[0].split())
        match = re.match(r"(.*?[.:])(?= [A-Z`]|$)", paragraph)
        return (match[1].rstrip(":.") + "." if match else paragraph).replace("|", "\\|")


def is_error(entry: griffe.Object) -> bool:
    """Whether an entry is one of the package's exceptions or warnings."""
    if not isinstance(entry, griffe.Class):
        return False
    bases = {str(base) for base in entry.bases} | {base.path for base in entry.mro()}
    return any(base.endswith((".FerruleError", "UserWarning")) for base in bases) or entry.name == "FerruleError"


def find_documented_imports() -> Iterator[tuple[str, str]]:
    """Each module and name that an example of the documents imports."""
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "examples").glob("*.py")):
        for module, several, one in _IMPORT.findall(path.read_text(encoding="utf-8")):
            for part in (several or one).split(","):
                words = part.split("#")[0].split()
                if words:
                    yield module, words[0]


def find_exports(package: griffe.Module) -> Iterator[tuple[str, str]]:
    """Each module and name that a package's `__all__` has, hidden ones left out."""
    if package.is_init_module and package.exports:
        for name in package.exports:
            if not str(name).startswith("_"):
                yield package.path, str(name)
    if package.parent is not None and package.parent.path == "ferrule" and not package.is_init_module:
        for name, entry in package.members.items():
            if not entry.is_alias and not name.startswith("_"):
                yield package.path, name
    for module in package.modules.values():
        if not module.is_alias and not module.name.startswith("_"):
            yield from find_exports(module)


def collect(package: griffe.Module) -> list[PublicName]:
    """All public names, each once, with the shortest module that it can be imported from."""
    found: dict[str, PublicName] = {}
    for module, name in sorted(
        {*find_exports(package), *find_documented_imports()}, key=lambda pair: (len(pair[0]), pair)
    ):
        entry = package[f"{module}.{name}".removeprefix("ferrule.")]
        target = entry.final_target if entry.is_alias else entry
        found.setdefault(target.path, PublicName(name, module, target))
    return sorted(found.values(), key=lambda one: (one.name.lower(), one.name, one.module))


def write_page(page: Page, names: list[PublicName]) -> str:
    """One page: a table of its names, then each under a heading of its own."""
    lines = [
        f"# {page.title}",
        "",
        page.about,
        "",
        UNBUILT,
        "",
        "| name | import it from | what it is |",
        "|---|---|---|",
    ]
    titles = [title_of(one, names) for one in names]
    for one, title in zip(names, titles, strict=True):
        lines.append(f"| [`{title}`](#{anchor_of(title)}) | `{one.module}` | {one.summary} |")
    for one, title in zip(names, titles, strict=True):
        lines += ["", f"## {title}", "", *write_fields(one.entry), f"::: {one.entry.path}"]
        if one.page == "events":
            lines += ["    options:", "      members: false"]
    return "\n".join(lines) + "\n"


def title_of(one: PublicName, names: list[PublicName]) -> str:
    """The name; with what it is, or its module, where the page has another whose anchor would be the same."""
    alike = [other for other in names if other.name.lower() == one.name.lower() and other.page == one.page]
    if len(alike) == 1:
        return one.name
    kinds = {other.entry.kind for other in alike}
    return f"{one.name} ({one.entry.kind.value if len(kinds) == len(alike) else one.module})"


def anchor_of(title: str) -> str:
    """The anchor of a heading, as code hosts and the site make it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def write_fields(entry: griffe.Object) -> list[str]:
    """A table of an event's fields; nothing for anything else."""
    if not entry.path.startswith("ferrule.events.") or not isinstance(entry, griffe.Class):
        return []
    lines = ["| field | type | default | meaning |", "|---|---|---|---|"]
    for field in entry.attributes.values():
        meaning = " ".join(field.docstring.value.split()) if field.docstring else ""
        default = "" if field.value is None else f"`{default_of(str(field.value))}`"
        kind = str(field.annotation).replace("|", "\\|")
        lines.append(f"| `{field.name}` | `{kind}` | {default} | {meaning} |")
    return [*lines, ""]


def default_of(value: str) -> str:
    """A field's default as somebody sees it, not as `field(…)` declares it."""
    match = re.match(r"field\(default=(.*?), ", value)
    return match[1] if match else value


def write_index(names: list[PublicName]) -> str:
    """The first page: every name of `ferrule` itself, and the pages."""
    lines = [
        "# Reference",
        "",
        "Every public name, by subject. `await` at the top level, as in many examples, works in",
    ]
    lines += ["`python -m asyncio`; in a program, put it into an `async def` and call that with `asyncio.run`.", ""]
    lines += [f"- [{page.title}]({name}.md): {page.about.split(':')[0].rstrip('.')}" for name, page in PAGES.items()]
    lines += ["", "## Names of `ferrule` itself", "", "| name | what it is |", "|---|---|"]
    for one in names:
        if one.module == "ferrule":
            title = title_of(one, names)
            lines.append(f"| [`{title}`]({one.page}.md#{anchor_of(title)}) | {one.summary} |")
    return "\n".join(lines) + "\n"


def write_reference() -> dict[str, str]:
    """The text of each file of the reference."""
    package = griffe.load("ferrule", search_paths=[str(ROOT / "src")])
    assert isinstance(package, griffe.Module)
    names = collect(package)
    texts = {f"{name}.md": write_page(page, [one for one in names if one.page == name]) for name, page in PAGES.items()}
    return {"index.md": write_index(names), **texts}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for file, text in write_reference().items():
        (FOLDER / file).write_text(text, encoding="utf-8")
