#pragma once
// What the tests of sessions have in common.

#include <catch2/catch.hpp>
#include <memory>
#include <string>

#include "core/session/session.h"
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

inline std::string digest_in(const std::string& folder) {
  auto store = state::StateStore::open_read_only({.directory = folder + "/state"});
  REQUIRE(store.ok());
  const auto digest = state::digest_state(**store, nullptr, nullptr);
  REQUIRE(digest.ok());
  return digest->digest;
}

}  // namespace sluice
