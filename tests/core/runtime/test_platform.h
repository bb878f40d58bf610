#pragma once
// A small machine for tests: two CSDs behind one host link.

#include "core/platform/platform.h"

namespace sluice {

inline platform::Platform test_platform(int device_count = 2) {
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
  auto platform = platform::parse_platform(toml, "test.toml");
  if (!platform.ok()) throw std::runtime_error(platform.error().message());
  return std::move(*platform);
}

}  // namespace sluice
