# The two header-only libraries the core is built with. A system package is taken where there is one
# (libfmt-dev, nlohmann-json3-dev); otherwise the headers come from the PyPI wheels `cmeel-fmt` and
# `nlohmann-json`, so that a build needs no root and, from a folder of wheels, no network.
find_package(Threads REQUIRED)
find_package(Python 3.11 COMPONENTS Interpreter OPTIONAL_COMPONENTS Development.Module)

function(peerway_header_library target header wheel_expression)
  if(Python_EXECUTABLE)
    execute_process(COMMAND ${Python_EXECUTABLE} -c "${wheel_expression}"
                    OUTPUT_VARIABLE wheel_include OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
  find_path(${target}_INCLUDE ${header} HINTS ${wheel_include})
  if(NOT ${target}_INCLUDE)
    message(FATAL_ERROR "peerway: ${header} was not found. Install it by one of these, then run cmake again:\n"
                        "  apt-get install libfmt-dev nlohmann-json3-dev    (Debian, Ubuntu)\n"
                        "  dnf install fmt-devel json-devel                 (Fedora, RHEL with EPEL)\n"
                        "  spack install fmt nlohmann-json                  (and -DCMAKE_PREFIX_PATH=...)\n"
                        "  python3 -m pip install cmeel-fmt nlohmann-json")
  endif()
  add_library(${target} INTERFACE)
  target_include_directories(${target} SYSTEM INTERFACE ${${target}_INCLUDE})
endfunction()

peerway_header_library(peerway_fmt fmt/format.h
  "import importlib.metadata as m; f = next(f for f in m.files('cmeel-fmt') if str(f).endswith('include/fmt/format.h')); print(f.locate().resolve().parent.parent)")
peerway_header_library(peerway_json nlohmann/json.hpp
  "import nlohmann_json, pathlib; print(pathlib.Path(nlohmann_json.__file__).parent / 'include')")
