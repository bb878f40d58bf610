// A program that computes its gradients itself and leaves its optimizer state to Sluice: two
// tensors, each pulled towards a target. Give it a folder, a platform file and a number of steps,
// and any settings after them:
//
//   own_gradients out/mine sample_models/platforms/laptop.toml 100 method=host
//   subgroup_elements=2048
//
// Stop it however you like and start it again: it goes on from its last commit. While it runs, try
// `sluice show out/mine/run.db` and `sluice set out/mine/run.db pipeline=serial`.

#include <bit>
#include <cstdio>
#include <cstdlib>

#include "core/session/session.h"

using sluice::session::Session;

int failed(const sluice::Error& error) {
  std::fprintf(stderr, "own_gradients: %s\n", error.message().c_str());
  return 1;
}

int main(int argc, char** argv) {
  if (argc < 4) return std::puts("own_gradients FOLDER PLATFORM.toml STEPS [key=value ...]"), 2;
  Session::Request request{.folder = argv[1], .tensors = {{"weight", {96, 64}}, {"bias", {96}}}};
  request.initial = [](std::size_t, std::int64_t first, std::span<float> out) {
    for (float& value : out) value = static_cast<float>(first++ % 100) / 100;
  };
  request.settings.assign(argv + 4, argv + argc);
  request.settings.push_back(std::string("platform=") + argv[2]);
  auto opened = Session::open(request);
  if (!opened.ok()) return failed(opened.error());
  Session& session = **opened;
  bool stops = false;
  for (const int steps = std::atoi(argv[3]); session.step() < steps && !stops;) {
    for (const std::size_t tensor : {0, 1}) {
      if (const auto up = session.wait(tensor); !up.ok()) return failed(up.error());
      std::vector<float> gradient;
      for (const std::uint32_t bf16 : session.parameters(tensor)) {
        gradient.push_back(std::bit_cast<float>(bf16 << 16) - 0.5F);
      }
      if (const auto sent = session.send(tensor, gradient); !sent.ok()) return failed(sent.error());
    }
    const auto done = session.take_step({.lr = 0.01});
    if (!done.ok()) return failed(done.error());
    std::printf("step %ld: |gradient| %.9g\n", static_cast<long>(done->step), done->grad_norm);
    std::fflush(stdout);
    stops = done->is_stopping;
  }
  if (const auto closed = session.close(); !closed.ok()) return failed(closed.error());
}
