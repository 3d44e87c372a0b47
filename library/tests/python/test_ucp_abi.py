"""transport/ucx/ucp_abi.h says what <ucp/api/ucp.h> says: every structure, constant and function in it is
compared with each UCX whose headers are installed (Debian's libucx-dev, the wheels libucx-cu12 and -cu13) by
the compiler."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
MIRROR = ROOT / "library" / "src" / "transport" / "ucx" / "ucp_abi.h"
# Our own structures, which have no counterpart in UCX.
OURS = {"Appended", "Functions"}

FRONT = """
#include <ucp/api/ucp.h>
#include <type_traits>
#include "transport/ucx/ucp_abi.h"
namespace mirror = pw::ucp_abi;
// One binary interface: as many parameters, each as large and as much a pointer as the other, and the result
// too.
template <typename A, typename B> constexpr bool alike() {
  if constexpr (std::is_void_v<A> || std::is_void_v<B>) return std::is_void_v<A> && std::is_void_v<B>;
  else return sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>;
}
template <typename A, typename B> struct same;
template <typename R, typename... A, typename S, typename... B> struct same<R(A...), S(B...)> {
  static constexpr bool value = [] {
    if constexpr (sizeof...(A) == sizeof...(B)) return alike<R, S>() && (alike<A, B>() && ...);
    else return false;
  }();
};
"""


def places() -> list[Path]:
    """The include folders of every UCX on this machine."""
    folders = [Path(p) / "libucx" / "include" for p in sys.path if p.endswith("-packages")]
    return [
        folder for folder in [Path("/usr/include"), *folders] if (folder / "ucp" / "api" / "ucp.h").exists()
    ]


def without_comments(text: str) -> str:
    return re.sub(r"//[^\n]*", "", text)


def constants(text: str) -> list[tuple[str, str]]:
    block = text[text.index("#define PW_UCP_CONSTANTS") : text.index("#define PW_UCP_DECLARE")]
    return re.findall(r"X\((\w+), (-?\d+)\)", block)


def structures(text: str) -> dict[str, list[str]]:
    """Each structure with its members; members of a union or a function pointer by their own name."""
    found = {}
    for name, inside in re.findall(r"^struct (\w+) \{\n(.*?)^\};", text, flags=re.DOTALL | re.MULTILINE):
        body = re.sub(r"union \{.*?\}", "union", inside, flags=re.DOTALL)
        members = [
            re.search(r"(?:\(\*(\w+)\)\(.*|(\w+)(?:\[\d+\])?);$", line.strip()) for line in body.splitlines()
        ]
        names = [match[1] or match[2] for match in members if match]
        found[name] = [member for member in names if member != "appended"]
    return {name: members for name, members in found.items() if name not in OURS}


def functions(text: str) -> list[str]:
    block = text[text.index("#define PW_UCP_FUNCTIONS") : text.index("struct Functions")]
    return re.findall(r"X\([\w\s*]+, (\w+),", block)


def comparison(text: str) -> str:
    """A translation unit that does not compile if the mirror is wrong."""
    lines = [FRONT]
    for name, _ in constants(text):
        lines.append(f'static_assert(static_cast<int64_t>(::{name}) == mirror::{name}, "{name}");')
    for structure, members in structures(text).items():
        if structure == "ucs_sock_addr_t":  # complete in both, with nothing to append
            lines.append("static_assert(sizeof(::ucs_sock_addr_t) == sizeof(mirror::ucs_sock_addr_t));")
        for member in members:
            for what in (f"offsetof({{}}::{structure}, {member})", f"sizeof({{}}::{structure}::{member})"):
                lines.append(
                    f'static_assert({what.format("")} == {what.format("mirror")}, "{structure}.{member}");'
                )
    for name in functions(text):
        mine = f"std::remove_pointer_t<decltype(mirror::Functions::{name})>"
        lines.append(
            f'static_assert(same<{mine}, std::remove_pointer_t<decltype(&::{name})>>::value, "{name}");'
        )
    return "\n".join(lines) + "\n"


def compile_against(folder: Path, text: str, work: Path) -> subprocess.CompletedProcess[str]:
    source = work / "compare.cpp"
    source.write_text(comparison(text))
    mirror = work / "src" / "transport" / "ucx"
    mirror.mkdir(parents=True, exist_ok=True)
    (mirror / "ucp_abi.h").write_text(text)
    flags = ["-std=c++20", "-fsyntax-only", "-w", "-I", str(work / "src"), "-isystem", str(folder)]
    return subprocess.run(["g++", *flags, str(source)], capture_output=True, text=True, check=False)


needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++ to compare headers with")
needs_headers = pytest.mark.skipif(
    not places(), reason="no UCX headers here; install libucx-dev or libucx-cu13"
)


@needs_compiler
@needs_headers
@pytest.mark.parametrize("folder", places(), ids=str)
def test_mirror_agrees_with_the_headers(folder: Path, tmp_path: Path) -> None:
    done = compile_against(folder, without_comments(MIRROR.read_text()), tmp_path)
    assert done.returncode == 0, done.stderr[:4000]


@needs_compiler
@needs_headers
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("X(UCP_FEATURE_RMA, 2)", "X(UCP_FEATURE_RMA, 4)"),
        ("  size_t length;\n  unsigned flags;", "  unsigned flags;\n  size_t length;"),
        ("  int memory_type;\n  void* recv_info;", "  void* memory_type;\n  void* recv_info;"),
        ("(ucp_ep_h, const void*, ucp_rkey_h*)", "(ucp_ep_h, ucp_rkey_h*)"),
        ("X(ucs_status_t, ucp_mem_unmap,", "X(int, ucp_mem_unmap,"),
    ],
)
def test_a_wrong_mirror_is_found_out(right: str, wrong: str, tmp_path: Path) -> None:
    text = without_comments(MIRROR.read_text())
    assert right in text
    done = compile_against(places()[0], text.replace(right, wrong), tmp_path)
    assert done.returncode != 0
    assert "static assertion failed" in done.stderr


def test_every_part_of_the_mirror_is_read() -> None:
    text = without_comments(MIRROR.read_text())
    assert len(constants(text)) == text.count(" X(UC") == len(dict(constants(text)))
    assert len(structures(text)) == len(re.findall(r"^struct \w+ \{", text, flags=re.MULTILINE)) - len(OURS)
    assert structures(text)["ucp_request_param_t"] == [
        "op_attr_mask", "flags", "request", "cb", "datatype", "user_data", "reply_buffer", "memory_type",
        "recv_info", "memh",
    ]  # fmt: skip
    assert len(functions(text)) >= 25
