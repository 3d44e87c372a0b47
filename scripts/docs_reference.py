"""Generates the reference pages from the code, as a hook of MkDocs.

The pages of the command line, configuration, C and C++ have no source of their own; in
docs/reference/errors.md the line `<!-- statuses -->` is replaced by a table.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkdocs.structure.files import File, Files

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig

ROOT = Path(__file__).resolve().parent.parent
INCLUDE = ROOT / "library" / "include" / "peerway"
CPP_HEADERS = (
    "status.hpp", "team.hpp", "memory.hpp", "context.hpp", "request.hpp", "plan.hpp", "halo.hpp",
    "trace.hpp",
)  # fmt: skip
SECTION = re.compile(r"^(?:/\*|//) -{2,} (?P<title>.*?) ?(?:-{4,}.*)?(?:\*/)?$")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    pages = {
        "reference/c.md": header_page("C", INCLUDE / "peerway.h", "c"),
        "reference/cpp.md": "\n".join(header_page("C++", INCLUDE / name, "cpp") for name in CPP_HEADERS),
        "reference/cli.md": command_line_page(),
        "reference/configuration.md": configuration_page(),
    }
    for path, content in pages.items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Fill in the table of statuses."""
    return (
        markdown.replace("<!-- statuses -->", status_table()) if "<!-- statuses -->" in markdown else markdown
    )


def header_page(language: str, header: Path, highlight: str) -> str:
    """A header as a page: comments at the left margin become text, and the rest code blocks between them."""
    text = header.read_text()
    body = text[: text.rindex("#endif")] if "#endif" in text else text
    parts = [f"# {language}: `{header.parent.name}/{header.name}`\n"]
    for kind, chunk in chunks(body.splitlines()):
        if kind == "section":
            parts.append(f"## {chunk[:1].upper()}{chunk[1:]}\n")
        elif kind == "prose":
            parts.append(chunk + "\n")
        elif re.search(r"\w", without_plumbing(chunk)):
            parts.append(f"```{highlight}\n{without_plumbing(chunk)}\n```\n")
    return "\n".join(parts)


def chunks(lines: list[str]) -> list[tuple[str, str]]:
    """Cut a header into sections, prose (comments at the left margin) and code."""
    result: list[tuple[str, list[str]]] = []
    comment = False
    for line in lines:
        section = SECTION.match(line)
        if section:
            title = section["title"].strip(" -")
            # The comment with a section's title may continue with prose.
            comment = line.startswith("/*") and not line.rstrip().endswith("*/")
            result += [("section", [title]), ("prose" if comment else "code", [])]
        elif comment or line.startswith(("/*", "//")):
            if not result or result[-1][0] != "prose":
                result.append(("prose", []))
            result[-1][1].append(line)
            comment = (comment or line.startswith("/*")) and not line.rstrip().endswith("*/")
        else:
            if not result or result[-1][0] != "code":
                result.append(("code", []))
            result[-1][1].append(line)
    return [(kind, prose(text) if kind == "prose" else "\n".join(text).strip("\n")) for kind, text in result]


def prose(lines: list[str]) -> str:
    """The text of a comment; indented lines in it stay code."""
    text = []
    for line in lines:
        bare = re.sub(r"^\s*(?:/\*+|\*/|\*|///?<?)(?: |$)|\s*\*/\s*$", "", line)
        text.append(f"  {bare}" if bare.startswith("  ") else bare.strip())
    return "\n".join(text).strip("\n").replace("<", "&lt;")


def without_plumbing(code: str) -> str:
    """The code without include guards, linkage and visibility, which no reader needs."""
    drop = re.compile(
        r"^(#\s*(ifndef|ifdef|if|else|elif|endif|include)\b.*"
        r"|#define (PW_API|PEERWAY_\w+_H\w*)\b.*|extern \"C\".*|\}\s*)$"
    )
    kept = [line.replace("PW_API ", "") for line in code.splitlines() if line == "}" or not drop.match(line)]
    text = "\n".join(kept).strip("\n")
    return "" if text.strip() == "}" else text


def statuses() -> list[tuple[str, str, str]]:
    """(C name, number, meaning) of every status in peerway.h."""
    enum = re.search(
        r"typedef enum pw_status \{(.*?)\} pw_status;", (INCLUDE / "peerway.h").read_text(), re.DOTALL
    )
    if enum is None:
        raise ValueError(f"{INCLUDE / 'peerway.h'}: no enum pw_status")
    rows = re.findall(r"(PW_\w+) = (\d+),?(?:\s*/\* (.*?) \*/)?", enum[1])
    return [(name, number, meaning) for name, number, meaning in rows]


def status_table() -> str:
    """The table of statuses with the Python exception of each."""
    from peerway import errors

    exceptions = {
        kind.status: kind.__name__ for kind in vars(errors).values() if is_error(kind, errors.Error)
    }
    lines = ["| status | C | Python | meaning |", "| --- | --- | --- | --- |"]
    for name, number, meaning in statuses():
        status = name.removeprefix("PW_").lower()
        python = f"`peerway.{exceptions[status]}`" if status in exceptions else ""
        lines.append(f"| `{status}` | `{name}` = {number} | {python} | {meaning} |")
    return "\n".join(lines)


def is_error(kind: object, base: type) -> bool:
    """Whether this is one of the exceptions, except the base class itself."""
    return isinstance(kind, type) and issubclass(kind, base) and kind is not base


def configuration_page() -> str:
    """The page of all settings of all products."""
    from peerway.settings import settings

    lines = [
        "# Configuration",
        "",
        "No setting is needed for good performance. Each can be given as an environment variable or in",
        "`~/.config/peerway/config.json`, one JSON object with the names below; the environment wins.",
        "`peerway config` prints every value in force and where it came from.",
        "",
        "| name | variable | type | default | |",
        "| --- | --- | --- | --- | --- |",
    ]
    for entry in settings():
        kind = entry.type.replace("choice:", "one of ").replace("|", ", ")
        default = f"`{entry.default}`" if entry.default else "derived"
        lines.append(
            f"| `{entry.name}` | `PEERWAY_{entry.name.upper()}` | {kind} | {default} | {entry.help} |"
        )
    return "\n".join(lines) + "\n"


def command_line_page() -> str:
    """The page of all commands, with their help texts."""
    import click

    from peerway_common.cli import command
    from peerway_common.cli.verbs import Verbs

    lines = [
        "# Command line",
        "",
        "Errors go to standard error as `peerway: ...` with what was asked, what was found and what to do,",
        "and a status other than 0. This is what `peerway VERB --help` prints.",
        "",
    ]

    def add(group: Verbs, name: str, level: str) -> None:
        parent = click.Context(group, info_name=name)
        for verb, summary in group.about(parent):
            result = group.get_command(parent, verb)
            if result is None:
                raise ValueError(f"the verb '{verb}' is announced, but there is no such command")
            context = click.Context(result, info_name=f"{name} {verb}", terminal_width=80)
            title = f"{name} {verb}".removeprefix("peerway ")
            lines.extend(
                [f"{level} {title}", "", summary, "", "```text", result.get_help(context), "```", ""]
            )
            if isinstance(result, Verbs):
                add(result, f"{name} {verb}", f"{level}#")

    assert isinstance(command, Verbs)
    add(command, "peerway", "##")
    return "\n".join(lines)
