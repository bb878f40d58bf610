#include "profiler/report/detail/page_frame.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"
#include "base/escaped_text.h"
#include "profiler/report/page_text.h"

namespace sluice::report::detail {
namespace {

// Inside a script element: nothing that could end it, no line end that only JSON allows, and
// nothing that turns the direction of a name and of what stands beside it.
std::string script_json(const nlohmann::ordered_json& json) {
  using ErrorHandler = nlohmann::ordered_json::error_handler_t;
  const std::string plain = escaped_in_json(json.dump(-1, ' ', false, ErrorHandler::replace));
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

std::string page_of(const PageParts& parts, std::string_view title,
                    const nlohmann::ordered_json& data) {
  Frame body(parts.body);
  for (const auto& [place, text] : parts.words) body.fill(place, html_text(text));
  Frame frame(kFrameHtml);
  frame.fill("{{title}}",
             fmt::format("{} - {}", html_text(escaped_for_terminal(title)), parts.kind));
  frame.fill("{{style}}", parts.style);
  frame.fill("{{body}}", std::move(body).page());
  frame.fill("{{data}}", script_json(data));
  frame.fill("{{script}}", parts.script);
  return std::move(frame).page();
}

}  // namespace sluice::report::detail
