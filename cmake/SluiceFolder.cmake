# Parsing headers is most of what compiling a file costs, so the files of one target are compiled several at a time: each
# batch is a file that includes them. Names of anonymous namespaces are therefore unique within a target. Batches name their
# files from the checkout's root, so that ccache serves one checkout's objects to another (CMake's own UNITY_BUILD writes
# absolute paths, which end up in __FILE__). Whoever changes one file all the time sets it to 1.
set(SLUICE_BATCH_FILES 8 CACHE STRING "How many source files of a target are compiled as one; 1: each by itself")

# Puts into `result` what of a target's sources is to be compiled: files of ALONE, of other folders and of other languages
# as they are, the others in batches, each of which begins with the header FIRST.
function(sluice_batches result name)
  cmake_parse_arguments(ARG "" "FIRST" "SOURCES;ALONE" ${ARGN})
  set(together ${ARG_SOURCES})
  list(FILTER together INCLUDE REGEX "^[^/].*\\.cpp$")
  list(REMOVE_ITEM together ${ARG_ALONE})
  list(LENGTH together count)
  if(SLUICE_BATCH_FILES LESS 2 OR count LESS 2)
    set(${result} ${ARG_SOURCES} PARENT_SCOPE)
    return()
  endif()
  # As many batches as needed, all of one size: 9 files are 5 and 4, not 8 and 1.
  math(EXPR batches "(${count} + ${SLUICE_BATCH_FILES} - 1) / ${SLUICE_BATCH_FILES}")
  set(compiled ${ARG_SOURCES})
  list(REMOVE_ITEM compiled ${together})
  foreach(batch RANGE 1 ${batches})
    math(EXPR begin "(${batch} - 1) * ${count} / ${batches}")
    math(EXPR size "${batch} * ${count} / ${batches} - ${begin}")
    list(SUBLIST together ${begin} ${size} files)
    set(text "")
    if(ARG_FIRST)
      set(text "#include \"${ARG_FIRST}\"\n")
    endif()
    foreach(file IN LISTS files)
      file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/${file})
      string(APPEND text "#include \"${path}\"\n")
    endforeach()
    set(batch_file ${CMAKE_CURRENT_BINARY_DIR}/${name}_batch_${batch}.cpp)
    file(CONFIGURE OUTPUT ${batch_file} CONTENT "${text}" @ONLY)
    list(APPEND compiled ${batch_file})
  endforeach()
  set(${result} ${compiled} PARENT_SCOPE)
endfunction()

# One folder = one target = one permission: a folder's CMakeLists.txt calls
#   sluice_library(NAME core_platform SOURCES ... LINKS ... PRIVATE_LINKS ... ALONE ...)
# and LINKS is the whole list of what it may use; ALONE names sources that are compiled by themselves. tests/structure/layers_test.py holds the includes to the same list.
function(sluice_library)
  cmake_parse_arguments(ARG "" "NAME" "SOURCES;HEADERS;LINKS;PRIVATE_LINKS;ALONE" ${ARGN})
  if(ARG_SOURCES)
    sluice_batches(compiled ${ARG_NAME} SOURCES ${ARG_SOURCES} ALONE ${ARG_ALONE})
    add_library(${ARG_NAME} STATIC ${compiled} ${ARG_HEADERS})
    set(scope PUBLIC)
    target_link_libraries(${ARG_NAME} PRIVATE sluice_warnings ${ARG_PRIVATE_LINKS})
  else()
    add_library(${ARG_NAME} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(${ARG_NAME} ${scope} ${PROJECT_SOURCE_DIR})
  target_link_libraries(${ARG_NAME} ${scope} ${ARG_LINKS})
endfunction()

# What a preset tests: `all`; for the address sanitizer what owns `memory`; for the thread sanitizer what starts `threads`.
set(SLUICE_TESTS all CACHE STRING "Which test programs are built with all else: all, memory or threads")
set_property(CACHE SLUICE_TESTS PROPERTY STRINGS all memory threads)
# Builds the test programs and what they need.
add_custom_target(sluice_tests)

# A test program of one folder. Catch2's main is compiled once (tests/catch_main.cpp). TORCH programs are left out of the
# sanitizer presets, which build only what needs no libtorch. ONE_THREAD: nothing in it starts a thread, so the thread
# sanitizer would find nothing. RELEASE_ONLY: arithmetic and simulated time, which read no foreign bytes and own no memory of
# their own, so that sanitizers, which take longest there, find least. THREADS: the thread sanitizer's alone, since what it
# owns and reads is small, or drawn, or stands in for hardware. Tests run for a moment and compile for long: less optimized, they take a fifth less to build.
function(sluice_test)
  cmake_parse_arguments(ARG "ONE_THREAD;RELEASE_ONLY;THREADS" "NAME;FIRST" "SOURCES;LINKS;ALONE" ${ARGN})
  sluice_batches(compiled ${ARG_NAME} FIRST ${ARG_FIRST} SOURCES ${ARG_SOURCES} ALONE ${ARG_ALONE})
  add_executable(${ARG_NAME} ${compiled})
  target_include_directories(${ARG_NAME} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${ARG_NAME} PRIVATE sluice_warnings sluice_catch_main ${ARG_LINKS})
  target_compile_options(${ARG_NAME} PRIVATE $<$<CONFIG:Release>:-O1>)
  if(SLUICE_TESTS STREQUAL "memory")  # clang's checks make code that takes half of the time to optimize
    target_compile_options(${ARG_NAME} PRIVATE -O0)
  endif()
  target_compile_definitions(${ARG_NAME} PRIVATE SLUICE_SOURCE_DIR=".")
  if((ARG_RELEASE_ONLY AND NOT SLUICE_TESTS STREQUAL "all") OR (ARG_ONE_THREAD AND SLUICE_TESTS STREQUAL "threads")
     OR (ARG_THREADS AND SLUICE_TESTS STREQUAL "memory"))
    set_target_properties(${ARG_NAME} PROPERTIES EXCLUDE_FROM_ALL ON)
    return()
  endif()
  add_test(NAME ${ARG_NAME} COMMAND ${ARG_NAME})
  add_dependencies(sluice_tests ${ARG_NAME})
endfunction()
