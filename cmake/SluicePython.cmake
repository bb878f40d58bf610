# The Python package (python/): a module that nanobind binds core/session with. It links no libtorch.
#
#   SLUICE_PYTHON            AUTO (the default): where there is a Python with headers and nanobind; ON; OFF
#   SLUICE_PYTHON_PROGRAM    the Python that the module is for, and that finds nanobind; empty: the one that CMake finds
#   sluice_python_is_on      what came of it

set(SLUICE_PYTHON AUTO CACHE STRING "The Python package: AUTO, ON or OFF")
set_property(CACHE SLUICE_PYTHON PROPERTY STRINGS AUTO ON OFF)
set(SLUICE_PYTHON_PROGRAM "" CACHE FILEPATH "The Python that the module is for (scripts/setup makes one)")

set(sluice_python_is_on OFF)
if(SLUICE_PYTHON STREQUAL "OFF")
  return()
endif()
if(EXISTS "${SLUICE_PYTHON_PROGRAM}")
  set(Python_EXECUTABLE "${SLUICE_PYTHON_PROGRAM}")
endif()
find_package(Python 3.10 QUIET COMPONENTS Interpreter Development.Module)
if(Python_FOUND)
  execute_process(COMMAND "${Python_EXECUTABLE}" -m nanobind --cmake_dir OUTPUT_VARIABLE sluice_nanobind
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  # Said anew each time: another Python may have another one.
  set(nanobind_DIR "${sluice_nanobind}" CACHE PATH "What that Python has of nanobind" FORCE)
  find_package(nanobind CONFIG QUIET)
endif()
if(nanobind_FOUND)
  set(sluice_python_is_on ON)
elseif(SLUICE_PYTHON STREQUAL "ON")
  message(FATAL_ERROR "SLUICE_PYTHON=ON: there is no Python with headers and nanobind (scripts/setup installs both); "
                      "SLUICE_PYTHON_PROGRAM='${SLUICE_PYTHON_PROGRAM}'")
else()
  message(STATUS "The Python package is left out: no Python with headers and nanobind (scripts/setup)")
endif()

# Makes what a target links, directly or not, fit for a shared object, and its calls within one as cheap as they were.
function(sluice_make_position_independent target)
  set(waiting ${target})
  set(seen "")
  list(LENGTH waiting left)
  while(left GREATER 0)
    list(POP_FRONT waiting one)
    list(LENGTH waiting left)
    if(one IN_LIST seen OR NOT TARGET ${one})
      continue()
    endif()
    list(APPEND seen ${one})
    get_target_property(type ${one} TYPE)
    get_target_property(links ${one} INTERFACE_LINK_LIBRARIES)
    foreach(link IN LISTS links)
      string(REGEX REPLACE "^\\$<LINK_ONLY:(.*)>$" "\\1" link "${link}")
      list(APPEND waiting "${link}")
    endforeach()
    list(LENGTH waiting left)
    if(type STREQUAL "STATIC_LIBRARY")
      set_target_properties(${one} PROPERTIES POSITION_INDEPENDENT_CODE ON)
      target_compile_options(${one} PRIVATE -fno-semantic-interposition)
    endif()
  endwhile()
endfunction()
