#include "core/session/recipe_history.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "storage/io/file.h"
#include "storage/state/checksum.h"
#include "storage/state/replacement.h"

namespace sluice::session {
namespace {

namespace fs = std::filesystem;
using settings::Decides;

constexpr std::array<char, 8> kRecipeMagic = {'S', 'L', 'U', 'I', 'C', 'E', 'R', 'C'};
constexpr std::uint32_t kRecipeVersion = 1;
// A recipe has two kilobytes; with a change in each of many resumes it is still far below.
constexpr std::int64_t kMostBytes = 64 << 20;

// As it lies: little-endian, no padding; the entries follow.
struct RecipeHeader {
  std::array<char, 8> magic = kRecipeMagic;
  std::uint32_t version = kRecipeVersion;
  std::uint32_t reserved = 0;
  std::uint64_t entry_bytes = 0;
  std::uint64_t entry_checksum = 0;
  std::uint64_t header_checksum = 0;  // of all before it
};
static_assert(sizeof(RecipeHeader) == 40);

std::uint64_t checksum_of(const RecipeHeader& header) {
  return state::checksum(
      std::as_bytes(std::span(&header, 1)).first(offsetof(RecipeHeader, header_checksum)));
}

std::string path_in(const std::string& directory) { return directory + "/recipe.slc"; }

Error damaged(const std::string& path) {
  return make_error(ErrorCode::corrupt,
                    "{}: is damaged, or no recipe of a state; move it away to go on without it: "
                    "then nobody compares what the state was made with",
                    path);
}

template <typename T>
void append(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void append_text(std::string& bytes, const std::string& text) {
  append(bytes, static_cast<std::uint32_t>(text.size()));
  bytes += text;
}

// Fields one after the other; what does not fit makes all that follows empty and `ok` false.
struct EntryReader {
  std::string_view bytes;
  bool ok = true;

  template <typename T>
  T number() {
    T value = 0;
    const std::string_view field = take(sizeof value);
    if (ok) std::memcpy(&value, field.data(), sizeof value);
    return value;
  }
  std::string text() { return std::string(take(number<std::uint32_t>())); }

  std::string_view take(std::size_t size) {
    ok = ok && size <= bytes.size();
    if (!ok) return {};
    const std::string_view field = bytes.substr(0, size);
    bytes.remove_prefix(size);
    return field;
  }
};

bool is_kept(const Fact& fact) { return fact.decides < Decides::together; }

}  // namespace

RecipeHistory RecipeHistory::from(const Recipe& recipe, std::int64_t step) {
  RecipeHistory history;
  for (const Fact& fact : recipe) {
    if (is_kept(fact)) history.entries_.push_back({fact.key, fact.value, step});
  }
  return history;
}

Result<std::optional<RecipeHistory>> RecipeHistory::load(const std::string& directory) {
  const std::string path = path_in(directory);
  std::error_code error;
  if (!fs::exists(path, error)) return std::optional<RecipeHistory>();
  ASSIGN_OR_RETURN(const io::File file,
                   io::File::open(path, {io::FileAccess::read_only, io::Caching::buffered}));
  ASSIGN_OR_RETURN(const std::int64_t size_bytes, file.size_bytes());
  if (size_bytes > kMostBytes) return damaged(path);
  std::string bytes(static_cast<std::size_t>(size_bytes), '\0');
  RETURN_IF_ERROR(file.read_exactly(0, std::as_writable_bytes(std::span(bytes))));
  ASSIGN_OR_RETURN(RecipeHistory history, parse(bytes, path));
  return std::optional(std::move(history));
}

Result<RecipeHistory> RecipeHistory::parse(std::string_view bytes, const std::string& path) {
  RecipeHeader header;
  if (bytes.size() < sizeof header) return damaged(path);
  std::memcpy(&header, bytes.data(), sizeof header);
  bytes.remove_prefix(sizeof header);
  if (header.magic != kRecipeMagic || header.header_checksum != checksum_of(header)) {
    return damaged(path);
  }
  if (header.version != kRecipeVersion) {
    return make_error(ErrorCode::unsupported, "{}: version {} is not this Sluice's {}", path,
                      header.version, kRecipeVersion);
  }
  if (header.entry_bytes != bytes.size() ||
      header.entry_checksum != state::checksum(std::as_bytes(std::span(bytes)))) {
    return damaged(path);
  }
  RecipeHistory history;
  EntryReader reader{bytes};
  while (reader.ok && !reader.bytes.empty()) {
    Entry entry;
    entry.from_step = reader.number<std::int64_t>();
    entry.key = reader.text();
    entry.value = reader.text();
    history.entries_.push_back(std::move(entry));
  }
  if (!reader.ok) return damaged(path);
  return history;
}

std::string RecipeHistory::text() const {
  std::string bytes;
  for (const Entry& entry : entries_) {
    append(bytes, entry.from_step);
    append_text(bytes, entry.key);
    append_text(bytes, entry.value);
  }
  RecipeHeader header;
  header.entry_bytes = bytes.size();
  header.entry_checksum = state::checksum(std::as_bytes(std::span(bytes)));
  header.header_checksum = checksum_of(header);
  return std::string(reinterpret_cast<const char*>(&header), sizeof header) + bytes;
}

Status RecipeHistory::save(const state::StateStore::Options& options) const {
  return state::keep_note(options, path_in(options.directory), text());
}

std::optional<settings::KnobChange> RecipeHistory::other_origin(const Recipe& recipe) const {
  for (const Fact& fact : recipe) {
    if (fact.decides != Decides::origin) continue;
    const auto was = std::ranges::find(entries_, fact.key, &Entry::key);
    if (was == entries_.end() || was->value == fact.value) continue;
    return settings::KnobChange{fact.key, was->value, fact.value};
  }
  return std::nullopt;
}

Error other_origin_error(const std::string& directory, const settings::KnobChange& other,
                         const std::string& consequence) {
  return make_error(ErrorCode::config,
                    "{} was begun with {}={} and this run has {}={}{}; resume with the settings "
                    "that it was begun with, or begin another run with --set output=",
                    directory, other.knob, other.from, other.knob, other.to, consequence);
}

const RecipeHistory::Entry* RecipeHistory::before(const std::string& key, std::int64_t step) const {
  const Entry* found = nullptr;
  for (const Entry& entry : entries_) {
    if (entry.key == key && (entry.from_step == 0 || entry.from_step < step)) found = &entry;
  }
  return found;
}

std::vector<settings::KnobChange> RecipeHistory::changes(const Recipe& recipe,
                                                         std::int64_t step) const {
  std::vector<settings::KnobChange> changes;
  for (const Fact& fact : recipe) {
    const Entry* was = is_kept(fact) ? before(fact.key, step) : nullptr;
    if (was != nullptr && was->value != fact.value) {
      changes.push_back({fact.key, was->value, fact.value});
    }
  }
  return changes;
}

bool RecipeHistory::go_on(const Recipe& recipe, std::int64_t step) {
  const std::vector<Entry> old = entries_;
  std::erase_if(entries_, [step](const Entry& entry) {
    return entry.from_step > 0 && entry.from_step >= step;
  });
  for (const Fact& fact : recipe) {
    if (!is_kept(fact)) continue;
    const Entry* was = before(fact.key, step);
    if (was == nullptr || was->value != fact.value) {
      entries_.push_back({fact.key, fact.value, step});
    }
  }
  return old != entries_;
}

}  // namespace sluice::session
