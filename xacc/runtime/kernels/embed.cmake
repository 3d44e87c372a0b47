# Puts what stands before the text of generated kernels into a C++ file, so that the library carries it wherever it is
# installed: these files in this order. What exchanges values stands by itself, before kernels that do.
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

# The same as a file, for the compiler: it reads kernels with it, and says which cannot be one.
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/prelude.cuh @ONLY CONTENT "@text@")
