# The libraries of the GUI: Dear ImGui (docking) with its GLFW and OpenGL 3 backends, ImPlot, GLFW, and for tests Dear ImGui
# Test Engine. Their sources and fonts come from one package that scripts/setup unpacks outside of the checkout, where
# every checkout compiles the same files, so that ccache builds them once.
#
#   SLUICE_GUI           AUTO (the default): where the sources and GLFW's headers are; ON; OFF
#   sluice_gui_is_on     what came of it
#   sluice_gui_headers   what our folders compile against: include paths and settings, no code
#   sluice_imgui_parts   code that knows nothing of tests
#   sluice_imgui         the rest of it, for the program
#   sluice_imgui_tested  the same with the test engine and the hooks that it needs; for tests only. Our folders are
#                        compiled once for both: IMGUI_ENABLE_TEST_ENGINE changes no type, only what ImGui itself calls

set(SLUICE_GUI_SOURCES "" CACHE PATH "Unpacked sources of the GUI's libraries (scripts/setup)")

# Why there can be no GUI; empty: nothing speaks against it.
function(sluice_gui_lacks result)
  set(${result} "" PARENT_SCOPE)
  foreach(file IN ITEMS external/imgui/imgui/imgui.cpp external/implot/implot/implot.cpp
                        external/glfw/glfw/CMakeLists.txt external/imgui_test_engine/imgui_test_engine/imgui_test_engine/LICENSE.txt
                        bindings/imgui_bundle/assets/fonts/Roboto/Roboto-Regular.ttf)
    if(NOT EXISTS "${SLUICE_GUI_SOURCES}/${file}")
      set(${result} "the GUI's libraries are not in '${SLUICE_GUI_SOURCES}' (scripts/setup fetches them)" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  pkg_check_modules(sluice_gui_x11 QUIET x11 xrandr xinerama xcursor xi xext xkbcommon)
  if(NOT sluice_gui_x11_FOUND)
    set(${result} "X11's development files are not all there (scripts/setup installs them)" PARENT_SCOPE)
  endif()
endfunction()

# What is asked for and missing is an error; AUTO takes what is there.
set(SLUICE_GUI AUTO CACHE STRING "Build the desktop program sluice-gui: AUTO, ON or OFF")
sluice_gui_lacks(sluice_gui_lack)
if(SLUICE_GUI STREQUAL "AUTO")
  set(sluice_gui_is_on ON)
  if(NOT sluice_gui_lack STREQUAL "")
    set(sluice_gui_is_on OFF)
  endif()
elseif(SLUICE_GUI)
  set(sluice_gui_is_on ON)
  if(NOT sluice_gui_lack STREQUAL "")
    message(FATAL_ERROR "SLUICE_GUI=${SLUICE_GUI}, but ${sluice_gui_lack}")
  endif()
else()
  set(sluice_gui_is_on OFF)
  set(sluice_gui_lack "SLUICE_GUI=${SLUICE_GUI}")
endif()
if(NOT sluice_gui_is_on)
  message(STATUS "GUI: off: ${sluice_gui_lack}")
  return()
endif()

pkg_check_modules(sluice_gui_wayland QUIET wayland-client wayland-cursor wayland-egl xkbcommon)
find_program(SLUICE_WAYLAND_SCANNER wayland-scanner)
set(sluice_gui_has_wayland OFF)
if(sluice_gui_wayland_FOUND AND SLUICE_WAYLAND_SCANNER)
  set(sluice_gui_has_wayland ON)
endif()
message(STATUS "GUI: on: sluice-gui, for X11; Wayland: ${sluice_gui_has_wayland}")

enable_language(C)
set(GLFW_BUILD_DOCS OFF CACHE INTERNAL "")
set(GLFW_BUILD_EXAMPLES OFF CACHE INTERNAL "")
set(GLFW_BUILD_TESTS OFF CACHE INTERNAL "")
set(GLFW_INSTALL OFF CACHE INTERNAL "")
set(GLFW_BUILD_WAYLAND ${sluice_gui_has_wayland} CACHE INTERNAL "")
add_subdirectory("${SLUICE_GUI_SOURCES}/external/glfw/glfw" "${PROJECT_BINARY_DIR}/glfw" EXCLUDE_FROM_ALL SYSTEM)

find_package(OpenGL REQUIRED COMPONENTS OpenGL)
set(imgui "${SLUICE_GUI_SOURCES}/external/imgui/imgui")
set(implot "${SLUICE_GUI_SOURCES}/external/implot/implot")
set(test_engine "${SLUICE_GUI_SOURCES}/external/imgui_test_engine/imgui_test_engine")

add_library(sluice_gui_headers INTERFACE)
target_include_directories(sluice_gui_headers SYSTEM INTERFACE "${imgui}" "${implot}")
# Without the numeric types that are not plotted here, ImPlot's largest file compiles in a sixth of the time.
target_compile_definitions(sluice_gui_headers INTERFACE
  IMGUI_DISABLE_OBSOLETE_FUNCTIONS IMGUI_DEFINE_MATH_OPERATORS "IMPLOT_CUSTOM_NUMERIC_TYPES=(double)")

# Code of others, so their warnings are theirs. Object files, since what our folders need of them is only known at the end of
# a link line; a program links sluice_imgui_parts and one of the two below.
function(sluice_foreign_library name optimization)
  add_library(${name} OBJECT EXCLUDE_FROM_ALL ${ARGN})
  target_compile_options(${name} PRIVATE -w ${optimization})
  target_link_libraries(${name} PUBLIC sluice_gui_headers)
endfunction()

set(imgui_core "${imgui}/imgui.cpp" "${imgui}/imgui_draw.cpp" "${imgui}/imgui_tables.cpp" "${imgui}/imgui_widgets.cpp"
               "${imgui}/imgui_stacklayout.cpp" "${imgui}/misc/cpp/imgui_stdlib.cpp")
# What does not see the test engine is compiled once.
sluice_foreign_library(sluice_imgui_parts -O2
  "${imgui}/backends/imgui_impl_glfw.cpp" "${imgui}/backends/imgui_impl_opengl3.cpp" "${implot}/implot.cpp"
  "${implot}/implot_items.cpp")
target_link_libraries(sluice_imgui_parts PUBLIC glfw OpenGL::GL ${CMAKE_DL_LIBS})

sluice_foreign_library(sluice_imgui -O2 ${imgui_core})

file(GLOB test_engine_files "${test_engine}/imgui_test_engine/*.cpp")
sluice_foreign_library(sluice_imgui_tested -O1 ${imgui_core} ${test_engine_files})
target_include_directories(sluice_imgui_tested SYSTEM PUBLIC "${test_engine}")
target_include_directories(sluice_imgui_tested PRIVATE "${test_engine}/imgui_test_engine")
target_compile_definitions(sluice_imgui_tested PUBLIC IMGUI_ENABLE_TEST_ENGINE
  IMGUI_TEST_ENGINE_ENABLE_COROUTINE_STDTHREAD_IMPL=1)
target_link_libraries(sluice_imgui_tested PUBLIC Threads::Threads)

# stb_image_write, a library of its own in the test engine's folder: the program writes pictures, too.
set(SLUICE_GUI_STB "${test_engine}/imgui_test_engine/thirdparty/stb")
