#pragma once
// Where the rows of an answer are in time.
//
// Thread contract: the console's thread.

#include "gui/data/sql_console.h"
#include "storage/rundb/reader.h"

namespace sluice::gui::detail {

// Fills `answer.pieces`; columns and rows are there. An answer without times has none.
void find_pieces(rundb::Reader& reader, SqlAnswer& answer);

}  // namespace sluice::gui::detail
