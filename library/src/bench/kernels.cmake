# Puts the text of the benchmarks' device code into a C++ file.
set(path ${CMAKE_CURRENT_LIST_DIR}/kernels.cu)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
file(READ ${path} text)
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/bench_kernels.cpp @ONLY CONTENT
"// Made by library/src/bench/kernels.cmake from kernels.cu beside it.
#include \"bench/kernels.h\"

namespace pw::bench {

const char* kernel_text() { return R\"peerway(@text@)peerway\"; }

}  // namespace pw::bench
")
