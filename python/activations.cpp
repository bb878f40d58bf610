#include "python/activations.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <unistd.h>

#include <memory>

#include "core/activation/saved_tensors.h"
#include "python/raised.h"

namespace nb = nanobind;

namespace sluice::python {
namespace {

using activation::SavedTensors;
using Bytes = nb::ndarray<const std::uint8_t, nb::c_contig, nb::device::cpu>;
using Room = nb::ndarray<std::uint8_t, nb::c_contig, nb::device::cpu>;

std::span<const std::byte> bytes_of(const Bytes& bytes) {
  return std::as_bytes(std::span(bytes.data(), bytes.size()));
}

// The store as the process has it that opened it. A process that was forked from that one has its
// descriptor and its memory, but none of its threads, and lets go of nothing.
class Store {
 public:
  explicit Store(const SavedTensors::Options& options)
      : saved_(value_or_raise(SavedTensors::open(options))) {}
  ~Store() {
    if (!is_own()) static_cast<void>(saved_.release());
  }
  bool is_own() const { return process_ == getpid(); }
  SavedTensors& saved() {
    if (is_own()) return *saved_;
    throw Raised{make_error(ErrorCode::config,
                            "this process was forked from {}, which has the saved tensors on a "
                            "drive; only that one can have them back",
                            process_)};
  }

 private:
  const pid_t process_ = getpid();
  std::unique_ptr<SavedTensors> saved_;
};

// A tensor of it, for as long as Python has this object. It keeps the store.
class Saved {
 public:
  Saved(std::shared_ptr<Store> store, SavedTensors::Number number)
      : store_(std::move(store)), number_(number) {}
  ~Saved() {
    if (store_->is_own()) store_->saved().drop(number_);
  }
  Saved(const Saved&) = delete;
  Saved& operator=(const Saved&) = delete;

  bool has_bytes(const Bytes& bytes) {
    SavedTensors& saved = store_->saved();
    const std::span<const std::byte> compared = bytes_of(bytes);
    const nb::gil_scoped_release others_run;
    return saved.has_bytes(number_, compared);
  }

  void load(const Room& into, bool is_wanted_again) {
    SavedTensors& saved = store_->saved();
    const auto room = std::as_writable_bytes(std::span(into.data(), into.size()));
    const auto after = is_wanted_again ? SavedTensors::After::wanted : SavedTensors::After::unused;
    const nb::gil_scoped_release others_run;
    value_or_raise(saved.load(number_, room, after));
  }

 private:
  const std::shared_ptr<Store> store_;
  const SavedTensors::Number number_;
};

// What Python holds; its Saved ones outlive it.
class PythonStore {
 public:
  PythonStore(const std::string& folder, std::int64_t in_flight_bytes)
      : store_(std::make_shared<Store>(
            SavedTensors::Options{.folder = folder, .in_flight_bytes = in_flight_bytes})) {}

  std::unique_ptr<Saved> save(const Bytes& bytes, std::int64_t rank) {
    SavedTensors& saved = store_->saved();
    const std::span<const std::byte> kept = bytes_of(bytes);
    const auto number = [&] {
      const nb::gil_scoped_release others_run;
      return value_or_raise(saved.save(kept, rank));
    }();
    return std::make_unique<Saved>(store_, number);
  }

  nb::dict counts() {
    const SavedTensors::Counts counts = store_->saved().counts();
    nb::dict found;
    found["written_bytes"] = counts.written_bytes;
    found["read_bytes"] = counts.read_bytes;
    found["unwritten_bytes"] = counts.unwritten_bytes;
    found["at_hand_bytes"] = counts.at_hand_bytes;
    found["peak_in_flight_bytes"] = counts.peak_in_flight_bytes;
    found["save_wait_ns"] = counts.save_wait_ns;
    found["load_wait_ns"] = counts.load_wait_ns;
    found["write_busy_ns"] = counts.write_busy_ns;
    found["read_busy_ns"] = counts.read_busy_ns;
    return found;
  }

  bool is_direct() { return store_->saved().file().caching() == io::Caching::direct; }

 private:
  std::shared_ptr<Store> store_;
};

std::int64_t parsed_bytes(const std::string& text) { return value_or_raise(parse_bytes(text)); }

}  // namespace

void register_activations(nb::module_& module) {
  module.def("parsed_bytes", &parsed_bytes, nb::arg("text"));
  module.def("bytes_text", &format_bytes, nb::arg("bytes"));
  module.attr("LEAST_IN_FLIGHT_BYTES") = SavedTensors::kLeastInFlightBytes;
  nb::class_<Saved>(module, "SavedTensor", "a tensor of SavedTensors")
      .def("has_bytes", &Saved::has_bytes, nb::arg("bytes").noconvert())
      .def("load", &Saved::load, nb::arg("into").noconvert(), nb::arg("is_wanted_again"));
  nb::class_<PythonStore>(module, "SavedTensors", "core/activation/saved_tensors.h")
      .def(nb::init<const std::string&, std::int64_t>(), nb::arg("folder"),
           nb::arg("in_flight_bytes"))
      .def("save", &PythonStore::save, nb::arg("bytes").noconvert(), nb::arg("rank"))
      .def("counts", &PythonStore::counts)
      .def_prop_ro("is_direct", &PythonStore::is_direct);
}

}  // namespace sluice::python
