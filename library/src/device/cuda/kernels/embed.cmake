# Puts the text of the device code into a C++ file, so that the library carries it wherever it is installed.
set(folder ${CMAKE_CURRENT_LIST_DIR})
set(public ${CMAKE_CURRENT_LIST_DIR}/../../../../include)
file(GLOB headers RELATIVE ${public} CONFIGURE_DEPENDS ${public}/peerway/device/*.cuh)

# The first is compiled, it includes the others.
set(entries "    {\"kernels.cu\", \"#include \\\"copy.cu\\\"\\n#include \\\"plan.cu\\\"\\n#include \\\"reduce.cu\\\"\\n\"},\n")
function(embed name path)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
  file(READ ${path} text)
  set(entries "${entries}    {\"${name}\", R\"peerway(${text})peerway\"},\n" PARENT_SCOPE)
endfunction()
foreach(name begin.h copy.cu copy_arguments.h plan.cu plan_arguments.h messages.h reduce.cu reduce_arguments.h)
  embed(${name} ${folder}/${name})
endforeach()
foreach(name peerway/handles.h peerway/device.cuh ${headers})
  embed(${name} ${public}/${name})
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/kernel_sources.cpp @ONLY CONTENT
"// Made by library/src/device/cuda/kernels/embed.cmake from the files of device code.
#include \"device/cuda/nvrtc.h\"

namespace pw::cuda {

std::span<const KernelSource> kernel_sources() {
  static const KernelSource sources[] = {
@entries@  };
  return sources;
}

}  // namespace pw::cuda
")
