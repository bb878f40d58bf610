#pragma once
// A page as one file: its frame with title, style, data and script filled in.
//
// Thread contract: free functions.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::report::detail {

// The frame (html/frame.html) is one for all pages; the places of `words` stand in the body in this
// order.
struct PageParts {
  std::string_view kind;  // behind the title: "Sluice report"
  std::string_view body;
  std::string_view style;
  std::vector<std::pair<std::string_view, std::string>> words;  // a place, and what it says
  std::string_view script;
};

// `title` is plain text; all text of `data` is data in the page, none of it is read as HTML.
std::string page_of(const PageParts& parts, std::string_view title,
                    const nlohmann::ordered_json& data);

}  // namespace sluice::report::detail
