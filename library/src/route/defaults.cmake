# Puts the table of default costs into a C++ file.
set(path ${CMAKE_CURRENT_LIST_DIR}/defaults.json)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
file(READ ${path} text)
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/default_routes.cpp @ONLY CONTENT
"// Made by library/src/route/defaults.cmake from defaults.json beside it.
#include \"route/defaults.h\"

namespace pw::route {

std::string_view default_table() { return R\"peerway(@text@)peerway\"; }

}  // namespace pw::route
")
