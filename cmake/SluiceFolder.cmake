# One folder = one target = one permission: a folder's CMakeLists.txt calls
#   sluice_library(NAME core_platform SOURCES ... LINKS ... PRIVATE_LINKS ...)
# and LINKS is the whole list of what it may use. tests/structure/layers_test.py holds the includes to the same list.
function(sluice_library)
  cmake_parse_arguments(ARG "" "NAME" "SOURCES;HEADERS;LINKS;PRIVATE_LINKS" ${ARGN})
  if(ARG_SOURCES)
    add_library(${ARG_NAME} STATIC ${ARG_SOURCES} ${ARG_HEADERS})
    set(scope PUBLIC)
    target_link_libraries(${ARG_NAME} PRIVATE sluice_warnings ${ARG_PRIVATE_LINKS})
  else()
    add_library(${ARG_NAME} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(${ARG_NAME} ${scope} ${PROJECT_SOURCE_DIR})
  target_link_libraries(${ARG_NAME} ${scope} ${ARG_LINKS})
endfunction()

# A test program of one folder. Catch2's main is compiled once (tests/catch_main.cpp). TORCH programs are left out of the
# sanitizer presets, which build only what needs no libtorch.
function(sluice_test)
  cmake_parse_arguments(ARG "" "NAME" "SOURCES;LINKS" ${ARGN})
  add_executable(${ARG_NAME} ${ARG_SOURCES})
  target_link_libraries(${ARG_NAME} PRIVATE sluice_warnings sluice_catch_main ${ARG_LINKS})
  target_compile_definitions(${ARG_NAME} PRIVATE SLUICE_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  add_test(NAME ${ARG_NAME} COMMAND ${ARG_NAME})
  set_property(GLOBAL APPEND PROPERTY SLUICE_TEST_PROGRAMS ${ARG_NAME})
endfunction()
