#include "storage/state/state_store.h"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <fstream>
#include <iterator>
#include <map>

#include "tests/storage/state/state_fixture.h"

namespace sluice::state {
namespace {

using namespace testing;
namespace fs = std::filesystem;

const Geometry kGeometry{
    .parameter_count = 5000, .subgroup_elements = 1100, .variable_count = 3, .device_count = 2};

void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

TEST_CASE("a state is resumed at its last commit, with direct transfers and every commit durable") {
  const ScratchFolder scratch;
  const StateStore::Options options{.directory = scratch.path("runs/a/state")};
  CHECK_FALSE(StateStore::exists(options.directory));
  CommitRecord last;
  {
    const auto store = make_state(options, kGeometry, 4);
    last = store->committed();
    CHECK(last.position.step == 4);
    store->layout().take_next(SubgroupId{0}, DeviceId{0});  // step 5 never commits
  }
  CHECK(StateStore::exists(options.directory));
  const auto store = must(StateStore::open(options));
  CHECK(store->committed() == last);
  CHECK(store->layout().geometry() == kGeometry);
  CHECK(check_identity(test_identity(), store->identity(), options.directory).ok());
  CHECK(store->layout().current(SubgroupId{3}) == last.subgroups[3].slot);
  CHECK(store->layout().next(SubgroupId{0}) == kNoSlot);
  CHECK(digest_of(*store) == expected_digest(kGeometry, 4));
  must(store->commit(write_step(*store, 5)));
  CHECK(digest_of(*store) == expected_digest(kGeometry, 5));
}

TEST_CASE("space for two versions is reserved when the state is made") {
  const ScratchFolder scratch;
  const auto store = must(StateStore::create(quick_options(scratch.path("state")), test_identity(),
                                             kGeometry, make_device_map(5, {4, 1})));
  CHECK(must(store->file(DeviceId{0}).size_bytes()) == 4096 + 8 * kGeometry.slot_bytes());
  CHECK(must(store->file(DeviceId{1}).size_bytes()) == 4096 + 2 * kGeometry.slot_bytes());
  CHECK(store->committed().subgroups.empty());
}

TEST_CASE("subgroups move to another device while the state lives, and stay there") {
  const ScratchFolder scratch;
  const StateStore::Options options = quick_options(scratch.path("state"));
  auto store = make_state(options, kGeometry, 1);
  const std::int64_t before_bytes = must(store->file(DeviceId{1}).size_bytes());
  for (std::int64_t step = 2; step < 5; ++step)
    must(store->commit(write_step(*store, step, [](SubgroupId) { return DeviceId{1}; })));
  CHECK(must(store->file(DeviceId{1}).size_bytes()) > before_bytes);
  CHECK(digest_of(*store) == expected_digest(kGeometry, 4));
  store.reset();
  store = must(StateStore::open(options));
  for (std::int32_t s = 0; s < kGeometry.subgroup_count(); ++s)
    CHECK(store->layout().device(SubgroupId{s}) == DeviceId{1});
  CHECK(digest_of(*store) == expected_digest(kGeometry, 4));
  must(store->commit(write_step(*store, 5, [](SubgroupId) { return DeviceId{0}; })));
  CHECK(digest_of(*store) == expected_digest(kGeometry, 5));
}

TEST_CASE("a device that everything has left keeps its header alone, and can be moved to again") {
  const ScratchFolder scratch;
  const StateStore::Options options = quick_options(scratch.path("state"));
  auto store = make_state(options, kGeometry, 1);
  const auto size_of = [&](std::int32_t device) {
    return must(store->file(DeviceId{device}).size_bytes());
  };
  const std::int64_t whole_bytes = device_file_bytes(kGeometry, kGeometry.subgroup_count());
  const auto move_all_to = [&](std::int32_t device, std::int64_t step) {
    must(store->reserve(
        DeviceMap(static_cast<std::size_t>(kGeometry.subgroup_count()), DeviceId{device})));
    must(store->commit(write_step(*store, step, [&](SubgroupId) { return DeviceId{device}; })));
    must(store->fit());
  };
  move_all_to(1, 2);
  CHECK(size_of(0) == 4096);
  CHECK(size_of(1) == whole_bytes);
  must(store->commit(write_step(*store, 3)));
  CHECK(digest_of(*store) == expected_digest(kGeometry, 3));
  store.reset();
  store = must(StateStore::open(options));
  CHECK(size_of(0) == 4096);
  move_all_to(0, 4);
  CHECK(size_of(0) == whole_bytes);
  CHECK(size_of(1) == 4096);
  CHECK(digest_of(*store) == expected_digest(kGeometry, 4));
}

TEST_CASE("a skipped step commits the position alone") {
  const ScratchFolder scratch;
  const StateStore::Options options = quick_options(scratch.path("state"));
  auto store = make_state(options, kGeometry, 2);
  (void)write_step(*store, 3);
  store->layout().abandon();  // the gradients overflowed
  CommitRecord record = store->committed();
  record.position.step = 3;
  record.position.loss_scale /= 2;
  must(store->commit(record));
  store.reset();
  store = must(StateStore::open(options));
  CHECK(store->committed() == record);
  CHECK(digest_of(*store) == expected_digest(kGeometry, 2));
}

TEST_CASE("a second run is refused and told who holds the state") {
  const ScratchFolder scratch;
  const StateStore::Options options = quick_options(scratch.path("state"));
  auto store = make_state(options, kGeometry, 0);
  const auto refused = StateStore::open(options);
  REQUIRE(!refused.ok());
  CHECK(refused.error().code() == ErrorCode::busy);
  CHECK_THAT(refused.error().message(), Catch::Contains(fmt::format("process {}", getpid())));
  CHECK(StateStore::create(options, test_identity(), kGeometry, make_device_map(5, {1, 1}))
            .error()
            .code() == ErrorCode::busy);
  store.reset();
  CHECK(StateStore::open(options).ok());
}

TEST_CASE("the lock ends with the process that held it, however it ends") {
  const ScratchFolder scratch;
  const StateStore::Options options = quick_options(scratch.path("state"));
  const Geometry one_device{.parameter_count = 10, .subgroup_elements = 10};
  make_state(options, one_device, 0).reset();
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto store = StateStore::open(options);
    const char answer = store.ok() ? 'y' : 'n';
    if (write(ready[1], &answer, 1) != 1) _exit(1);
    while (true) pause();
  }
  char answer = 0;
  REQUIRE(read(ready[0], &answer, 1) == 1);
  CHECK(answer == 'y');
  const auto refused = StateStore::open(options);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  REQUIRE(!refused.ok());
  CHECK_THAT(refused.error().message(), Catch::Contains(fmt::format("process {}", child)));
  CHECK(StateStore::open(options).ok());
  close(ready[0]);
  close(ready[1]);
}

TEST_CASE("reading works beside a live run") {
  const ScratchFolder scratch;
  const StateStore::Options options = quick_options(scratch.path("state"));
  const auto store = make_state(options, kGeometry, 2);
  const auto reader = must(StateStore::open_read_only(options));
  CHECK(reader->committed() == store->committed());
  CHECK(digest_of(*reader) == expected_digest(kGeometry, 2));
  must(store->commit(write_step(*store, 3)));
  CHECK(must(StateStore::open_read_only(options))->committed().position.step == 3);
}

TEST_CASE("creation refuses a folder that holds a state") {
  const ScratchFolder scratch;
  const StateStore::Options options = quick_options(scratch.path("state"));
  make_state(options, kGeometry, 1).reset();
  const auto again =
      StateStore::create(options, test_identity(), kGeometry, make_device_map(5, {1, 1}));
  REQUIRE(!again.ok());
  CHECK(again.error().code() == ErrorCode::config);
  CHECK_THAT(again.error().message(), Catch::Contains("already holds an optimizer state"));
  CHECK(digest_of(*must(StateStore::open(options))) == expected_digest(kGeometry, 1));
}

TEST_CASE("a state that was never committed is made anew") {
  const ScratchFolder scratch;
  const StateStore::Options options = quick_options(scratch.path("state"));
  const Geometry three_devices{
      .parameter_count = 9, .subgroup_elements = 2, .variable_count = 3, .device_count = 3};
  must(StateStore::create(options, test_identity(), three_devices, make_device_map(5, {1, 1, 1})))
      .reset();
  CHECK(digest_of(*make_state(options, kGeometry, 1)) == expected_digest(kGeometry, 1));
  CHECK_FALSE(fs::exists(options.directory + "/dev2/state.slc"));
}

TEST_CASE("creation never touches a foreign file or one of another state") {
  const ScratchFolder scratch;
  const StateStore::Options options = quick_options(scratch.path("state"));
  const auto create = [&] {
    return StateStore::create(options, test_identity(), kGeometry, make_device_map(5, {1, 1}));
  };
  fs::create_directories(options.directory + "/dev1");
  const std::string device_file = options.directory + "/dev1/state.slc";

  const std::string kind = GENERATE("notes", "notes under an unfinished name", "another state");
  CAPTURE(kind);
  if (kind == "notes") {
    write_text(device_file, "somebody's notes");
  } else if (kind == "notes under an unfinished name") {
    write_text(device_file + ".new", std::string(5000, 'x'));
  } else {
    const StateStore::Options other = quick_options(scratch.path("other"));
    make_state(other, kGeometry, 0).reset();
    fs::copy_file(other.directory + "/dev1/state.slc", device_file);
  }
  const auto contents = [&] {
    std::map<std::string, std::string> texts;
    for (const auto& entry : fs::directory_iterator(options.directory + "/dev1")) {
      std::ifstream file(entry.path(), std::ios::binary);
      texts[entry.path()].assign(std::istreambuf_iterator<char>(file), {});
    }
    return texts;
  };
  const auto before = contents();
  REQUIRE(before.size() == 1);
  const auto refused = create();
  REQUIRE(!refused.ok());
  CHECK(refused.error().code() == ErrorCode::config);
  CHECK_THAT(refused.error().message(), Catch::Contains(device_file));
  CHECK((contents() == before));
  CHECK_FALSE(StateStore::exists(options.directory));
  fs::remove_all(options.directory + "/dev1");
  CHECK(create().ok());
}

TEST_CASE("device folders may be links to other drives") {
  const ScratchFolder scratch;
  const StateStore::Options options = quick_options(scratch.path("state"));
  fs::create_directories(options.directory);
  fs::create_directories(scratch.path("drive"));
  fs::create_directory_symlink(scratch.path("drive"), options.directory + "/dev1");
  const auto store = make_state(options, kGeometry, 1);
  CHECK(fs::exists(scratch.path("drive/state.slc")));
  CHECK(digest_of(*store) == expected_digest(kGeometry, 1));
}

TEST_CASE("what is not there is said") {
  const ScratchFolder scratch;
  const StateStore::Options options = quick_options(scratch.path("state"));
  const auto missing = StateStore::open(options);
  CHECK(missing.error().code() == ErrorCode::not_found);
  CHECK_THAT(missing.error().message(), Catch::Contains("no such folder"));
  fs::create_directories(options.directory);
  CHECK_THAT(StateStore::open(options).error().message(), Catch::Contains("no commit.slc"));
  CHECK_FALSE(fs::exists(options.directory + "/lock"));
  must(StateStore::create(options, test_identity(), kGeometry, make_device_map(5, {1, 1}))).reset();
  for (const auto& opened :
       {StateStore::open(options).error(), StateStore::open_read_only(options).error()}) {
    CHECK(opened.code() == ErrorCode::not_found);
    CHECK_THAT(opened.message(), Catch::Contains("never committed"));
  }
}

TEST_CASE("the first difference from the wanted model, optimizer or cut is named") {
  const StateIdentity found = test_identity();
  const auto message = [&](auto change) {
    StateIdentity wanted = found;
    change(wanted);
    const Status status = check_identity(wanted, found, "DIR");
    return status.ok() ? "" : status.error().message();
  };
  CHECK(message([](StateIdentity&) {}).empty());
  CHECK_THAT(message([](StateIdentity& wanted) { wanted.model_name = "gpt2"; }),
             Catch::Contains("DIR") && Catch::Contains("its model is tiny, wanted is gpt2"));
  CHECK_THAT(message([](StateIdentity& wanted) { wanted.model_fingerprint = 5; }),
             Catch::Contains("is 0000000000001234, wanted is 0000000000000005"));
  CHECK_THAT(message([](StateIdentity& wanted) { wanted.optimizer = "sgd"; }),
             Catch::Contains("its optimizer is adamw, wanted is sgd"));
  CHECK_THAT(message([](StateIdentity& wanted) { wanted.variable_names.pop_back(); }),
             Catch::Contains("master_weights, exp_avg, exp_avg_sq, wanted is master_weights, "
                             "exp_avg;"));
  Geometry wanted = kGeometry;
  CHECK(check_geometry(wanted, kGeometry, "DIR").ok());
  wanted.subgroup_elements = 64;
  CHECK_THAT(check_geometry(wanted, kGeometry, "DIR").error().message(),
             Catch::Contains("its subgroup_elements is 1100, wanted is 64"));
  wanted.parameter_count = 1;
  CHECK_THAT(check_geometry(wanted, kGeometry, "DIR").error().message(),
             Catch::Contains("its parameter_count is 5000, wanted is 1"));
}

TEST_CASE("device files that do not belong are refused by name") {
  const ScratchFolder scratch;
  const StateStore::Options options = quick_options(scratch.path("state"));
  make_state(options, kGeometry, 1).reset();
  const std::string dev0 = options.directory + "/dev0";
  const std::string dev1 = options.directory + "/dev1";
  const auto refusal = [&] { return StateStore::open(options).error(); };

  SECTION("missing") {
    fs::remove(dev1 + "/state.slc");
    CHECK(refusal().code() == ErrorCode::not_found);
    CHECK_THAT(refusal().message(),
               Catch::Contains(dev1 + "/state.slc") && Catch::Contains("device 1 of 2 is missing"));
  }
  SECTION("exchanged") {
    fs::rename(dev0, scratch.path("kept"));
    fs::rename(dev1, dev0);
    fs::rename(scratch.path("kept"), dev1);
    CHECK(refusal().code() == ErrorCode::corrupt);
    CHECK_THAT(refusal().message(), Catch::Contains(dev0) && Catch::Contains("exchanged"));
  }
  SECTION("of another state") {
    const StateStore::Options other = quick_options(scratch.path("other"));
    make_state(other, kGeometry, 1).reset();
    fs::copy_file(other.directory + "/dev1/state.slc", dev1 + "/state.slc",
                  fs::copy_options::overwrite_existing);
    CHECK(refusal().code() == ErrorCode::corrupt);
    CHECK_THAT(refusal().message(),
               Catch::Contains(dev1 + "/state.slc") && Catch::Contains("another optimizer state"));
  }
  SECTION("foreign") {
    write_text(dev0 + "/state.slc", std::string(100'000, 'x'));
    CHECK(refusal().code() == ErrorCode::corrupt);
    CHECK_THAT(refusal().message(), Catch::Contains(dev0 + "/state.slc: at offset 0"));
  }
}

}  // namespace
}  // namespace sluice::state
