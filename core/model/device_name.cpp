#include "core/model/device_name.h"

#include <array>
#include <charconv>
#include <vector>

#include "base/check.h"
#include "base/nearest.h"

namespace sluice::model {
namespace {

struct Row {
  DeviceKind kind;
  std::string_view name;
  bool has_index;
  std::string_view how_to_get;
};
constexpr std::array<Row, 3> kRows = {{
    {DeviceKind::host, "cpu", false, ""},
    {DeviceKind::cuda, "cuda", true,
     "it needs an NVIDIA GPU with its driver, and a build against a CUDA build of libtorch "
     "(docs/with_a_gpu.md)"},
    {DeviceKind::soft, "soft", false,
     "build it with `cmake --build build/release --target soft_accelerator`"},
}};

const Row& row_of(DeviceKind kind) { return kRows[static_cast<std::size_t>(kind)]; }

std::vector<std::string> names() {
  std::vector<std::string> names;
  for (const Row& row : kRows) names.emplace_back(row.name);
  return names;
}

Error unknown(std::string_view text) {
  return Error(
      ErrorCode::config,
      fmt::format("device = \"{}\": there is no such device{}; there are cpu, cuda, cuda:N "
                  "and soft",
                  text, did_you_mean(text, names())));
}

}  // namespace

std::string DeviceName::text() const {
  const std::string name(row_of(kind).name);
  return kind == DeviceKind::host ? name : fmt::format("{}:{}", name, index);
}

Result<DeviceName> parse_device_name(std::string_view text) {
  const std::string_view name = text.substr(0, text.find(':'));
  for (const Row& row : kRows) {
    if (row.name != name) continue;
    if (name == text) return DeviceName{row.kind, 0};
    if (!row.has_index) return unknown(text);
    const std::string_view digits = text.substr(name.size() + 1);
    int index = -1;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    if (error != std::errc() || end != digits.data() + digits.size() || index < 0 || index > 127)
      return unknown(text);
    return DeviceName{row.kind, index};
  }
  return unknown(text);
}

bool computes_in_host_memory(std::string_view name) {
  const Result<DeviceName> parsed = parse_device_name(name);
  CHECK(parsed.ok());
  return parsed->kind == DeviceKind::host;
}

std::string_view how_to_get(DeviceKind kind) { return row_of(kind).how_to_get; }

Status check_is_there(const DeviceName& name, int count) {
  if (name.index < count) return ok_status();
  if (count == 0) {
    return make_error(ErrorCode::not_found,
                      "device = \"{}\": there is no GPU that libtorch can use here, and {}",
                      name.text(), how_to_get(name.kind));
  }
  const std::string first = DeviceName{name.kind, 0}.text();
  return make_error(ErrorCode::not_found, "device = \"{}\": there is {} here; name {}", name.text(),
                    count == 1
                        ? first + " alone"
                        : fmt::format("{} to {}", first, DeviceName{name.kind, count - 1}.text()),
                    count == 1 ? "that one" : "one of them");
}

}  // namespace sluice::model
