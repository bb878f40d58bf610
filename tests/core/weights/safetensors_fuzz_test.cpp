// Good files with bytes changed, cut and put in, by a seed: each is read whole or refused with a
// message; the address sanitizer sees the rest.

#include <catch2/catch.hpp>

#include "base/split_mix.h"
#include "core/weights/checkpoint.h"
#include "core/weights/model_folder.h"
#include "core/weights/safetensors.h"
#include "tests/core/weights/weights_files.h"
#include "tests/test_folder.h"

namespace sluice::weights {
namespace {

class Mutation {
 public:
  explicit Mutation(std::uint64_t seed) : key_(mix64(seed)) {}

  std::string applied_to(std::string bytes) {
    const std::size_t count = 1 + below(3);
    for (std::size_t i = 0; i < count; ++i) change(bytes);
    return bytes;
  }

 private:
  std::size_t below(std::size_t end) { return end == 0 ? 0 : split_mix(key_, at_++) % end; }

  // Mostly in the header, where there is something to get wrong.
  std::size_t position(const std::string& bytes) {
    return below(below(4) == 0 ? bytes.size() : std::min<std::size_t>(bytes.size(), 400));
  }

  void change(std::string& bytes) {
    constexpr std::string_view kLetters = "0123456789{}[]\",:-.eFB_ \\\0\xff";
    const std::size_t at = position(bytes);
    if (bytes.empty()) return;
    switch (below(5)) {
      case 0:
        bytes[at] = static_cast<char>(below(256));
        return;
      case 1:
        bytes[at] = kLetters[below(kLetters.size())];
        return;
      case 2:
        bytes.resize(at);
        return;
      case 3:
        bytes.insert(at, 1 + below(8), kLetters[below(kLetters.size())]);
        return;
      default:
        bytes.erase(at, 1 + below(8));
    }
  }

  std::uint64_t key_;
  std::uint64_t at_ = 0;
};

// Whether it could be read, all of it.
bool read_all(const SafetensorsFile& file) {
  for (const StoredTensor& tensor : file.tensors()) {
    if (!file.type_of(tensor).ok()) continue;
    std::vector<float> values(static_cast<std::size_t>(tensor.element_count()));
    if (!file.read(tensor, 0, values).ok()) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("changed safetensors files are read whole or refused") {
  const TestFolder folder;
  const std::vector<std::string> good = {
      read_bytes("tests/fixtures/qwen3_bf16_sharded/model-00003-of-00003.safetensors"),
      read_bytes("tests/fixtures/hostile_safetensors/good_metadata.safetensors"),
      safetensors_bytes({{"a", {{2, 3}, std::vector<float>(6, 1.0f), "F16"}},
                         {"b", {{0, 3}, {}}},
                         {"c", {{}, {2.0f}}}})};
  int read = 0;
  int refused = 0;
  const std::string path = folder.file("x.safetensors");
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    INFO("seed " << seed);
    write_bytes(path, Mutation(seed).applied_to(good[seed % good.size()]));
    const Result<SafetensorsFile> file = SafetensorsFile::open(path);
    if (file.ok()) {
      CHECK(read_all(*file));
      ++read;
    } else {
      CHECK(file.error().message().starts_with(path));
      ++refused;
    }
  }
  CHECK(read > 20);
  CHECK(refused > 200);
}

TEST_CASE("changed indexes and configurations are read or refused") {
  const TestFolder folder;
  copy_folder("tests/fixtures/qwen3_bf16_sharded", folder.file("m"));
  const std::string index_path = folder.file("m/model.safetensors.index.json");
  const std::string config_path = folder.file("m/config.json");
  const std::string index = read_bytes(index_path);
  const std::string config = read_bytes(config_path);
  const auto shape = load_shape(folder.file("m"));
  REQUIRE(shape.ok());
  int opened = 0;
  int refused = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    INFO("seed " << seed);
    write_bytes(index_path, Mutation(seed).applied_to(index));
    const auto weights = Checkpoint::open(folder.file("m"), *shape);
    (weights.ok() ? opened : refused) += 1;
    write_bytes(config_path, Mutation(seed).applied_to(config));
    const auto changed = load_shape(folder.file("m"));
    (changed.ok() ? opened : refused) += 1;
  }
  CHECK(opened > 2);
  CHECK(refused > 100);
}

}  // namespace sluice::weights
