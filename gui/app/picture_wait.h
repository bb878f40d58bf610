#pragma once
// Until when --screenshot waits: until all is there that was asked for, and for predictions, which
// take a busy machine minutes, only so long after everything else.
//
// Thread contract: one owner.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

namespace sluice::gui {

inline constexpr const char* kPredictions = "predictions";
inline constexpr double kPredictionSeconds = 10;
inline constexpr double kUnsaidSeconds = 3;  // a wait this short needs no word

class PictureWait {
 public:
  // Whether the picture may be taken now. `awaited` is what is not there yet.
  bool is_over(const std::vector<std::string>& awaited, double now_seconds) {
    if (began_ < 0) began_ = now_seconds;
    const bool is_more = !awaited.empty() && awaited != std::vector<std::string>{kPredictions};
    if (is_more || awaited.empty()) alone_since_ = -1;
    if (is_more || awaited.empty()) return awaited.empty();
    if (alone_since_ < 0) alone_since_ = now_seconds;
    return now_seconds - alone_since_ >= kPredictionSeconds;
  }
  // A line to print, at most once for the same things; "": nothing to say.
  std::string word(const std::vector<std::string>& awaited, double now_seconds) {
    if (awaited.empty() || now_seconds - began_ < kUnsaidSeconds) return {};
    std::string text =
        alone_since_ >= 0 && now_seconds - alone_since_ >= kPredictionSeconds
            ? fmt::format(
                  "sluice-gui: the picture has no predictions: they take longer than {} s\n",
                  kPredictionSeconds)
            : fmt::format("sluice-gui: the picture waits for {}\n", fmt::join(awaited, ", "));
    if (text == said_) return {};
    return said_ = text;
  }

 private:
  double began_ = -1;
  double alone_since_ = -1;  // since when predictions alone are awaited; -1: they are not
  std::string said_;
};

}  // namespace sluice::gui
