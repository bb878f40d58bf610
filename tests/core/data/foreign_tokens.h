#pragma once
// Token files as the programs that they come from write them, byte by byte.

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/fnv.h"
#include "core/data/token_header.h"
#include "tests/core/data/files.h"

namespace sluice::data {

template <typename Word>
std::string words_of(const std::vector<std::uint32_t>& values) {
  std::string bytes;
  for (const std::uint32_t value : values) {
    const auto word = static_cast<Word>(value);
    bytes.append(reinterpret_cast<const char*>(&word), sizeof word);
  }
  return bytes;
}

inline std::string payload_of(const std::vector<std::uint32_t>& tokens, std::uint32_t width) {
  if (width == 1) return words_of<std::uint8_t>(tokens);
  return width == 2 ? words_of<std::uint16_t>(tokens) : words_of<std::uint32_t>(tokens);
}

// A file of Sluice as another program would write it, from docs/token_format.md.
inline std::string sluice_tokens(TokenHeader header, const std::string& payload) {
  header.token_checksum = fnv1a(payload);
  header.header_checksum = header.expected_header_checksum();
  std::string bytes(sizeof header, '\0');
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes + payload;
}

inline std::string sluice_tokens(const std::vector<std::uint32_t>& tokens, std::uint32_t width,
                                 std::uint32_t vocabulary) {
  TokenHeader header;
  header.version = width == 4 ? 2 : 1;
  header.bytes_per_token = width;
  header.token_count = tokens.size();
  header.vocabulary = vocabulary;
  return sluice_tokens(header, payload_of(tokens, width));
}

// Version 3, or 4 with windows; a mark of 0..3 for each token.
inline std::string marked_tokens(const std::vector<std::uint32_t>& tokens, std::uint32_t width,
                                 std::uint32_t vocabulary, const std::vector<std::uint8_t>& marks,
                                 std::uint32_t window_tokens = 0) {
  TokenHeader header;
  header.version = window_tokens > 0 ? 4 : 3;
  header.window_tokens = window_tokens;
  header.bytes_per_token = width;
  header.token_count = tokens.size();
  header.vocabulary = vocabulary;
  std::string packed((marks.size() + 3) / 4, '\0');
  for (std::size_t i = 0; i < marks.size(); ++i) {
    packed[i / 4] = static_cast<char>(packed[i / 4] | (marks[i] << (2 * (i % 4))));
  }
  return sluice_tokens(header, payload_of(tokens, width) + packed);
}

inline std::string llmc_header(std::uint32_t magic, std::uint32_t version, std::int32_t count) {
  std::vector<std::uint32_t> header(256);
  header[0] = magic;
  header[1] = version;
  header[2] = static_cast<std::uint32_t>(count);
  return words_of<std::uint32_t>(header);
}

// GPT-2's tokens in 2 bytes, or Llama 3's in 4.
inline std::string llmc_tokens(const std::vector<std::uint32_t>& tokens, std::uint32_t width) {
  const auto count = static_cast<std::int32_t>(tokens.size());
  return (width == 2 ? llmc_header(20240520, 1, count) : llmc_header(20240801, 7, count)) +
         payload_of(tokens, width);
}

inline std::string vocabulary_file(const std::vector<std::string>& texts) {
  std::vector<std::uint32_t> sizes;
  std::string bytes;
  for (const std::string& text : texts) {
    sizes.push_back(static_cast<std::uint32_t>(text.size()));
    bytes += text;
  }
  const std::string body = words_of<std::uint32_t>(sizes) + bytes;
  return "SLCVOCAB" + words_of<std::uint32_t>({1, static_cast<std::uint32_t>(texts.size())}) +
         words_of<std::uint64_t>({static_cast<std::uint32_t>(bytes.size())}) +
         [&] {
           const std::uint64_t checksum = fnv1a(body);
           return std::string(reinterpret_cast<const char*>(&checksum), sizeof checksum);
         }() +
         body;
}

}  // namespace sluice::data
