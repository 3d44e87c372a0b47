# Debian packages of an installation without Python: `cpack -G DEB` in a build folder that was configured with
# -DCMAKE_INSTALL_PREFIX=/usr and -DPEERWAY_PYTHON=OFF (docs/release.md). Of Install.cmake's components `library` is the package
# libpeerway0, named after the version of the ABI, and `development` is libpeerway-dev.
set(CPACK_PACKAGE_VENDOR "Peerway")
set(CPACK_PACKAGE_CONTACT "The Peerway maintainers (https://github.com/peerway/peerway/issues)")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL library development)
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_HOMEPAGE https://github.com/peerway/peerway)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libpeerway0)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libpeerway-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libpeerway0 (= ${PROJECT_VERSION})")
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION "The library of Peerway, its software NIC and the run-time library of directives.")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "Headers, CMake package and pkg-config file of Peerway.")
include(CPack)
