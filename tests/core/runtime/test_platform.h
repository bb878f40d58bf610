#pragma once
// A small machine for tests: two CSDs behind one host link.

#include "core/platform/platform.h"

namespace sluice {

// Accelerators hang on the host link too; without any, forward and backward run in host memory.
inline platform::Platform test_platform(int device_count = 2, int accelerator_count = 0) {
  std::string toml = R"(
name = "test"
[[link]]
name = "host"
read = "1 GB/s"
write = "1 GB/s"
duplex = "full"
latency = "1 us"
[host]
adamw = "1 Gelem/s"
stage = "1 Gelem/s"
[compute]
matmul = "1 TFLOP/s"
[[device]]
name = "csd"
count = COUNT
via = ["host"]
memory = "64 MiB"
capacity = "1 TB"
drive = { read = "400 MB/s", write = "200 MB/s", duplex = "half", latency = "10 us" }
internal = { read = "500 MB/s", write = "500 MB/s", duplex = "full" }
engine = { adamw = "0.2 Gelem/s", launch = "5 us" }
)";
  toml.replace(toml.find("COUNT"), 5, std::to_string(device_count));
  if (accelerator_count > 0) {
    toml.insert(toml.find("[[device]]"),
                "count = " + std::to_string(accelerator_count) +
                    "\nvia = [\"host\"]\n"
                    "link = { read = \"2 GB/s\", write = \"2 GB/s\", duplex = \"full\" }\n");
  }
  auto platform = platform::parse_platform(toml, "test.toml");
  if (!platform.ok()) throw std::runtime_error(platform.error().message());
  return std::move(*platform);
}

}  // namespace sluice
