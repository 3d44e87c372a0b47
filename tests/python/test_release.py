"""The checklist of `make release`; its page, the hosted CI and the container file say the same as it."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

import bare_roots
import distributions
import pythons
import release
from checklist import Checklist, Skipped
from steps import StepError

ROOT = Path(__file__).resolve().parents[2]
VERSION = distributions.version()


def fails() -> str:
    raise StepError("it broke")


def lacks() -> str:
    raise Skipped("a mirror is not reached")


def test_a_checklist_counts_its_points_and_says_why() -> None:
    checklist = Checklist()
    assert checklist.check("build", lambda: "3 files")
    assert not checklist.check("try", fails)
    assert not checklist.check("rocky", lacks)
    assert checklist.lines() == [
        "ok      build  3 files", "FAILED  try    it broke", "skipped rocky  a mirror is not reached",
        "1 ok, 1 FAILED, 1 skipped",
    ]  # fmt: skip


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(release, "ROOT", tmp_path)
    monkeypatch.setattr(release, "OUT", tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("sections", "tagged", "notes"),
    [
        ({"Unreleased": "new", "0.0.9": "old"}, False, "new"),
        ({"Unreleased": "", VERSION: "all of it", "0.0.9": "old"}, False, "all of it"),
        ({VERSION: "all of it"}, True, "all of it"),
        ({"Unreleased": "new", "0.0.9": "old"}, True, None),
        ({"Unreleased": " "}, False, None),
    ],
)
def test_the_notes_are_those_of_this_version(
    sections: dict[str, str], tagged: bool, notes: str | None, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release, "is_tagged", lambda: tagged)
    text = "".join(f"## [{title}] - 2026-12-01\n\n{body}\n\n" for title, body in sections.items())
    (tree / "CHANGELOG.md").write_text(f"# Changelog\n\n{text}")
    if notes is None:
        with pytest.raises(StepError, match="has no section"):
            release.write_notes()
    else:
        release.write_notes()
        assert (tree / "notes.md").read_text() == f"# Peerway {VERSION}\n\n{notes}\n"


def git(tree: Path, *words: str) -> str:
    who = ["-c", "user.name=Tester", "-c", "user.email=tester@example.org"]
    return subprocess.run(
        ["git", *who, *words], cwd=tree, capture_output=True, text=True, check=True
    ).stdout.strip()


def write_file(tree: Path, name: str, text: str) -> None:
    (tree / name).parent.mkdir(parents=True, exist_ok=True)
    (tree / name).write_text(text)


def commit_file(tree: Path, name: str, text: str) -> str:
    """Commit a file of the tree; returns the commit."""
    write_file(tree, name, text)
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", name)
    return git(tree, "rev-parse", "HEAD")


def commit_record(tree: Path, commit: str | None, failed: int = 0) -> None:
    """Commit the record of a long run of a commit; None: a record that does not say of which."""
    fields = {"date": "2026-11-27", "summary": f"10 passed, {failed} failed, 1 skipped"}
    if commit is not None:
        fields["commit"] = commit
    commit_file(tree, "results/tests/long.jsonl", json.dumps(fields) + "\n")


@pytest.fixture
def clone(tree: Path) -> Path:
    """A clone of git with one tested file."""
    git(tree, "init", "-q")
    commit_file(tree, "library/put.cpp", "")
    return tree


@pytest.mark.parametrize(("failed", "passes"), [(0, True), (2, False), (10, False)])
def test_a_release_needs_a_long_run_without_failures(failed: int, passes: bool, clone: Path) -> None:
    commit_record(clone, git(clone, "rev-parse", "HEAD"), failed)
    if passes:
        assert "10 passed" in release.check_long_tests()
    else:
        with pytest.raises(StepError, match=f"{failed} failed"):
            release.check_long_tests()


@pytest.mark.parametrize(
    ("changed", "passes"),
    [("docs/index.md", True), ("results/a.jsonl", True), ("CHANGELOG.md", True), ("library/put.cpp", False),
     ("docs.py", False)],
)  # fmt: skip
def test_a_release_needs_a_long_run_of_its_code(changed: str, passes: bool, clone: Path) -> None:
    commit_record(clone, git(clone, "rev-parse", "HEAD"))
    commit_file(clone, changed, "new")
    if passes:
        assert "10 passed" in release.check_long_tests()
    else:
        with pytest.raises(StepError, match=f"1 files have changed .* such as {re.escape(changed)}"):
            release.check_long_tests()


def test_a_long_run_of_a_commit_that_is_not_included_does_not_count(clone: Path) -> None:
    git(clone, "checkout", "-q", "-b", "other")
    other = commit_file(clone, "docs/other.md", "")
    git(clone, "checkout", "-q", "-")
    for commit in (other, "0" * 40, "", None):
        commit_record(clone, commit)
        with pytest.raises(StepError, match="which HEAD does not include"):
            release.check_long_tests()


def test_a_long_run_of_a_changed_tree_does_not_count(clone: Path) -> None:
    commit_record(clone, git(clone, "rev-parse", "HEAD") + "+")
    with pytest.raises(StepError, match="not committed"):
        release.check_long_tests()


def test_a_long_run_records_its_commit(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # By its file, because Python has a package of that name.
    spec = importlib.util.spec_from_file_location("run_tests", ROOT / "scripts" / "test.py")
    assert spec is not None
    assert spec.loader is not None
    run_tests = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(run_tests)
    monkeypatch.setattr(run_tests, "ROOT", clone)
    commit = git(clone, "rev-parse", "HEAD")
    assert run_tests.commit() == commit
    write_file(clone, "library/put.cpp", "changed")
    assert run_tests.commit() == f"{commit}+"


@pytest.mark.parametrize(("continues", "point"), [(True, "kept: a.whl, b.whl"), (False, "built")])
def test_a_rehearsal_that_is_continued_keeps_what_is_built(
    continues: bool, point: str, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release, "CONTINUES", continues)
    for name in ("b.whl", "a.whl"):
        (tree / name).touch()
    assert release.unless_built(lambda: "built", "*.whl", 2)() == point
    assert release.unless_built(lambda: "built", "*.whl", 3)() == "built"  # the run before ended early
    assert release.unless_built(lambda: "built", "*.tar.gz")() == "built"


def test_a_release_itself_is_not_continued(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release, "CONTINUES", True)
    monkeypatch.setattr(release, "is_tagged", lambda: True)
    with pytest.raises(StepError, match="for rehearsals"):
        release.check_version()


def test_the_checksums_are_of_all_files(tree: Path) -> None:
    (tree / "a").write_text("abc")
    assert release.write_checksums() == "1 files"
    digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert (tree / "SHA256SUMS").read_text() == f"{digest}  a\n"


def test_the_page_names_the_policy_and_the_systems() -> None:
    page = (ROOT / "docs" / "release.md").read_text()
    assert f"`{release.POLICY}`" in page
    assert all(system.name in page for system in bare_roots.SYSTEMS)
    assert f"Python {pythons.SUPPORTED[0]} … {pythons.SUPPORTED[-1]}" in page


def test_the_hosted_ci_has_the_same_pythons() -> None:
    workflows = ROOT / ".github" / "workflows"
    matrix = re.search(r"python: \[(.*)\]", (workflows / "ci.yml").read_text())
    assert matrix is not None
    assert tuple(re.findall(r'"([\d.]+)"', matrix[1])) == pythons.SUPPORTED
    assert f"uv python install {' '.join(pythons.SUPPORTED)}" in (workflows / "release.yml").read_text()


def test_a_product_has_the_licence_of_the_whole() -> None:
    for folder in distributions.FOLDERS.values():
        for name in ("LICENSE", "NOTICE"):
            assert (folder / name).read_bytes() == (ROOT / name).read_bytes()


def test_the_container_installs_files_of_distributions_that_there_are() -> None:
    text = (ROOT / "packaging" / "container" / "Containerfile").read_text()
    words = text.partition("pip install")[2].partition("\n\n")[0].replace("\\\n", " ")
    files = re.findall(r"\./(peerway(?:_[a-z]+)?)-\*\S*\.whl", words)
    assert len(files) >= 5
    assert {name.replace("_", "-") for name in files} <= {*distributions.FOLDERS}
    assert "peerway" not in re.sub(r"\./peerway\S+\.whl", "", words)  # no name, which an index may know, too
