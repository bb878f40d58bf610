// Test programs run in the checkout's folder, wherever they are called from: SLUICE_SOURCE_DIR is
// "." in their sources, so that ccache serves one checkout's objects to another.

#define CATCH_CONFIG_RUNNER
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>

int main(int argc, char* argv[]) {
  if (chdir(SLUICE_CHECKOUT) != 0) {
    std::perror("cannot change to the checkout, " SLUICE_CHECKOUT);
    return 1;
  }
  return Catch::Session().run(argc, argv);
}
