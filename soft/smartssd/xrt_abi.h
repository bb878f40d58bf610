#pragma once
// The private C++ interface of XRT 2.13, between libxrt_coreutil.so.2 and a driver's library: only
// what a vtable needs, which is the order of the virtual functions and what is passed. Read from
// the vtables of Debian's libxrt_hwemu.a (`readelf -r`). With another XRT the library refuses to be
// one (xrt_abi_check.h).
//
// Names and layout are XRT's, hence the other namespace and no style of ours. The base classes'
// constructors, destructors and default functions are in libxrt_coreutil.
//
// Thread contract: XRT calls from any thread.
// Errors: exceptions, which XRT hands to its user.

#include <xrt.h>
#include <xrt/xrt_aie.h>
#include <xrt/xrt_graph.h>

#include <boost/any.hpp>
#include <boost/property_tree/ptree_fwd.hpp>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace xrt_core {

class device;

namespace query {

enum class key_type;
class reset_type;  // only ever a reference here

struct request {
  enum class modifier { subdev, entry };
  virtual ~request() = default;
  virtual boost::any get(const device*) const = 0;
  virtual boost::any get(const device*, const boost::any&) const = 0;
  virtual boost::any get(const device*, const boost::any&, const boost::any&) const = 0;
  virtual boost::any get(const device*, modifier, const std::string&) const = 0;
  virtual boost::any get(const device*, const boost::any&, const boost::any&,
                         const boost::any&) const = 0;
  virtual void put(const device*, const boost::any&) const = 0;
};

class exception : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// XRT catches this one and falls back to the xclbin.
class no_such_key : public exception {
 public:
  explicit no_such_key(key_type key) : exception("no such query"), m_key(key) {}
  key_type get_key() const { return m_key; }

 private:
  key_type m_key;
};

}  // namespace query

struct ishim {
  virtual void close_device() = 0;
  virtual void open_context(const unsigned char* xclbin, unsigned unit, bool shared) = 0;
  virtual void close_context(const unsigned char* xclbin, unsigned unit) = 0;
  virtual unsigned alloc_bo(std::size_t size, unsigned flags) = 0;
  virtual unsigned alloc_bo(void* host, std::size_t size, unsigned flags) = 0;
  virtual void free_bo(unsigned handle) = 0;
  virtual int export_bo(unsigned handle) const = 0;
  virtual unsigned import_bo(int fd) = 0;
  virtual void close_export_handle(int fd) = 0;
  virtual unsigned import_bo(int pid, int fd);
  virtual void copy_bo(unsigned to, unsigned from, std::size_t size, std::size_t to_offset,
                       std::size_t from_offset) = 0;
  virtual void sync_bo(unsigned handle, xclBOSyncDirection direction, std::size_t size,
                       std::size_t offset) = 0;
  virtual void* map_bo(unsigned handle, bool write) = 0;
  virtual void unmap_bo(unsigned handle, void* mapped) = 0;
  virtual void get_bo_properties(unsigned handle, xclBOProperties* properties) const = 0;
  virtual void reg_read(std::uint32_t unit, std::uint32_t offset, std::uint32_t* data) const = 0;
  virtual void reg_write(std::uint32_t unit, std::uint32_t offset, std::uint32_t data) = 0;
  virtual void xread(xclAddressSpace, std::uint64_t offset, void* data, std::size_t size) const = 0;
  virtual void xwrite(xclAddressSpace, std::uint64_t offset, const void* data,
                      std::size_t size) = 0;
  virtual void unmgd_pread(void* data, std::size_t size, std::uint64_t offset) = 0;
  virtual void unmgd_pwrite(const void* data, std::size_t size, std::uint64_t offset) = 0;
  virtual void exec_buf(unsigned handle) = 0;
  virtual int exec_wait(int timeout_ms) const = 0;
  virtual void load_axlf(const axlf*) = 0;
  virtual void reclock(const std::uint16_t* mhz) = 0;
  virtual void p2p_enable(bool force) = 0;
  virtual void p2p_disable(bool force) = 0;
  virtual void set_cma(bool enable, std::uint64_t size) = 0;
  virtual void update_scheduler_status() = 0;
  virtual void user_reset(xclResetKind) = 0;
  virtual int open_ip_interrupt_notify(unsigned unit);
  virtual void close_ip_interrupt_notify(int);
  virtual void enable_ip_interrupt(int);
  virtual void disable_ip_interrupt(int);
  virtual void wait_ip_interrupt(int);
  virtual std::cv_status wait_ip_interrupt(int, std::int32_t timeout_ms);
  // 21 slots for AI engines, which a SmartSSD has none of.
  virtual void* open_graph(const unsigned char*, const char*, xrt::graph::access_mode) = 0;
  virtual void close_graph(void*) = 0;
  virtual void reset_graph(void*) = 0;
  virtual std::uint64_t get_timestamp(void*) = 0;
  virtual void run_graph(void*, int) = 0;
  virtual int wait_graph_done(void*, int) = 0;
  virtual void wait_graph(void*, std::uint64_t) = 0;
  virtual void suspend_graph(void*) = 0;
  virtual void resume_graph(void*) = 0;
  virtual void end_graph(void*, std::uint64_t) = 0;
  virtual void update_graph_rtp(void*, const char*, const char*, std::size_t) = 0;
  virtual void read_graph_rtp(void*, const char*, char*, std::size_t) = 0;
  virtual void open_aie_context(xrt::aie::access_mode) = 0;
  virtual void sync_aie_bo(xrt::bo&, const char*, xclBOSyncDirection, std::size_t, std::size_t) = 0;
  virtual void reset_aie() = 0;
  virtual void sync_aie_bo_nb(xrt::bo&, const char*, xclBOSyncDirection, std::size_t,
                              std::size_t) = 0;
  virtual void wait_gmio(const char*) = 0;
  virtual int start_profiling(int, const char*, const char*, std::uint32_t) = 0;
  virtual std::uint64_t read_profiling(int) = 0;
  virtual void stop_profiling(int) = 0;
  virtual void load_axlf_meta(const axlf*) = 0;

 protected:
  ~ishim() = default;
};

class device : public ishim {
 public:
  explicit device(unsigned id);
  virtual ~device();
  virtual void* get_device_handle() const = 0;
  virtual void* get_mgmt_handle() const;
  virtual void* get_user_handle() const;
  virtual bool is_userpf() const;
  virtual const query::request& lookup_query(query::key_type) const = 0;
  virtual void get_info(boost::property_tree::ptree&) const;
  virtual void read(std::uint64_t offset, void* data, std::uint64_t size) const;
  virtual void write(std::uint64_t offset, const void* data, std::uint64_t size) const;
  virtual void reset(query::reset_type&) const;
  virtual void xclmgmt_load_xclbin(const char*) const;
  virtual int open(const std::string&, int) const;
  virtual void close(int) const;

  // A driver's part of loading an xclbin: XRT looks up kernels and banks in the copy it then keeps.
  void register_axlf(const axlf*);

 private:
  // Where coreutil's constructor keeps its members: about 100 bytes.
  alignas(16) unsigned char members_of_xrt_[512];
};

class system {
 public:
  system();
  virtual void get_xrt_info(boost::property_tree::ptree&);
  virtual void get_os_info(boost::property_tree::ptree&);
  virtual void get_devices(boost::property_tree::ptree&) const;
  virtual unsigned get_device_id(const std::string& text) const;
  virtual std::pair<unsigned, unsigned> get_total_devices(bool is_user) const = 0;
  virtual std::shared_ptr<device> get_userpf_device(unsigned id) const = 0;
  virtual std::shared_ptr<device> get_userpf_device(void* handle, unsigned id) const = 0;
  virtual std::shared_ptr<device> get_mgmtpf_device(unsigned id) const = 0;
  virtual int get_monitor_access_type() const;
  virtual void program_plp(const device*, const std::vector<char>&, bool) const;
  virtual void mem_read(const device*, long long, long long, const std::string&) const;
  virtual void mem_write(const device*, long long, long long, unsigned) const;

 protected:
  ~system() = default;
};

// Asks the system for a device and remembers it by its handle, as every opening has to. The driver
// keeps the device; XRT closes it with close_device().
std::shared_ptr<device> get_userpf_device(void* handle, unsigned id);

}  // namespace xrt_core
