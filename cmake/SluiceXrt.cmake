# XRT is optional (D12): Debian's libxrt-dev or the vendor's package. SLUICE_HAVE_XRT says whether it was found; its
# headers and libxrt_coreutil are in the target sluice_xrt. Debian's package has no CMake file, and the paths in its
# xrt.pc are wrong.
find_path(SLUICE_XRT_INCLUDE xrt/xrt_bo.h PATHS /opt/xilinx/xrt/include PATH_SUFFIXES xrt)
find_library(SLUICE_XRT_COREUTIL NAMES xrt_coreutil PATHS /opt/xilinx/xrt/lib)
find_path(SLUICE_UUID_INCLUDE uuid/uuid.h)
find_path(SLUICE_BOOST_ANY_INCLUDE boost/any.hpp)
set(SLUICE_HAVE_XRT OFF)
if(SLUICE_XRT_INCLUDE AND SLUICE_XRT_COREUTIL AND SLUICE_UUID_INCLUDE AND SLUICE_BOOST_ANY_INCLUDE)
  set(SLUICE_HAVE_XRT ON)
  add_library(sluice_xrt INTERFACE)
  target_include_directories(sluice_xrt SYSTEM INTERFACE ${SLUICE_XRT_INCLUDE})
  target_link_libraries(sluice_xrt INTERFACE ${SLUICE_XRT_COREUTIL} uuid)
  message(STATUS "XRT: ${SLUICE_XRT_INCLUDE}")
else()
  message(STATUS "XRT: not found; backend=xrt is not built (Debian: libxrt-dev, uuid-dev, libboost-dev)")
endif()
