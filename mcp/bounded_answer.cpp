#include "mcp/bounded_answer.h"

#include <algorithm>

#include "base/escaped_text.h"

namespace sluice::mcp {
namespace {

constexpr std::size_t kWhyBytesMax = 400;
constexpr std::size_t kTextBytesKept = 64;  // a cut text keeps as much
constexpr std::size_t kPathBytesMax = 64;   // of a place in left_off
constexpr std::size_t kLeftOffMax = 6;      // places; what was cut elsewhere is one more
constexpr std::size_t kFrameBytes = 200;    // left_off may still grow by so much
constexpr std::size_t kSmallBytes = 200;    // a part so small is not worth cutting before the heart
constexpr int kRoundsMax = 200;
const char* const kMoreBytes = "max_bytes up to 262144, or a narrower question";

const char* word_of(analyze::Outcome outcome) {
  switch (outcome) {
    case analyze::Outcome::answer:
      return "found";
    case analyze::Outcome::nothing_found:
      return "nothing";
    case analyze::Outcome::could_not_look:
      break;
  }
  return "could not look";
}

Json cleaned(const Json& json) {
  if (json.is_string()) return escaped_for_terminal(json.get_ref<const std::string&>());
  if (json.is_array()) {
    Json clean = Json::array();
    for (const Json& one : json) clean.push_back(cleaned(one));
    return clean;
  }
  if (json.is_object()) {
    Json clean = Json::object();
    for (const auto& [key, value] : json.items()) clean[escaped_for_terminal(key)] = cleaned(value);
    return clean;
  }
  return json;
}

// The first bytes of valid UTF-8, whole characters of it.
std::string first_bytes(const std::string& text, std::size_t count) {
  if (text.size() <= count) return text;
  while (count > 0 && (static_cast<unsigned char>(text[count]) & 0xc0) == 0x80) --count;
  return text.substr(0, count);
}

// What of an answer may be cut: a list, a text or an object's last members.
struct Cut {
  Json* json = nullptr;
  std::string at;
  std::size_t bytes = 0;
};

bool can_be_cut(const Json& json) {
  return json.is_string() ? json.get_ref<const std::string&>().size() > kTextBytesKept
                          : json.is_structured() && !json.empty();
}

// The largest part whose own bytes, and not those of one part within it, make it large.
Cut largest_part(Json& json, const std::string& at, std::size_t bytes) {
  Cut largest;
  const auto consider = [&](Json& part, const std::string& key) {
    if (!can_be_cut(part)) return;
    const std::size_t part_bytes = text_of(part).size();
    if (part_bytes > largest.bytes) largest = {&part, at + "/" + key, part_bytes};
  };
  if (json.is_object()) {
    for (auto& [key, value] : json.items()) consider(value, key);
  } else if (json.is_array()) {
    for (std::size_t i = 0; i < json.size(); ++i) consider(json[i], std::to_string(i));
  }
  if (largest.json == nullptr || 2 * largest.bytes < bytes) return {&json, at, bytes};
  return largest_part(*largest.json, largest.at, largest.bytes);
}

class Bound {
 public:
  Bound(Json& answer, const std::vector<std::string>& heart) : answer_(answer), heart_(heart) {}

  void add(const LeftOut& left) { note(left.at, left.count, left.how); }

  void cut_to(std::size_t bytes_max) {
    for (int round = 0; round < kRoundsMax; ++round) {
      write_left_off();
      const std::size_t bytes = text_of(answer_).size();
      if (bytes <= bytes_max) return;
      cut_largest(bytes - bytes_max);
    }
  }

 private:
  void cut_largest(std::size_t too_many) {
    Cut largest = largest_member([this](const std::string& key, std::size_t bytes) {
      return bytes > kSmallBytes && std::ranges::find(heart_, key) == heart_.end();
    });
    if (largest.json == nullptr)
      largest = largest_member([](const std::string&, std::size_t) { return true; });
    if (largest.json == nullptr) return;
    if (largest.at == "/evidence") {
      Json& spans = (*largest.json)["spans"];
      Json& steps = (*largest.json)["steps"];
      if (spans.size() >= steps.size()) return halve({&spans, "/evidence/spans", 0}, too_many);
      return halve({&steps, "/evidence/steps", 0}, too_many);
    }
    halve(largest_part(*largest.json, largest.at, largest.bytes), too_many);
  }

  template <typename MayBeCut>
  Cut largest_member(MayBeCut&& may_be_cut) {
    Cut largest;
    for (auto& [key, value] : answer_.items()) {
      if (key == "left_off" || key == "outcome" || key == "why") continue;
      if (!can_be_cut(value) || (key == "evidence" && is_empty_evidence(value))) continue;
      const std::size_t bytes = text_of(value).size();
      if (bytes <= largest.bytes || !may_be_cut(key, bytes)) continue;
      largest = {&value, "/" + key, bytes};
    }
    return largest;
  }

  static bool is_empty_evidence(const Json& evidence) {
    return evidence["spans"].empty() && evidence["steps"].empty();
  }

  void halve(const Cut& cut, std::size_t too_many) {
    Json& json = *cut.json;
    if (json.is_string()) {
      const auto& text = json.get_ref<const std::string&>();
      // As much as is too much, and room for the words about it.
      const std::size_t kept = text.size() > too_many + kFrameBytes
                                   ? std::max(kTextBytesKept, text.size() - too_many - kFrameBytes)
                                   : kTextBytesKept;
      std::string begin = first_bytes(text, kept);
      note(cut.at, static_cast<std::int64_t>(text.size() - begin.size()),
           std::string("bytes; ") + kMoreBytes);
      json = std::move(begin);
      return;
    }
    const std::size_t kept = json.size() / 2;
    note(cut.at, static_cast<std::int64_t>(json.size() - kept), kMoreBytes);
    if (json.is_array()) {
      json.erase(json.begin() + static_cast<std::ptrdiff_t>(kept), json.end());
    } else {
      Json shorter = Json::object();
      for (const auto& [key, value] : json.items()) {
        if (shorter.size() < kept) shorter[key] = value;
      }
      json = std::move(shorter);
    }
  }

  void note(const std::string& at, std::int64_t count, const std::string& how) {
    const std::string place = first_bytes(escaped_for_terminal(at), kPathBytesMax);
    for (LeftOut& left : left_) {
      // What was cut from within a part goes with the part.
      if (left.at != place || left.how != how) continue;
      left.count += count;
      return;
    }
    left_.push_back({place, count, how});
  }

  void write_left_off() {
    if (left_.empty()) return;
    Json& rows = answer_["left_off"] = Json::array();
    std::int64_t elsewhere = 0;
    for (const LeftOut& left : left_) {
      if (rows.size() < kLeftOffMax) {
        rows.push_back({{"at", left.at}, {"count", left.count}, {"how", left.how}});
      } else {
        elsewhere += left.count;
      }
    }
    if (elsewhere > 0) {
      rows.push_back({{"at", "other places"}, {"count", elsewhere}, {"how", kMoreBytes}});
    }
  }

  Json& answer_;
  const std::vector<std::string>& heart_;
  std::vector<LeftOut> left_;
};

// Each element has two bytes at least: what cannot be in the answer need not be cleaned.
template <typename T>
std::int64_t clamp_list(std::vector<T>& list, std::size_t bytes_max) {
  const std::size_t most = bytes_max / 2;
  if (list.size() <= most) return 0;
  const auto left = static_cast<std::int64_t>(list.size() - most);
  list.resize(most);
  return left;
}

}  // namespace

std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json bounded_answer(Answered answered, std::size_t bytes_max) {
  if (const std::int64_t left = clamp_list(answered.spans, bytes_max); left > 0)
    answered.left_out.push_back({"/evidence/spans", left, kMoreBytes});
  if (const std::int64_t left = clamp_list(answered.steps, bytes_max); left > 0)
    answered.left_out.push_back({"/evidence/steps", left, kMoreBytes});
  Json answer;
  answer["outcome"] = word_of(answered.outcome);
  answer["why"] = first_bytes(escaped_for_terminal(answered.why), kWhyBytesMax);
  answer["evidence"] = {{"spans", answered.spans}, {"steps", answered.steps}};
  for (auto& [key, value] : answered.data.items()) answer[key] = cleaned(value);
  Bound bound(answer, answered.heart);
  for (const LeftOut& left : answered.left_out) bound.add(left);
  bound.cut_to(bytes_max);
  return answer;
}

}  // namespace sluice::mcp
