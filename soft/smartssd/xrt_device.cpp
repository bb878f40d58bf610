#include "soft/smartssd/xrt_device.h"

#include <cstring>
#include <new>
#include <system_error>

namespace sluice::soft_smartssd {

namespace {

class OutOfDeviceMemory : public std::bad_alloc {
 public:
  explicit OutOfDeviceMemory(std::string message) : message_(std::move(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  std::string message_;
};

std::errc errc_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::unsupported:
      return std::errc::not_supported;
    case ErrorCode::busy:
      return std::errc::device_or_resource_busy;
    case ErrorCode::io:
      return std::errc::no_such_device;
    default:
      return std::errc::invalid_argument;
  }
}

void throw_error(const Error& error) {
  const std::string message = "SOFTWARE SmartSSD: " + error.message();
  if (error.code() == ErrorCode::memory) throw OutOfDeviceMemory(message);
  throw std::system_error(std::make_error_code(errc_of(error.code())), message);
}

void check(const Status& status) {
  if (!status.ok()) throw_error(status.error());
}

template <typename T>
T value_or_throw(Result<T> result) {
  if (!result.ok()) throw_error(result.error());
  return std::move(*result);
}

[[noreturn]] void refuse(const char* what) {
  throw std::system_error(std::make_error_code(std::errc::not_supported),
                          std::string("SOFTWARE SmartSSD: there is no ") + what);
}

// XRT's numbers of the queries that are answered; the others are answered by the xclbin.
enum Query : int {
  kPcieBdf = 8,
  kRomVbnv = 12,
  kM2m = 60,
  kNodma = 62,
  kClockFreqsMhz = 64,
  kKdsNumcdmas = 138,
  kIsOffline = 151,
};

const SoftDevice& soft_device_of(const xrt_core::device* device) {
  return *static_cast<const OpenDevice*>(device->get_device_handle())->soft;
}

class Answer : public xrt_core::query::request {
 public:
  using Make = boost::any (*)(const SoftDevice&);
  explicit Answer(Make make) : make_(make) {}

  using Any = boost::any;
  using Device = const xrt_core::device*;
  Any get(Device device) const override { return make_(soft_device_of(device)); }
  Any get(Device, const Any&) const override { refuse("query with an argument"); }
  Any get(Device, const Any&, const Any&) const override { refuse("query with arguments"); }
  Any get(Device, modifier, const std::string&) const override { refuse("modified query"); }
  Any get(Device, const Any&, const Any&, const Any&) const override {
    refuse("query with arguments");
  }
  void put(Device, const Any&) const override { refuse("query that writes"); }

 private:
  Make make_;
};

const std::map<int, Answer>& answers() {
  static const auto* table = new std::map<int, Answer>{
      {kPcieBdf, Answer([](const SoftDevice& device) -> boost::any {
         const auto bdf = bdf_of(device.index());
         return std::make_tuple(bdf[0], bdf[1], bdf[2], bdf[3]);
       })},
      {kRomVbnv, Answer([](const SoftDevice&) -> boost::any { return std::string(kDeviceName); })},
      {kM2m, Answer([](const SoftDevice&) -> boost::any { return std::uint32_t{1}; })},
      {kNodma, Answer([](const SoftDevice&) -> boost::any { return std::uint32_t{0}; })},
      {kClockFreqsMhz, Answer([](const SoftDevice&) -> boost::any {
         return std::vector<std::string>{"300", "300"};
       })},
      {kKdsNumcdmas, Answer([](const SoftDevice&) -> boost::any { return std::uint32_t{0}; })},
      {kIsOffline, Answer([](const SoftDevice& device) -> boost::any { return device.is_lost(); })},
  };
  return *table;
}

class XrtDevice final : public xrt_core::device {
 public:
  explicit XrtDevice(OpenDevice* handle)
      : xrt_core::device(static_cast<unsigned>(handle->soft->index())), handle_(handle) {}

  void* get_device_handle() const override { return handle_; }
  bool is_userpf() const override { return true; }
  const xrt_core::query::request& lookup_query(xrt_core::query::key_type key) const override {
    const auto found = answers().find(static_cast<int>(key));
    if (found == answers().end()) throw xrt_core::query::no_such_key(key);
    return found->second;
  }

  void close_device() override { delete handle_; }  // and with it this
  void open_context(const unsigned char* xclbin, unsigned unit, bool shared) override {
    check(soft().open_context(std::as_bytes(std::span(xclbin, 16)), unit,
                              shared ? UnitAccess::shared : UnitAccess::exclusive));
  }
  void close_context(const unsigned char*, unsigned unit) override { soft().close_context(unit); }

  unsigned alloc_bo(std::size_t size, unsigned flags) override {
    return value_or_throw(soft().allocate(size, flags, nullptr));
  }
  unsigned alloc_bo(void* host, std::size_t size, unsigned flags) override {
    return value_or_throw(soft().allocate(size, flags, host));
  }
  void free_bo(unsigned handle) override { soft().free(handle); }
  int export_bo(unsigned handle) const override {
    return value_or_throw(soft().export_buffer(handle));
  }
  unsigned import_bo(int fd) override { return value_or_throw(soft().import_buffer(fd)); }
  void close_export_handle(int fd) override { check(SoftDevice::close_export(fd)); }
  void copy_bo(unsigned to, unsigned from, std::size_t size, std::size_t to_offset,
               std::size_t from_offset) override {
    check(soft().copy({to, from, to_offset, from_offset, size}));
  }
  void sync_bo(unsigned handle, xclBOSyncDirection direction, std::size_t size,
               std::size_t offset) override {
    check(soft().sync(handle, direction == XCL_BO_SYNC_BO_TO_DEVICE ? SyncTo::device : SyncTo::host,
                      size, offset));
  }
  void* map_bo(unsigned handle, bool) override {
    const auto bytes = value_or_throw(soft().buffer(handle))->host_bytes();
    if (bytes.empty()) refuse("mapping of a buffer that is on the device only");
    return bytes.data();
  }
  void unmap_bo(unsigned, void*) override {}  // with the buffer
  void get_bo_properties(unsigned handle, xclBOProperties* properties) const override {
    const auto buffer = value_or_throw(soft().buffer(handle));
    *properties = {};
    properties->handle = handle;
    properties->size = buffer->size_bytes();
    properties->paddr = soft().address_of(*buffer);
  }

  void reg_read(std::uint32_t unit, std::uint32_t offset, std::uint32_t* data) const override {
    *data = value_or_throw(soft().read_register(unit, offset));
  }
  void reg_write(std::uint32_t unit, std::uint32_t offset, std::uint32_t data) override {
    check(soft().write_register(unit, offset, data));
  }
  void exec_buf(unsigned handle) override { check(soft().execute(handle)); }
  int exec_wait(int timeout_ms) const override {
    return soft().wait(handle_->seen, std::chrono::milliseconds(timeout_ms)) ? 1 : 0;
  }
  void load_axlf(const axlf* file) override {
    check(soft().load(file_at(file)));
    register_axlf(file);
  }

  // Functions that the card has and the model lacks.
  void xread(xclAddressSpace, std::uint64_t, void*, std::size_t) const override {
    refuse("raw access");
  }
  void xwrite(xclAddressSpace, std::uint64_t, const void*, std::size_t) override {
    refuse("raw access");
  }
  void unmgd_pread(void*, std::size_t, std::uint64_t) override { refuse("unmanaged access"); }
  void unmgd_pwrite(const void*, std::size_t, std::uint64_t) override {
    refuse("unmanaged access");
  }
  void reclock(const std::uint16_t*) override {}
  void p2p_enable(bool) override {}
  void p2p_disable(bool) override { refuse("way to turn P2P off"); }
  void set_cma(bool, std::uint64_t) override { refuse("host memory access"); }
  void update_scheduler_status() override {}
  void user_reset(xclResetKind) override { refuse("reset"); }

  // AI engines.
  void* open_graph(const unsigned char*, const char*, xrt::graph::access_mode) override {
    refuse(kGraph);
  }
  void close_graph(void*) override { refuse(kGraph); }
  void reset_graph(void*) override { refuse(kGraph); }
  std::uint64_t get_timestamp(void*) override { refuse(kGraph); }
  void run_graph(void*, int) override { refuse(kGraph); }
  int wait_graph_done(void*, int) override { refuse(kGraph); }
  void wait_graph(void*, std::uint64_t) override { refuse(kGraph); }
  void suspend_graph(void*) override { refuse(kGraph); }
  void resume_graph(void*) override { refuse(kGraph); }
  void end_graph(void*, std::uint64_t) override { refuse(kGraph); }
  void update_graph_rtp(void*, const char*, const char*, std::size_t) override { refuse(kGraph); }
  void read_graph_rtp(void*, const char*, char*, std::size_t) override { refuse(kGraph); }
  void open_aie_context(xrt::aie::access_mode) override { refuse(kGraph); }
  void sync_aie_bo(xrt::bo&, const char*, xclBOSyncDirection, std::size_t, std::size_t) override {
    refuse(kGraph);
  }
  void reset_aie() override { refuse(kGraph); }
  void sync_aie_bo_nb(xrt::bo&, const char*, xclBOSyncDirection, std::size_t,
                      std::size_t) override {
    refuse(kGraph);
  }
  void wait_gmio(const char*) override { refuse(kGraph); }
  int start_profiling(int, const char*, const char*, std::uint32_t) override { refuse(kGraph); }
  std::uint64_t read_profiling(int) override { refuse(kGraph); }
  void stop_profiling(int) override { refuse(kGraph); }
  void load_axlf_meta(const axlf*) override { refuse(kGraph); }

 private:
  static constexpr const char* kGraph = "AI engine";

  SoftDevice& soft() const { return *handle_->soft; }

  OpenDevice* handle_;  // owns this
};

}  // namespace

std::span<const std::byte> file_at(const axlf* file) {
  return {reinterpret_cast<const std::byte*>(file), file->m_header.m_length};
}

OpenDevice* open_device(int index) {
  auto handle = std::make_unique<OpenDevice>();
  handle->soft = value_or_throw(SoftDevice::open(index));
  handle->core = xrt_core::get_userpf_device(handle.get(), static_cast<unsigned>(index));
  return handle.release();
}

std::shared_ptr<xrt_core::device> make_xrt_device(OpenDevice* handle) {
  return std::make_shared<XrtDevice>(handle);
}

}  // namespace sluice::soft_smartssd
