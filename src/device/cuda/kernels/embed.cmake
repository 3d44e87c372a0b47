# Puts the text of the device code into a C++ file, so that the library carries it wherever it is installed.
set(PEERWAY_KERNELS copy.cu copy_words.h copy_arguments.h)  # the first is compiled, it includes the others

set(entries "")
foreach(name IN LISTS PEERWAY_KERNELS)
  set(path ${CMAKE_CURRENT_LIST_DIR}/${name})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
  file(READ ${path} text)
  string(APPEND entries "    {\"${name}\", R\"peerway(${text})peerway\"},\n")
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/kernel_sources.cpp @ONLY CONTENT
"// Made by src/device/cuda/kernels/embed.cmake from the files beside it.
#include \"device/cuda/nvrtc.h\"

namespace pw::cuda {

std::span<const Source> kernel_sources() {
  static const Source sources[] = {
@entries@  };
  return sources;
}

}  // namespace pw::cuda
")
