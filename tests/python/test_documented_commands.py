"""Every command that stands in the documents is one that there is: it runs here, or the real parser takes it.

A command that is new in a document fails the first test until it has a line in CLASSES, which says how it is
checked.
"""

from __future__ import annotations

import functools
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from documented_code import TUTORIALS
from synthetic_records import record

from peerway import _core
from peerway.settings import settings as all_settings
from peerway_common.cli import command as peerway
from peerway_measure import records
from peerway_measure.bench.plan import Plan

ROOT = Path(__file__).resolve().parents[2]

RUNS = "runs to its end in a folder with records"
VERB = "the verb's own parser takes it; it would measure for minutes, or needs a plugin"
BENCH = "the verb takes it up to the measurement, or refuses it for want of a GPU"
SCRIPT = "each of its options is in the script's --help"
STENCIL = "each of its options is one of the program's or of run.py's"
HPL = "each of its options is one of the program's"
MAKE = "it is a target of the Makefile, or of that in the folder it names"
FOREIGN = "a program of others; each file of this repository that it names is there"

# One line for each command, and only for those: how it is checked.
CLASSES = {
    "make demo": MAKE,
    "make jobs-demo": MAKE,
    "make test": MAKE,
    "make build": MAKE,
    "make wheels": MAKE,
    "PEERWAY_BUILD_WHEELS=/path/to/wheels make gpu-test": MAKE,
    "make amd-test": MAKE,
    "make lint": FOREIGN,
    ".venv/bin/pre-commit install -t pre-commit -t commit-msg": FOREIGN,
    "make release": MAKE,
    "python3 -m venv ~/peerway": FOREIGN,
    "source ~/peerway/bin/activate": FOREIGN,
    "python3 -m venv ~/peerway && source ~/peerway/bin/activate": FOREIGN,
    "pip install peerway-*-cp312-*.whl peerway_common-*.whl peerway_measure-*.whl": FOREIGN,
    "git clone https://github.com/peerway/peerway && cd peerway": FOREIGN,
    "peerway bench --quick --out first.jsonl && peerway report first.jsonl -o first.html": FOREIGN,
    "apt-get install ./peerway_*~debian-12_amd64.deb": FOREIGN,
    "apt-get install ./libpeerway0_*.deb ./libpeerway-dev_*.deb": FOREIGN,
    "pip install ./common .": FOREIGN,
    "pip install ./common . ./measure": FOREIGN,
    "pip wheel --no-deps -w dist .": FOREIGN,
    "export PKG_CONFIG_PATH=$(peerway --prefix)/lib/pkgconfig": FOREIGN,
    "cc put.c $(pkg-config --cflags --libs peerway) -o put": FOREIGN,
    "peerway run -n 2 -- ./put": VERB,
    "peerway run -n 2 -- python examples/python/put.py": VERB,
    "cmake -S examples -B build/examples -Dpeerway_DIR=$(peerway --cmakedir)": FOREIGN,
    "cmake -S . -B build/release && cmake --build build/release -j && cmake --install build/release "
    "--prefix ~/.local": FOREIGN,
    "spack repo add packaging/spack && spack install peerway": FOREIGN,
    ".venv/bin/pytest jobs/tests/python -k rules": FOREIGN,
    "ctest --test-dir build/editable -R 'Notification\\.'": FOREIGN,
    ".venv/bin/python scripts/wheels.py --python 3.11 gpu-test": SCRIPT,
    ".venv/bin/python scripts/wheels.py --skip numpy scipy": SCRIPT,
    "peerway doctor": VERB,
    "peerway explain": VERB,
    "peerway tune": VERB,
    "peerway storage /scratch/me": VERB,
    "peerway storage /scratch/me write read --size 1G --repeat 25 --out before.jsonl": VERB,
    "peerway storage import ior.json mdtest.txt elbencho.json fio.json gdsio.txt --out others.jsonl "
    "--node-type v100": VERB,
    "peerway compare before.jsonl after.jsonl --by node_type": RUNS,
    "peerway storage /scratch/me write read --block 64K,1M,16M --repeat 15 --out blocks.jsonl": VERB,
    "peerway compare blocks.jsonl blocks.jsonl --factor block=1M:16M": VERB,
    "peerway compare before.jsonl after.jsonl --table node-type --factor kernel "
    "--factor server_version": VERB,
    "peerway campaign init before": VERB,
    "peerway campaign run before": VERB,
    "peerway campaign status before": VERB,
    "peerway campaign report before -o before.html": VERB,
    "peerway campaign compare before after --factor kernel --factor server_version -o study.html": VERB,
    "peerway campaign run before --health": VERB,
    "peerway campaign run before --health --node node17": VERB,
    "cp -r examples/rehearsal copy": FOREIGN,
    "peerway rehearse start copy": VERB,
    "peerway rehearse shell copy --host cpu-1": VERB,
    "peerway rehearse upgrade copy copy/cache.toml": VERB,
    "peerway rehearse upgrade copy copy/fault.toml": VERB,
    "peerway rehearse remove copy": VERB,
    "peerway rehearse snapshot copy clean": VERB,
    "peerway rehearse rollback copy clean": VERB,
    "peerway compare before.jsonl after.jsonl": RUNS,
    "peerway compare before.jsonl after.jsonl --by host": RUNS,
    "peerway compare before.jsonl after.jsonl --factor driver --factor version": RUNS,
    "peerway compare before.jsonl again.jsonl": RUNS,
    "peerway bench put_latency put_bw --repeat 1 --append --out before.jsonl": BENCH,
    "peerway bench put_latency put_bw --repeat 1 --append --out after.jsonl": BENCH,
    "peerway bench put_latency put_bw --repeat 2 --append --out before.jsonl": BENCH,
    "peerway report before.jsonl after.jsonl -o page.html": RUNS,
    "peerway bench --peers all --repeat 10 --out before.jsonl": BENCH,
    "peerway bench --quick": BENCH,
    "peerway bench put_bw get_bw --sizes 8:64M --paths peer,staged --out before.jsonl": BENCH,
    "peerway bench put_latency --peers all --format osu": BENCH,
    "peerway bench put_bw --out before.jsonl --append": BENCH,
    "peerway bench --time 5m --out before.jsonl": BENCH,
    "peerway tune --time 2m": VERB,
    "peerway bench exchange plan_latency kernel_latency --device cuda --sizes 8,1K,8K,64K "
    "--peers openmpi,nccl,nvshmem": BENCH,
    "peerway bench halo --grid 2x1 --local 512x512 --element 8 --device host --peers openmpi": BENCH,
    "peerway bench halo --grid 2x4x1x1 --local 8x4x16x16 --element 192 --device cuda "
    "--peers openmpi/pack": BENCH,
    "peerway bench cube --paths route,plan --peers openmpi": BENCH,
    "peerway bench async_pingpong --device cuda": BENCH,
    "PEERWAY_NIC=torus peerway bench --device host --paths nic:torus,peer": BENCH,
    "PEERWAY_NIC=torus peerway bench --paths peer,nic:torus": BENCH,
    "PEERWAY_NIC=$PWD/libmynic.so peerway bench put_latency put_bw --device host "
    "--paths nic:example,peer": BENCH,
    "peerway nic-check ./libmynic.so": VERB,
    "peerway nic-check ./libmynic.so --minutes 30": VERB,
    "peerway nic-check ./libmynic.so --seed 4711": VERB,
    'peerway nic-check ./libmynic.so --test "random traffic" --test bounds': VERB,
    "peerway mpirun --nic torus -n 2 -- ./program": VERB,
    "peerway mpirun --nic $PWD/libmynic.so -n 2 -- ./any_mpi_program": VERB,
    "PEERWAY_NIC=./libexample_nic.so peerway explain": VERB,
    "PEERWAY_NIC='near=torus?near.json;far=torus?far.json' peerway explain": VERB,
    "export PEERWAY_NIC='near=torus?near.json;far=torus?far.json'": FOREIGN,
    "peerway tune --device host --paths nic:near,nic:far --out routes.json": VERB,
    "PEERWAY_ROUTES=$PWD/routes.json PEERWAY_PATHS=nic:near,nic:far peerway run -n 4 -- ./program": VERB,
    "PEERWAY_NIC=torus PEERWAY_PATHS=nic:torus peerway run -n 4 -- ./program": VERB,
    "peerway run -n 4 -- ./program": VERB,
    "pip install ./common . ./measure ./xacc": FOREIGN,
    "peerway cc laplace.c -O2 -lm -o laplace": VERB,
    "peerway cc --explain laplace.c": VERB,
    "peerway fc laplace.f90 -O2 -o laplace": VERB,
    "peerway fc sum.f90 -O2 -o sum": VERB,
    "peerway run -n 4 -- ./sum": VERB,
    "peerway run -n 4 ./laplace": VERB,
    "peerway run -n 4 --hosts node1:2,node2:2 -- ./program": VERB,
    "peerway run -n 4 --hostfile nodes -- ./program": VERB,
    "salloc -N 2 --ntasks-per-node=2 peerway run -n 4 -- ./program": FOREIGN,
    "peerway bench put_latency put_bw --hosts node1,node2": BENCH,
    "peerway tune --hosts node1,node2": VERB,
    "peerway run -n 4 -- build/stencil2d/host/stencil2d --grid 2x2 --local 256x256 "
    "--variant stream,host-driven --check": STENCIL,
    "python apps/stencil2d/run.py --device cuda --grid 2x2 --variant graph,mpi-overlap --check "
    "--out records.jsonl": STENCIL,
    "python apps/stencil2d/build.py --device host": SCRIPT,
    "python apps/stencil2d/study.py --out out/stencil2d": SCRIPT,
    "make -C apps/lqcd evaluate": MAKE,
    "peerway cc -O3 -DEDGE=16 -DROWS -DPT=2 apps/lqcd/xacc.c -lm -o lqcd": VERB,
    "peerway run -n 2 -- ./lqcd --gauge random:1 --check --repeat 500": VERB,
    "python apps/lqcd/evaluate.py --edges 16 --grids 1x1,2x2 --rounds 5 --out lqcd.jsonl": SCRIPT,
    "git clone https://github.com/mnakao/PEACH2-Benchmarks": FOREIGN,
    "python apps/lqcd/original.py --source PEACH2-Benchmarks --gangs 28,4096 --out original.jsonl": SCRIPT,
    "python apps/lqcd/quda.py build --source quda --folder build/quda": SCRIPT,
    "python apps/lqcd/quda.py run --folder build/quda --grids 1x1,1x2,2x2 --out quda.jsonl": SCRIPT,
    "peerway trace -- mpirun -n 2 ./program": VERB,
    "python apps/hpl/build.py": SCRIPT,
    "peerway run -n 4 -- build/hpl/hpl --n 20000 --nb 192 --grid 2x2": HPL,
    "mpirun -n 4 build/hpl/hpl --comm mpi --n 20000 --nb 192 --grid 2x2": HPL,
    "peerway run -n 4 -- build/hpl/hpl --device cuda --n 200000 --nb 2048 --grid 1x4": HPL,
    "peerway run -n 4 -- build/hpl/hpl --dat HPL.dat": HPL,
    "python apps/hpl/cpu_study.py --out out/hpl": SCRIPT,
    "python apps/hpl/study.py --blas $BLAS --n 4000,8000 --grid 1x1,1x2 --times 9 "
    "--out out/hpl.jsonl": SCRIPT,
    "python apps/hpl/study.py --device cuda --blas $CUBLAS --n 65536 --weak --nb 1024 --grid 1x1,1x2 "
    "--programs peerway --out out/hpl.jsonl": SCRIPT,
    "python apps/hpl/tables.py out/hpl.jsonl --picture out/hpl.svg": SCRIPT,
    "python apps/mpi/compare.py --out out/mpi": SCRIPT,
    "python apps/mpi/compare.py --transport nic:torus --transport posix --mpirun mpiexec.mpich": SCRIPT,
    "python apps/scale/linpack.py --out out/linpack --pictures docs/pictures": SCRIPT,
    "python apps/scale/scaling.py --out out/scale": SCRIPT,
    "python apps/scale/scaling.py --quick --out out/scale": SCRIPT,
    "python apps/scale/simulator.py --machine torus:8x8x4 --pattern halo/put --bytes 65536 "
    "--shuffle 1": SCRIPT,
    "sudo .venv/bin/python apps/loss/loss.py --out out/loss.jsonl": SCRIPT,
    "python apps/mpi/suite.py /tmp/suite/openmpi --mpirun mpirun.openmpi "
    "--out results/mpi-suite/openmpi.jsonl": SCRIPT,
    "python apps/mpi/suite_page.py": SCRIPT,
    "apt-get source --download-only mpich=4.0.2-3 && tar xf mpich_4.0.2.orig.tar.xz": FOREIGN,
    "mkdir -p /tmp/suite/openmpi && cd /tmp/suite/openmpi": FOREIGN,
    'flags="-O1 -w -DOMPI_OMIT_MPI1_COMPAT_DECLS=0"': FOREIGN,
    '~/mpich-4.0.2/test/mpi/configure CC=gcc MPICC=mpicc.openmpi CFLAGS="$flags" --disable-fortran '
    "--disable-cxx --disable-spawn --enable-strictmpi": FOREIGN,
    'make -C dtpools CFLAGS="$flags" && make -C util CFLAGS="$flags"': FOREIGN,
    "for folder in attr coll comm datatype errhan pt2pt rma; do make -k -C $folder check TESTS= "
    'CFLAGS="$flags"; done': FOREIGN,
    "peerway jobs doctor --self-test": VERB,
    "peerway jobs usage --since 365d --application lqcd='lqcd*' -o usage.csv": VERB,
    "peerway jobs usage --notices --window 30d -o notices.csv": VERB,
    "peerway trace shares heat --application heat --node-type a100 -o heat.csv": VERB,
    "peerway worth --usage usage.csv --shares heat.csv --before before --after after": VERB,
    "peerway worth --notices notices.csv": VERB,
    "sudo -u peerway-jobs /opt/peerway/bin/peerway jobs doctor --data /var/lib/peerway-jobs": FOREIGN,
    "sudo -u peerway-jobs /opt/peerway/bin/peerway jobs user alice --admin": FOREIGN,
    "python3 -m venv /opt/peerway": FOREIGN,
    "/opt/peerway/bin/pip install ./common ./jobs": FOREIGN,
    "/opt/peerway/bin/pip install ./common './jobs[server]'": FOREIGN,
    "/opt/peerway/bin/pip install ./common './jobs[server,postgresql]'": FOREIGN,
    "/opt/peerway/bin/peerway jobs doctor --self-test": FOREIGN,
    "sudo -u postgres createuser peerway-jobs": FOREIGN,
    "sudo -u postgres createdb -O peerway-jobs peerway": FOREIGN,
    "peerway jobs serve --data /var/lib/peerway-jobs --database postgresql://db.example.org/peerway "
    "--samples http://vm.example.org:8428 --listen 0.0.0.0:8740 --tls-cert cert.pem --tls-key key.pem": VERB,
    "peerway jobs migrate --data /var/lib/peerway-jobs --to postgresql://db.example.org/peerway": VERB,
    "peerway jobs migrate --data /var/lib/peerway-jobs --to sqlite": VERB,
    "useradd --system --no-create-home peerway-jobs": FOREIGN,
    "cp /opt/peerway/lib/python3.11/site-packages/peerway_jobs/slurm/peerway-jobs-agent.service "
    "/etc/systemd/system/": FOREIGN,
    "install -d /etc/peerway": FOREIGN,
    "install -m 600 -o peerway-jobs token /etc/peerway/jobs-agent.token": FOREIGN,
    "cp /opt/peerway/lib/python3.11/site-packages/peerway_jobs/slurm/jobs-agent.toml /etc/peerway/": FOREIGN,
    "systemctl enable --now peerway-jobs-agent": FOREIGN,
    "cp /opt/peerway/lib/python3.11/site-packages/peerway_jobs/slurm/peerway-jobs.service "
    "/etc/systemd/system/": FOREIGN,
    "install -m 644 jobs.pem /etc/peerway/jobs.pem": FOREIGN,
    "install -m 600 -o peerway-jobs jobs.key /etc/peerway/jobs.key": FOREIGN,
    "systemctl enable --now peerway-jobs": FOREIGN,
    "pip install ./common './jobs[server]'": FOREIGN,
    'python -c "from peerway_jobs.rules.load import SHIPPED; '
    "print(SHIPPED.read_text(), end='')\" > new.toml": FOREIGN,
    "peerway jobs user alice --admin --data ~/jobs": VERB,
    "peerway jobs serve --data ~/jobs": VERB,
    "peerway jobs notices --mail mail.toml --data /var/lib/peerway-jobs": VERB,
    "peerway jobs notices --webhooks webhooks.toml --data /var/lib/peerway-jobs": VERB,
    "peerway jobs token --user prometheus --scope cluster:read --days 3650 "
    "--data /var/lib/peerway-jobs": VERB,
    "peerway jobs user prometheus --admin --no-password --data /var/lib/peerway-jobs": VERB,
    "peerway jobs policy policies.toml --data /var/lib/peerway-jobs": VERB,
    "peerway jobs acts --data /var/lib/peerway-jobs": VERB,
    "sacct --allusers --duplicates --starttime 2026-01-01 --parsable2 --units=K -o JobIDRaw,JobID,User,"
    "Account,JobName,Partition,QOS,WCKey,State,ExitCode,Submit,Start,End,Suspended,TimelimitRaw,NNodes,"
    "NodeList,AllocTRES,TotalCPU,MaxRSS,AdminComment > past.txt": FOREIGN,
    "peerway jobs history sacct past.txt --data /var/lib/peerway-jobs": VERB,
    "peerway jobs history prometheus http://prometheus:9090 --since 30d --data /var/lib/peerway-jobs": VERB,
    "peerway jobs show 4242 --data ~/jobs": VERB,
    "peerway jobs list --data ~/jobs --user alice --inefficient": VERB,
    "peerway jobs top --data ~/jobs": VERB,
    "peerway jobs replay --rules new.toml --since 30d": VERB,
    "peerway jobs serve --data /var/lib/peerway-jobs --listen 0.0.0.0:8740 --tls-cert cert.pem "
    "--tls-key key.pem": VERB,
    "peerway jobs token --node node01 --data /var/lib/peerway-jobs": VERB,
    "peerway jobs token --user wall --scope cluster:read --days 3650 --data /var/lib/peerway-jobs": VERB,
    "peerway jobs serve --data /var/lib/peerway-jobs --database postgresql://db.example.org/peerway "
    "--samples http://vminsert.example.org:8480/insert/0/prometheus "
    "--samples-select http://vmselect.example.org:8481/select/0/prometheus "
    "--samples-storage http://vmstorage1.example.org:8482 "
    "--samples-storage http://vmstorage2.example.org:8482": VERB,
    "peerway jobs serve --data /var/lib/peerway-jobs --portal-header Remote-User "
    "--portal-from 10.0.0.5": VERB,
    "cp /opt/peerway/lib/python3.11/site-packages/peerway_jobs/ondemand/_peerway_jobs.html.erb "
    "/etc/ood/config/apps/dashboard/views/widgets/": FOREIGN,
    "peerway jobs serve --racks '^(cn[0-9]{2})' --data /var/lib/peerway-jobs": VERB,
    "mpirun -n 4 ./program": FOREIGN,
    "srun -n 4 ./program": FOREIGN,
    "cp examples/nic/example.cpp mynic.cpp": FOREIGN,
    "c++ -std=c++20 -O2 -fPIC -shared -I library/include mynic.cpp -o libmynic.so": FOREIGN,
    "jq -sc 'map(select(.link)) | group_by(.link)[] | .[0].link + {bytes: map(.bytes)|add, "
    "packets: map(.packets)|add}' counters": FOREIGN,
    "jq -sc 'map(select(.puts) | del(.endpoint, .process)) | group_by(.node)[] | reduce .[1:][] as $one "
    '(.[0]; with_entries(if .key != "node" then .value += $one[.key] else . end))\' counters': FOREIGN,
}


def documents() -> Iterator[Path]:
    yield from (ROOT / "README.md", ROOT / "CONTRIBUTING.md")
    yield from (page for page in sorted((ROOT / "docs").rglob("*.md")) if TUTORIALS not in page.parents)
    yield from sorted(ROOT.glob("*/README.md"))


def commands(text: str) -> Iterator[str]:
    """The lines behind a prompt in blocks of kind console, without their remarks."""
    for block in re.findall(r"^ *```console\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE):
        for line in re.findall(r"^ *\$ (.*)$", re.sub(r" *\\\n *", " ", block), re.MULTILINE):
            yield re.sub(r"\s+# .*$", "", line).strip()


def of(*kinds: str) -> list[str]:
    return [line for line, kind in CLASSES.items() if kind in kinds]


def parts(line: str) -> tuple[dict[str, str], list[str]]:
    """The settings before a command, and its words."""
    words = shlex.split(line.removeprefix("sudo ").replace("$PWD", shlex.quote(str(Path.cwd()))))
    settings = {}
    while re.match(r"[A-Z_]+=", words[0]):
        name, _, settings[name] = words.pop(0).partition("=")
    return settings, words


def options_of(words: list[str]) -> list[str]:
    return [word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)]


def test_each_command_in_the_documents_has_its_class() -> None:
    counts = Counter(line for file in documents() for line in commands(file.read_text()))
    assert set(counts) == set(CLASSES)


def test_blocks_and_remarks_are_told_apart() -> None:
    text = "```console\n$ a b    # remark\nprinted\n$ c '#d'\n```\n"
    text += "```python\n$ no\n```\n  ```console\n  $ e\n  ```\n"
    assert list(commands(text)) == ["a b", "c '#d'", "e"]


@pytest.mark.parametrize("line", of(MAKE))
def test_the_makefile_has_the_target(line: str) -> None:
    _, words = parts(line)
    folder = words[2] if words[1] == "-C" else "."
    assert re.search(rf"^{words[-1]}:", (ROOT / folder / "Makefile").read_text(), re.MULTILINE)


@pytest.mark.parametrize("line", of(RUNS))
def test_it_runs_to_its_end(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("before.jsonl", "again.jsonl", "after.jsonl"):
        records.write(name, [record(host=host, bytes=size) for host in ("a", "b") for size in (8, 16)])
    result = CliRunner().invoke(peerway, parts(line)[1][1:])
    assert result.exit_code == 0, result.output
    assert "-o" not in line or Path("page.html").stat().st_size > 1 << 20


def parsed(words: list[str]) -> None:
    context = peerway.make_context("peerway", words[1:])
    while isinstance(context.command, click.Group):  # peerway jobs VERB
        name, verb, rest = context.command.resolve_command(context, [*context._protected_args, *context.args])
        assert verb is not None
        context = verb.make_context(name, rest, parent=context)


@pytest.mark.parametrize("line", of(VERB, BENCH))
def test_the_verb_takes_its_words_and_the_settings_are_known(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("nodes").write_text("node1 slots=2\n")
    for folder in ("before", "after"):
        Path(folder).mkdir()
    shutil.copytree(ROOT / "examples" / "rehearsal", "copy")
    settings, words = parts(line)
    assert settings.keys() <= {f"PEERWAY_{setting.name.upper()}" for setting in all_settings()}
    parsed(words)


@pytest.mark.parametrize("line", of(BENCH))
def test_bench_takes_it_up_to_the_measurement(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    planned: list[Any] = []

    def plan_only(plan: Plan, *_: Any) -> None:
        planned.extend(plan.cases)

    monkeypatch.setattr("peerway_measure.bench.runs.measure", plan_only)
    result = CliRunner().invoke(peerway, parts(line)[1][1:])
    assert result.exit_code == 1, result.output
    no_gpu = "there is no device cuda here" in result.output
    assert no_gpu == ("--device cuda" in line and len(_core.devices()) == 1)
    assert no_gpu or (planned and "nothing could be measured" in result.output)


@functools.cache
def help_of(script: str) -> str:
    """What it prints, or the text that it prints where a program would have to be compiled first: that
    --help prints it, and takes each option of it, is in apps/tests/system/test_scale.py.
    """
    if script == "apps/scale/simulator.py":
        return (ROOT / "apps" / "scale" / "options.cpp").read_text()
    environment = os.environ | {"COLUMNS": "200"}
    done = subprocess.run(
        [sys.executable, str(ROOT / script), "--help"],
        capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("line", of(SCRIPT))
def test_the_script_has_its_options(line: str) -> None:
    _, words = parts(line)
    known = re.findall(r"--?[a-z][a-z-]*", help_of(words[1]))
    assert set(options_of(words[2:])) <= set(known)


@pytest.mark.parametrize("line", of(STENCIL))
def test_stencil2d_has_its_options_and_variants(line: str) -> None:
    _, words = parts(line)
    app = ROOT / "apps" / "stencil2d"
    own = re.findall(r"^  (--[a-z-]+)", (app / "options.cpp").read_text(), re.MULTILINE)
    program = words[words.index("--") + 2 :] if "--" in words else words[2:]
    run_py = [] if "--" in words else re.findall(r'"(--[a-z]+)"', (app / "run.py").read_text())
    assert set(options_of(program)) <= {*own, *run_py}
    variants = program[program.index("--variant") + 1].split(",")
    there = re.findall(r'"([a-z/-]+)"', (app / "main.cpp").read_text() + (app / "mpi.cpp").read_text())
    assert set(variants) <= set(there)
    if "--" in words:
        parsed(words)


@pytest.mark.parametrize("line", of(HPL))
def test_hpl_has_its_options(line: str) -> None:
    _, words = parts(line)
    program = words[words.index("build/hpl/hpl") + 1 :]
    own = re.findall(r"^  (--[a-z]+)", (ROOT / "apps" / "hpl" / "options.cpp").read_text(), re.MULTILINE)
    assert set(options_of(program)) <= set(own)
    if words[0] == "peerway":
        parsed(words)


@pytest.mark.parametrize("line", of(FOREIGN))
def test_what_it_names_of_this_repository_is_there(line: str) -> None:
    settings, words = parts(line.removeprefix("export ")) if not line.startswith("export") else ({}, [])
    assert settings == {}
    for word in words:
        if word.startswith(("examples/", "include", "apps/", "scripts/")):
            assert (ROOT / word).exists()
