#!/bin/sh
# Installs libpeerway0, libpeerway-dev and peerway of a folder, and compiles and runs its put.c with them, as
# docs/install.md says. `make release` runs it on bare systems that have only a compiler, CMake and pkg-config more.
#   sh try_debs.sh FOLDER
set -eu
dpkg --install "$1"/*.deb
mkdir /tmp/program
cd /tmp/program
cc "$1/put.c" $(pkg-config --cflags --libs peerway) -o put
peerway run -n 2 -- ./put >ranks
grep -q 'rank 0 received "hello from rank 1"' ranks && grep -q 'rank 1 received "hello from rank 0"' ranks
echo "pkg-config: works with $(cc -dumpfullversion) of gcc"
cat >CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.25)
project(mine LANGUAGES C)
find_package(peerway 0.1 REQUIRED)
add_executable(mine $1/put.c)
target_link_libraries(mine PRIVATE peerway::peerway)
END
cmake -S . -B build
cmake --build build
peerway run -n 2 -- build/mine >ranks
grep -q 'rank 0 received "hello from rank 1"' ranks && grep -q 'rank 1 received "hello from rank 0"' ranks
echo "CMake: works with $(cmake --version | head -n 1)"
dpkg --remove libpeerway-dev libpeerway0 peerway
! pkg-config --exists peerway
