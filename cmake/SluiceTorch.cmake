# libtorch, as the targets torch and torch_library and the list TORCH_LIBRARIES.
#
#   SLUICE_TORCH_DIR   empty (the default): libtorch's own CMake files find it (CMAKE_PREFIX_PATH). Else the folder torch of
#                      a Python environment's site-packages, or an unpacked libtorch: it is linked as it lies there. That
#                      is the way to a CUDA build without a CUDA toolkit, which libtorch's CMake files insist on; nothing
#                      here includes a CUDA header.
set(SLUICE_TORCH_DIR "" CACHE PATH "A libtorch that is linked as it is, without its CMake files (a CUDA build)")

if(NOT SLUICE_TORCH_DIR)
  find_package(Torch REQUIRED)
  return()
endif()

foreach(file IN ITEMS include/ATen/ATen.h include/torch/csrc/api/include/torch/torch.h lib/libtorch_cpu.so lib/libc10.so)
  if(NOT EXISTS "${SLUICE_TORCH_DIR}/${file}")
    message(FATAL_ERROR "SLUICE_TORCH_DIR=${SLUICE_TORCH_DIR}: there is no ${file} in it")
  endif()
endforeach()
set(sluice_torch_names "-ltorch,-ltorch_cpu")
set(sluice_torch_kind "CPU")
if(EXISTS "${SLUICE_TORCH_DIR}/lib/libtorch_cuda.so")
  set(sluice_torch_names "${sluice_torch_names},-ltorch_cuda")
  set(sluice_torch_kind "CUDA")
endif()
message(STATUS "libtorch: the ${sluice_torch_kind} build in ${SLUICE_TORCH_DIR}")

# One word to the linker, so that no part of it moves. Nothing refers to libtorch_cuda, whose kernels register themselves
# as it is loaded, so it must not be left out as unneeded; what it needs in turn lies beside it at run time only.
add_library(torch INTERFACE)
target_include_directories(torch SYSTEM INTERFACE "${SLUICE_TORCH_DIR}/include"
                                           "${SLUICE_TORCH_DIR}/include/torch/csrc/api/include")
target_link_libraries(torch INTERFACE
  "-Wl,-L${SLUICE_TORCH_DIR}/lib,--push-state,--no-as-needed,${sluice_torch_names},-lc10,--pop-state")
target_link_options(torch INTERFACE "LINKER:--allow-shlib-undefined" "LINKER:-rpath,${SLUICE_TORCH_DIR}/lib")
add_library(torch_library INTERFACE)
set(TORCH_LIBRARIES torch torch_library)
