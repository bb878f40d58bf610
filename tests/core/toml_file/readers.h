#pragma once
// The three readers of TOML files, and files that they take.

#include <array>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "core/model/model_shape.h"
#include "core/platform/platform.h"
#include "core/settings/run_config.h"

namespace sluice::toml_file {

struct FileReader {
  std::string_view name;
  std::function<Status(std::string_view)> read;  // messages say f.toml
  std::string_view good;                         // a file below sample_models/
};

inline Status without_value(const auto& result) {
  return result.ok() ? ok_status() : Status(result.error());
}

inline const std::array kFileReaders = {
    FileReader{"model",
               [](std::string_view toml) {
                 return without_value(model::parse_model_shape(toml, "f.toml"));
               },
               "models/gpt2-124m.toml"},
    FileReader{"platform",
               [](std::string_view toml) {
                 return without_value(platform::parse_platform(toml, "f.toml"));
               },
               "platforms/smartssd-a4000-switch.toml"},
    FileReader{"run",
               [](std::string_view toml) {
                 return without_value(settings::parse_run_config(toml, "f.toml", {}, "--set"));
               },
               "runs/tiny.toml"}};

}  // namespace sluice::toml_file
