#include "storage/rundb/detail/read_connection.h"

namespace sluice::rundb::detail {

Result<ReadConnection::Asked> ReadConnection::ask(std::string_view sql) {
  if (const auto found = idle_.find(sql); found != idle_.end())
    return Asked(idle_, idle_.extract(found));
  ASSIGN_OR_RETURN(Statement statement, connection_.prepare(sql));
  Statements made;
  return Asked(idle_, made.extract(made.emplace(sql, std::move(statement)).first));
}

Error ReadConnection::out_of_bounds(std::string_view table) const {
  return make_error(ErrorCode::corrupt,
                    "{}: table {} has a row with a time, size or id that no run has; the file is "
                    "damaged, or another program wrote into it",
                    connection_.path(), table);
}

}  // namespace sluice::rundb::detail
