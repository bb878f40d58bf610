// NVTX: a program's ranges, with or without a GPU. The program's own copy of NVTX finds this
// library by NVTX_INJECTION64_PATH, and is given the functions below.
//
// Thread contract: that of NVTX: any thread.

#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "profiler/inject/nvtx_abi.h"
#include "profiler/inject/process_recording.h"

namespace sluice::inject {
namespace {

constexpr std::size_t kNameMax = 200;

struct Range {
  std::string name;
  std::int64_t begin_ns = 0;
};

std::string name_of(const char* text) {
  if (text == nullptr) return "range";
  return std::string(text).substr(0, kNameMax);
}

// As UTF-8; wchar_t is UTF-32 here.
std::string name_of(const wchar_t* text) {
  std::string name;
  for (; text != nullptr && *text != 0 && name.size() < kNameMax; ++text) {
    const auto code = static_cast<std::uint32_t>(*text);
    const auto later = [&](int shift) {
      name += static_cast<char>(0x80u | (code >> shift & 0x3fu));
    };
    if (code < 0x80) {
      name += static_cast<char>(code);
    } else if (code < 0x800) {
      name += static_cast<char>(0xc0u | code >> 6);
      later(0);
    } else if (code < 0x10000) {
      name += static_cast<char>(0xe0u | code >> 12);
      later(6), later(0);
    } else {
      name += static_cast<char>(0xf0u | (code >> 18 & 7u));
      later(12), later(6), later(0);
    }
  }
  return name.empty() ? "range" : name;
}

// Registered strings and domains are theirs for as long as the program lives.
template <typename Text>
nvtx::RegisteredString registered(nvtx::Domain, Text text) {
  return new std::string(name_of(text));
}
template <typename Text>
nvtx::Domain created(Text text) {
  return new std::string(name_of(text));
}

std::string name_of(const nvtx::EventAttributes* event) {
  if (event == nullptr) return "range";
  if (event->message_type == nvtx::kMessageAscii) return name_of(event->message.ascii);
  if (event->message_type == nvtx::kMessageUnicode) return name_of(event->message.unicode);
  if (event->message_type == nvtx::kMessageRegistered && event->message.registered != nullptr)
    return *static_cast<const std::string*>(event->message.registered);
  return "range";
}

// A thread's open ranges, which end in the order of a stack in each domain.
thread_local std::map<nvtx::Domain, std::vector<Range>> pushed;

int push(nvtx::Domain domain, std::string name) {
  std::vector<Range>& stack = pushed[domain];
  const std::int64_t begin_ns = range_begins(name);
  stack.push_back({std::move(name), begin_ns});
  return static_cast<int>(stack.size()) - 1;
}
int pop(nvtx::Domain domain) {
  std::vector<Range>& stack = pushed[domain];
  if (stack.empty()) return -1;
  const Range range = std::move(stack.back());
  stack.pop_back();
  range_ends(range.name, range.begin_ns);
  return static_cast<int>(stack.size());
}

// Ranges that may end on another thread.
class Started {
 public:
  nvtx::RangeId add(std::string name) {
    const std::int64_t begin_ns = range_begins(name);
    MutexLock lock(mutex_);
    ranges_[++last_] = {std::move(name), begin_ns};
    return last_;
  }
  void end(nvtx::RangeId id) {
    Range range;
    {
      MutexLock lock(mutex_);
      const auto found = ranges_.find(id);
      if (found == ranges_.end()) return;
      range = std::move(found->second);
      ranges_.erase(found);
    }
    range_ends(range.name, range.begin_ns);
  }

 private:
  Mutex mutex_;
  nvtx::RangeId last_ GUARDED_BY(mutex_) = 0;
  std::unordered_map<nvtx::RangeId, Range> ranges_ GUARDED_BY(mutex_);
};

Started& started() {
  static Started* const all = new Started();  // used until the last instant
  return *all;
}

template <typename Text>
int push_plain(Text text) {
  return push(nullptr, name_of(text));
}
int pop_plain() { return pop(nullptr); }
template <typename Text>
nvtx::RangeId start_plain(Text text) {
  return started().add(name_of(text));
}
void end_plain(nvtx::RangeId id) { started().end(id); }

int push_in(nvtx::Domain domain, const nvtx::EventAttributes* event) {
  return push(domain, name_of(event));
}
nvtx::RangeId start_in(nvtx::Domain, const nvtx::EventAttributes* event) {
  return started().add(name_of(event));
}
void end_in(nvtx::Domain, nvtx::RangeId id) { started().end(id); }

// The functions of one of NVTX's modules.
class FunctionTable {
 public:
  FunctionTable(const nvtx::Callbacks& callbacks, nvtx::Module module) {
    if (callbacks.get_functions(module, &functions_, &count_) == 0) count_ = 0;
  }
  template <typename Id, typename Result, typename... Parameters>
  void set(Id id, Result (*function)(Parameters...)) {
    const auto number = static_cast<unsigned>(id);
    if (number < count_ && functions_[number] != nullptr)
      *functions_[number] = reinterpret_cast<nvtx::Function>(function);
  }

 private:
  nvtx::Function** functions_ = nullptr;
  unsigned count_ = 0;
};

using Event = const nvtx::EventAttributes*;

void set_core(FunctionTable functions) {
  using Id = nvtx::Core;
  functions.set(Id::range_start_ex, &start_plain<Event>);
  functions.set(Id::range_start_ascii, &start_plain<const char*>);
  functions.set(Id::range_start_unicode, &start_plain<const wchar_t*>);
  functions.set(Id::range_end, &end_plain);
  functions.set(Id::range_push_ex, &push_plain<Event>);
  functions.set(Id::range_push_ascii, &push_plain<const char*>);
  functions.set(Id::range_push_unicode, &push_plain<const wchar_t*>);
  functions.set(Id::range_pop, &pop_plain);
}

void set_core2(FunctionTable functions) {
  using Id = nvtx::Core2;
  functions.set(Id::range_start_ex, &start_in);
  functions.set(Id::range_end, &end_in);
  functions.set(Id::range_push_ex, &push_in);
  functions.set(Id::range_pop, &pop);
  functions.set(Id::register_string_ascii, &registered<const char*>);
  functions.set(Id::register_string_unicode, &registered<const wchar_t*>);
  functions.set(Id::create_ascii, &created<const char*>);
  functions.set(Id::create_unicode, &created<const wchar_t*>);
}

}  // namespace
}  // namespace sluice::inject

// NvtxInitializeInjectionNvtxFunc_t: 1 where the tool is there.
extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    sluice::inject::nvtx::GetExportTable get_export_table) {
  using namespace sluice::inject;
  if (!is_recording() || get_export_table == nullptr) return 0;
  const auto* const callbacks =
      static_cast<const nvtx::Callbacks*>(get_export_table(nvtx::kCallbacks));
  if (callbacks == nullptr || callbacks->struct_size < sizeof(nvtx::Callbacks)) return 0;
  set_core({*callbacks, nvtx::Module::core});
  set_core2({*callbacks, nvtx::Module::core2});
  return 1;
}
