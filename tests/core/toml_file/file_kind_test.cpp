// A file of one kind given for another is told as what it is.

#include "core/toml_file/file_kind.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "core/toml_file/toml_file.h"
#include "tests/core/toml_file/readers.h"

namespace sluice::toml_file {
namespace {

std::string sample(std::string_view name) {
  const auto text =
      read(std::string(SLUICE_SOURCE_DIR) + "/sample_models/" + std::string(name), "sample");
  return text.ok() ? *text : text.error().message();
}

TEST_CASE("each reader says of a file of another kind which kind it is") {
  for (const FileReader& reader : kFileReaders) {
    for (const FileReader& other : kFileReaders) {
      CAPTURE(reader.name, other.name);
      const Status status = reader.read(sample(other.good));
      REQUIRE(status.ok() == (reader.name == other.name));
      if (status.ok()) continue;
      CHECK(status.error().code() == ErrorCode::config);
      CHECK_THAT(status.error().message(),
                 Catch::StartsWith(fmt::format("f.toml: is a {} file, where a {} file is wanted",
                                               other.name, reader.name)));
      CHECK_THAT(
          status.error().message(),
          Catch::Contains(other.name == "run"    ? "that it names is ../"
                          : reader.name == "run" ? "sample_models/runs/"
                                                 : fmt::format("sample_models/{}s/", reader.name)));
    }
  }
}

TEST_CASE("a file with a wrong key is still one of its kind") {
  const Status model = kFileReaders[0].read(sample(kFileReaders[0].good) + "\nmodel = 'm.toml'\n");
  REQUIRE_FALSE(model.ok());
  CHECK_THAT(model.error().message(), Catch::Contains("a gpt2 model has no key 'model'"));
}

TEST_CASE("a database in the place of a file is told as one, however large it is") {
  const std::string path =
      (std::filesystem::temp_directory_path() / "sluice_file_kind_test.db").string();
  std::ofstream(path, std::ios::binary)
      << std::string("SQLite format 3\0", 16) << std::string(2 << 20, '\0');
  const auto text = read(path, "run file");
  std::filesystem::remove(path);
  REQUIRE_FALSE(text.ok());
  CHECK_THAT(text.error().message(),
             Catch::Contains("is a database") && Catch::Contains("where a run file is wanted"));
}

}  // namespace
}  // namespace sluice::toml_file
