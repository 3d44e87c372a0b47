#!/bin/sh
# Installs the wheels of a folder as a user does who has neither a network nor a compiler, and tries the commands.
#   sh try_wheels.sh FOLDER_OF_WHEELS PYTHON NEW_ENVIRONMENT PROGRAM
# PROGRAM is examples/python/put.py. `make release` runs it on bare systems and with each Python.
set -eu
wheels=$1 python=$2 environment=$3 program=$4
"$python" -m venv "$environment"
pip="$environment/bin/python -m pip --disable-pip-version-check"
start=$(date +%s)
$pip install --quiet --no-index --only-binary=:all: --find-links "$wheels" peerway peerway-measure peerway-jobs
echo "installed in $(($(date +%s) - start)) s"
PATH="$environment/bin:$PATH"
cd "$environment"
peerway --version
peerway --help >help && grep -q bench help
peerway doctor >doctor && grep -q libpeerway doctor
peerway run -n 2 -- python "$program" >ranks
grep -q 'rank 0 received "hello from rank 1"' ranks && grep -q 'rank 1 received "hello from rank 0"' ranks
PEERWAY_NIC=torus PEERWAY_PATHS=nic:torus peerway run -n 2 -- python "$program" >torus
grep -q 'rank 1 received "hello from rank 0"' torus
peerway bench put_latency --device host --sizes 8 --quick --out records.jsonl >table
grep -q put_latency table && grep -q put_latency records.jsonl
peerway jobs agent --help >agent
! peerway trace 2>missing && grep -q 'pip install peerway-trace' missing
test -f "$(peerway --prefix)/lib/pkgconfig/peerway.pc"
echo "works with $(python --version)"
