#pragma once
// The devices that a model can compute on, by the names of the setting `device`: the one place that
// knows them.
//
// Thread contract: free functions.

#include <string>
#include <string_view>

#include "base/status.h"

namespace sluice::model {

enum class DeviceKind : std::uint8_t {
  host,  // "cpu": in host memory
  cuda,  // "cuda", "cuda:1": a GPU, through a CUDA build of libtorch
  soft,  // "soft": the software accelerator, which stands in for one
};

struct DeviceName {
  DeviceKind kind = DeviceKind::host;
  int index = 0;             // among those of the kind
  std::string text() const;  // "cpu", "cuda:0", "soft:0": libtorch's own spelling
};

// ErrorCode::config, with the nearest right name.
Result<DeviceName> parse_device_name(std::string_view text);

// The name is one that parses.
bool computes_in_host_memory(std::string_view name);

// The advice where a device of the kind is not to be had.
std::string_view how_to_get(DeviceKind kind);

// ErrorCode::not_found where the name's index is none of `count` devices of its kind.
Status check_is_there(const DeviceName& name, int count);

}  // namespace sluice::model
