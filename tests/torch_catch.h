#pragma once
// First in a batch of tests that include libtorch (FIRST in their CMakeLists.txt): libtorch has a
// macro CHECK, as Catch2 has, and the one that is included last counts.

#include <ATen/core/Tensor.h>
#include <c10/util/Logging.h>

#include <catch2/catch.hpp>
