#include "storage/rundb/query.h"

#include <algorithm>

#include "storage/rundb/detail/read_connection.h"
#include "storage/rundb/detail/sample_tables.h"
#include "storage/rundb/detail/schema.h"

namespace sluice::rundb {

using detail::Statement;

namespace {

Status each_row_of(Statement& statement, const Query::UseRow& use_row) {
  std::vector<Cell> cells(static_cast<std::size_t>(statement.column_count()));
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, statement.step());
    if (!has_row) return ok_status();
    for (std::size_t i = 0; i < cells.size(); ++i)
      cells[i] = statement.cell_at(static_cast<int>(i));
    RETURN_IF_ERROR(use_row(cells));
  }
}

}  // namespace

void Query::end_if(Stops stops) { file_->connection().end_if(std::move(stops)); }

Result<std::vector<TableInfo>> Query::tables() {
  ASSIGN_OR_RETURN(std::vector<detail::SchemaEntity> entities, detail::schema_of_sluice());
  ASSIGN_OR_RETURN(const bool has_samples, detail::has_sample_tables(file_->connection()));
  if (has_samples) {
    ASSIGN_OR_RETURN(const auto of_samples, detail::sample_tables_of_sluice());
    entities.insert(entities.end(), of_samples.begin(), of_samples.end());
    std::ranges::sort(entities, {}, &detail::SchemaEntity::name);
  }
  std::vector<TableInfo> tables;
  for (const detail::SchemaEntity& entity : entities) {
    TableInfo& table = tables.emplace_back();
    table.name = entity.name;
    table.is_view = entity.type == "view";
    ASSIGN_OR_RETURN(table.columns,
                     file_->read_from<std::string>(
                         "columns", [](const Statement& row) { return row.text_at(0); },
                         std::string_view(entity.name)));
  }
  return tables;
}

Result<TextTable> Query::text_table(const std::string& sql) {
  ASSIGN_OR_RETURN(Statement statement, file_->connection().prepare(sql));
  TextTable table;
  for (int i = 0; i < statement.column_count(); ++i) {
    table.columns.push_back(statement.column_name(i));
    table.origins.push_back(statement.column_origin(i));
  }
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, statement.step());
    if (!has_row) return table;
    std::vector<std::string>& row = table.rows.emplace_back();
    for (int i = 0; i < statement.column_count(); ++i)
      row.push_back(statement.is_null(i) ? "NULL" : statement.text_at(i));
  }
}

Status Query::each_row(const std::string& sql, const UseRow& use_row) {
  ASSIGN_OR_RETURN(Statement statement, file_->connection().prepare(sql));
  return each_row_of(statement, use_row);
}

Status Query::each_row_of_question(const std::string& sql, const UseColumns& use_columns,
                                   const UseRow& use_row) {
  RETURN_IF_ERROR(file_->connection().allow_questions_only());
  ASSIGN_OR_RETURN(Statement statement, file_->connection().prepare_alone(sql));
  std::vector<std::string> columns;
  for (int i = 0; i < statement.column_count(); ++i) columns.push_back(statement.column_name(i));
  RETURN_IF_ERROR(use_columns(columns));
  return each_row_of(statement, use_row);
}

Status Query::each_row_with(std::string_view sql, std::initializer_list<std::int64_t> parameters,
                            const UseRow& use_row) {
  ASSIGN_OR_RETURN(detail::ReadConnection::Asked statement, file_->ask(sql));
  int index = 0;
  for (const std::int64_t parameter : parameters)
    RETURN_IF_ERROR(statement->bind_from(++index, parameter));
  return each_row_of(*statement, use_row);
}

}  // namespace sluice::rundb
