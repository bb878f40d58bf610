#include "core/calibrate/platform_text.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "base/units.h"

namespace sluice::calibrate {
namespace {

namespace fs = std::filesystem;

// Four digits, which is more than a measurement holds.
std::string rate_text(double per_second, std::string_view unit) {
  return '"' + sluice::rate_text(per_second, unit, 4) + '"';
}

std::string spread(const Figure& figure, std::string_view unit) {
  return fmt::format("# measured: {} repeats, {} to {}", figure.count, rate_text(figure.low, unit),
                     rate_text(figure.high, unit));
}

std::string rate_line(std::string_view key, const Figure& figure, std::string_view unit) {
  if (!figure.is_measured()) return fmt::format("# {} was not measured\n", key);
  return fmt::format("{} = {}  {}\n", key, rate_text(figure.value, unit), spread(figure, unit));
}

std::string duplex_line(platform::Duplex duplex, double share) {
  const bool is_full = duplex == platform::Duplex::full;
  return fmt::format(
      "duplex = \"{}\"  # measured: both ways at once take {:.2f} of the time that each way would "
      "alone (half predicts 1, full 2)\n",
      is_full ? "full" : "half", share);
}

// Nothing of a path may end the line of a comment.
std::string in_comment(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }, '?');
  return text;
}

std::string head(const Calibration& calibration) {
  const MachineFacts& machine = calibration.machine;
  std::string text = fmt::format(
      "# Measured by `sluice calibrate` on {}: {}, {} processors, {}, {} of memory.\n"
      "# docs/calibration.md says how, and what the figures mean. Spreads are lowest to highest.\n",
      machine.date, machine.processor, machine.processor_count, machine.kernel,
      format_bytes(machine.memory_bytes));
  for (std::size_t i = 0; i < calibration.drives.size(); ++i) {
    const Directory& directory = calibration.drives[i].directory;
    text +=
        fmt::format("# drive{}: {} ({})\n", i, in_comment(directory.path), directory.file_system);
  }
  for (const std::string& note : calibration.notes) text += "# " + in_comment(note) + "\n";
  return text + fmt::format("name = \"{}, {} processors, {} drive{}\"\n", machine.processor,
                            machine.processor_count, calibration.drives.size(),
                            calibration.drives.size() == 1 ? "" : "s");
}

std::string shared_line(std::string_view key, const SharedLimit& limit, const Figure& measured) {
  if (limit.is_found) {
    return fmt::format("{} = {}  {}\n", key, rate_text(limit.bytes_per_s, "B/s"),
                       spread(measured, "B/s"));
  }
  return fmt::format("{} = {}  # no shared limit was found: this is the sum of the drives\n", key,
                     rate_text(limit.bytes_per_s, "B/s"));
}

bool is_shared(const Calibration& calibration) {
  return calibration.together &&
         (calibration.together->read_limit.is_found || calibration.together->write_limit.is_found);
}

// Empty where there is nothing that devices share.
std::string link_table(const Calibration& calibration, DevicesAre devices) {
  if (devices == DevicesAre::emulated_csds && !is_shared(calibration)) {
    const std::string rate = rate_text(calibration.memory_copy.value, "B/s");
    return fmt::format(
        "\n[[link]]  # EMULATED: between the host and its emulated devices lies a copy of memory\n"
        "name = \"host\"\nread = {}  {}\nwrite = {}  # the same; no shared limit of the drives was "
        "found\nduplex = \"full\"\n",
        rate, spread(calibration.memory_copy, "B/s"), rate);
  }
  if (!calibration.together) return "";
  const TogetherFigures& together = *calibration.together;
  const BothWays limit{together.read_limit.bytes_per_s, together.write_limit.bytes_per_s};
  return "\n[[link]]  # all drives at once\nname = \"host\"\n" +
         shared_line("read", together.read_limit, together.read) +
         shared_line("write", together.write_limit, together.write) +
         (is_shared(calibration)
              ? duplex_line(together.duplex, share_of_time(limit, {together.mixed_read.value,
                                                                   together.mixed_write.value}))
              : std::string("duplex = \"full\"  # the drives bound it, not a link\n"));
}

std::string update_lines(const Calibration& calibration) {
  std::string text;
  for (const UpdateFigure& update : calibration.update)
    text += rate_line(update.name, update.elements_per_s, "elem/s");
  return text;
}

std::string wake_lines(const Wake& wake) {
  if (wake.seconds <= 0) return "# wake: layers take no longer after idling\n";
  return fmt::format(
      "wake = \"{:.4g} ms\"  # measured: so much work after 0.4 s of idling takes\n"
      "wake_takes = \"{:.4g} ms\"\n",
      wake.seconds * 1e3, wake.takes_seconds * 1e3);
}

std::string host_table(const Calibration& calibration) {
  return fmt::format("\n[host]  # {} threads; stage and checksum: one\nmemory = \"{} B\"\n",
                     calibration.thread_count, calibration.machine.memory_bytes) +
         update_lines(calibration) + rate_line("compress", calibration.compress, "elem/s") +
         rate_line("stage", calibration.stage, "elem/s") +
         rate_line("checksum", calibration.checksum, "B/s") +
         fmt::format("# copying memory: {}  {}\n", rate_text(calibration.memory_copy.value, "B/s"),
                     spread(calibration.memory_copy, "B/s"));
}

std::string compute_table(const Calibration& calibration) {
  if (calibration.accelerator) return accelerator_table(*calibration.accelerator);
  const ComputeRates& rates = calibration.compute;
  std::string text = "\n[compute]  # fitted to\n";
  for (const ComputeSample& sample : calibration.compute_samples) {
    text += fmt::format("#   {}: {:.1f} ms, the rates below give {:.1f} ms\n", sample.what,
                        sample.seconds * 1e3, rates.predict(sample) * 1e3);
  }
  text += fmt::format("matmul = {}\n", rate_text(rates.matmul, "FLOP/s"));
  if (rates.elementwise > 0) {
    text += fmt::format("elementwise = {}\n", rate_text(rates.elementwise, "elem/s"));
  }
  text += rate_line("compress", calibration.compress, "elem/s") + wake_lines(calibration.wake);
  return text + "processor = \"host\"  # forward and backward run on the host's cores\n";
}

std::string burst_lines(std::string_view direction, const platform::Burst& burst) {
  if (burst.size_bytes == 0) return fmt::format("# {}_burst: none was seen\n", direction);
  return fmt::format(
      "{0}_burst = \"{1} B\"  # measured: ahead of the rate after idling for 0.4 s\n"
      "{0}_burst_rate = {2}\n",
      direction, burst.size_bytes, rate_text(burst.bytes_per_s, "B/s"));
}

std::string toll_lines(const Toll& toll) {
  const std::string beside = fmt::format(
      "computing took {:+.1f} % longer beside {} of all drives (middle of {}; {:+.1f} to {:+.1f} "
      "%)",
      100 * toll.longer.value, format_rate(toll.bytes_per_s), toll.longer.count,
      100 * toll.longer.low, 100 * toll.longer.high);
  if (toll.processor_bytes_per_s == 0) {
    return fmt::format("# processor_bandwidth: none was seen: {}\n", beside);
  }
  return fmt::format("processor_bandwidth = {}  # measured: {}\n",
                     rate_text(toll.processor_bytes_per_s, "B/s"), beside);
}

std::string drive_table(const DriveFigures& drive, const Toll& toll) {
  const Figure read = drive.best(&CurvePoint::read);
  const Figure write = drive.best(&CurvePoint::write);
  std::string text = "\n[device.drive]\n" + rate_line("read", read, "B/s") +
                     rate_line("write", write, "B/s") +
                     duplex_line(drive.duplex, share_of_time(drive.alone(), drive.mixed()));
  text += "sharing = \"in_order\"  # a run asks for a file's transfers one after the other\n";
  const Figure& latency = drive.page_latency_seconds;
  text += fmt::format(
      "latency = \"{:.4g} us\"  # measured: a read of 4 KiB, median of {}, {:.4g} to {:.4g} us\n",
      latency.value * 1e6, latency.count, latency.low * 1e6, latency.high * 1e6);
  text += burst_lines("read", drive.read_burst) + burst_lines("write", drive.write_burst);
  text += toll_lines(toll);
  text += "# In flight at once (io_bytes x queue_depth, or a smaller transfer), read, write.\n";
  text += "chunk_curve = [\n";
  for (const CurvePoint& point : drive.curve) {
    text += fmt::format("  [\"{} KiB\", {}, {}],  # {:.4g} to {:.4g}, {:.4g} to {:.4g} MB/s\n",
                        point.inflight_bytes / 1024, rate_text(point.read.value, "B/s"),
                        rate_text(point.write.value, "B/s"), point.read.low / 1e6,
                        point.read.high / 1e6, point.write.low / 1e6, point.write.high / 1e6);
  }
  return text + "]\n";
}

std::string emulated_tables(const Calibration& calibration, const DriveFigures& drive) {
  const BothWays alone = drive.alone();
  std::string text = fmt::format(
      "\n[device.internal]  # EMULATED: the drive itself is all there is\nread = {}\nwrite = {}\n"
      "duplex = \"full\"\n\n[device.engine]  # EMULATED: the host's processor\n",
      rate_text(alone.read, "B/s"), rate_text(alone.write, "B/s"));
  text += update_lines(calibration);
  text += rate_line("decompress", calibration.decompress, "elem/s");
  return text + "processor = \"host\"\n";
}

std::string device_tables(const Calibration& calibration, std::size_t index, DevicesAre devices,
                          bool has_link) {
  const DriveFigures& drive = calibration.drives[index];
  std::string text = fmt::format("\n[[device]]\nname = \"drive{}\"\nvia = [{}]\n", index,
                                 has_link ? "\"host\"" : "");
  text += fmt::format("capacity = \"{} B\"\n", drive.directory.capacity_bytes);
  if (devices == DevicesAre::emulated_csds) {
    text += fmt::format("memory = \"{} B\"  # EMULATED: a share of the host's\n",
                        calibration.machine.memory_bytes / std::ssize(calibration.drives));
  } else {
    text += "# No update engine was found: method=host only.\n";
  }
  text += drive_table(drive, calibration.toll);
  if (devices == DevicesAre::emulated_csds) text += emulated_tables(calibration, drive);
  return text;
}

}  // namespace

std::string platform_text(const Calibration& calibration, DevicesAre devices) {
  const std::string link = link_table(calibration, devices);
  std::string text =
      head(calibration) + link + host_table(calibration) + compute_table(calibration);
  for (std::size_t i = 0; i < calibration.drives.size(); ++i) {
    text += device_tables(calibration, i, devices, !link.empty());
  }
  return text;
}

Status check_output(const std::string& path, IfThere if_there) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    return make_error(ErrorCode::config, "{}: is a folder; name a file", path);
  }
  if (fs::exists(path, error) && if_there == IfThere::refuse) {
    return make_error(ErrorCode::config, "{}: is there already; --force replaces it", path);
  }
  const fs::path folder = fs::absolute(path).parent_path();
  if (access(folder.c_str(), W_OK | X_OK) == 0) return ok_status();
  return make_error(ErrorCode::config, "{}: cannot be written: {}: {}", path, folder.string(),
                    strerror(errno));
}

Status write_platform(const std::string& text, const std::string& path) {
  const auto parsed = platform::parse_platform(text, path);
  if (!parsed.ok()) {
    return make_error(ErrorCode::internal,
                      "the measured platform does not load, nothing was "
                      "written, please report this: {}",
                      parsed.error().message());
  }
  const std::string part = fmt::format("{}.part-{}", path, getpid());
  std::error_code nothing_there;
  fs::remove(part, nothing_there);  // of a process that was killed, or a link of somebody's
  std::ofstream file(part);
  file << text;
  file.close();
  std::error_code error;
  if (file) fs::rename(part, path, error);
  if (file && !error) return ok_status();
  const int error_number = error ? error.value() : errno;
  std::error_code ignored;
  fs::remove(part, ignored);
  return make_error(error_number == ENOSPC ? ErrorCode::no_space : ErrorCode::io,
                    "{}: cannot be written: {}", path, strerror(error_number));
}

}  // namespace sluice::calibrate
