#include "profiler/relay/frame.h"

#include <algorithm>
#include <utility>

#include "base/fnv.h"
#include "storage/rundb/copied_rows.h"

namespace sluice::relay {
namespace {

constexpr std::string_view kMagic = "SlceFlw\n";
constexpr std::size_t kStreamHeaderBytes = 16;  // magic, protocol, version of the schema
constexpr std::size_t kFrameHeaderBytes = 9;    // length, number, type
constexpr std::size_t kChecksumBytes = 8;
constexpr std::size_t kShownBytes = 60;

template <typename Number>
void put_fixed(Number number, std::string& out) {
  for (std::size_t i = 0; i < sizeof number; ++i) out += static_cast<char>(number >> (8 * i));
}

template <typename Number>
Number fixed_at(std::string_view bytes, std::size_t at) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < sizeof(Number); ++i)
    number |= std::uint64_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  return static_cast<Number>(number);
}

}  // namespace

std::string stream_header() {
  std::string header(kMagic);
  put_fixed(kProtocol, header);
  put_fixed(static_cast<std::uint32_t>(rundb::schema_version()), header);
  return header;
}

void FrameWriter::put(FrameType type, std::string_view payload, std::string& out) {
  const std::size_t begin = out.size();
  put_fixed(static_cast<std::uint32_t>(payload.size()), out);
  put_fixed(number_++, out);
  put_fixed(static_cast<std::uint8_t>(type), out);
  out += payload;
  put_fixed(fnv1a(std::string_view(out).substr(begin)), out);
}

void FrameReader::add(std::string_view bytes) {
  waiting_.erase(0, std::exchange(at_, 0));
  waiting_ += bytes;
}

void FrameReader::skip(std::size_t count) {
  at_ += count;
  offset_ += count;
}

Error FrameReader::damaged(std::string_view what) const {
  return make_error(ErrorCode::corrupt, "at byte {} of what the other end sends: {}", offset_,
                    what);
}

Status FrameReader::take_header() {
  const std::string_view bytes = rest();
  const std::size_t looked = std::min(bytes.size(), kMagic.size());
  if (bytes.substr(0, looked) != kMagic.substr(0, looked)) {
    return make_error(ErrorCode::corrupt,
                      "the other end does not send a run, but '{}'; its shell may print something "
                      "as it starts",
                      bytes.substr(0, std::min(kShownBytes, bytes.find('\n'))));
  }
  if (bytes.size() < kStreamHeaderBytes) return ok_status();
  const auto protocol = fixed_at<std::uint32_t>(bytes, kMagic.size());
  const auto schema = fixed_at<std::uint32_t>(bytes, kMagic.size() + 4);
  if (protocol != kProtocol || schema != rundb::schema_version()) {
    return make_error(ErrorCode::unsupported,
                      "the Sluice at the other end speaks version {} of the stream, with run "
                      "databases of version {}; here these are {} and {}: put the same Sluice at "
                      "both ends",
                      protocol, schema, kProtocol, rundb::schema_version());
  }
  has_header_ = true;
  skip(kStreamHeaderBytes);
  return ok_status();
}

Result<std::optional<Frame>> FrameReader::next() {
  if (!has_header_) RETURN_IF_ERROR(take_header());
  const std::string_view bytes = rest();
  if (!has_header_ || bytes.size() < kFrameHeaderBytes) return std::nullopt;
  const std::size_t size = fixed_at<std::uint32_t>(bytes, 0);
  const auto number = fixed_at<std::uint32_t>(bytes, 4);
  const auto type = fixed_at<std::uint8_t>(bytes, 8);
  if (size > kPayloadMax)
    return damaged(fmt::format("a frame of {} bytes, which is too long", size));
  if (number != number_) return damaged(fmt::format("frame {} where {} is next", number, number_));
  if (type == 0 || type > kFrameTypes)
    return damaged(fmt::format("a frame of type {}, and there is none", type));
  const std::size_t checked = kFrameHeaderBytes + size;
  if (bytes.size() < checked + kChecksumBytes) return std::nullopt;
  if (fixed_at<std::uint64_t>(bytes, checked) != fnv1a(bytes.substr(0, checked)))
    return damaged("a frame whose checksum is wrong");
  Frame frame{.type = static_cast<FrameType>(type),
              .payload = std::string(bytes.substr(kFrameHeaderBytes, size))};
  skip(checked + kChecksumBytes);
  ++number_;
  return frame;
}

}  // namespace sluice::relay
