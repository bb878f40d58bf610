#include "profiler/runs/table_text.h"

#include <algorithm>

#include "base/figure_text.h"

namespace sluice::runs {
namespace {

constexpr std::string_view kRunFile = "/run.db";

// The folders that all begin with, up to the last slash that they share.
std::size_t shared_folders(const std::vector<std::string>& names) {
  if (names.empty()) return 0;
  std::size_t shared = names.front().size();
  for (const std::string& name : names) {
    const auto [a, b] = std::ranges::mismatch(names.front(), name);
    shared = std::min(shared, static_cast<std::size_t>(a - names.front().begin()));
  }
  const std::size_t slash = names.front().rfind('/', shared == 0 ? 0 : shared - 1);
  return slash == std::string::npos || slash >= shared ? 0 : slash + 1;
}

std::string real_text(const Column& column, double value) {
  switch (column.unit) {
    case Unit::seconds:
      return format_seconds(value);
    case Unit::bytes:
      return format_bytes(static_cast<std::int64_t>(value));
    case Unit::loss:
      return fmt::format("{:.4f}", value);
    default:
      return fmt::format("{:g}", value);
  }
}

}  // namespace

std::string text_of(const Column& column, const rundb::Cell& cell) {
  if (const auto* whole = std::get_if<std::int64_t>(&cell)) return format_whole(*whole);
  if (const auto* real = std::get_if<double>(&cell)) return real_text(column, *real);
  const auto* words = std::get_if<std::string>(&cell);
  return words == nullptr ? "-" : *words;
}

std::vector<std::string> short_names(std::span<const RunFigures> runs) {
  std::vector<std::string> names;
  for (const RunFigures& run : runs) {
    names.push_back(run.path);
    std::string& name = names.back();
    if (name.ends_with(kRunFile) && name.size() > kRunFile.size())
      name.resize(name.size() - kRunFile.size());
  }
  const std::size_t shared = shared_folders(names);
  for (std::string& name : names) name.erase(0, shared);
  return names;
}

}  // namespace sluice::runs
