// Names of kernels, as an H100 gave them.

#include "base/kernel_text.h"

#include <catch2/catch.hpp>

namespace sluice {
namespace {

TEST_CASE("a kernel's name says what it is before its parameters") {
  CHECK(short_kernel_name("void at::native::vectorized_elementwise_kernel<4, "
                          "at::native::FillFunctor<float>, std::array<char*, 1ul> >(int, "
                          "at::native::FillFunctor<float>, std::array<char*, 1ul>)",
                          200) ==
        "vectorized_elementwise_kernel<4, FillFunctor<float>, std::array<char*, 1ul> >");
  CHECK(short_kernel_name("void at::native::(anonymous namespace)::indexSelectSmallIndex<float, "
                          "long>(at::cuda::detail::TensorInfo<float, unsigned int>)",
                          200) == "indexSelectSmallIndex<float, long>");
  CHECK(short_kernel_name("nvjet_sm90_tst_192x128_64x5_1x2_h_bz_coopB_TNT", 200) ==
        "nvjet_sm90_tst_192x128_64x5_1x2_h_bz_coopB_TNT");
}

TEST_CASE("what is no kernel keeps its name, and a long one is cut with dots") {
  CHECK(short_kernel_name("memcpy HtoD (pinned)", 80) == "memcpy HtoD (pinned)");
  CHECK(short_kernel_name("state_read", 80) == "state_read");
  CHECK(short_kernel_name("nvjet_sm90_tst_192x128", 10) == "nvjet_s...");
  CHECK(short_kernel_name("", 10).empty());
}

TEST_CASE("a function that only runs another is called by what it runs") {
  CHECK(what_runs("void c10::function_ref<void (long)>::callback_fn<at::native::sum>(long)") ==
        "at::native::sum>(long)");
  CHECK(what_runs("at::native::sum") == "at::native::sum");
}

}  // namespace
}  // namespace sluice
