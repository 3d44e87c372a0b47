# Writes the text that precedes generated kernels into a C++ file, so that the library contains it wherever it is
# installed: these files in this order. The code that reduces values of several ranks is separate, for kernels that
# need it.
set(text "")
foreach(name types math operators bounds complex reductions atomics)
  set(file ${CMAKE_CURRENT_LIST_DIR}/${name}.cuh)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} one)
  string(APPEND text "#line 1 \"${name}.cuh\"\n${one}")
endforeach()
set(file ${CMAKE_CURRENT_LIST_DIR}/rank_reduction.cuh)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
file(READ ${file} rank_reduction)
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/prelude.cpp @ONLY CONTENT
"// Made by xacc/runtime/kernels/embed.cmake.
#include \"xacc/runtime/gpu/kernels.h\"

namespace pwx {

std::string_view prelude() { return R\"peerway(@text@)peerway\"; }
std::string_view rank_reduction_text() {
  return R\"peerway(#line 1 \"rank_reduction.cuh\"\n@rank_reduction@)peerway\";
}

}  // namespace pwx
")

# Writes the same text to a file for the compiler, which parses kernels with it and reports those that are not C++.
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/prelude.cuh @ONLY CONTENT "@text@")
