// Pairing on made sysfs trees: two SmartSSDs below one backplane, a card and a drive without a
// switch, and what is no PCI drive.

#include "hls/host/pairing.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "tests/test_folder.h"

using namespace sluice;
using namespace sluice::hls_host;
using Catch::Matchers::Contains;

namespace fs = std::filesystem;

namespace {

// sysfs as the kernel lays it out: devices below their bridges, and links to them by number.
class MadeTree {
 public:
  std::string root() const { return folder_.path(); }

  // `bridges`: from the root complex down, "pci0000:3a/0000:3a:00.0/...".
  void add_card(const std::string& bridges, const std::string& address) {
    const fs::path device = make(fs::path("devices") / bridges / address);
    link("bus/pci/devices/" + address, device);
  }
  fs::path add_drive(const std::string& bridges, const std::string& address,
                     const std::string& name, const std::string& number) {
    const std::string controller = name.substr(0, name.find('n', 1));
    const fs::path device =
        make(fs::path("devices") / bridges / address / "nvme" / controller / name);
    link("dev/block/" + number, device);
    return device;
  }
  void add_partition(const fs::path& drive, const std::string& name, const std::string& number) {
    const fs::path device = make(drive / name);
    std::ofstream(device / "partition") << "1\n";
    link("dev/block/" + number, device);
  }
  fs::path make(const fs::path& path) {
    const fs::path whole = path.is_absolute() ? path : fs::path(root()) / path;
    fs::create_directories(whole);
    return whole;
  }
  void link(const std::string& from, const fs::path& to) {
    const fs::path place = fs::path(root()) / from;
    fs::create_directories(place.parent_path());
    fs::create_directory_symlink(to, place);
  }

 private:
  TestFolder folder_;
};

// Two SmartSSDs in one backplane: a switch of the backplane, and in each a switch of its own.
struct TwoSmartSsds : MadeTree {
  static constexpr const char* kFirst =
      "pci0000:3a/0000:3a:00.0/0000:3b:00.0/0000:3c:00.0/0000:3d:00.0";
  static constexpr const char* kSecond =
      "pci0000:3a/0000:3a:00.0/0000:3b:00.0/0000:3c:01.0/0000:41:00.0";
  TwoSmartSsds() {
    first = add_drive(std::string(kFirst) + "/0000:3e:00.0", "0000:3f:00.0", "nvme0n1", "259:0");
    add_card(std::string(kFirst) + "/0000:3e:01.0", "0000:40:00.1");
    add_drive(std::string(kSecond) + "/0000:42:00.0", "0000:43:00.0", "nvme1n1", "259:3");
    add_card(std::string(kSecond) + "/0000:42:01.0", "0000:44:00.1");
  }
  fs::path first;
};

PciPlace drive(const MadeTree& tree, const std::string& number) {
  auto place = drive_of_number(number, tree.root());
  REQUIRE(place.ok());
  return *place;
}

PciPlace card(const MadeTree& tree, const std::string& address) {
  const auto place = place_of_card(address, tree.root());
  REQUIRE(place.has_value());
  return *place;
}

}  // namespace

TEST_CASE("a SmartSSD's drive and card share a switch, and no other's") {
  const TwoSmartSsds tree;
  CHECK(drive(tree, "259:0").name == "nvme0n1");
  CHECK(drive(tree, "259:0").address() == "0000:3f:00.0");
  CHECK(share_switch(card(tree, "0000:40:00.1"), drive(tree, "259:0")));
  CHECK(share_switch(drive(tree, "259:3"), card(tree, "0000:44:00.1")));
  CHECK_FALSE(share_switch(card(tree, "0000:44:00.1"), drive(tree, "259:0")));
  CHECK_FALSE(share_switch(card(tree, "0000:40:00.1"), card(tree, "0000:44:00.1")));
}

TEST_CASE("a partition lies on its drive") {
  TwoSmartSsds tree;
  tree.add_partition(tree.first, "nvme0n1p1", "259:1");
  const PciPlace place = drive(tree, "259:1");
  CHECK(place.name == "nvme0n1");
  CHECK(share_switch(card(tree, "0000:40:00.1"), place));
}

TEST_CASE("a drive of several controllers is found by the one that it has") {
  TwoSmartSsds tree;
  const fs::path space = tree.make("devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1");
  tree.link("dev/block/259:7", space);
  tree.link("devices/virtual/nvme-subsystem/nvme-subsys0/nvme0", tree.first.parent_path());
  CHECK(share_switch(card(tree, "0000:40:00.1"), drive(tree, "259:7")));
}

TEST_CASE("below a root port each, two devices share no switch") {
  MadeTree tree;
  tree.add_drive("pci0000:00/0000:00:01.0", "0000:01:00.0", "nvme0n1", "259:0");
  tree.add_card("pci0000:00/0000:00:02.0", "0000:02:00.0");
  CHECK_FALSE(share_switch(card(tree, "0000:02:00.0"), drive(tree, "259:0")));
}

TEST_CASE("what is no PCI drive is said") {
  MadeTree tree;
  tree.link("dev/block/253:0", tree.make("devices/virtual/block/dm-0"));
  const auto mapped = drive_of_number("253:0", tree.root());
  REQUIRE_FALSE(mapped.ok());
  CHECK_THAT(mapped.error().message(), Contains("it lies on dm-0"));
  const auto unknown = drive_of_number("0:42", tree.root());
  REQUIRE_FALSE(unknown.ok());
  CHECK_THAT(unknown.error().message(), Contains("no block device of its own (0:42)"));
  const auto absent = drive_of_file(tree.root() + "/absent", tree.root());
  REQUIRE_FALSE(absent.ok());
  CHECK_THAT(absent.error().message(), Contains("/absent: cannot be looked at"));
}

TEST_CASE("a wrong pair is refused with the card that would be right") {
  TwoSmartSsds tree;
  // The file of the test lies where it lies: its number gets the first SmartSSD's drive.
  struct stat info = {};
  REQUIRE(stat(tree.root().c_str(), &info) == 0);
  tree.link(fmt::format("dev/block/{}:{}", major(info.st_dev), minor(info.st_dev)), tree.first);
  const std::vector<std::string> cards = {"0000:44:00.1", "0000:40:00.1"};
  bool checked = false;
  const Status wrong = check_pairing({"csd0", cards[0], cards, tree.root()}, tree.root(), checked);
  REQUIRE_FALSE(wrong.ok());
  CHECK(checked);
  CHECK(wrong.error().code() == ErrorCode::config);
  CHECK_THAT(wrong.error().message(),
             Contains("csd0 is the card 0000:44:00.1") && Contains("nvme0n1 (0000:3f:00.0)") &&
                 Contains("card 0000:40:00.1") && Contains("XRT's number 1"));
  CHECK(check_pairing({"csd1", cards[1], cards, tree.root()}, tree.root(), checked).ok());
  CHECK(checked);
  const Status alone =
      check_pairing({"csd0", cards[0], {cards[0]}, tree.root()}, tree.root(), checked);
  REQUIRE_FALSE(alone.ok());
  CHECK_THAT(alone.error().message(), Contains("no card shares that drive's switch"));
}

TEST_CASE("a card that sysfs does not know is not checked") {
  const TwoSmartSsds tree;
  bool checked = true;
  CHECK(check_pairing({"csd0", "0000:99:00.0", {}, "/nowhere"}, tree.root(), checked).ok());
  CHECK_FALSE(checked);
}
