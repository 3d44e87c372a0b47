# For published wheels: take no symbol that is newer than the libstdc++ of GCC 11, which Rocky Linux 9 and its relatives
# have (the policy manylinux_2_34; `make release` lets auditwheel check it). GCC 12 gave one function a second version,
# so each call of it goes through older_libstdcxx.cpp to the first.
option(PEERWAY_MANYLINUX "Link what is built here for wheels of the policy manylinux_2_34" OFF)

function(use_older_libstdcxx)
  foreach(target ${ARGN})
    if(TARGET ${target})
      target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/older_libstdcxx.cpp)
      target_link_options(${target} PRIVATE -Wl,--wrap=_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE)
    endif()
  endforeach()
endfunction()

if(PEERWAY_MANYLINUX)
  use_older_libstdcxx(peerway peerway_nic_torus peerway_uct peerway_trace_cuda peerway_xacc peerway_storage _core)
endif()
