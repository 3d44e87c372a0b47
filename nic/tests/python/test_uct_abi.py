"""Compares the declarations in ucx/uct_abi.h with the installed headers of UCX's transports.

These are Debian's (1.13) and those of the wheel libucx-cu13 (1.22). UCX installs no headers of its base
classes: their sizes are checked in the process, before the transport is offered.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
HEADER = ROOT / "nic" / "uct" / "ucx" / "uct_abi.h"
WHEELS = [Path(path) / "libucx" / "include" for path in sys.path if path.endswith("-packages")]
PLACES = {13: [Path("/usr/include")], 22: WHEELS}

# Our names, and UCX's where they differ.
STRUCTS = {
    "ucs_list_link_t": ["prev", "next"],
    "ucs_config_global_list_entry_t": ["name", "prefix", "table", "size", "list"],
    "ucs_class_t": ["name", "size", "superclass", "init", "cleanup"],
    "ucs_linear_func_t": ["c", "m"],
    "ucs_cpu_set_t": [],
    "uct_completion_t": ["func", "count", "status"],
    "uct_iov_t": ["buffer", "length", "memh", "stride", "count"],
    "uct_pending_req_t": ["func", "priv"],
    "uct_iface_ops_t": [
        *("ep_put_short", "ep_put_bcopy", "ep_put_zcopy", "ep_get_bcopy", "ep_get_zcopy", "ep_am_short"),
        *("ep_am_short_iov", "ep_am_bcopy", "ep_pending_add", "ep_pending_purge", "ep_flush", "ep_fence"),
        *("ep_check", "ep_create", "ep_destroy", "iface_flush", "iface_fence", "iface_progress_enable"),
        *("iface_progress", "iface_close", "iface_query", "iface_get_device_address", "iface_get_address"),
        "iface_is_reachable",
    ],
    "uct_iface_t": [],
    "uct_ep_t": ["iface"],
    "uct_ppn_bandwidth_t": ["dedicated", "shared"],
    "uct_iface_attr_t": [
        *("cap", "cap.put", "cap.get", "cap.am", "cap.am.max_iov", "cap.tag", "cap.atomic32", "cap.flags"),
        *("cap.event_flags", "device_addr_len", "iface_addr_len", "ep_addr_len", "overhead", "bandwidth"),
        *("latency", "priority", "max_num_eps", "dev_num_paths"),
    ],
    "uct_md_attr_t": [
        *("cap", "cap.max_reg", "cap.flags", "cap.reg_mem_types", "cap.access_mem_types", "reg_cost"),
        *("component_name", "rkey_packed_size", "local_cpus"),
    ],
}
ONLY_OFFSETS = {"uct_ep_params_t": ["field_mask", "iface", "dev_addr", "iface_addr"]}


def constants() -> list[str]:
    """The names of the constants in our header that UCX 1.13 has, too."""
    names = re.findall(r"inline constexpr \w+ (UC[ST]_\w+) =", HEADER.read_text())
    own = {"UCT_PROGRESS_SEND_RECV", "UCT_IFACE_FLAG_INTER_NODE", "UCT_MD_MEM_REG_FIELD_FLAGS"}
    not_installed = {"UCT_IFACE_IS_REACHABLE_FIELD_DEVICE_ADDR", "UCT_MD_MEM_DEREG_FIELD_MEMH"}
    return sorted({*names} - own - not_installed)


def version_of(folder: Path) -> str:
    header = folder / "uct" / "api" / "version.h"
    found = re.search(r"UCT_VERNO_MINOR\s+(\d+)", header.read_text()) if header.exists() else None
    return found.group(1) if found else ""


@pytest.mark.parametrize("minor", sorted(PLACES))
def test_declarations_are_those_of_installed_headers(minor: int, tmp_path: Path) -> None:
    folder = next((place for place in PLACES[minor] if version_of(place) == str(minor)), None)
    if folder is None:
        pytest.skip(f"the headers of UCX 1.{minor} are not here")
    names = constants()
    assert len(names) > 30
    lines = [f"#define PW_UCX_MINOR {minor}", '#include "ucx/uct_abi.h"']
    lines += [f"namespace own = pw::uct::ucx_1_{minor};"]
    lines += [f"constexpr auto own_{name} = own::{name};" for name in names]
    lines += ["#include <uct/api/uct.h>", "#include <uct/api/tl.h>", "#include <ucs/type/class.h>"]
    lines += ["#include <ucs/config/parser.h>", "#include <cstddef>"]
    lines += [f'static_assert((long long)own_{name} == (long long)({name}), "{name}");' for name in names]
    for struct, fields in STRUCTS.items():
        if struct == "uct_md_attr_t" and minor > 13:  # newer versions have one that is not installed
            continue
        lines.append(f'static_assert(sizeof(own::{struct}) == sizeof(::{struct}), "size of {struct}");')
        lines += [same_offset(struct, field) for field in fields]
    for struct, fields in ONLY_OFFSETS.items():
        lines += [same_offset(struct, field) for field in fields]
    source = tmp_path / "compare.cpp"
    source.write_text("\n".join(lines) + "\n")
    command = ["c++", "-std=c++20", "-fsyntax-only", "-w", f"-I{ROOT / 'nic' / 'uct'}", f"-I{folder}", source]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def same_offset(struct: str, field: str) -> str:
    return (
        f"static_assert(offsetof(own::{struct}, {field}) == offsetof(::{struct}, {field}), "
        f'"{struct}.{field}");'
    )


@pytest.mark.parametrize("minor", [13, 20, 22])
def test_declarations_compile_for_each_version(minor: int, tmp_path: Path) -> None:
    source = tmp_path / "one.cpp"
    # The size of libuct's uct_base_iface_t_class in all three versions.
    source.write_text(
        f'#define PW_UCX_MINOR {minor}\n#include "ucx/uct_abi.h"\n'
        "static_assert(sizeof(pw::uct::PW_UCX::uct_base_iface_t) == 1280);\n"
    )
    command = ["c++", "-std=c++20", "-fsyntax-only", f"-I{ROOT / 'nic' / 'uct'}", source]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
