"""What holds the project together: one version, one list of settings, and documents that tell the truth."""

from __future__ import annotations

import ast
import importlib.metadata
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

import peerway
import products
import sources
from peerway import _core, errors
from peerway.settings import settings
from peerway_common.cli import VERBS

ROOT = Path(__file__).resolve().parents[2]


def test_one_version_everywhere() -> None:
    declared = re.search(r"project\(peerway VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())
    assert declared is not None
    version = declared[1]
    assert peerway.__version__ == version
    assert importlib.metadata.version("peerway") == version
    assert (
        f"## [{version}]" in (ROOT / "CHANGELOG.md").read_text()
        or "## [Unreleased]" in (ROOT / "CHANGELOG.md").read_text()
    )


def test_every_requirement_is_pinned() -> None:
    pinned = {
        re.sub(r"[-_.]+", "-", line.split("==")[0]).lower()
        for line in (ROOT / "requirements.lock").read_text().splitlines()
        if "==" in line
    }
    wanted = [need for needs in products.groups().values() for need in needs]
    names = {re.sub(r"[-_.]+", "-", re.split(r"[<>=\[ ]", need)[0]).lower() for need in wanted}
    assert names <= pinned


# What a module is called whose distribution has another name, and what other requirements bring along.
DISTRIBUTIONS = {
    "_otf2": "otf2", "argon2": "argon2-cffi", "clang": "libclang", "h11": "uvicorn", "markupsafe": "jinja2",
    "prometheus_client": "prometheus-client", "pydantic": "fastapi", "pynvml": "nvidia-ml-py",
    "starlette": "fastapi",
}  # fmt: skip
# Used if they are installed: packages for GPUs, for the pictures of a report, and for types.
OPTIONAL = {"cupy", "jax", "kvikio", "plotly", "selenium", "torch", "typing_extensions"}


@pytest.mark.parametrize(
    ("folder", "groups"),
    [
        ("common", ["common"]), ("library/python", ["library", "common"]), ("nic", ["library", "common"]),
        ("measure", ["measure", "common"]), ("trace", ["trace", "measure", "common"]),
        ("xacc", ["xacc", "measure", "common"]),
        ("jobs", ["jobs", "jobs-server", "jobs-postgresql", "common"]),
    ],
)  # fmt: skip
def test_a_product_requires_what_it_imports(folder: str, groups: list[str]) -> None:
    imported: set[str] = set()
    for path in (ROOT / folder).glob("peerway*/**/*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                imported.add(node.module.partition(".")[0])
    foreign = {name for name in imported - OPTIONAL if not name.startswith("peerway")}
    required = {re.split(r"[<>=\[ ]", need)[0] for group in groups for need in products.own(group)}
    assert foreign
    assert {DISTRIBUTIONS.get(name, name) for name in foreign - sys.stdlib_module_names} <= required


def test_every_requirement_is_explained() -> None:
    page = (ROOT / "docs" / "dependencies.md").read_text().lower()
    groups = products.groups()
    for need in {*groups["base"], *groups["trace"], *groups["xacc"], *groups["jobs"], *groups["jobs-server"]}:
        name = re.split(r"[<>=\[ ]", need)[0]
        assert name.lower() in page or name.replace("-", "/") in page, name


def test_every_status_of_the_c_interface_has_an_exception() -> None:
    header = (ROOT / "library" / "include" / "peerway" / "peerway.h").read_text()
    statuses = {
        name.lower() for name in re.findall(r"^\s+PW_(\w+) = \d+", header.split("} pw_status")[0], re.M)
    }
    kinds = [
        kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.Error)
    ]
    assert statuses - {"ok"} == {kind.status for kind in kinds}


def test_every_setting_is_described() -> None:
    names = [setting.name for setting in settings()]
    assert names == sorted(set(names))
    assert names
    for setting in settings():
        assert re.fullmatch(r"[a-z][a-z_]*", setting.name)
        assert setting.help.endswith(".")
        assert setting.origin == f"the default of '{setting.name}'"


def config(**environment: str) -> subprocess.CompletedProcess[str]:
    """Run `peerway config --format json` with these variables."""
    return subprocess.run(
        [sys.executable, "-m", "peerway", "config", "--format", "json"],
        capture_output=True,
        text=True,
        check=False,
        env=dict(os.environ, **environment),
    )


def test_config_says_where_a_value_came_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "peerway").mkdir()
    (tmp_path / "peerway" / "config.json").write_text('{"strict": true, "log": "info"}')
    done = config(PEERWAY_LOG="debug")
    assert done.returncode == 0, done.stderr
    by_name = {setting["name"]: setting for setting in json.loads(done.stdout)}
    assert (by_name["log"]["value"], by_name["log"]["origin"]) == ("debug", "PEERWAY_LOG")
    assert by_name["strict"]["value"] == "on"
    assert str(tmp_path) in by_name["strict"]["origin"]


def test_config_shows_what_was_derived_and_from_what(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    done = config(XDG_CACHE_HOME="/nowhere/cache", PEERWAY_RULES=str(tmp_path / "mine.json"))
    assert done.returncode == 0, done.stderr
    by_name = {row["name"]: (row["derived"], row["derived_from"]) for row in json.loads(done.stdout)}
    assert by_name["cache"] == ("/nowhere/cache/peerway", "XDG_CACHE_HOME")
    assert by_name["routes"][0] == _core.default_table_file()
    assert "`peerway tune` makes it" in by_name["routes"][1]
    assert by_name["rules"] == ("", "")  # it was given
    assert by_name["log"] == ("", "")  # it has a default
    assert by_name["cores"][0] == str(len(os.sched_getaffinity(0)))
    every = [setting for setting in settings() if not setting.default]
    assert all(by_name[setting.name][0] for setting in every if setting.name != "rules")


def test_config_says_once_that_a_key_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "peerway").mkdir()
    (tmp_path / "peerway" / "config.json").write_text('{"strikt": true}')
    done = config()
    assert done.returncode == 1
    assert done.stderr.count("strikt") == 1
    assert "did you mean 'strict'" in done.stderr


def test_the_python_reference_has_every_public_class() -> None:
    page = (ROOT / "docs" / "reference" / "python.md").read_text()
    for name in peerway.__all__:
        thing = getattr(peerway, name)
        if isinstance(thing, type) and not issubclass(thing, errors.Error):
            assert f"::: {thing.__module__}.{name}\n    options: {{heading: peerway.{name}}}" in page, name


def test_config_names_a_value_that_cannot_be_used() -> None:
    done = config(PEERWAY_LOG="loud")
    assert done.returncode == 1
    assert "PEERWAY_LOG" in done.stderr
    assert "loud" in done.stderr
    assert "debug" in done.stderr


def test_documents_name_only_verbs_that_exist() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    for page in pages:
        for verb in re.findall(r"^\$ peerway ([a-z-]+)", page.read_text(), re.M):
            assert verb in VERBS, f"{page.relative_to(ROOT)} names `peerway {verb}`"


def readmes() -> list[Path]:
    """The README of each folder, at any depth, and the documents of the root."""
    pages = [*ROOT.glob("*.md"), *(ROOT / name for name in sources.tracked("/README.md"))]
    assert ROOT / "xacc" / "runtime" / "README.md" in pages
    return pages


def documents() -> list[Path]:
    """All pages for people: READMEs, and those of docs."""
    return sorted({*readmes(), *(ROOT / "docs").rglob("*.md")})


def test_documents_name_only_files_that_exist() -> None:
    """Also on GitHub, where a link of a folder's README is relative to it. MkDocs checks the others."""
    pages = [*readmes(), *ROOT.glob(".github/*.md")]
    links = r"\]\(([^)#:\s]+)(?:#[^)]*)?\)|src=\"([^\":]+)\""
    targets = [
        (page, linked or picture) for page in pages for linked, picture in re.findall(links, page.read_text())
    ]
    assert len(targets) > 50
    missing = [
        f"{page.relative_to(ROOT)}: {name}" for page, name in targets if not (page.parent / name).exists()
    ]
    assert missing == []


def anchors(page: Path) -> set[str]:
    """The headings of a page as links name them, on GitHub and on the site alike."""
    titles = re.findall(r"^#+ (.*)", re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S), re.M)
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower()) for title in titles}


def test_readmes_name_only_headings_that_exist() -> None:
    """MkDocs checks the headings that pages of the site name."""
    links = [
        (page, *link)
        for page in readmes()
        for link in re.findall(r"\]\(([^)#:\s]*\.md)#([^)]*)\)", page.read_text())
    ]
    assert links
    assert [link for link in links if link[2] not in anchors(link[0].parent / link[1])] == []


def test_lines_of_documents_are_as_short_as_those_of_code() -> None:
    """Tables, headings and links that cannot be broken excepted."""
    long = []
    for page in documents():
        if page.name == "CHANGELOG.md":  # it has a line for each entry
            continue
        text = re.sub(
            r"^ *```.*?^ *```", lambda code: "\n" * code[0].count("\n"), page.read_text(), flags=re.M | re.S
        )
        for number, line in enumerate(text.splitlines(), 1):
            if len(line) > 110 and not line.startswith(("|", "#", "!", "<img")) and " " in line.strip():
                long.append(f"{page.relative_to(ROOT)}:{number}")
    assert long == [], "break these lines at 110 columns"


def test_documents_have_no_placeholders() -> None:
    """A line of only CAPITALS_WITH_UNDERSCORES is where a table was to be put in."""
    lines = [
        f"{page.relative_to(ROOT)}:{number}: {line}"
        for page in documents()
        for number, line in enumerate(page.read_text().splitlines(), 1)
        if re.fullmatch(r"[A-Z]+(?:_[A-Z]+)+", line.strip())
    ]
    assert lines == []


def test_documents_name_only_paths_that_exist() -> None:
    """A path from the root of the tree in backquotes, in the documents and in the READMEs of folders."""
    pages = documents()
    pages.remove(ROOT / "results" / "README.md")  # it names files of others
    folders = "library|nic|measure|trace|xacc|jobs|common|apps|tests|examples|scripts|docs|results"
    missing = []
    for page in pages:
        for name in re.findall(rf"`((?:{folders})/[\w/.-]+)`", page.read_text()):
            if not (ROOT / name).exists() and not (page.parent / name).exists():
                missing.append(f"{page.relative_to(ROOT)}: {name}")
    assert missing == []


def test_types_that_several_parts_have_are_defined_in_their_folders() -> None:
    """The glossary's last table: each name is a class, struct or enum in each of its folders."""
    table = (ROOT / "docs" / "glossary.md").read_text().partition("## Names of types that several")[2]
    missing, name = [], ""
    for first, folders in re.findall(r"^\| (?:`(\w+)` )?\| (`.*?) \|", table, re.M):
        name = first or name
        for folder in re.findall(r"`([^`]+)`", folders):
            sources = [
                path for end in ("py", "h", "hpp", "cpp") for path in (ROOT / folder).rglob(f"*.{end}")
            ]
            defined = re.compile(rf"^ *(?:class|struct|enum class) {name}\b[^;]*$", re.M)
            if not any(defined.search(path.read_text()) for path in sources):
                missing.append(f"{name} in {folder}")
    assert name == "Ticket"
    assert missing == []


def test_each_product_has_a_readme_that_leads_to_its_documents() -> None:
    for name in ("library", "nic", "measure", "trace", "xacc", "jobs"):
        text = (ROOT / name / "README.md").read_text()
        assert len(text.splitlines()) <= 40, f"{name}/README.md is longer than a screen"
        assert f"(../docs/{name}/index.md)" in text
        assert (ROOT / "docs" / name / "index.md").exists()


def test_no_file_lost_its_content() -> None:
    """A file that a move of folders emptied once took the fuzzers out of the build, and nothing failed."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a clone of git")
    files = [ROOT / name for name in listed.stdout.split("\0") if name]
    empty = [str(file.relative_to(ROOT)) for file in files if file.is_file() and file.stat().st_size == 0]
    assert empty == ["library/python/peerway/py.typed"]
