# The sources of a layer are compiled together: those of a folder, and the tests <layer>_<thing>_test.cpp.
# -DCMAKE_UNITY_BUILD=OFF compiles each file alone, which is quicker after an edit of one file and much slower from
# nothing; `make lint` checks that each file can be. With -DPEERWAY_UNITS=2 all sources of a target are compiled in two
# parts, for which compilers need less time than for layers: so names in anonymous namespaces are unique in a target.
set(PEERWAY_UNITS 0 CACHE STRING "In how many parts the sources of a target are compiled; 0: a part for each layer")

function(compile_layers_together target)
  get_target_property(sources ${target} SOURCES)
  list(LENGTH sources count)
  set(index 0)
  foreach(source ${sources})
    get_filename_component(group ${source} DIRECTORY)
    if(source MATCHES "/([^/_]+)_[^/]*_test\\.cpp$")
      set(group ${CMAKE_MATCH_1})
    endif()
    if(PEERWAY_UNITS GREATER 0)
      math(EXPR part "${index} * ${PEERWAY_UNITS} / ${count}")
      math(EXPR index "${index} + 1")
      set(group part_${part})
    endif()
    string(MAKE_C_IDENTIFIER ${group} group)
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
endfunction()

# What nearly every layer includes is read once for a target, which saves a quarter of the compilers' time. Each
# file includes what it needs all the same: `make lint` reads it without this.
function(read_common_headers_once target)
  target_precompile_headers(${target} PRIVATE <algorithm> <array> <atomic> <condition_variable> <cstdint> <cstring>
    <deque> <filesystem> <functional> <map> <memory> <mutex> <optional> <span> <string> <string_view> <thread>
    <vector> ${ARGN})
endfunction()

# A cache of compilers' output knows what is precompiled by its content. Without this its time is in it, and ccache finds
# nothing that was compiled with it.
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
endif()
