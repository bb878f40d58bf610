# XRT is optional (D12): Debian's libxrt-dev or the vendor's package. SLUICE_HAVE_XRT says whether it was found; its
# headers and libxrt_coreutil are in the target sluice_xrt, the headers alone in sluice_xrt_headers. Debian's package has
# no CMake file, and the paths in its xrt.pc are wrong.
option(SLUICE_XRT "Build what drives cards (backend=xrt)" ON)
find_path(SLUICE_XRT_INCLUDE xrt/xrt_bo.h PATHS /opt/xilinx/xrt/include PATH_SUFFIXES xrt)
find_library(SLUICE_XRT_COREUTIL NAMES xrt_coreutil PATHS /opt/xilinx/xrt/lib)
find_path(SLUICE_UUID_INCLUDE uuid/uuid.h)
find_path(SLUICE_BOOST_ANY_INCLUDE boost/any.hpp)
set(SLUICE_HAVE_XRT OFF)
if(SLUICE_XRT AND SLUICE_XRT_INCLUDE AND SLUICE_XRT_COREUTIL AND SLUICE_UUID_INCLUDE AND SLUICE_BOOST_ANY_INCLUDE)
  set(SLUICE_HAVE_XRT ON)
  add_library(sluice_xrt_headers INTERFACE)
  target_include_directories(sluice_xrt_headers SYSTEM INTERFACE ${SLUICE_XRT_INCLUDE})
  add_library(sluice_xrt INTERFACE)
  target_link_libraries(sluice_xrt INTERFACE sluice_xrt_headers ${SLUICE_XRT_COREUTIL} uuid)
  message(STATUS "XRT: ${SLUICE_XRT_INCLUDE}")
elseif(NOT SLUICE_XRT)
  message(STATUS "XRT: left out by SLUICE_XRT=OFF; backend=xrt is not built")
else()
  message(STATUS "XRT: not found; backend=xrt is not built (Debian: libxrt-dev, uuid-dev, libboost-dev)")
endif()

# A software xclbin out of a shared library of kernels (docs/software_smartssd.md), made with `all`:
#   sluice_soft_xclbin(TARGET my_kernels OUTPUT ${CMAKE_BINARY_DIR}/lib/my.xclbin)
# The kernels' names stay their own, whatever else the program loads.
function(sluice_soft_xclbin)
  cmake_parse_arguments(ARG "" "TARGET;OUTPUT" "" ${ARGN})
  set_target_properties(${ARG_TARGET} PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_link_libraries(${ARG_TARGET} PRIVATE soft_compute_unit)
  target_link_options(${ARG_TARGET} PRIVATE -Wl,-Bsymbolic -Wl,--exclude-libs,ALL)
  add_custom_command(OUTPUT ${ARG_OUTPUT} COMMAND sluice_xclbin pack $<TARGET_FILE:${ARG_TARGET}> ${ARG_OUTPUT}
                     DEPENDS ${ARG_TARGET} sluice_xclbin VERBATIM)
  add_custom_target(${ARG_TARGET}_xclbin ALL DEPENDS ${ARG_OUTPUT})
endfunction()
