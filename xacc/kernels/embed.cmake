# Puts the prelude of generated kernels into a C++ file, so that the library carries it wherever it is installed.
set(prelude ${CMAKE_CURRENT_LIST_DIR}/prelude.cuh)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${prelude})
file(READ ${prelude} text)
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/prelude.cpp @ONLY CONTENT
"// Made by xacc/kernels/embed.cmake.
#include \"xacc/kernels.h\"

namespace pwx {

pw::cuda::KernelSource prelude() { return {\"prelude.cuh\", R\"peerway(@text@)peerway\"}; }

}  // namespace pwx
")
