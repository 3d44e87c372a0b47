# Writes the text that precedes generated kernels into a C++ file, so that the library contains it wherever it is
# installed: these files in this order. The code that exchanges values is separate, for kernels that need it.
set(text "")
foreach(name types math operators bounds complex reductions atomics)
  set(file ${CMAKE_CURRENT_LIST_DIR}/${name}.cuh)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} one)
  string(APPEND text "#line 1 \"${name}.cuh\"\n${one}")
endforeach()
set(exchange "")
foreach(name exchange_arguments.h exchange.cuh)
  set(file ${CMAKE_CURRENT_LIST_DIR}/${name})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} one)
  string(REPLACE "#pragma once\n" "" one "${one}")
  string(APPEND exchange "#line 1 \"${name}\"\n${one}")
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/prelude.cpp @ONLY CONTENT
"// Made by xacc/runtime/kernels/embed.cmake.
#include \"xacc/runtime/gpu/kernels.h\"

namespace pwx {

std::string_view prelude() { return R\"peerway(@text@)peerway\"; }
std::string_view exchange_text() { return R\"peerway(@exchange@)peerway\"; }

}  // namespace pwx
")

# Writes the same text to a file for the compiler, which parses kernels with it and reports those that are not C++.
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/prelude.cuh @ONLY CONTENT "@text@")
