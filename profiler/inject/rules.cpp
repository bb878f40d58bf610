#include "profiler/inject/rules.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <limits>
#include <vector>

#include "profiler/c_api/stage_meaning.h"

namespace sluice::inject {
namespace {

struct RangeRule {
  std::string pattern;
  sluice_stage meaning;
};
struct FilePattern {
  std::string pattern;
  Rules::File file;
};

Rules of_this_process;

bool fits(const std::string& pattern, const std::string& text) {
  return ::fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

// Not by the C library's functions, which are those of this library here.
std::string text_of(const std::string& path) {
  std::string text;
  const int file =
      static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file < 0) return text;
  std::array<char, 4096> part;
  for (long size = 0; (size = ::syscall(SYS_read, file, part.data(), part.size())) > 0;)
    text.append(part.data(), static_cast<std::size_t>(size));
  ::syscall(SYS_close, file);
  return text;
}

// "a\tb\t" is three words, the last empty.
std::vector<std::string> split(std::string_view line, char at) {
  std::vector<std::string> words(1);
  for (const char c : line) {
    if (c == at) {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

}  // namespace

struct Rules::Parts {
  std::vector<RangeRule> ranges;
  std::vector<FilePattern> files;
  std::vector<std::string> steps;

  void add(const std::vector<std::string>& words) {
    if (words.size() == 2 && words[0] == "step") steps.push_back(words[1]);
    if (words.size() == 6 && words[0] == "range") {
      const auto meaning = c_api::stage_of({words[2], words[3], words[4], words[5]});
      if (meaning) ranges.push_back({words[1], *meaning});
    }
    if (words.size() == 4 && words[0] == "file" &&
        files.size() < std::numeric_limits<FileRule>::max()) {
      const auto meaning = c_api::stage_of({.cause = words[3]});
      if (meaning) files.push_back({words[1], {words[2], meaning->cause}});
    }
  }
};

Rules Rules::read(const std::string& path) {
  auto* const parts = new Parts();
  for (const std::string& line : split(text_of(path), '\n')) parts->add(split(line, '\t'));
  Rules rules;
  rules.parts_ = parts;
  return rules;
}

std::optional<sluice_stage> Rules::meaning_of_range(const std::string& name) const {
  if (parts_ == nullptr) return std::nullopt;
  for (const RangeRule& rule : parts_->ranges)
    if (fits(rule.pattern, name)) return rule.meaning;
  return std::nullopt;
}

bool Rules::is_step(const std::string& name) const {
  if (parts_ == nullptr) return false;
  for (const std::string& pattern : parts_->steps)
    if (fits(pattern, name)) return true;
  return false;
}

bool Rules::has_steps() const { return parts_ != nullptr && !parts_->steps.empty(); }

Rules::FileRule Rules::rule_of_file(const std::string& path) const {
  if (parts_ == nullptr) return 0;
  for (std::size_t i = 0; i < parts_->files.size(); ++i)
    if (fits(parts_->files[i].pattern, path)) return static_cast<FileRule>(i + 1);
  return 0;
}

const Rules::File* Rules::file(FileRule rule) const {
  const bool is_one = parts_ != nullptr && rule > 0 && rule <= parts_->files.size();
  return is_one ? &parts_->files[rule - std::size_t{1}].file : nullptr;
}

bool Rules::has_files() const { return parts_ != nullptr && !parts_->files.empty(); }

const Rules& rules() { return of_this_process; }
void read_rules(const std::string& path) { of_this_process = Rules::read(path); }

}  // namespace sluice::inject
