"""The command group: it lists its verbs without importing them, and says errors plainly."""

from __future__ import annotations

import functools
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from peerway import _core
from peerway.errors import BadTable, PeerLost
from peerway_common.cli import VERBS, main
from peerway_common.cli import command as peerway
from peerway_common.cli.numbers import Number
from peerway_jobs.cli import VERBS as JOBS_VERBS

RESULTS = Path(__file__).resolve().parents[3] / "results" / "cpu-2"


def test_help_names_every_verb_and_imports_none_of_them() -> None:
    program = (
        "import sys; from peerway_common.cli import command\n"
        "command.main(['--help'], prog_name='peerway', standalone_mode=False)\n"
        "names = 'numpy', 'scipy', 'plotly', 'rich', 'peerway_measure.cli.compare'\n"
        "heavy = [m for m in names if m in sys.modules]\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert all(f"  {verb} " in done.stdout for verb in VERBS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mesure"], "there is no verb mesure. `peerway --help` lists them."),
        (["repotr"], "there is no verb repotr; did you mean report? `peerway --help` lists them."),
        (
            ["campaign", "rnu"],
            "there is no verb rnu; did you mean run? `peerway campaign --help` lists them.",
        ),
        (["rehearse", "begin"], "there is no verb begin. `peerway rehearse --help` lists them."),
        (
            ["campaign", "statsu"],
            "there is no verb statsu; did you mean status? `peerway campaign --help` lists",
        ),
        (["jobs", "shwo"], "there is no verb shwo; did you mean show? `peerway jobs --help` lists them."),
        (
            ["bench", "put_latancy"],
            "there is no put_latancy; did you mean put_latency? There are put_latency, ",
        ),
        (["bench", "speed"], "there is no speed. There are put_latency, "),
    ],
)
def test_a_name_that_is_not_known_is_answered_with_the_nearest(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(peerway, arguments, prog_name="peerway")
    assert result.exit_code == 2
    assert message in result.output


def test_errors_go_to_standard_error_and_say_who_speaks() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "peerway", "compare", "no-such-file", "none"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("peerway: cannot read no-such-file: No such file")


@pytest.mark.parametrize(
    ("words", "code", "closed"),
    [
        pytest.param(words, code, closed, marks=[] if (row + column) % 2 == 0 else [pytest.mark.long])
        for row, (words, code) in enumerate(
            [("run --help", 0), ("config", 0), ("compare no-such-file none", 2)]
        )
        for column, closed in enumerate([">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
    ],
)
def test_a_closed_output_goes_nowhere(closed: str, words: str, code: int) -> None:
    line = f"exec {shlex.quote(sys.executable)} -m peerway {words} {closed}"
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert (done.stdout == "") == (code != 0 or closed != "2>&-")


def test_an_error_of_the_library_is_said_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def lose(**_: object) -> None:
        raise PeerLost("rank 2 was lost 0.8 s ago")

    monkeypatch.setattr(peerway, "main", lose)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    assert capsys.readouterr().err == "peerway: rank 2 was lost 0.8 s ago\n"


def test_what_the_tools_ask_of_the_core_fails_with_a_typed_error(tmp_path: Path) -> None:
    (tmp_path / "table.json").write_text("{}")
    with pytest.raises(BadTable, match='"format" is missing'):
        _core.load_table(str(tmp_path / "table.json"))
    with pytest.raises(BadTable, match="cannot be opened"):
        _core.load_table(str(tmp_path / "none.json"))


def test_without_a_verb_the_help_is_shown_once() -> None:
    done = subprocess.run([sys.executable, "-m", "peerway"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("Usage:") == 1


RECORDS = str(next(RESULTS.glob("*.jsonl")))


@pytest.mark.parametrize(
    ("words", "package", "requirement"),
    [
        (["compare", RECORDS, RECORDS], "scipy", "peerway-measure"),
        (["report", RECORDS, "-o", "page.html"], "jinja2", "peerway-measure"),
        (["jobs", "serve", "--help"], "numpy", "'peerway-jobs[server]'"),
    ],
)
def test_a_verb_without_its_packages_says_what_to_install(
    words: list[str], package: str, requirement: str, tmp_path: Path
) -> None:
    """As after `pip install` of a part that does not bring the package."""
    words = ["peerway", *words]
    program = (
        f"import sys; sys.modules[{package!r}] = None; sys.argv = {words!r};"
        "import peerway_common.cli; peerway_common.cli.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 1
    assert f"needs {package}" in done.stderr
    assert f"pip install {requirement}\n" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_folders_for_build_systems_hold_what_they_should() -> None:
    prefix, cmake = (
        Path(CliRunner().invoke(peerway, [option]).output.strip()) for option in ("--prefix", "--cmakedir")
    )
    assert (prefix / "include" / "peerway" / "peerway.h").exists()
    assert (prefix / "lib" / "pkgconfig" / "peerway.pc").exists()
    assert (cmake / "peerwayConfig.cmake").exists()


def every_command() -> Iterator[tuple[str, click.Command, click.Context]]:
    """Each command with its name, verbs of verbs too."""

    def visit(command: click.Command, name: str) -> Iterator[tuple[str, click.Command, click.Context]]:
        context = click.Context(command, info_name=name)
        yield name, command, context
        if isinstance(command, click.Group):
            for verb in command.list_commands(context):
                below = command.get_command(context, verb)
                assert below is not None
                yield from visit(below, f"{name} {verb}")

    return visit(peerway, "peerway")


@functools.cache
def every_help() -> dict[str, str]:
    """The help text of each command."""
    return {name: command.get_help(context) for name, command, context in every_command()}


# Words of this house alone, with the field's.
HOUSE_WORDS = {"card": "NIC", "cards": "NICs", "processor": "CPU", "dice": "seed", "laws": "tests"}
NO_VERB = {"Whether", "What", "Why", "How", "Every", "The", "A", "All"}  # a sentence does not begin so


def test_help_speaks_the_words_of_the_field() -> None:
    old_words = [
        f"{name} --help: {word}, not {better}"
        for name, text in every_help().items()
        for word, better in HOUSE_WORDS.items()
        if re.search(rf"\b{word}\b", text.lower())
    ]
    assert not old_words


def test_help_begins_with_a_sentence_that_says_what_the_verb_does() -> None:
    abouts = {name: " ".join(text.split("\n\n")[1].split()) for name, text in every_help().items()}
    lists = {
        f"{verb} in a list": text
        for verb, text in {**{name: verb.help for name, verb in VERBS.items()}, **JOBS_VERBS}.items()
    }
    odd = [
        f"{name}: {about}"
        for name, about in {**abouts, **lists}.items()
        if about.split()[0] in NO_VERB or not about.endswith((".", ":"))
    ]
    assert not odd


def test_a_route_table_has_one_name_among_the_options() -> None:
    reads = {name for name, text in every_help().items() if "--table FILE" in text}
    assert reads == {"peerway bench", "peerway explain", "peerway report", "peerway trace report"}
    assert not [name for name, text in every_help().items() if "--routes" in text]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["reprot", "folder"], "there is no verb reprot; did you mean report?"),
        (["--form", "3", "--", "true"], "No such option '--form'"),
        (["--form", "3", "true", "--from"], "No such option '--form'"),
    ],
)
def test_a_misspelt_word_of_trace_is_not_run_as_a_command(words: list[str], message: str) -> None:
    result = CliRunner().invoke(peerway, ["trace", *words])
    assert result.exit_code == 2
    assert message in result.output


def every_option() -> dict[str, click.Option]:
    """Each option of each command, by the command and its name."""
    return {
        f"{name} {option.opts[-1]}": option
        for name, command, _ in every_command()
        for option in command.params
        if isinstance(option, click.Option)
    }


def test_every_option_says_what_it_is_for() -> None:
    assert not [name for name, option in every_option().items() if not option.help]


NUMBERS = sorted(
    name for name, one in every_option().items() if isinstance(one.type, click.types.FloatParamType)
)


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_is_finite_and_has_bounds_that_the_error_names(name: str) -> None:
    option = every_option()[name]
    assert isinstance(option.type, Number)
    for word in ("nan", "inf", "-inf", "1e300", "-1", "many"):
        with pytest.raises(click.BadParameter) as wrong:
            option.type(word, option)
        assert f"{word} is not a number " in wrong.value.message
        assert f"{option.type.max:.10g}" in wrong.value.message
        assert f"{option.type.min:.10g}" in wrong.value.message
    assert option.type(option.type.max) == option.type.max


def test_defaults_are_written_in_one_way() -> None:
    """As click writes them itself: two spaces before the bracket, and nothing behind it."""
    odd = [
        f"{name}: {option.help}"
        for name, option in every_option().items()
        if "default" in (option.help or "") and not re.search(r"\S  \[default: [^]]+\]$", option.help or "")
    ]
    assert not odd


def test_commands_are_called_verbs_in_every_group() -> None:
    assert not [
        name for name, text in every_help().items() if "Commands:" in text or "COMMAND [ARGS]" in text
    ]


def test_the_values_of_options_are_named_in_words() -> None:
    texts = every_help()
    assert not [name for name, text in texts.items() if re.search(r"\b(INTEGER|FLOAT)\b", text)]
    result = CliRunner().invoke(peerway, ["bench", "--repeat", "x"])
    assert "'x' is not a valid integer." in result.output


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["bench", "put_bw", "--compute", "4K"], 2, "--compute belongs to the test async_pingpong"),
        (["bench", "put_bw", "--corners"], 2, "--corners belongs to the test halo; name that test, or omit"),
        (["bench", "halo", "--sizes", "8", "--grid", "2x1", "--local", "4x4", "--element", "8"], 2,
         "omit --sizes and --shapes"),
        (["bench", "--paths", ","], 2, "',' has no name"),
        (["bench", "put_bw", "--paths", "pear", "--sizes", "8", "--device", "host"], 2,
         "there is no path 'pear'; did you mean peer? There are peer/shm, "),
        (["tune", "--paths", "pear", "--out", "-"], 2, "there is no path 'pear'; did you mean peer?"),
        (["tune", "--hosts", "one", "--out", "-"], 2, "tune measures between two hosts, not 1: one"),
        (["doctor", "--from", "{}"], 2, "is not JSON"),
        (["doctor", "--from", "{object}"], 2, "is not a report of `peerway doctor --json`: its schema is"),
        (["nic-check", "torus", "--test", "bound"], 2, "there is no test 'bound'; did you mean bounds?"),
        (["nic-check", "nosuch"], 2, "there is no NIC plugin 'nosuch'"),
        (["nic-check", "{}"], 2, "cannot be loaded"),
        (["nic-check", "torus?foo=1"], 2, "the NIC torus refuses the options 'foo=1': \"torus: there is no"),
        (["trace", "-o", "{folder}/t", "--", "nosuch-program"], 127, "nosuch-program was not found in PATH"),
        (["trace", "-o", "{folder}/t", "--", "{}"], 126, "is not executable; chmod +x"),
        (["storage", ".", "--limit", "inf"], 2, "inf is not a number from 0.1 to 604800"),
        (["storage", ".", "--streams", "100000"], 2, "'100000' is not a number of streams from 1 to 4096"),
        (["bench", "--time", "0"], 2, "'0' is out of range: a time is above 0s and at most 168h (a week)"),
        (["bench", "--time", "7s", "--repeat", "4"], 2,
         "--time 7s is too short: starting the ranks of 4 runs takes about 8s; give more than that, or a"),
        (["run", "-n", "2", "--hosts", ",", "true"], 2, "--hosts ',' names no host; write node1,node2"),
        (["run", "-n", "2", "--", "put.py"], 127, "did you mean python put.py?"),
        (["run", "-n", "2", "--grase", "3", "--", "true"], 2, "No such option '--grase'."),
        (["mpirun", "--nik", "torus", "-n", "2", "--", "true"], 2, "No such option '--nik'."),
        (["compare", "a", "b", "-o", "-"], 2, "standard output has the text; name a file"),
        (["trace", "report", "a", "-o", "-"], 2, "standard output has the text; name a file"),
        (["report", "/dev/null"], 2, "/dev/null has no records; `peerway bench --out FILE` writes some"),
        (["trace", "export", "{folder}"], 2, "Missing option '--to'. Choose from:\n  perfetto,\n  otf2\n"),
    ],
)  # fmt: skip
def test_a_mistake_ends_with_its_reason(
    arguments: list[str], code: int, message: str, tmp_path: Path
) -> None:
    (tmp_path / "text").write_text("no JSON")
    (tmp_path / "object").write_text("{}")
    (tmp_path / "put.py").write_text("")
    files = {"{}": tmp_path / "text", "{object}": tmp_path / "object", "{folder}": tmp_path}
    for name, file in files.items():
        arguments = [word.replace(name, str(file)) for word in arguments]
    done = subprocess.run(
        [sys.executable, "-m", "peerway", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_page_goes_to_standard_output_where_that_is_asked_for(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "peerway", "report", str(RESULTS / "host.jsonl"), "-o", "-"],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0
    assert done.stdout.startswith("<!DOCTYPE html>")
    assert not list(tmp_path.iterdir())


def test_a_plugin_in_this_folder_is_told_by_its_path(tmp_path: Path) -> None:
    (tmp_path / "libmynic.so").write_text("")
    done = subprocess.run(
        [sys.executable, "-m", "peerway", "nic-check", "libmynic.so"],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert "did you mean the file ./libmynic.so?" in done.stderr
