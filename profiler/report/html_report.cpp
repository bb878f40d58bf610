#include "profiler/report/html_report.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"
#include "base/escaped_text.h"
#include "base/words.h"
#include "profiler/report/detail/page_data.h"
#include "profiler/report/page_text.h"

namespace sluice::report {
namespace {

// Inside a script element: nothing that could end it, and no line end that only JSON allows.
std::string script_json(const nlohmann::ordered_json& json) {
  using ErrorHandler = nlohmann::ordered_json::error_handler_t;
  const std::string plain = json.dump(-1, ' ', false, ErrorHandler::replace);
  std::string text;
  text.reserve(plain.size() + plain.size() / 16);
  for (const char c : plain) {
    switch (c) {
      case '<':
        text += "\\u003c";
        break;
      case '>':
        text += "\\u003e";
        break;
      case '&':
        text += "\\u0026";
        break;
      default:
        text += c;
    }
  }
  return text;
}

std::string html_text(std::string_view plain) {
  std::string text;
  for (const char c : plain) {
    switch (c) {
      case '<':
        text += "&lt;";
        break;
      case '>':
        text += "&gt;";
        break;
      case '&':
        text += "&amp;";
        break;
      case '"':
        text += "&quot;";
        break;
      default:
        text += c;
    }
  }
  return text;
}

// The frame's places are filled from left to right, so what is filled in is not searched again.
class Frame {
 public:
  explicit Frame(std::string_view frame) : rest_(frame) {}

  void fill(std::string_view place, std::string_view with) {
    const std::size_t at = rest_.find(place);
    CHECK(at != std::string_view::npos);
    page_ += rest_.substr(0, at);
    page_ += with;
    rest_.remove_prefix(at + place.size());
  }
  std::string page() && { return std::move(page_.append(rest_)); }

 private:
  std::string_view rest_;
  std::string page_;
};

}  // namespace

Result<std::string> html_report(rundb::Reader& reader, const Predict& predict) {
  ASSIGN_OR_RETURN(const detail::PageData data, detail::page_data(reader, predict));
  Frame frame(kPageHtml);
  frame.fill("{{title}}", html_text(escaped_for_terminal(data.title)));
  frame.fill("{{style}}", kPageCss);
  frame.fill("{{why}}", fmt::format("{} {}", words::kWhy, words::kAsLong));
  frame.fill("{{turn_next}}", words::kTurnNext);
  frame.fill("{{stretches}}", words::kStretches);
  frame.fill("{{phases}}", words::kPhases);
  frame.fill("{{links}}", words::kLinks);
  frame.fill("{{devices}}", words::kDevices);
  frame.fill("{{timeline}}", words::kTimeline);
  frame.fill("{{run_info}}", words::kRunInfo);
  frame.fill("{{data}}", script_json(data.json));
  frame.fill("{{script}}", kPageJs);
  return std::move(frame).page();
}

}  // namespace sluice::report
