#include "core/weights/json_text.h"

#include <vector>

#include "storage/io/file.h"

namespace sluice::weights {
namespace {

using nlohmann::json;

// Builds the tree as the parser calls, and ends it at the first thing that is refused.
class TreeBuilder final : public nlohmann::json_sax<json> {
 public:
  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(std::int64_t value) override { return add(value); }
  bool number_unsigned(std::uint64_t value) override { return add(value); }
  bool number_float(double value, const std::string& /*text*/) override { return add(value); }
  bool string(std::string& value) override { return add(std::move(value)); }
  bool binary(json::binary_t& /*value*/) override { return false; }
  bool start_object(std::size_t /*size*/) override { return open(json::object()); }
  bool start_array(std::size_t /*size*/) override { return open(json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(std::string& name) override {
    const auto [at, is_new] = open_.back()->emplace(name, nullptr);
    if (!is_new) return refuse(fmt::format("the key '{}' is there twice", shortened(name)));
    value_of_key_ = &*at;
    return true;
  }

  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*what*/) override {
    position_ = position;
    return refuse("is no JSON");
  }

  json take() { return std::move(root_); }
  const std::string& fault() const { return fault_; }
  std::size_t position() const { return position_; }  // 0: the fault has none

 private:
  bool refuse(std::string fault) {
    fault_ = std::move(fault);
    return false;
  }

  // Where the next value goes: behind its key, at the end of an array, or as the whole.
  json* place() {
    if (open_.empty()) return &root_;
    if (open_.back()->is_object()) return value_of_key_;
    open_.back()->push_back(nullptr);
    return &open_.back()->back();
  }

  bool add(json value) {
    if (++value_count_ > kJsonValuesMax) {
      return refuse(fmt::format("has more than {} values", kJsonValuesMax));
    }
    *place() = std::move(value);
    return true;
  }

  bool open(json value) {
    if (open_.size() >= kJsonDepthMax) {
      return refuse(fmt::format("is nested more than {} deep", kJsonDepthMax));
    }
    json* const at = place();
    *at = std::move(value);
    open_.push_back(at);
    return ++value_count_ <= kJsonValuesMax ||
           refuse(fmt::format("has more than {} values", kJsonValuesMax));
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  json root_;
  std::vector<json*> open_;
  json* value_of_key_ = nullptr;
  std::size_t value_count_ = 0;
  std::string fault_;
  std::size_t position_ = 0;
};

Error refused(const JsonPlace& place, std::string_view what) {
  return make_error(ErrorCode::corrupt, "{}: byte {}: {}", place.path, place.offset_bytes, what);
}

}  // namespace

std::string shortened(std::string_view text) {
  constexpr std::size_t kShown = 120;
  if (text.size() <= kShown) return std::string(text);
  return std::string(text.substr(0, kShown)) + "...";
}

Result<nlohmann::json> parse_json(std::string_view text, const JsonPlace& place) {
  // The parser takes a zero byte for the end, and passes over a mark of the byte order.
  if (text.find('\0') != std::string_view::npos) return refused(place, "has a zero byte in it");
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos || text[begin] != '{') {
    return refused(place, "is no JSON object: it does not begin with '{'");
  }
  TreeBuilder builder;
  if (json::sax_parse(text.begin(), text.end(), &builder)) return builder.take();
  JsonPlace at = place;
  if (builder.position() > 0) {
    at.offset_bytes += static_cast<std::int64_t>(builder.position()) - 1;
  }
  return refused(at, builder.fault());
}

Result<std::string> read_text(const std::string& path, std::int64_t size_max_bytes,
                              std::string_view kind) {
  ASSIGN_OR_RETURN(const io::File file, io::File::open(path, {.access = io::FileAccess::read_only,
                                                              .caching = io::Caching::buffered}));
  ASSIGN_OR_RETURN(const std::int64_t size_bytes, file.size_bytes());
  if (size_bytes > size_max_bytes) {
    return make_error(ErrorCode::config, "{}: a {} of {} bytes; it may have {}", path, kind,
                      size_bytes, size_max_bytes);
  }
  std::string text(static_cast<std::size_t>(size_bytes), '\0');
  if (!text.empty()) {
    RETURN_IF_ERROR(file.read_exactly(0, std::as_writable_bytes(std::span(text))));
  }
  return text;
}

}  // namespace sluice::weights
