# With CMAKE_UNITY_BUILD=ON, which makes the builds with sanitizers twice as quick, the sources of a layer are
# compiled together: those of a folder, and the tests <layer>_<thing>_test.cpp. So names in anonymous namespaces
# are unique in a layer.
function(compile_layers_together target)
  get_target_property(sources ${target} SOURCES)
  foreach(source ${sources})
    get_filename_component(layer ${source} DIRECTORY)
    if(source MATCHES "/([^/_]+)_[^/]*_test\\.cpp$")
      set(layer ${CMAKE_MATCH_1})
    endif()
    string(MAKE_C_IDENTIFIER ${layer} group)
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
endfunction()
