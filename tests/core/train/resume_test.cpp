// A run that goes on has the numbers of one that never stopped, and refuses what is not its own.

#include <array>
#include <catch2/catch.hpp>
#include <cstring>

#include "core/offload/residual_file.h"
#include "storage/state/checksum.h"
#include "tests/core/train/small_run.h"
#include "tests/core/train/stderr_text.h"

using namespace sluice;

TEST_CASE("error feedback resumes to the bit, and refuses damage") {
  const SmallRun files;
  const SmallRun pieces;
  const std::vector<std::string> settings = {"density=0.05", "error_feedback=true",
                                             "schedule_steps=6"};
  const auto with_steps = [&](const char* steps) {
    std::vector<std::string> all = settings;
    all.push_back(steps);
    return all;
  };
  const auto whole = train_small(files, settings);
  REQUIRE(whole.ok());
  REQUIRE(train_small(pieces, with_steps("steps=3")).ok());
  const std::string path = pieces.folder.file("state/residual.slc");
  const auto resume = [&](const char* steps) {
    return train_small(pieces, with_steps(steps), session::StartFrom::last_commit);
  };
  REQUIRE(std::filesystem::exists(path));
  const auto rest = resume("steps=4");
  REQUIRE(rest.ok());
  CHECK(rest->losses[0] == whole->losses[3]);
  for (const std::streamoff offset : {std::streamoff{9}, std::streamoff{4096 + 123}}) {
    const std::string kept = pieces.folder.file("kept");
    std::filesystem::copy_file(path, kept, std::filesystem::copy_options::overwrite_existing);
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(offset);
    file.put('\x5a');
    file.close();
    const auto damaged = resume("steps=5");
    REQUIRE_FALSE(damaged.ok());
    CHECK(damaged.error().code() == ErrorCode::corrupt);
    CHECK_THAT(damaged.error().message(), Catch::Contains(path) && Catch::Contains("offset"));
    std::filesystem::copy_file(kept, path, std::filesystem::copy_options::overwrite_existing);
  }
  const auto last = resume("steps=6");
  REQUIRE(last.ok());
  CHECK(last->losses == std::vector<double>(whole->losses.begin() + 4, whole->losses.end()));
  CHECK(last->digest == whole->digest);
}

TEST_CASE("a residual of a newer version of its format is refused as such") {
  const TestFolder folder;
  const std::string path = folder.file("residual.slc");
  std::vector<float> residual(10, 1.0F);
  const offload::ResidualPlace place = offload::residual_in_memory(residual);
  REQUIRE(offload::save_residual(path, 3, place).ok());
  std::array<std::byte, 48> header;
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.read(reinterpret_cast<char*>(header.data()), std::ssize(header));
  header[8] = std::byte{3};
  const std::uint64_t checksum = state::checksum(std::span(header).first(40));
  std::memcpy(header.data() + 40, &checksum, sizeof checksum);
  file.seekp(0);
  file.write(reinterpret_cast<const char*>(header.data()), std::ssize(header));
  file.close();
  const auto loaded = offload::load_residual(path, 3, place);
  REQUIRE_FALSE(loaded.ok());
  CHECK(loaded.error().code() == ErrorCode::unsupported);
  CHECK_THAT(loaded.error().message(), Catch::Contains("version 3"));
}

TEST_CASE("error feedback without its file begins from zeros") {
  const std::vector<std::string> sparse = {"density=0.05", "schedule_steps=6"};
  std::vector<std::string> with_feedback = sparse;
  with_feedback.emplace_back("error_feedback=true");
  const auto to_step = [](std::vector<std::string> settings, const char* steps) {
    settings.emplace_back(steps);
    return settings;
  };
  // Four steps, of which the first three filled a residual, and three that never had one.
  const SmallRun lost;
  const SmallRun never;
  const SmallRun kept;
  for (const SmallRun* files : {&lost, &kept}) {
    REQUIRE(train_small(*files, to_step(with_feedback, "steps=3")).ok());
  }
  std::filesystem::remove(lost.folder.file("state/residual.slc"));
  std::filesystem::copy(lost.folder.file("state"), never.folder.file("state"),
                        std::filesystem::copy_options::recursive);
  const auto next = [](const SmallRun& files, const std::vector<std::string>& settings) {
    auto trained = train_small(files, settings, session::StartFrom::last_commit);
    REQUIRE(trained.ok());
    return trained->digest;
  };
  const std::string from_zeros = next(lost, to_step(with_feedback, "steps=4"));
  // A step without a residual sends what it would send without error feedback.
  CHECK(from_zeros == next(never, to_step(sparse, "steps=4")));
  CHECK(from_zeros != next(kept, to_step(with_feedback, "steps=4")));
}

TEST_CASE("a resume warns of a missing residual after a kill, and only then") {
  const std::vector<std::string> sparse = {"density=0.05", "error_feedback=true",
                                           "schedule_steps=6"};
  const auto with = [](std::vector<std::string> settings, const char* more) {
    settings.emplace_back(more);
    return settings;
  };
  // What a resume to `steps` says.
  const auto said = [&](const SmallRun& files, const std::vector<std::string>& settings) {
    const StderrText text;
    REQUIRE(train_small(files, settings, session::StartFrom::last_commit).ok());
    return text.so_far();
  };
  const SmallRun dense;
  REQUIRE(train_small(dense, {"steps=2", "schedule_steps=6"}).ok());
  CHECK(said(dense, with(sparse, "steps=3")) == "");
  CHECK(said(dense, {"steps=4", "schedule_steps=6"}) == "");  // dense once more
  CHECK(said(dense, with(sparse, "steps=5")) == "");
  const SmallRun warming;  // its first step is dense
  const std::vector<std::string> warm = with(sparse, "density_warmup_steps=4");
  REQUIRE(train_small(warming, with(warm, "steps=1")).ok());
  CHECK(said(warming, with(warm, "steps=3")) == "");

  // A killed run leaves what was written before: of the begin, or of an earlier end.
  const SmallRun killed;
  REQUIRE(train_small(killed, with(sparse, "steps=2")).ok());
  const std::string path = killed.folder.file("state/residual.slc");
  std::filesystem::copy_file(path, killed.folder.file("older"));
  REQUIRE(said(killed, with(sparse, "steps=3")) == "");
  std::filesystem::copy_file(killed.folder.file("older"), path,
                             std::filesystem::copy_options::overwrite_existing);
  CHECK_THAT(said(killed, with(sparse, "steps=4")),
             Catch::Contains("there is no residual of step 3 (the run was killed)"));
}

TEST_CASE("a resumed state goes where the settings say, with its first step") {
  const SmallRun files;
  const auto plain = train_small(files, {});
  REQUIRE(plain.ok());
  const SmallRun moved;
  REQUIRE(train_small(moved, {"steps=3", "schedule_steps=6"}).ok());
  const auto resumed = train_small(moved, {"device_map=0,1"}, session::StartFrom::last_commit);
  REQUIRE(resumed.ok());
  CHECK(resumed->digest == plain->digest);
  const auto drained = std::filesystem::file_size(moved.folder.file("state/dev0/state.slc"));
  CHECK(drained == 4096);  // its header
}

TEST_CASE("the density's warm-up begins dense, repeats, and resumes") {
  const std::vector<std::string> warm = {"density=0.01", "density_warmup_steps=4"};
  const SmallRun a;
  const SmallRun b;
  const auto whole = train_small(a, warm);
  const auto dense = train_small(b, {});
  REQUIRE(whole.ok());
  CHECK(whole->losses[1] == dense->losses[1]);
  CHECK(whole->losses[2] != dense->losses[2]);
  const SmallRun c;
  std::vector<std::string> part = warm;
  part.insert(part.end(), {"steps=2", "schedule_steps=6"});
  REQUIRE(train_small(c, part).ok());
  const auto rest = train_small(c, warm, session::StartFrom::last_commit);
  REQUIRE(rest.ok());
  CHECK(rest->digest == whole->digest);
}

TEST_CASE("a run goes on with its own optimizer and with no other") {
  for (const std::string mine : {"adamw", "sgd", "adagrad"}) {
    const SmallRun files;
    const SmallRun pieces;
    const auto whole = train_small(files, {"optimizer=" + mine});
    REQUIRE(whole.ok());
    REQUIRE(train_small(pieces, {"optimizer=" + mine, "steps=2", "schedule_steps=6"}).ok());
    for (const std::string other : {"adamw", "sgd", "adagrad"}) {
      const auto resumed =
          train_small(pieces, {"optimizer=" + other, "steps=2"}, session::StartFrom::last_commit);
      INFO(mine << " resumed with " << other);
      REQUIRE(resumed.ok() == (mine == other));
      if (resumed.ok()) continue;
      CHECK(resumed.error().code() == ErrorCode::config);
      CHECK_THAT(resumed.error().message(),
                 Catch::Contains("its optimizer is " + mine + ", wanted is " + other));
    }
    const auto rest = train_small(pieces, {"optimizer=" + mine}, session::StartFrom::last_commit);
    REQUIRE(rest.ok());
    CHECK(rest->digest == whole->digest);
  }
}
