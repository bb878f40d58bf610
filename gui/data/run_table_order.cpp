#include "gui/data/run_table_order.h"

#include <algorithm>
#include <sstream>

#include "base/small_letters.h"

namespace sluice::gui {
namespace {

std::vector<std::string> words_of(const std::string& filter) {
  std::vector<std::string> words;
  std::istringstream text(small_letters(filter));
  for (std::string word; text >> word;) words.push_back(word);
  return words;
}

bool is_none(const rundb::Cell& cell) { return std::holds_alternative<std::monostate>(cell); }

}  // namespace

std::vector<std::size_t> shown_rows(const RunTable& table, const RowOrder& order) {
  const std::vector<std::string> words = words_of(order.filter);
  std::vector<std::size_t> shown;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const bool has_all = std::ranges::all_of(words, [&](const std::string& word) {
      return table.rows[row].words.find(word) != std::string::npos;
    });
    if (has_all) shown.push_back(row);
  }
  const auto column = static_cast<std::size_t>(order.column);
  if (order.column < 0 || column >= table.columns.size()) return shown;
  std::ranges::stable_sort(shown, [&](std::size_t a, std::size_t b) {
    const rundb::Cell& cell_a = table.rows[a].cells[column];
    const rundb::Cell& cell_b = table.rows[b].cells[column];
    if (is_none(cell_a) || is_none(cell_b)) return !is_none(cell_a) && is_none(cell_b);
    const int compared = runs::compare_cells(cell_a, cell_b);
    return order.is_descending ? compared > 0 : compared < 0;
  });
  return shown;
}

}  // namespace sluice::gui
