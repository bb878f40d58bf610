#pragma once
// What the tests of sessions have in common.

#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "core/session/session.h"
#include "core/session/tensor_table.h"
#include "storage/state/state_store.h"

namespace sluice {

// "": all is well.
template <typename T>
std::string problem(const Result<T>& result) {
  return result.ok() ? std::string() : result.error().message();
}

inline std::unique_ptr<session::Session> opened(const session::Session::Request& request) {
  auto session = session::Session::open(request);
  REQUIRE(problem(session) == "");
  return *std::move(session);
}

// Sizes below, at and beyond a page; several share a subgroup, and one has several.
inline const std::vector<session::Tensor> kTensors = {
    {"a", {3}}, {"b", {2048}}, {"c", {50, 100}}, {"d", {1}}, {"e", {4097}}};

inline float initial_value(std::size_t tensor, std::int64_t element) {
  return static_cast<float>((element * 37 + static_cast<std::int64_t>(tensor) * 11) % 101) / 101;
}

// Follows from the step alone, so that a resumed program sends the same.
inline std::vector<float> gradient_of(std::size_t tensor, std::int64_t step) {
  std::vector<float> gradient(static_cast<std::size_t>(session::element_count(kTensors[tensor])));
  std::mt19937 random(static_cast<unsigned>(step * 100 + static_cast<std::int64_t>(tensor)));
  std::normal_distribution<float> normal;
  for (float& value : gradient) value = normal(random);
  return gradient;
}

inline session::Session::Request request_in(const std::string& folder,
                                            std::vector<std::string> settings = {}) {
  session::Session::Request request{.folder = folder, .tensors = kTensors};
  request.initial = [](std::size_t tensor, std::int64_t first, std::span<float> out) {
    for (float& value : out) value = initial_value(tensor, first++);
  };
  request.settings = {"platform=sample_models/platforms/smartssd-a5000.toml",
                      "subgroup_elements=4096", "devices=2", "durability=never"};
  request.settings.insert(request.settings.end(), settings.begin(), settings.end());
  return request;
}

inline std::vector<std::size_t> shuffled(std::int64_t step) {
  std::vector<std::size_t> order(kTensors.size());
  std::iota(order.begin(), order.end(), 0U);
  std::shuffle(order.begin(), order.end(), std::mt19937(static_cast<unsigned>(step)));
  return order;
}

inline void take_steps(session::Session& session, std::int64_t until) {
  while (session.step() < until) {
    const std::int64_t step = session.step();
    for (const std::size_t tensor : shuffled(step)) {
      REQUIRE(problem(session.send(tensor, gradient_of(tensor, step))) == "");
    }
    const auto done = session.take_step({.lr = 0.01});
    REQUIRE(done.ok());
    REQUIRE(done->step == step + 1);
  }
}

inline std::string digest_in(const std::string& folder) {
  auto store = state::StateStore::open_read_only({.directory = folder + "/state"});
  REQUIRE(store.ok());
  const auto digest = state::digest_state(**store, nullptr, nullptr);
  REQUIRE(digest.ok());
  return digest->digest;
}

}  // namespace sluice
