#pragma once
// The rows of a batch, and what is worked out from its spans: where they stand (span_run,
// span_batch) and the levels of detail (lod, long_span). Inside the caller's transaction.
//
// Thread contract: the connection's thread.

#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"
#include "storage/rundb/detail/connection.h"
#include "storage/rundb/rows.h"

namespace sluice::rundb::detail {

class BatchWriter {
 public:
  static Result<BatchWriter> prepare(Connection& connection);
  BatchWriter(BatchWriter&&) noexcept;
  BatchWriter& operator=(BatchWriter&&) noexcept;
  ~BatchWriter();

  // `spans`: those of the batch. Their ids follow each other, and are greater than all in the file.
  Status write(const Batch& batch, std::span<const SpanRow> spans);
  Status write(std::span<const StatRow> stats);

 private:
  struct Statements;
  explicit BatchWriter(std::unique_ptr<Statements> statements);
  std::unique_ptr<Statements> statements_;
};

}  // namespace sluice::rundb::detail
