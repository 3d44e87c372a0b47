"""Programs that were built against the headers of an earlier release run with the library of today.

abi/N has what a release of ABI N installed: its headers, the functions that it exported, and a program that
uses all of them. scripts/freeze_abi.py writes it. The program is linked with a stand-in that exports
those functions, so that its binary asks the loader for what that release's would.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

import peerway._core

ROOT = Path(__file__).resolve().parents[3]
FROZEN = sorted((ROOT / "library" / "tests" / "abi").iterdir())
LIBRARY = Path(peerway._core.__file__ or "").parent / "lib" / "libpeerway.so"
CC = ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror"]


def run(*command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        list(map(str, command)), capture_output=True, text=True, check=False, env=os.environ | environment
    )


def build(*command: str | Path) -> None:
    done = run(*CC, *command)
    assert done.returncode == 0, done.stderr


def stand_in(folder: Path, names: list[str]) -> Path:
    """A library that exports those functions like libpeerway.so."""
    folder.mkdir()
    library = folder / "libpeerway.so.0"
    (folder / "stub.c").write_text("".join(f"void {name}(void) {{}}\n" for name in names))
    (folder / "stub.map").write_text(f"PEERWAY_0 {{ global: {'; '.join(names)}; local: *; }};\n")
    soname, versions = "-Wl,-soname,libpeerway.so.0", f"-Wl,--version-script={folder / 'stub.map'}"
    build("-shared", "-fPIC", soname, versions, folder / "stub.c", "-o", library)
    return library


def program_of(frozen: Path, folder: Path) -> Path:
    """The program of that release, as it was installed then."""
    library = stand_in(folder / "then", (frozen / "functions.txt").read_text().split())
    program = folder / "program"
    build(f"-I{frozen}", frozen / "program.c", library, "-o", program)
    return program


def run_with(program: Path, library: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    folder.mkdir()
    (folder / "libpeerway.so.0").symlink_to(library)
    return run(program, LD_LIBRARY_PATH=str(folder), LD_BIND_NOW="1")


@pytest.mark.parametrize("frozen", FROZEN, ids=lambda path: path.name)
def test_a_program_of_that_release_runs(frozen: Path, tmp_path: Path) -> None:
    done = run_with(program_of(frozen, tmp_path), LIBRARY, tmp_path / "now")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith(f"ABI {frozen.name} runs with {peerway.__version__}")


@pytest.mark.parametrize("frozen", FROZEN, ids=lambda path: path.name)
def test_the_program_uses_every_function(frozen: Path) -> None:
    text = (frozen / "program.c").read_text()
    used = set(re.findall(r"\bpw_\w+(?=\()", text))
    assert set((frozen / "functions.txt").read_text().split()) == used


def test_a_function_that_is_gone_is_seen(tmp_path: Path) -> None:
    frozen = FROZEN[-1]
    names = (frozen / "functions.txt").read_text().split()
    names.remove("pw_get")
    done = run_with(program_of(frozen, tmp_path), stand_in(tmp_path / "less", names), tmp_path / "now")
    assert done.returncode != 0
    assert "pw_get" in done.stderr


STRUCT = re.compile(r"typedef struct (pw_\w+) \{(.*?)\n\} \1;", re.DOTALL)
MEMBER = re.compile(r"[\s*](\w+)(?:\[\w+\])*;")


def facts_of(headers: Path, folder: Path) -> dict[str, int]:
    """What these headers compile into a program: sizes, offsets and the values of names."""
    text = "".join((headers / "peerway" / name).read_text() for name in ("peerway.h", "handles.h"))
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    text = re.sub(r"PW_SIZE_OF\(.*?\);", "size_t size;", text)
    facts = {}
    for struct, body in STRUCT.findall(text):
        facts[f"sizeof {struct}"] = f"sizeof({struct})"
        for member in MEMBER.findall(body):
            facts[f"{struct}.{member}"] = f"offsetof({struct}, {member})"
            facts[f"sizeof {struct}.{member}"] = f"sizeof((({struct}*)0)->{member})"
    for name in re.findall(r"\b(PW_[A-Z_]+) = -?\d+", text):
        facts[name] = name
    for name in re.findall(r"#define (PW_(?!VERSION|SIZE_OF|API)[A-Z_]+) \S", text):
        facts[name] = name
    folder.mkdir()
    print_one = 'printf("%lld {fact}\\n", (long long)({say}));\n'
    lines = "".join(print_one.format(fact=fact, say=say) for fact, say in facts.items())
    (folder / "facts.c").write_text(
        "#include <stddef.h>\n#include <stdio.h>\n"
        "#include <peerway/peerway.h>\n#include <peerway/handles.h>\n"
        f"int main(void) {{\n{lines}\n}}\n"
    )
    build(f"-I{headers}", folder / "facts.c", "-o", folder / "facts")
    said = run(folder / "facts").stdout.splitlines()
    return {fact: int(value) for value, fact in (line.split(" ", 1) for line in said)}


def breaks(then: dict[str, int], now: dict[str, int]) -> list[str]:
    """What a program compiled then would get wrong.

    Structs that begin with their size may grow, and handles may change with their version.
    """
    found = []
    for fact, value in then.items():
        struct = re.sub(r"^sizeof |\..*", "", fact)
        grows = fact == f"sizeof {struct}" and f"{struct}.size" in then and now.get(fact, 0) > value
        other_handle = f"{struct}.version" in then and then["PW_HANDLE_VERSION"] != now["PW_HANDLE_VERSION"]
        if now.get(fact) != value and not grows and not other_handle and fact != "PW_HANDLE_VERSION":
            found.append(f"{fact} was {value} and is {now.get(fact)}")
    return found


@pytest.mark.parametrize("frozen", FROZEN, ids=lambda path: path.name)
def test_structs_and_names_are_as_they_were(frozen: Path, tmp_path: Path) -> None:
    then, now = facts_of(frozen, tmp_path / "then"), facts_of(ROOT / "library" / "include", tmp_path / "now")
    assert len(then) > 150
    assert breaks(then, now) == []


@pytest.mark.parametrize(
    ("before", "after", "wrong"),
    [
        ("  uint64_t by;\n} pw_notification;", "  uint64_t by;\n  uint64_t more;\n} pw_notification;", None),
        ("  pw_remote* signal;\n  uint64_t by;", "  uint64_t by;\n  pw_remote* signal;",
         "pw_notification.by was 16"),
        ("PW_TIMEOUT = 1,", "PW_TIMEOUT = 21,", "PW_TIMEOUT was 1 and is 21"),
        ("  int32_t index; /* CUDA", "  int64_t index; /* CUDA", "sizeof pw_device was 8"),
        ("  unsigned long long bytes;\n} pw_remote_handle;", "  unsigned bytes;\n} pw_remote_handle;",
         "pw_remote_handle.bytes"),
    ],
)  # fmt: skip
def test_a_change_of_a_struct_is_seen(tmp_path: Path, before: str, after: str, wrong: str | None) -> None:
    frozen = FROZEN[-1]
    changed = tmp_path / "changed" / "peerway"
    changed.mkdir(parents=True)
    seen = False
    for header in (frozen / "peerway").iterdir():
        text = header.read_text()
        seen |= before in text
        (changed / header.name).write_text(text.replace(before, after))
    assert seen
    found = breaks(facts_of(frozen, tmp_path / "then"), facts_of(changed.parent, tmp_path / "now"))
    assert bool(found) == (wrong is not None), found
    assert wrong is None or any(wrong in one for one in found), found
