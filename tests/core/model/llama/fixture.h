#pragma once
// A checkpoint with what transformers computes on it (tests/fixtures/README.md).

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/model/model_shape.h"

namespace sluice::model {

struct FixtureTensor {
  std::vector<std::int64_t> shape;
  std::vector<float> values;           // of F32
  std::vector<std::int64_t> integers;  // of I64
};

std::map<std::string, FixtureTensor> read_safetensors(const std::string& path);

// Of tests/fixtures/`name`: its parameters in flat order, windows that end before the last token,
// and targets, of which those below zero do not count.
struct Fixture {
  Fixture(const std::string& name, const ModelShape& shape);

  std::vector<float> parameters;
  std::int64_t batch = 0;
  std::int64_t sequence = 0;
  std::vector<std::int32_t> inputs;
  std::vector<std::int32_t> targets;
  double loss = 0;
  std::vector<float> gradient;  // flat order
};

}  // namespace sluice::model
