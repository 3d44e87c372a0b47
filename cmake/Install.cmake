# Installation: headers, library, CMake package config and pkg-config file. Components: `library` (what programs need
# to run), `development` (what they need to be compiled), and `python` (the extension module; only in wheels).
include(CMakePackageConfigHelpers)

set(PEERWAY_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/peerway)

install(TARGETS peerway EXPORT peerwayTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT development)
# Beside it, where a plugin is found by its short name.
install(TARGETS peerway_nic_torus LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
install(TARGETS peerway_xacc LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library
        NAMELINK_COMPONENT development)
install(TARGETS peerway_uct LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
install(TARGETS peerway_trace_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
install(TARGETS peerway_storage RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR} COMPONENT library)
install(FILES ${PROJECT_BINARY_DIR}/xacc/runtime/prelude.cuh DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/peerway/xacc
        COMPONENT development)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/library/include/peerway ${PROJECT_SOURCE_DIR}/xacc/include/peerway DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        COMPONENT development)
install(EXPORT peerwayTargets NAMESPACE peerway:: DESTINATION ${PEERWAY_CMAKE_DIR} COMPONENT development)

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/peerwayConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/peerwayConfig.cmake INSTALL_DESTINATION ${PEERWAY_CMAKE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/peerwayConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/peerwayConfig.cmake ${PROJECT_BINARY_DIR}/peerwayConfigVersion.cmake
        DESTINATION ${PEERWAY_CMAKE_DIR} COMPONENT development)

# The prefix in the .pc file follows the file, so that an installed tree can be moved.
file(RELATIVE_PATH PEERWAY_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
if(NOT CMAKE_INSTALL_PREFIX STREQUAL "/usr")  # where the loader looks by itself
  set(PEERWAY_PC_RPATH " -Wl,-rpath,\${libdir}")
endif()
configure_file(${CMAKE_CURRENT_LIST_DIR}/peerway.pc.in ${PROJECT_BINARY_DIR}/peerway.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/peerway.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
        COMPONENT development)

# Beside the Python files of the package; never part of an ordinary installation.
if(TARGET _core)
  install(TARGETS _core LIBRARY DESTINATION . COMPONENT python EXCLUDE_FROM_ALL)
endif()
