#pragma once
// The range of an option's number in words: "1 to 1024", "at least 1".
//
// Thread contract: main thread.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>

namespace sluice::cli {

template <typename Number>
CLI::Validator number_range(Number low, Number high) {
  const std::string words = fmt::format("{} to {}", low, high);
  return CLI::Range(low, high).description(words);
}

// A bound that no sensible value reaches is nothing that anybody has to read.
inline CLI::Validator at_least(std::int64_t low) {
  return CLI::Range(low, std::int64_t{1'000'000'000}).description(fmt::format("at least {}", low));
}

// One of a few words: "chrome, csv, nsys".
inline CLI::Validator one_of(const std::vector<std::string>& words) {
  return CLI::IsMember(words).description(fmt::format("{}", fmt::join(words, ", ")));
}

}  // namespace sluice::cli
