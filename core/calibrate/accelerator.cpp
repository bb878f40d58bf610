#include "core/calibrate/accelerator.h"

#include <algorithm>

#include "base/check.h"
#include "base/units.h"
#include "core/calibrate/fit.h"

namespace sluice::calibrate {
namespace {

Figure rate_of(double work, const std::vector<double>& seconds) {
  std::vector<double> rates;
  for (const double taken : seconds) rates.push_back(work / taken);
  return figure_of(std::move(rates));
}

std::string text_of(double per_second, std::string_view unit) {
  return '"' + rate_text(per_second, unit, 4) + '"';
}

std::string with_spread(const Figure& figure, std::string_view unit) {
  return fmt::format("{}  # measured: {} repeats, {} to {}\n", text_of(figure.value, unit),
                     figure.count, text_of(figure.low, unit), text_of(figure.high, unit));
}

}  // namespace

const AcceleratorCopies& AcceleratorFigures::of_a_run() const {
  const auto pinned = std::find_if(copies.rbegin(), copies.rend(),
                                   [](const AcceleratorCopies& of) { return of.is_pinned; });
  CHECK(pinned != copies.rend());
  return *pinned;
}

Figure AcceleratorFigures::matmul() const {
  return std::ranges::max_element(products, {},
                                  [](const AcceleratorProducts& of) { return of.flop_per_s.value; })
      ->flop_per_s;
}

AcceleratorFigures figures_of(const model::DeviceTimes& times) {
  AcceleratorFigures figures;
  figures.description = times.description;
  figures.memory_bytes = times.memory_bytes;
  figures.computes_on_processor = times.computes_on_processor;
  for (const model::CopyTimes& of : times.copies) {
    const auto bytes = static_cast<double>(of.size_bytes);
    figures.copies.push_back({of.size_bytes, of.is_pinned, rate_of(bytes, of.in_seconds),
                              rate_of(bytes, of.out_seconds)});
  }
  figures.latency_seconds = figure_of(times.small_seconds);
  const AcceleratorCopies& alone = figures.of_a_run();
  figures.mixed = rate_of(2 * static_cast<double>(alone.size_bytes), times.both_ways_seconds);
  const double each = figures.mixed.value / 2;
  figures.duplex = fit_duplex({alone.out.value, alone.in.value}, {each, each});
  for (const model::ProductTimes& of : times.products)
    figures.products.push_back({of.side, rate_of(of.flop(), of.seconds)});
  return figures;
}

std::string accelerator_table(const AcceleratorFigures& figures) {
  const AcceleratorCopies& of_a_run = figures.of_a_run();
  const bool is_full = figures.duplex == platform::Duplex::full;
  std::string text = fmt::format("\n[compute]  # {}, {} of memory\n", figures.description,
                                 format_bytes(figures.memory_bytes));
  for (const AcceleratorProducts& of : figures.products) {
    text += fmt::format("# products of {0} x {0} in bf16: {1}", of.side,
                        with_spread(of.flop_per_s, "FLOP/s"));
  }
  text += fmt::format("matmul = {}", with_spread(figures.matmul(), "FLOP/s"));
  text += "# elementwise was not measured: what a layer does to single values costs nothing here\n";
  if (figures.computes_on_processor)
    text += "# Its kernels run on the host's cores; that they share their time is left out here.\n";
  text += "\n[compute.link]  # write: to the accelerator; read: from it\n";
  text += "# Copies one at a time, from their call to their end:\n";
  for (const AcceleratorCopies& of : figures.copies) {
    text += fmt::format("#   {} MiB, {}: in {}", of.size_bytes >> 20,
                        of.is_pinned ? "pinned" : "pageable", with_spread(of.in, "B/s"));
    text += fmt::format("#   {} MiB, {}: out {}", of.size_bytes >> 20,
                        of.is_pinned ? "pinned" : "pageable", with_spread(of.out, "B/s"));
  }
  text += fmt::format("read = {}", with_spread(of_a_run.out, "B/s"));
  text += fmt::format("write = {}", with_spread(of_a_run.in, "B/s"));
  text += fmt::format("duplex = \"{}\"  # measured: both ways at once move {} together, {} to {}\n",
                      is_full ? "full" : "half", format_rate(figures.mixed.value),
                      format_rate(figures.mixed.low), format_rate(figures.mixed.high));
  const Figure& latency = figures.latency_seconds;
  text += fmt::format(
      "latency = \"{:.4g} us\"  # measured: a copy of 4 KiB, median of {}, {:.4g} to {:.4g} us\n",
      latency.value * 1e6, latency.count, latency.low * 1e6, latency.high * 1e6);
  return text;
}

}  // namespace sluice::calibrate
