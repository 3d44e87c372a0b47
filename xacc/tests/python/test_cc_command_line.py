"""What `peerway cc` says about mistakes in its command line, before it compiles anything."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from peerway_common.cli import command as peerway
from peerway_xacc.command_line import BadCommand, read


@pytest.fixture
def source(tmp_path: Path) -> str:
    file = tmp_path / "prog.c"
    file.write_text("int main(void) { return 0; }\n")
    return str(file)


@pytest.mark.parametrize("option", ["-o", "--emit="])
@pytest.mark.parametrize("stage", ["", "-c"])
def test_an_output_in_a_folder_that_does_not_exist_is_named(
    source: str, tmp_path: Path, option: str, stage: str
) -> None:
    output = tmp_path / "no" / "prog"
    words = [source, *([option, str(output)] if option == "-o" else [f"{option}{output}"])]
    if stage:
        words.append(stage)
    result = CliRunner().invoke(peerway, ["cc", *words])
    assert result.exit_code == 2
    assert f"cannot write {output}: there is no folder {tmp_path / 'no'}" in result.output


@pytest.mark.parametrize(
    ("word", "suggestion"),
    [("--explian", "--explain"), ("--emti", "--emit"), ("--openacc-backnd=gcc", "--openacc-backend")],
)
def test_a_misspelt_option_of_its_own_is_refused_with_the_right_one(
    source: str, word: str, suggestion: str
) -> None:
    with pytest.raises(
        BadCommand, match=f"there is no option {word.partition('=')[0]}; did you mean {suggestion}"
    ):
        read([source, word], {})


@pytest.mark.parametrize("word", ["--sysroot=/", "--std=gnu17", "--verbose", "--coverage", "--help=common"])
def test_the_long_options_of_the_c_compiler_are_left_to_it(source: str, word: str) -> None:
    assert [word] in read([source, word], {}).options
