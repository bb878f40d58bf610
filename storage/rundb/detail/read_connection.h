#pragma once
// A read-only connection to a run database, and its statements, kept ready: a window asks the same
// many times a second, and to prepare a statement is a tenth of asking it. What Reader and the
// classes beside it ask through.
//
// Thread contract: one thread at a time.

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "storage/rundb/detail/connection.h"
#include "storage/rundb/detail/row_bounds.h"
#include "storage/rundb/detail/row_io.h"
#include "storage/rundb/detail/sql_texts.h"

namespace sluice::rundb::detail {

class ReadConnection {
  using Statements = std::map<std::string, Statement, std::less<>>;  // by their text

 public:
  explicit ReadConnection(Connection connection) : connection_(std::move(connection)) {}

  // A statement that is being run. Idle again afterwards; asked for meanwhile, it is made anew.
  class Asked {
   public:
    Asked(Statements& idle, Statements::node_type node) : idle_(&idle), node_(std::move(node)) {}
    Asked(Asked&&) noexcept = default;
    Asked& operator=(Asked&&) = delete;
    ~Asked() {
      if (node_ && node_.mapped().reset().ok()) idle_->insert(std::move(node_));
    }
    Statement* operator->() { return &node_.mapped(); }
    Statement& operator*() { return node_.mapped(); }

   private:
    Statements* idle_;
    Statements::node_type node_;
  };
  Result<Asked> ask(std::string_view sql);

  // Each row of the query of that name in sql/reads.sql, made by `row_from`.
  template <typename RowFrom, typename UseRow, typename... Parameters>
  Status each_from(const char* query_name, RowFrom&& row_from, UseRow&& use_row,
                   const Parameters&... parameters) {
    ASSIGN_OR_RETURN(Asked statement, ask(read_sql(query_name)));
    RETURN_IF_ERROR(statement->bind_all(parameters...));
    while (true) {
      ASSIGN_OR_RETURN(const bool has_row, statement->step());
      if (!has_row) return ok_status();
      RETURN_IF_ERROR(use_row(row_from(*statement)));
    }
  }
  template <typename Made, typename RowFrom, typename... Parameters>
  Result<std::vector<Made>> read_from(const char* query_name, RowFrom&& row_from,
                                      const Parameters&... parameters) {
    std::vector<Made> rows;
    const auto keep = [&rows](Made&& row) {
      rows.push_back(std::move(row));
      return ok_status();
    };
    RETURN_IF_ERROR(each_from(query_name, row_from, keep, parameters...));
    return rows;
  }

  // The same of a query whose columns are those that `Row` declares. `corrupt`: one is out of
  // bounds (detail/row_bounds.h).
  template <typename Row, typename UseRow, typename... Parameters>
  Status each(const char* query_name, UseRow&& use_row, const Parameters&... parameters) {
    const auto use_good_row = [&](Row&& row) -> Status {
      if (!is_within_bounds(row)) return out_of_bounds(kTable<Row>.name);
      use_row(std::move(row));
      return ok_status();
    };
    return each_from(
        query_name, [](const Statement& from) { return row_at<Row>(from); }, use_good_row,
        parameters...);
  }
  template <typename Row, typename... Parameters>
  Result<std::vector<Row>> read(const char* query_name, const Parameters&... parameters) {
    std::vector<Row> rows;
    RETURN_IF_ERROR(each<Row>(
        query_name, [&rows](Row&& row) { rows.push_back(std::move(row)); }, parameters...));
    return rows;
  }
  template <typename Row>
  Status check_bounds(const Row& row) const {
    return is_within_bounds(row) ? ok_status() : out_of_bounds(kTable<Row>.name);
  }

  Connection& connection() { return connection_; }

 private:
  Error out_of_bounds(std::string_view table) const;

  Connection connection_;
  Statements idle_;
};

}  // namespace sluice::rundb::detail
