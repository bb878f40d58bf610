#include "core/settings/run_config.h"

#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

using namespace sluice;
using namespace sluice::settings;

namespace {

const std::string kRequired = "model = 'm.toml'\nplatform = 'p.toml'\ntext = 't.txt'\n";

Result<RunConfig> parse(const std::string& toml, const std::vector<std::string>& overrides = {}) {
  return parse_run_config(toml, "runs/try.toml", overrides);
}

std::string error_of(const std::string& toml, const std::vector<std::string>& overrides = {}) {
  const auto config = parse(toml, overrides);
  if (config.ok()) return "no error";
  CHECK(config.error().code() == ErrorCode::config);
  return config.error().message();
}

// The message about one line that follows the required ones.
std::string error_of_line(const std::string& line) { return error_of(kRequired + line + "\n"); }
std::string error_of_set(const std::string& text) { return error_of(kRequired, {text}); }

std::string text_of_file(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("a run file sets what it names and leaves the rest at its default") {
  const auto config = parse(kRequired +
                            "steps = 12\n[offload]\nmethod = 'host'\ndevices = 4\n"
                            "device_map = '3,1,1,1'\nprefetch = false\n"
                            "[resources]\nhost_memory = '2GiB'\ndevice_memory = 4096\n"
                            "[anything]\nlr = 1\nprecision = 'fp16'\n");
  REQUIRE(config.ok());
  CHECK(config->schedule.steps == 12);
  CHECK(config->offload.method == Method::host);
  CHECK(config->offload.device_shares == std::vector<double>{3, 1, 1, 1});
  CHECK_FALSE(config->offload.prefetch);
  CHECK(config->resources.host_memory_bytes == std::int64_t{2} << 30);
  CHECK(config->resources.device_memory_bytes == 4096);
  CHECK(config->update.lr == 1.0);
  CHECK(config->arithmetic.precision == ParameterKind::fp16);
  CHECK(config->offload.buffers == RunConfig().offload.buffers);
}

TEST_CASE("a setting of another optimizer is named, with where it was said") {
  CHECK(parse(kRequired, {"beta2=0.95", "eps=1e-7"})->warnings.empty());
  CHECK(parse(kRequired, {"optimizer=sgd", "momentum=0.5"})->warnings.empty());
  CHECK(parse(kRequired, {"optimizer=adagrad", "eps=1e-9"})->warnings.empty());
  CHECK(parse(kRequired + "beta1 = 0.8\n", {"optimizer=sgd", "eps=1e-7"})->warnings ==
        std::vector<std::string>{
            "runs/try.toml:4: beta1 has no effect with optimizer=sgd; it is a setting of adamw",
            "--set eps=1e-7: eps has no effect with optimizer=sgd; it is a setting of adamw and "
            "adagrad"});
  CHECK(parse(kRequired, {"momentum=0.5"})->warnings.size() == 1);
}

TEST_CASE("lr, eps and weight_decay that nobody sets are those that suit the optimizer") {
  const auto adamw = parse(kRequired);
  const auto sgd = parse(kRequired, {"optimizer=sgd"});
  const auto adagrad = parse(kRequired + "optimizer = 'adagrad'\n");
  REQUIRE((adamw.ok() && sgd.ok() && adagrad.ok()));
  CHECK(adamw->update.lr == 1e-3);
  CHECK(adamw->update.eps == 1e-8);
  CHECK(adamw->update.weight_decay == 0.01);
  CHECK(sgd->update.lr == 0.1);
  CHECK(sgd->update.momentum == 0.9);
  CHECK(sgd->update.weight_decay == 0);
  CHECK(adagrad->update.lr == 0.01);
  CHECK(adagrad->update.eps == 1e-10);
  CHECK(adagrad->update.weight_decay == 0);

  const auto given = parse(kRequired + "weight_decay = 0.01\nlr = 0.001\n",
                           {"optimizer=adagrad", "eps=1e-8", "momentum=0.5"});
  REQUIRE(given.ok());
  CHECK(given->update.lr == 1e-3);
  CHECK(given->update.eps == 1e-8);
  CHECK(given->update.weight_decay == 0.01);
  CHECK(given->update.momentum == 0.5);
  CHECK(error_of_set("optimizer=adam").find("adamw, sgd, adagrad") != std::string::npos);
  CHECK(error_of_set("momentum=1").find("at least 0, below 1") != std::string::npos);
}

TEST_CASE("paths in the file are relative to its folder, paths of --set to the working directory") {
  const auto config = parse(
      "model = '../models/m.toml'\nplatform = '/etc/p.toml'\ntext = 't.txt'\n", {"text=my/t.txt"});
  REQUIRE(config.ok());
  CHECK(config->files.model == "models/m.toml");
  CHECK(config->files.platform == "/etc/p.toml");
  CHECK(config->files.text == "my/t.txt");
}

TEST_CASE("name and output folders follow from the file unless they are given") {
  const auto plain = parse(kRequired);
  REQUIRE(plain.ok());
  CHECK(plain->files.name == "try");
  CHECK(plain->files.output == "out/try");
  CHECK(plain->files.state_directory == "out/try/state");
  CHECK(plain->files.database == "out/try/run.db");

  const auto given = parse(kRequired, {"name=other", "db=x.db", "output=/tmp/o"});
  REQUIRE(given.ok());
  CHECK(given->files.name == "other");
  CHECK(given->files.state_directory == "/tmp/o/state");
  CHECK(given->files.database == "x.db");
}

TEST_CASE("the last --set of a key wins over earlier ones and over the file") {
  const auto config = parse(kRequired + "buffers = 2\n", {"buffers=3", "buffers=4"});
  REQUIRE(config.ok());
  CHECK(config->offload.buffers == 4);
}

TEST_CASE("an unknown key names its line and the nearest right one") {
  CHECK(error_of_line("[offload]\nbufers = 2") ==
        "runs/try.toml:5: unknown key 'bufers' (did you mean 'buffers'?)");
  CHECK(error_of_set("stpes=2") == "--set stpes=2: unknown key 'stpes' (did you mean 'steps'?)");
  CHECK(error_of_line("qqqqqqqqqqqqqqqqqqqqqqq = 1") ==
        "runs/try.toml:4: unknown key 'qqqqqqqqqqqqqqqqqqqqqqq'");
}

TEST_CASE("a value of the wrong type is refused with what would be right") {
  CHECK(error_of_line("buffers = '2'") == "runs/try.toml:4: buffers must be an integer, got \"2\"");
  CHECK(error_of_line("buffers = 2.5") == "runs/try.toml:4: buffers must be an integer, got 2.5");
  CHECK(error_of_line("prefetch = 1") == "runs/try.toml:4: prefetch must be true or false, got 1");
  CHECK(error_of_line("lr = 'fast'") == "runs/try.toml:4: lr must be a number, got \"fast\"");
  CHECK(error_of_line("name = 3") == "runs/try.toml:4: name must be a string, got 3");
  CHECK(error_of_line("steps = [1, 2]") == "runs/try.toml:4: steps cannot be of type array");
  CHECK(error_of_line("[a.b]\nsteps = 1").find("unknown key 'b'") != std::string::npos);
  CHECK(error_of_set("buffers=two") == "--set buffers=two: buffers must be an integer, got 'two'");
  CHECK(error_of_set("buffers=2x") == "--set buffers=2x: buffers must be an integer, got '2x'");
  CHECK(error_of_set("buffers=") == "--set buffers=: buffers must be an integer, got ''");
  CHECK(error_of_set("prefetch=yes") ==
        "--set prefetch=yes: prefetch must be true or false, got 'yes'");
  CHECK(error_of_set("buffers") == "--set buffers: expected key=value");
  CHECK(error_of_set("host_memory=lots").find("--set host_memory=lots: host_memory: ") == 0);
}

TEST_CASE("a value out of range is refused with the range") {
  CHECK(error_of_line("buffers = 65") ==
        "runs/try.toml:4: buffers = 65 is out of range: it must be 1 to 64");
  CHECK(error_of_set("devices=0") ==
        "--set devices=0: devices = 0 is out of range: it must be 1 to 1024");
  CHECK(error_of_set("beta1=1") ==
        "--set beta1=1: beta1 = 1 is out of range: it must be at least 0, below 1");
  CHECK(error_of_set("time_scale=0") ==
        "--set time_scale=0: time_scale = 0 is out of range: it must be 0.001 to 1000000");
  CHECK(error_of_set("io_bytes=5000") ==
        "--set io_bytes=5000: io_bytes = 5000 is out of range: it must be 4KiB to 64MiB, a "
        "multiple of 4KiB");
  CHECK(error_of_set("steps=99999999999999999999").find("out of range") != std::string::npos);
  CHECK(error_of_line("lr = nan").find("out of range") != std::string::npos);
  CHECK(error_of_line("lr = inf").find("out of range") != std::string::npos);
  CHECK(error_of_line("host_memory = -1").find("must be 0 to 1000TB") != std::string::npos);
}

TEST_CASE("a word that is not one of the choices is refused with the choices") {
  CHECK(error_of_line("method = 'hots'") ==
        "runs/try.toml:4: method = \"hots\" is not one of host, csd (did you mean 'host'?)");
  CHECK(error_of_set("pipeline=serail") ==
        "--set pipeline=serail: pipeline = \"serail\" is not one of serial, handover, nbuffer (did "
        "you mean 'serial'?)");
  CHECK(error_of_line("clock = 3") ==
        "runs/try.toml:4: clock must be one of the words real, emulated, got 3");
}

TEST_CASE("a device map is even or has one share a device") {
  const auto even = parse(kRequired, {"devices=3", "device_map=even"});
  REQUIRE(even.ok());
  CHECK(even->offload.device_shares.empty());
  CHECK(parse(kRequired, {"devices=2", "device_map=0, 1.5"}).ok());
  CHECK(error_of(kRequired, {"devices=3", "device_map=3,1"}) ==
        "--set device_map=3,1: device_map has 2 shares but devices = 3: give one share a device, "
        "or \"even\"");
  CHECK(error_of_set("device_map=0").find("at least one share") != std::string::npos);
  CHECK(error_of_set("device_map=1,,1").find("must be \"even\" or numbers") != std::string::npos);
  CHECK(error_of_set("device_map=-1,2").find("out of range") != std::string::npos);
  CHECK(error_of_set("device_map=nan").find("out of range") != std::string::npos);
}

TEST_CASE("a size may be left to the memory plan where the table says so") {
  for (const char* text : {"auto", "0", "64MiB"}) {
    const auto config = parse(kRequired, {std::string("state_cache=") + text});
    REQUIRE(config.ok());
    CHECK(value_of(*config, "state_cache") == text);
  }
  CHECK(parse(kRequired + "state_cache = 'auto'\n")->offload.state_cache_bytes == kAutomatic);
  for (const char* wrong : {"state_cache=most", "state_cache=-1"}) {
    CHECK(error_of_set(wrong).find("must be \"auto\", or a number of bytes") != std::string::npos);
  }
  CHECK(error_of_line("state_cache = -1").find("it must be auto, or 0 to 1000TB") !=
        std::string::npos);
  CHECK(error_of_set("bounce_memory=auto") != "no error");
}

TEST_CASE("settings that contradict one another are refused at the key's place") {
  CHECK(error_of_line("lr = 0.1\nmin_lr = 0.2") ==
        "runs/try.toml:5: min_lr = 0.2 is above lr = 0.1");
  CHECK(error_of_set("name=a/b").find("--set name=a/b: ") == 0);
  CHECK(error_of_set("sample_prompt=").find("must begin somewhere") != std::string::npos);
}

TEST_CASE("state in fewer bytes is refused where it cannot be, at the key's place") {
  for (const std::string format : {"exact", "compact"}) {
    const std::string set = "state_format=" + format;
    for (const std::string precision : {"fp16", "fp32"}) {
      CHECK(error_of(kRequired, {"precision=" + precision, set}).find("--set " + set + ": ") == 0);
      CHECK(error_of(kRequired, {"precision=" + precision, set}).find("precision = \"bf16\"") !=
            std::string::npos);
    }
    CHECK(parse(kRequired, {"method=csd", set}).ok());
  }
  CHECK(parse(kRequired, {"precision=fp32", "state_format=fp32"}).ok());
  CHECK(error_of_line("remainder_bits = 12") ==
        "runs/try.toml:4: remainder_bits = 12: a remainder has 16 bits or 8");
  CHECK(error_of_set("remainder_bits=4").find("is out of range: it must be 8 to 16") !=
        std::string::npos);
  CHECK(error_of_set("state_format=bf16").find("is not one of fp32, exact, compact") !=
        std::string::npos);
  const auto config = parse(kRequired, {"state_format=compact", "remainder_bits=8"});
  REQUIRE(config.ok());
  CHECK(config->offload.state_format == StateFormat{StateFormatKind::compact, 8});
}

TEST_CASE("a missing key, a doubled key and bad TOML are named") {
  CHECK(error_of("model = 'm'\ntext = 't'\n").find("runs/try.toml: 'platform' is missing") == 0);
  CHECK(error_of_line("steps = 1\n[schedule]\nsteps = 2") ==
        "runs/try.toml:6: 'steps' is said twice, first at runs/try.toml:4");
  CHECK(error_of_line("steps = = 2").find("runs/try.toml:4: ") == 0);
}

TEST_CASE("a run file that is not there is not_found and a folder is no run file") {
  const auto missing = load_run_config("/nonexistent/run.toml", {});
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().code() == ErrorCode::not_found);
  CHECK(missing.error().message() ==
        "/nonexistent/run.toml: cannot read the run file: No such file or directory");
  const auto folder = load_run_config("/tmp", {});
  REQUIRE_FALSE(folder.ok());
  CHECK(folder.error().code() == ErrorCode::not_found);
}

TEST_CASE("every value printed for a run is taken back by --set and means the same") {
  const std::vector<std::string> unusual = {"method=host",
                                            "devices=3",
                                            "device_map=2,1,1",
                                            "host_memory=3GiB",
                                            "lr=0.00123",
                                            "clock=emulated",
                                            "record=steps",
                                            "io_engine=posix",
                                            "io_bytes=12KiB",
                                            "wire=native",
                                            "prefetch=false",
                                            "seed=9007199254740992",
                                            "sample_prompt=a = b, \"c\""};
  const auto first = parse(kRequired, unusual);
  REQUIRE(first.ok());
  std::vector<std::string> again;
  for (const auto& [key, value] : setting_values(*first)) again.push_back(key + "=" + value);
  const auto second = parse(kRequired, again);
  REQUIRE(second.ok());
  CHECK(setting_values(*first) == setting_values(*second));
  CHECK(value_of(*second, "host_memory") == "3GiB");
  CHECK(value_of(*second, "device_map") == "2,1,1");
}

TEST_CASE("settings over those of a program are checked as those of a file are") {
  RunConfig start;
  start.files.name = "it's \"so\"\nmethod = 'host'";
  start.files.model = "m'.toml";
  start.files.platform = "p\n";
  start.files.text = "t";
  start.batch.batch = 4;
  const std::vector<std::string> overrides = {"buffers=5", "optimizer=sgd"};
  const auto config = override_run_config(start, "simulate", overrides);
  INFO((config.ok() ? "" : config.error().message()));
  REQUIRE(config.ok());
  CHECK(config->files.name == start.files.name);
  CHECK(config->files.model == "m'.toml");
  CHECK(config->offload.method == Method::csd);
  CHECK(config->batch.batch == 4);
  CHECK(config->offload.buffers == 5);
  CHECK(config->update.lr == optimizer::default_options(RuleKind::sgd).lr);
  start.batch.sequence = std::int64_t{1} << 40;
  const auto refused = override_run_config(start, "simulate", {});
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message() ==
        "simulate: sequence = 1099511627776 is out of range: it must be 1 to 1048576");
  start.batch.sequence = 1;
  start.files.platform.clear();
  CHECK(
      override_run_config(start, "simulate", {}).error().message().find("'platform' is missing") !=
      std::string::npos);
}

TEST_CASE("subgroups far below a page are taken with a warning that names a size") {
  CHECK(parse(kRequired, {"subgroup_elements=512"})->warnings.empty());
  const auto small = parse(kRequired, {"subgroup_elements=64"});
  REQUIRE(small.ok());
  REQUIRE(small->warnings.size() == 1);
  CHECK(small->warnings[0] ==
        "--set subgroup_elements=64: each array of a subgroup takes 256 of the 4096 bytes of its "
        "page; it counts elements, not MiB: 4194304 makes arrays of 16 MiB");
}

TEST_CASE("every setting has a sentence and a key of its own, and its default is in range") {
  std::set<std::string> keys;
  std::vector<std::string> defaults;
  for (const SettingInfo& info : settings::settings()) {
    INFO(info.key);
    CHECK(keys.insert(info.key).second);
    CHECK(info.help.ends_with('.'));
    CHECK_FALSE(info.values.empty());
    if (info.default_value != "required") defaults.push_back(info.key + "=" + info.default_value);
  }
  const auto config = parse(kRequired, defaults);
  INFO((config.ok() ? "" : config.error().message()));
  CHECK(config.ok());
}

TEST_CASE("docs/settings.md is what the table says") {
  const std::string page = std::string(SLUICE_SOURCE_DIR) + "/docs/settings.md";
  if (std::getenv("SLUICE_WRITE_DOCS") != nullptr) std::ofstream(page) << settings_markdown();
  CHECK(text_of_file(page) == settings_markdown());
  for (const SettingInfo& info : settings::settings()) {
    CHECK(describe_settings().find("  " + info.key + " ") != std::string::npos);
  }
}

TEST_CASE("the runs that come with the source are valid") {
  int run_count = 0;
  const std::string folder = std::string(SLUICE_SOURCE_DIR) + "/sample_models/runs";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const auto config = load_run_config(entry.path().string(), {});
    INFO((config.ok() ? entry.path().string() : config.error().message()));
    CHECK(config.ok());
    ++run_count;
  }
  CHECK(run_count >= 2);
}
