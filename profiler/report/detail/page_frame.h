#pragma once
// A page as one file: its frame with title, style, data and script filled in.
//
// Thread contract: free functions.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace sluice::report::detail {

// {{title}}, {{style}}, {{data}} and {{script}} stand in the frame in this order.
struct PageParts {
  std::string_view frame;
  std::string_view style;
  std::string_view script;
};

// `title` is plain text; all text of `data` is data in the page, none of it is read as HTML.
std::string page_of(const PageParts& parts, std::string_view title,
                    const nlohmann::ordered_json& data);

}  // namespace sluice::report::detail
