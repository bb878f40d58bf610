#include "core/weights/safetensors_header.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/nearest.h"
#include "core/weights/json_text.h"

namespace sluice::weights {
namespace {

using nlohmann::json;

struct NamedType {
  const char* name;
  std::int64_t bits;
};
constexpr std::array kTypes = {
    NamedType{"F64", 64},        NamedType{"F32", 32},    NamedType{"F16", 16},
    NamedType{"BF16", 16},       NamedType{"I64", 64},    NamedType{"I32", 32},
    NamedType{"I16", 16},        NamedType{"I8", 8},      NamedType{"U64", 64},
    NamedType{"U32", 32},        NamedType{"U16", 16},    NamedType{"U8", 8},
    NamedType{"BOOL", 8},        NamedType{"C64", 64},    NamedType{"F8_E4M3", 8},
    NamedType{"F8_E5M2", 8},     NamedType{"F8_E8M0", 8}, NamedType{"F8_E4M3FNUZ", 8},
    NamedType{"F8_E5M2FNUZ", 8}, NamedType{"F6_E2M3", 6}, NamedType{"F6_E3M2", 6},
    NamedType{"F4", 4},
};

// A tensor of a header, with what its messages begin with.
struct Entry {
  const std::string& path;
  const std::string& name;
  const json& fields;

  template <typename... Args>
  Error refused(fmt::format_string<Args...> format, Args&&... args) const {
    return make_error(ErrorCode::corrupt, "{}: tensor {}: {}", path, shortened(name),
                      fmt::format(format, std::forward<Args>(args)...));
  }
};

Result<std::int64_t> number_in(const Entry& entry, const json& value, const char* field) {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (value.is_number_unsigned() && value.get<std::uint64_t>() <= kMost) {
    return static_cast<std::int64_t>(value.get<std::uint64_t>());
  }
  return entry.refused("{} has {}, and takes whole numbers that are not negative", field,
                       shortened(value.dump()));
}

Result<const json*> field_in(const Entry& entry, const char* key) {
  const auto found = entry.fields.find(key);
  if (found != entry.fields.end()) return &*found;
  return entry.refused("has no {}", key);
}

Result<std::int64_t> bits_of(const Entry& entry) {
  ASSIGN_OR_RETURN(const json* const dtype, field_in(entry, "dtype"));
  std::vector<std::string> names;
  for (const NamedType& type : kTypes) {
    if (*dtype == type.name) return type.bits;
    names.emplace_back(type.name);
  }
  const std::string word = dtype->is_string() ? dtype->get<std::string>() : dtype->dump();
  return entry.refused("there is no dtype {}{}", shortened(word), did_you_mean(word, names));
}

Result<std::vector<std::int64_t>> shape_of(const Entry& entry) {
  ASSIGN_OR_RETURN(const json* const shape, field_in(entry, "shape"));
  if (!shape->is_array()) return entry.refused("shape is no list");
  std::vector<std::int64_t> extents;
  for (const json& extent : *shape) {
    ASSIGN_OR_RETURN(const std::int64_t number, number_in(entry, extent, "shape"));
    extents.push_back(number);
  }
  return extents;
}

// The bytes that shape and dtype come to.
Result<std::int64_t> needed_bytes(const Entry& entry, const std::vector<std::int64_t>& shape) {
  ASSIGN_OR_RETURN(std::int64_t bits, bits_of(entry));
  for (const std::int64_t extent : shape) {
    if (__builtin_mul_overflow(bits, extent, &bits)) {
      return entry.refused("shape {} has more elements than can be counted", shape_text(shape));
    }
  }
  if (bits % 8 != 0) return entry.refused("shape {} does not end at a byte", shape_text(shape));
  return bits / 8;
}

Status check_keys(const Entry& entry) {
  if (!entry.fields.is_object()) return entry.refused("is no object with dtype, shape and offsets");
  for (const auto& [key, value] : entry.fields.items()) {
    if (key == "dtype" || key == "shape" || key == "data_offsets") continue;
    return entry.refused("has '{}'; there is dtype, shape and data_offsets", shortened(key));
  }
  return ok_status();
}

Result<StoredTensor> tensor_of(const Entry& entry, std::int64_t data_begin) {
  RETURN_IF_ERROR(check_keys(entry));
  StoredTensor tensor;
  tensor.name = entry.name;
  ASSIGN_OR_RETURN(tensor.shape, shape_of(entry));
  ASSIGN_OR_RETURN(tensor.size_bytes, needed_bytes(entry, tensor.shape));
  tensor.dtype = entry.fields["dtype"].get<std::string>();
  ASSIGN_OR_RETURN(const json* const offsets, field_in(entry, "data_offsets"));
  if (!offsets->is_array() || offsets->size() != 2) {
    return entry.refused("data_offsets is no pair of numbers");
  }
  ASSIGN_OR_RETURN(const std::int64_t begin, number_in(entry, (*offsets)[0], "data_offsets"));
  ASSIGN_OR_RETURN(const std::int64_t end, number_in(entry, (*offsets)[1], "data_offsets"));
  if (end < begin) return entry.refused("data_offsets [{}, {}] end before they begin", begin, end);
  if (end - begin != tensor.size_bytes) {
    return entry.refused("data_offsets [{}, {}] are {} bytes, and {} of {} takes {}", begin, end,
                         end - begin, tensor.dtype, shape_text(tensor.shape), tensor.size_bytes);
  }
  if (__builtin_add_overflow(begin, data_begin, &tensor.offset_bytes)) {
    return entry.refused("data_offsets [{}, {}] are beyond every file", begin, end);
  }
  return tensor;
}

Result<std::map<std::string, std::string>> metadata_of(const json& metadata,
                                                       const std::string& path) {
  std::map<std::string, std::string> texts;
  if (!metadata.is_object()) {
    return make_error(ErrorCode::corrupt, "{}: __metadata__ is no object of texts", path);
  }
  for (const auto& [key, value] : metadata.items()) {
    if (!value.is_string()) {
      return make_error(ErrorCode::corrupt, "{}: __metadata__: '{}' is no text", path,
                        shortened(key));
    }
    texts[key] = value.get<std::string>();
  }
  return texts;
}

// No overlap, no hole, no byte left over.
Status check_cover(const std::vector<StoredTensor>& tensors, std::int64_t data_begin,
                   std::int64_t file_bytes, const std::string& path) {
  std::int64_t next = data_begin;
  for (const StoredTensor& tensor : tensors) {
    if (tensor.offset_bytes != next) {
      return make_error(ErrorCode::corrupt, "{}: byte {}: tensor {} begins at byte {}: {}", path,
                        next, shortened(tensor.name), tensor.offset_bytes,
                        tensor.offset_bytes > next ? "there is a hole before it"
                                                   : "it overlaps the one before it");
    }
    if (__builtin_add_overflow(next, tensor.size_bytes, &next) || next > file_bytes) {
      return make_error(ErrorCode::corrupt,
                        "{}: tensor {} of {} bytes from byte {} on goes beyond the end of the "
                        "file at byte {}; the file is cut short",
                        path, shortened(tensor.name), tensor.size_bytes, tensor.offset_bytes,
                        file_bytes);
    }
  }
  if (next == file_bytes) return ok_status();
  return make_error(ErrorCode::corrupt, "{}: byte {}: {} bytes are of no tensor", path, next,
                    file_bytes - next);
}

}  // namespace

std::int64_t StoredTensor::element_count() const {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return count;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

Result<Header> parse_header(std::string_view text, std::int64_t data_begin, std::int64_t file_bytes,
                            const std::string& path) {
  ASSIGN_OR_RETURN(const json object, parse_json(text, {path, kLengthBytes}));
  Header header;
  std::vector<StoredTensor>& tensors = header.tensors;
  for (const auto& [name, fields] : object.items()) {
    if (name == "__metadata__") {
      ASSIGN_OR_RETURN(header.metadata, metadata_of(fields, path));
      continue;
    }
    ASSIGN_OR_RETURN(StoredTensor tensor, tensor_of({path, name, fields}, data_begin));
    tensors.push_back(std::move(tensor));
  }
  std::ranges::sort(tensors, [](const StoredTensor& a, const StoredTensor& b) {
    return std::pair(a.offset_bytes, a.size_bytes) < std::pair(b.offset_bytes, b.size_bytes);
  });
  RETURN_IF_ERROR(check_cover(tensors, data_begin, file_bytes, path));
  return header;
}

}  // namespace sluice::weights
