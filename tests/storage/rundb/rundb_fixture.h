#pragma once
// What the tests of the run database share: a folder of their own, and small batches.

#include <stdlib.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <memory>
#include <string>

#include "storage/rundb/query.h"
#include "storage/rundb/reader.h"
#include "storage/rundb/writer.h"

namespace sluice::rundb {

class TempFolder {
 public:
  TempFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "sluice-rundb-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

template <typename T>
T require_ok(Result<T> result) {
  if (!result.ok()) FAIL(result.error().message());
  return std::move(*result);
}
inline void require_ok(const Status& status) {
  if (!status.ok()) FAIL(status.error().message());
}

// The answer as lines of columns joined by " | ".
inline std::string table_of(Reader& reader, const std::string& sql) {
  std::string lines;
  for (const auto& row : require_ok(Query(reader).text_table(sql)).rows) {
    for (std::size_t i = 0; i < row.size(); ++i) lines += (i == 0 ? "" : " | ") + row[i];
    lines += "\n";
  }
  return lines;
}

// A step with `span_count` transfers; the step says how many, so that a reader can tell a whole
// batch from a part of one.
inline Batch whole_step(Writer& writer, std::int64_t step, std::int64_t span_count) {
  Batch batch;
  const std::int64_t track = writer.track_id(std::nullopt, "link", "csd0 read");
  const std::int64_t name = writer.string_id("read");
  for (std::int64_t i = 0; i < span_count; ++i)
    batch.spans.push_back({.track_id = track,
                           .name_id = name,
                           .submit_ts = step * 1000 + i,
                           .ts = step * 1000 + i + 1,
                           .dur = 10,
                           .step_id = step,
                           .subgroup_id = i,
                           .device_id = 0,
                           .bytes = 4000,
                           .padding_bytes = 96});
  batch.steps.push_back({.id = step, .ts = step * 1000, .dur = 900, .tokens = span_count});
  return batch;
}

}  // namespace sluice::rundb
