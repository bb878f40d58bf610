#pragma once
// The tables of the processor samples (sql/samples.sql), which a file has or has not.
//
// Thread contract: the connection's thread.

#include <memory>

#include "base/status.h"
#include "storage/rundb/detail/connection.h"
#include "storage/rundb/rows.h"

namespace sluice::rundb::detail {

// False: the file has none of them. ErrorCode::corrupt: it has some of them, or one that is not as
// Sluice makes it.
Result<bool> has_sample_tables(Connection& connection);
// Where there are none. Inside the caller's transaction.
Status make_sample_tables(Connection& connection);

// Inside the caller's transaction, which it makes the tables in where there are none.
class SampleWriter {
 public:
  static Result<SampleWriter> prepare(Connection& connection);
  SampleWriter(SampleWriter&&) noexcept;
  SampleWriter& operator=(SampleWriter&&) noexcept;
  ~SampleWriter();

  Status write(const SampleRows& rows);
  Status delete_before(TimeNs ts);

 private:
  struct Statements;
  explicit SampleWriter(std::unique_ptr<Statements> statements);
  std::unique_ptr<Statements> statements_;
};

}  // namespace sluice::rundb::detail
