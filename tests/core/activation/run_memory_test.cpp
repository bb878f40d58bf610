// The peak of libtorch's tensors in whole runs of a 16-layer GPT: what offloading saves, measured
// by the allocator that counts them. Each run has a process of its own, since the peak is one of a
// process.

#include <fmt/format.h>
#include <stdio.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>

#include "core/model/library/models.h"
#include "core/model/torch/tensor_memory.h"
#include "tests/core/train/small_run.h"

using namespace sluice;

namespace {

constexpr const char* kVariable = "SLUICE_ACTIVATIONS";

// What the program started below runs: one run, its peak on standard output.
TEST_CASE("measure one run", "[.child]") {
  const char* activations = std::getenv(kVariable);
  REQUIRE(activations != nullptr);
  const SmallRun files;
  write_text(files.folder.file("model.toml"),
             "name = \"deep\"\nlayers = 16\nhidden = 128\nheads = 4\nsequence = 128\n"
             "vocabulary = 256\n");
  std::string text;
  for (int i = 0; i < 40'000; ++i) text += static_cast<char>('a' + (i * i + i / 7) % 26);
  write_text(files.folder.file("text.txt"), text);
  const auto trained =
      train_small(files,
                  {"batch=8", "sequence=128", "steps=3", "subgroup_elements=1000000",
                   std::string("activations=") + activations},
                  session::StartFrom::new_state, {}, {}, nullptr, model::host_factory());
  INFO((trained.ok() ? std::string() : trained.error().message()));
  REQUIRE(trained.ok());
  fmt::print("peak={}\n", model::tensor_memory_use().peak_in_use_bytes);
}

std::int64_t peak_bytes(const std::string& activations) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string command =
      fmt::format("{}='{}' '{}' '[.child]'", kVariable, activations, program);
  FILE* const output = ::popen(command.c_str(), "r");
  REQUIRE(output != nullptr);
  std::int64_t peak = -1;
  std::array<char, 512> line;
  while (std::fgets(line.data(), line.size(), output) != nullptr) {
    const std::string_view text = line.data();
    if (text.starts_with("peak=")) peak = std::atoll(line.data() + 5);
  }
  REQUIRE(::pclose(output) == 0);
  return peak;
}

// With all that a step takes besides: logits, gradients, what comes and goes in a layer. A
// processor that is fast beside the drives fills the buffer of two layers, a small part of 16.
TEST_CASE("offloading the activations of 16 layers lowers the peak by 47 % and more") {
  const std::int64_t kept = peak_bytes("keep");
  const std::int64_t offloaded = peak_bytes("offload");
  const std::int64_t inputs = peak_bytes("offload_inputs");
  const std::int64_t recomputed = peak_bytes("recompute");
  fmt::print("keep {}, offload {}, recompute {}, offload_inputs {} bytes\n", kept, offloaded,
             recomputed, inputs);
  CHECK(offloaded * 100 <= kept * 53);
  CHECK(inputs <= recomputed);
}

// A buffer for everything is no more than what is kept.
TEST_CASE("whatever the buffer is, a run takes no more than one that keeps everything") {
  const std::int64_t kept = peak_bytes("keep");
  for (const std::string mix : {"offload:1-2,keep", "offload:3,recompute:4-5,keep"})
    CHECK(peak_bytes(mix) <= kept);
}

}  // namespace
